"""What is wrong with the layout of a figure, as a browser draws it at its own size."""

from __future__ import annotations

from collections.abc import Iterable

# Every text as the four corners of its box, after rotation. Boxes are as high as the line, letters
# are not, so they are taken a little smaller.
_SCRIPT = """
(svg) => {
  document.body.innerHTML = svg;
  const root = document.querySelector("svg");
  const [, , width, height] = root.getAttribute("viewBox").split(" ").map(Number);
  root.setAttribute("width", width);
  root.setAttribute("height", height);
  const faults = [];
  const texts = [...root.querySelectorAll("text")].filter((t) => t.textContent.trim()).map((t) => {
    const box = t.getBBox();
    const matrix = root.getCTM().inverse().multiply(t.getCTM());
    const top = box.y + 0.2 * box.height, bottom = box.y + 0.85 * box.height;
    const corners = [[box.x, top], [box.x + box.width, top], [box.x + box.width, bottom],
      [box.x, bottom]].map(([x, y]) => {
        const p = new DOMPoint(x, y).matrixTransform(matrix);
        return [p.x, p.y];
      });
    return { text: t.textContent, corners, size: parseFloat(getComputedStyle(t).fontSize) };
  });
  // Two convex shapes are apart if a line along one of their edges parts them.
  const parted = (a, b) => [a, b].some((shape) => shape.some((corner, i) => {
    const next = shape[(i + 1) % 4];
    const [nx, ny] = [next[1] - corner[1], corner[0] - next[0]];
    const along = (s) => s.map(([x, y]) => x * nx + y * ny);
    const [p, q] = [along(a), along(b)];
    return Math.max(...p) <= Math.min(...q) || Math.max(...q) <= Math.min(...p);
  }));
  texts.forEach(({ text, corners, size }, i) => {
    if (size < 15) faults.push(`"${text}" is ${size} px high`);
    if (corners.some(([x, y]) => x < 0 || y < 0 || x > width || y > height))
      faults.push(`"${text}" is cut off`);
    for (const other of texts.slice(i + 1))
      if (!parted(corners, other.corners)) faults.push(`"${text}" is on "${other.text}"`);
  });
  for (const shape of root.querySelectorAll("rect, circle, path, polygon, polyline, line")) {
    const box = shape.getBBox();
    const [right, bottom] = [box.x + box.width, box.y + box.height];
    if (box.x < -2 || box.y < -2 || right > width + 2 || bottom > height + 2)
      faults.push(`a ${shape.localName} is cut off: ${shape.outerHTML.slice(0, 120)}`);
  }
  return faults;
}
"""


def faults(page, frames: Iterable) -> list[str]:
    """Texts of frames (svg, caption) that are cut off, on top of one another or below 15 pixels."""
    page.set_content("<body style='margin:0'></body>")
    found = []
    for number, (svg, _) in enumerate(frames):
        found += [f"step {number + 1}: {fault}" for fault in page.evaluate(_SCRIPT, svg)]
    return found
