// What notebooks of others bring: headings of three lines, lists and tables of any size, images.

const SMALLEST_ZOOM = 0.5; // of what does not fit its sheet at any size of type
const COLUMN_LINES = 18; // of a text that is set in columns

// Long headings take two or three lines, and what is below them moves down.
function setTitles(sections) {
  const sheets = sections.map((section) => section.querySelector(".sheet")).filter((sheet) => sheet.querySelector(".title"));
  const over = (sheet) => {
    const title = sheet.querySelector(".title");
    const most = sheet.matches(".opening") ? (sheet.matches(".long-title") ? 400 : 150) : 78;
    return title.scrollWidth > title.clientWidth + 1 || title.scrollHeight > most;
  };
  for (const name of ["long-title", "longer-title"]) {
    for (const sheet of sheets.filter(over)) sheet.classList.add(name);
  }
  // The opening's heading is set large, and everything else begins below it.
  const opening = sheets.find((sheet) => sheet.matches(".opening"));
  if (opening) {
    const title = opening.querySelector(".title");
    opening.style.setProperty("--opening-top", `${Math.max(236, title.offsetTop + title.offsetHeight + 28)}px`);
  }
}

// Images are measured when they are there.
const imagesReady = () =>
  Promise.all([...slides.querySelectorAll("img")].map((image) => image.decode().catch(() => {})));

// Text and links that stand in no paragraph, as HTML of others has them, get one.
const IN_LINE = "a, abbr, b, br, code, em, font, i, img, kbd, mark, q, ruby, small, span, strong, sub, sup, u";
function gather(block) {
  let run = null;
  for (const node of [...block.childNodes]) {
    const words = node.nodeType === Node.TEXT_NODE && (run || node.data.trim());
    if (words || node.nodeType === Node.ELEMENT_NODE && node.matches(IN_LINE) && !node.matches(".maths-line")) {
      if (!run) node.before(run = make("p", ""));
      run.append(node);
    } else if (node.nodeType === Node.ELEMENT_NODE) run = null;
  }
}

// A list that is longer than a sheet, item by item.
function* splitList(block) {
  const list = block.children.length === 1 && block.querySelector(":scope > :is(ul, ol)");
  if (!list || !block.matches(".prose") || list.children.length < 2) return [block];
  const items = [...list.children];
  const first = Number(list.getAttribute("start") ?? 1);
  const count = yield () => Math.ceil(list.offsetHeight / (0.97 * block.parentElement.clientHeight));
  if (count < 2) return [block];
  return pieces(items, items.map(() => "x"), items.length, count).map((piece, n, all) => {
    const copy = list.cloneNode(false);
    if (list.localName === "ol") copy.start = first + items.indexOf(piece[0]);
    copy.append(...piece);
    const part = block.cloneNode(false);
    part.append(copy);
    part.dataset.part = `${n + 1}/${all.length}`;
    return part;
  });
}

// Many short lines, as a long list of numbers has them, stand in columns.
function inColumns(block, lines) {
  const longest = Math.max(...lines.map((line) => line.textContent.length));
  const columns = Math.min(6, Math.floor(88 / (longest + 5)));
  if (lines.length <= COLUMN_LINES || columns < 2) return null;
  const count = Math.ceil(lines.length / (COLUMN_LINES * columns));
  const each = Math.ceil(lines.length / count);
  return Array.from({ length: count }, (_, n) => {
    const part = block.cloneNode(false);
    const inner = make("pre", "lines columns");
    inner.style.columnCount = columns;
    lines.slice(n * each, (n + 1) * each).forEach((line, at) => inner.append(...(at ? ["\n"] : []), line));
    part.append(inner);
    if (count > 1) part.dataset.part = `${n + 1}/${count}`;
    return part;
  });
}

// A table that is wider than a sheet is set smaller, and then cut between columns, each part with
// the columns that name the rows.
function* splitColumns(block) {
  const table = block.querySelector(":scope > table");
  if (!table) return [block];
  const wide = () => table.offsetWidth > block.parentElement.clientWidth + 1;
  if (!(yield wide)) return [block];
  table.classList.add("wide");
  if (!(yield wide)) return [block];
  const rows = [...table.rows];
  if (table.querySelector("[colspan]:not([colspan='1']), [rowspan]:not([rowspan='1'])")) return [block];
  const [widths, room] = yield () => [
    [...rows[0].cells].map((cell) => cell.offsetWidth + 1), block.parentElement.clientWidth - 8];
  if (rows.some((row) => row.cells.length !== widths.length)) return [block];
  const body = table.tBodies[0]?.rows[0] ?? rows[0];
  const keys = [...body.cells].findIndex((cell) => cell.localName !== "th");
  const named = Math.max(0, Math.min(keys, 3));
  const taken = widths.slice(0, named).reduce((a, b) => a + b, 0);
  const groups = [[]];
  let filled = taken;
  for (let at = named; at < widths.length; at++) {
    if (groups.at(-1).length && filled + widths[at] > room) {
      groups.push([]);
      filled = taken;
    }
    groups.at(-1).push(at);
    filled += widths[at];
  }
  const rest = [...block.children].filter((child) => child !== table);
  const made = groups.map((group) => {
    const part = block.cloneNode(false);
    const copy = table.cloneNode(true);
    for (const row of copy.rows) {
      [...row.cells].forEach((cell, at) => at < named || group.includes(at) || cell.remove());
    }
    part.append(copy);
    block.before(part); // to be measured
    return part;
  });
  made.at(-1).append(...rest);
  block.remove();
  return made;
}

// What still is too large becomes smaller as a whole: on paper, nothing can be scrolled.
function* shrink(body, over) {
  for (let zoom = 0.9; zoom >= SMALLEST_ZOOM - 0.01; zoom -= 0.1) {
    for (const child of body.children) child.style.zoom = zoom.toFixed(2);
    if (!(yield over)) return;
  }
}
