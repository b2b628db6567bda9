// q·k with a k that follows the pointer or the arrow keys. The picture without k comes as SVG from
// the model (`scene`), as do the places of what is drawn here (`layout_of`).

const STEP = 0.05; // coordinates that a pointer can reach
const KEY_STEP = 0.1;
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

function shape(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function number(value, digits = 2) {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

function factor(value) {
  const text = number(value);
  return text.startsWith("−") ? `(${text})` : text;
}

const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
const pair = (v) => `(${number(v[0])}, ${number(v[1])})`;

function texts(q, k, verdicts) {
  const lengths = [Math.hypot(...q), Math.hypot(...k)];
  const cross = Math.abs(q[0] * k[1] - q[1] * k[0]);
  const angle = lengths[1] === 0 ? Math.PI / 2 : Math.atan2(cross, dot(q, k));
  const cosine = lengths[1] === 0 ? 0 : dot(q, k) / (lengths[0] * lengths[1]);
  return {
    k: `k = ${pair(k)}`,
    terms: `${factor(q[0])}·${factor(k[0])} + ${factor(q[1])}·${factor(k[1])}`,
    dot: `q·k = ${number(dot(q, k))}`,
    angle: `θ = ${number((angle * 180) / Math.PI, 0)}°`,
    cosine: `|q|·|k|·cos θ = ${number(lengths[0])}·${number(lengths[1])}·${factor(cosine)}`,
    verdict: verdicts.find(([bound]) => Math.cos(angle) >= bound)[1],
  };
}

function render({ model, el }) {
  const { plane, gauge, lines, verdicts } = model.get("layout_of");
  const root = document.createElement("div");
  root.className = "figure-player";
  root.setAttribute("role", "group");
  const stage = document.createElement("div");
  stage.className = "figure-player-stage";
  const hint = document.createElement("p");
  hint.className = "figure-player-hint";
  hint.textContent = "Drag k, or move it with the arrow keys.";
  root.append(stage, hint);

  let k = [...model.get("k")];
  let dragging = false;

  const area = shape("rect", {
    x: plane.x, y: plane.y, width: plane.side, height: plane.side, fill: "transparent", class: "figure-drag",
  });
  const across = shape("line", { stroke: "var(--fig-muted)", "stroke-width": 2, "stroke-dasharray": "4 4" });
  const share = shape("line", { stroke: "var(--fig-purple)", "stroke-width": 7, opacity: 0.75 });
  const shaft = shape("line", { stroke: "var(--fig-orange)", "stroke-width": 4 });
  const head = shape("polygon", { fill: "var(--fig-orange)" });
  const label = shape("text", {
    "font-size": 22, "font-weight": 600, "text-anchor": "middle", fill: "var(--fig-orange)",
    stroke: "var(--fig-paper)", "stroke-width": 5, "paint-order": "stroke",
  });
  label.textContent = "k";
  const handle = shape("circle", {
    r: 16, class: "figure-handle", role: "slider", tabindex: 0, "aria-label": "k",
    "aria-orientation": "horizontal",
  });
  const bar = shape("rect", { y: gauge.y, height: gauge.height, fill: "var(--fig-purple)" });
  const written = {};
  for (const [name, [x, y, size]] of Object.entries(lines)) {
    written[name] = shape("text", {
      x, y, "font-size": size, class: `figure-dot-${name}`,
      "font-family": name === "verdict" ? "inherit" : "var(--fig-mono)",
      "font-weight": name === "dot" || name === "verdict" ? 600 : 400,
      fill: `var(--fig-${{ k: "orange", dot: "purple" }[name] ?? "ink"})`,
    });
  }
  // The arrow lies on the area but must not keep the pointer from it.
  for (const part of [across, share, shaft, head, label]) part.setAttribute("pointer-events", "none");
  const moving = shape("g", {});
  moving.append(area, across, share, shaft, head, label, handle, bar, ...Object.values(written));

  const scale = () => plane.side / (2 * model.get("extent"));
  const at = ([x, y]) => [
    plane.x + plane.side / 2 + x * scale(), plane.y + plane.side / 2 - y * scale(),
  ];
  const ends = (line, [x1, y1], [x2, y2]) => {
    for (const [name, value] of Object.entries({ x1, y1, x2, y2 })) line.setAttribute(name, value);
  };

  function draw() {
    const q = model.get("q");
    const product = dot(q, k);
    const most = (Math.abs(q[0]) + Math.abs(q[1])) * model.get("extent");
    const foot = q.map((value) => (product / dot(q, q)) * value);
    const [origin, tip] = [at([0, 0]), at(k)];
    ends(across, tip, at(foot));
    ends(share, origin, at(foot));
    const length = Math.hypot(tip[0] - origin[0], tip[1] - origin[1]) || 1;
    const [ux, uy] = [(tip[0] - origin[0]) / length, (tip[1] - origin[1]) / length];
    const size = Math.min(14, length);
    const base = [tip[0] - size * ux, tip[1] - size * uy];
    ends(shaft, origin, base);
    const wing = 0.45 * size;
    const corners = [
      tip, [base[0] - wing * uy, base[1] + wing * ux], [base[0] + wing * uy, base[1] - wing * ux],
    ];
    head.setAttribute("points", corners.map((corner) => corner.join(" ")).join(" "));
    // Beyond the tip, and inside the square.
    const inside = (value, low) => Math.min(Math.max(value, low + 12), low + plane.side - 12);
    label.setAttribute("x", inside(tip[0] + 32 * ux, plane.x));
    label.setAttribute("y", inside(tip[1] + 32 * uy, plane.y) + 8);
    handle.setAttribute("cx", tip[0]);
    handle.setAttribute("cy", tip[1]);
    const reach = (gauge.width / 2) * Math.min(Math.max(product / most, -1), 1);
    bar.setAttribute("x", gauge.x + gauge.width / 2 + Math.min(reach, 0));
    bar.setAttribute("width", Math.abs(reach));
    const text = texts(q, k, verdicts);
    for (const [name, element] of Object.entries(written)) element.textContent = text[name];
    handle.setAttribute("aria-valuemin", number(-most).replace("−", "-"));
    handle.setAttribute("aria-valuemax", number(most));
    handle.setAttribute("aria-valuenow", number(product).replace("−", "-"));
    handle.setAttribute("aria-valuetext", `${pair(k)}, ${text.dot}`);
  }

  function move(x, y) {
    const extent = model.get("extent");
    k = [x, y].map((value) => {
      const rounded = Math.round(Math.min(Math.max(value, -extent), extent) / STEP) * STEP;
      return Number(rounded.toFixed(2)) + 0; // no -0
    });
    draw();
  }

  function tell() {
    if (k.join() !== model.get("k").join()) {
      model.set("k", [...k]);
      model.save_changes();
    }
  }

  function follow(event) {
    // The box on the screen, so that a slide that is scaled as a whole is right as well.
    const box = area.getBoundingClientRect();
    const extent = model.get("extent");
    move(
      ((2 * (event.clientX - box.left)) / box.width - 1) * extent,
      (1 - (2 * (event.clientY - box.top)) / box.height) * extent,
    );
  }
  function onDown(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    dragging = true;
    event.currentTarget.setPointerCapture(event.pointerId);
    handle.focus({ preventScroll: true });
    follow(event);
  }
  function onUp() {
    if (!dragging) return;
    dragging = false;
    tell();
  }
  for (const target of [area, handle]) {
    target.addEventListener("pointerdown", onDown);
    target.addEventListener("pointermove", (event) => dragging && follow(event));
    target.addEventListener("pointerup", onUp);
    target.addEventListener("pointercancel", onUp);
  }

  const leaveKeys = keepKeys(root, (event) => {
    const direction = MOVES[event.key];
    if (!direction) return;
    event.preventDefault();
    const step = event.shiftKey ? 5 * KEY_STEP : KEY_STEP;
    move(k[0] + step * direction[0], k[1] + step * direction[1]);
    tell();
  });

  function onScene() {
    const read = new DOMParser().parseFromString(model.get("scene"), "image/svg+xml");
    const drawing = document.importNode(read.documentElement, true);
    drawing.setAttribute("role", "group");
    drawing.setAttribute("aria-label", model.get("alt"));
    drawing.append(moving);
    stage.replaceChildren(drawing);
    const [, , width, height] = drawing.getAttribute("viewBox").split(" ").map(Number);
    stage.style.aspectRatio = String(width / height);
    draw();
  }
  function onK() {
    if (dragging) return;
    k = [...model.get("k")];
    draw();
  }
  function onWords() {
    root.setAttribute("aria-label", model.get("name") || model.get("alt"));
    stage.firstChild?.setAttribute("aria-label", model.get("alt"));
  }
  const watched = [
    ["change:scene", onScene], ["change:extent", draw], ["change:k", onK],
    ["change:alt", onWords], ["change:name", onWords],
  ];
  for (const [what, callback] of watched) model.on(what, callback);
  onScene();
  onWords();
  el.append(root);

  return () => {
    leaveKeys();
    for (const [what, callback] of watched) model.off(what, callback);
    root.remove();
  };
}

export default { render };
