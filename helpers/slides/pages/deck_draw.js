// Drawing on a slide, and a pointer. Strokes are SVG in the sheet's own 1280 × 720, so that they
// stay where they belong at any size of the window; each slide keeps its own while the deck is open.

const INKS = { Red: "#d1242f", Blue: "#0969da", Green: "#1a7f37", Orange: "#d9730d", Black: "#1c2026" };
const PENS = { Pen: { width: 5 }, Marker: { width: 26, opacity: 0.4 } };
const REACH = 16; // pixels of the sheet around the eraser

const drawn = (tag, attributes) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};

// A smooth line: each point but the ends is the control of a curve between the middles beside it.
function curve(points) {
  const n = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  const middle = ([a, b], [c, d]) => [(a + c) / 2, (b + d) / 2];
  if (points.length < 3) return `M${n(points[0])}L${n(points.at(-1))}`;
  const bends = points.slice(1, -1).map((point, i) => `Q${n(point)} ${n(middle(point, points[i + 2]))}`);
  return `M${n(points[0])}${bends.join("")}L${n(points.at(-1))}`;
}

class Ink {
  constructor(deck) {
    this.pen = "Pen";
    this.ink = "Red";
    this.stroke = null;
    this.points = new WeakMap(); // of each stroke
    this.glass = make("div", "ink-glass");
    this.glass.hidden = true;
    this.bar = this.controls();
    this.bar.hidden = true;
    this.dot = make("div", "laser");
    this.dot.hidden = true;
    deck.append(this.glass, this.bar);
    document.documentElement.append(this.dot); // outside of what is zoomed
    const listen = (name, react) => this.glass.addEventListener(name, react);
    listen("pointerdown", (event) => this.begin(event));
    listen("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) listen(name, () => (this.stroke = null));
    document.addEventListener("pointermove", (event) => {
      this.dot.style.translate = `${event.clientX}px ${event.clientY}px`;
    });
  }

  get drawing() {
    return !this.glass.hidden;
  }

  get pointing() {
    return !this.dot.hidden;
  }

  setDrawing(on = !this.drawing) {
    this.glass.hidden = this.bar.hidden = !on;
    if (on) this.setPointing(false);
    this.changed?.();
  }

  setPointing(on = !this.pointing) {
    this.dot.hidden = !on;
    document.documentElement.classList.toggle("pointing", on);
    if (on) this.setDrawing(false);
    else this.changed?.();
  }

  // The layer of the slide on show.
  layer(wanted) {
    const sheet = Reveal.getCurrentSlide().querySelector(".sheet");
    const found = sheet.querySelector(":scope > .ink");
    if (found || !wanted) return found;
    const made = drawn("svg", { class: "ink", viewBox: "0 0 1280 720", "aria-hidden": "true" });
    sheet.append(made);
    return made;
  }

  place(event) {
    const box = Reveal.getCurrentSlide().querySelector(".sheet").getBoundingClientRect();
    return [((event.clientX - box.left) * 1280) / box.width, ((event.clientY - box.top) * 720) / box.height];
  }

  begin(event) {
    if (!event.isPrimary || event.button === 2) return;
    event.preventDefault();
    try {
      this.glass.setPointerCapture(event.pointerId);
    } catch {} // a pen that has already been lifted
    const at = this.place(event);
    // The other end of a stylus says that it is an eraser.
    this.erasing = this.pen === "Eraser" || (event.buttons & 32) !== 0;
    if (this.erasing) {
      this.stroke = true;
      this.erase(at);
      return;
    }
    const { width, opacity = 1 } = PENS[this.pen];
    this.stroke = drawn("path", {
      class: `ink-${this.ink.toLowerCase()}`, "stroke-width": width, "stroke-opacity": opacity, d: curve([at, at]),
    });
    this.points.set(this.stroke, [at]);
    this.layer(true).append(this.stroke);
  }

  move(event) {
    if (!this.stroke) return;
    if (!event.buttons) {
      this.stroke = null;
      return;
    }
    const all = event.getCoalescedEvents?.() ?? [];
    for (const one of all.length ? all : [event]) {
      if (this.erasing) this.erase(this.place(one));
      else this.points.get(this.stroke).push(this.place(one));
    }
    if (!this.erasing) this.stroke.setAttribute("d", curve(this.points.get(this.stroke)));
  }

  erase([x, y]) {
    for (const stroke of [...(this.layer()?.children ?? [])]) {
      const near = REACH + Number(stroke.getAttribute("stroke-width")) / 2;
      const points = this.points.get(stroke);
      if (points.some(([a, b], i) => apart([x, y], [a, b], points[i + 1] ?? [a, b]) < near)) stroke.remove();
    }
  }

  undo() {
    this.layer()?.lastChild?.remove();
  }

  clear() {
    this.layer()?.replaceChildren();
  }

  controls() {
    const bar = make("div", "ink-bar");
    bar.setAttribute("role", "toolbar");
    bar.setAttribute("aria-label", "Drawing");
    const choice = (kind, name, shown) => {
      const made = button(`ink-${kind}`, name, shown);
      made.onclick = () => {
        this[kind] = name;
        if (kind === "ink" && this.pen === "Eraser") this.pen = "Pen";
        press();
      };
      return made;
    };
    const pens = ["Pen", "Marker", "Eraser"].map((name) => choice("pen", name, icon(name)));
    const inks = Object.keys(INKS).map((name) => choice("ink", name, make("i", `ink-${name.toLowerCase()}`)));
    const press = () => {
      for (const one of [...pens, ...inks]) {
        const on = [this.pen, this.ink].includes(one.getAttribute("aria-label"));
        one.setAttribute("aria-pressed", String(on));
      }
    };
    const act = (name, run) => {
      const made = button("ink-act", name, icon(name));
      made.onclick = run;
      return made;
    };
    bar.append(
      ...pens, ...inks,
      act("Undo", () => this.undo()), act("Clear", () => this.clear()), act("Stop drawing", () => this.setDrawing(false)),
    );
    press();
    return bar;
  }
}

// How far a point is from the line between two others.
function apart([x, y], [a, b], [c, d]) {
  const length = (c - a) ** 2 + (d - b) ** 2;
  const along = length ? Math.max(0, Math.min(1, ((x - a) * (c - a) + (y - b) * (d - b)) / length)) : 0;
  return Math.hypot(x - a - along * (c - a), y - b - along * (d - b));
}
