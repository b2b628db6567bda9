// What a lecturer reaches for, in one panel that a small button opens: drawing, a pointer, zoom, a
// dark room, search, and the contents with the way to the other chapters. Each has its key as well.

const SHAPES = {
  Tools: "M4 6h16M4 12h16M4 18h10",
  Draw: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  Pointer: "M12 3v4M12 17v4M3 12h4M17 12h4M12 11v2M11 12h2",
  Zoom: "M16 16l5 5M18 11a7 7 0 1 1-14 0 7 7 0 0 1 14 0zM8 11h6M11 8v6",
  Dark: "M20 14A8.5 8.5 0 0 1 10 4a8.5 8.5 0 1 0 10 10z",
  Overview: "M4 5h6v6H4zM14 5h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z",
  "Full screen": "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  Speaker: "M4 5h16v11H4zM8 21l4-5 4 5M8 9h8M8 12h5",
  Keys: "M3 7h18v10H3zM7 11h1M11 11h2M16 11h1M8 14h8",
  Pen: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  Marker: "M9 4h6v8l-1 3h-4l-1-3zM10 15v4l4-2v-2",
  Eraser: "M8 19l-5-5L13 4l7 7-8 8zM8 9l7 7M8 19h12",
  Undo: "M8 5L4 9l4 4M4 9h9a6 6 0 0 1 0 12h-3",
  Clear: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10 11v5M14 11v5",
  "Stop drawing": "M6 6l12 12M18 6L6 18",
};

function icon(name) {
  const made = drawn("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" });
  made.append(drawn("path", { d: SHAPES[name] }));
  return made;
}

function button(name, label, ...shown) {
  const made = make("button", name, ...shown);
  made.type = "button";
  made.title = label;
  made.setAttribute("aria-label", label);
  return made;
}

// A deck shown in the speaker's window or on paper has no tools.
const isPlain = () => /[?&](receiver|print-pdf|view=print)\b/.test(location.search);

// Light unless somebody wants it dark: a projector in a lit room washes dark slides out, whatever
// the lecturer's own screen is set to. What was chosen holds for the other chapters too.
const theme = {
  get dark() {
    return document.documentElement.classList.contains("dark");
  },
  set(dark) {
    document.documentElement.classList.toggle("dark", dark);
    try {
      localStorage.setItem("deck-theme", dark ? "dark" : "light");
    } catch {} // a browser that keeps nothing
  },
  restore() {
    let chosen = null;
    try {
      chosen = localStorage.getItem("deck-theme");
    } catch {}
    // A phone in somebody's hand is no projector.
    const wanted = UPRIGHT.matches && matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    document.documentElement.classList.toggle("dark", (chosen ?? wanted) === "dark");
  },
};

// Zoom where the mouse is: the plugin listens for a click with this key held.
const zoom = {
  at: null,
  toggle() {
    const key = /Linux/.test(navigator.platform) ? "ctrlKey" : "altKey";
    const [x, y] = zoom.at ?? [innerWidth / 2, innerHeight / 2];
    const click = { [key]: true, clientX: x, clientY: y, bubbles: true, cancelable: true };
    Reveal.getRevealElement().dispatchEvent(new MouseEvent("mousedown", click));
  },
  get on() {
    return document.documentElement.classList.contains("zoomed");
  },
};

// What stands where: the slides of one heading are one entry.
function contentsOf(sections) {
  const entries = [];
  sections.forEach((section, number) => {
    const title = section.querySelector(".title")?.cloneNode(true);
    title?.querySelectorAll(".title-part, .lead").forEach((part) => part.remove());
    const words = [...(title?.childNodes ?? [])].map((node) => node.textContent).join(" ").trim();
    const before = entries.at(-1);
    if (before && (!words || before.key === words)) before.last = number;
    else entries.push({ key: words, nodes: [...(title?.childNodes ?? [])], first: number, last: number });
  });
  return entries;
}

class Tools {
  constructor() {
    this.deck = Reveal.getRevealElement();
    this.sections = Reveal.getHorizontalSlides();
    this.ink = new Ink(this.deck);
    this.ink.changed = () => this.press();
    this.finder = new Finder(this.sections);
    this.reading = new Reading();
    this.opener = button("tools-open", "Contents and tools (M)", icon("Tools"));
    this.opener.setAttribute("aria-expanded", "false");
    this.opener.setAttribute("aria-controls", "tools");
    this.opener.onclick = () => this.toggle();
    this.panel = this.build();
    this.deck.append(this.opener, this.panel);
    this.bind();
  }

  build() {
    const panel = make("nav", "tools");
    panel.id = "tools";
    panel.hidden = true;
    panel.setAttribute("aria-label", "Contents and tools");
    this.actions = new Map();
    const row = make("div", "tools-row");
    for (const [name, key, run, on] of this.acts()) {
      const made = button("tools-act", `${name} (${key})`, icon(name), make("span", "", name), make("kbd", "", key));
      made.onclick = run;
      this.actions.set(made, on);
      row.append(made);
    }
    this.field = make("input", "tools-field");
    this.field.type = "search";
    this.field.placeholder = "Search the slides";
    this.field.setAttribute("aria-label", "Search the slides");
    this.field.oninput = () => this.search();
    this.said = make("p", "tools-said");
    this.said.setAttribute("role", "status");
    this.list = make("ol", "tools-list");
    panel.append(row, this.field, this.said, this.list);
    const index = this.deck.dataset.index;
    if (index) {
      const link = make("a", "tools-index", "All chapters");
      link.href = index;
      panel.append(link);
    }
    return panel;
  }

  acts() {
    const notes = () => Reveal.getPlugin("notes");
    return [
      ["Draw", "D", () => (this.close(), this.ink.setDrawing()), () => this.ink.drawing],
      ["Pointer", "Q", () => (this.close(), this.ink.setPointing()), () => this.ink.pointing],
      ["Zoom", "Z", () => (this.close(), zoom.toggle()), () => zoom.on],
      ["Dark", "T", () => (theme.set(!theme.dark), this.press()), () => theme.dark],
      ["Overview", "O", () => (this.close(), Reveal.toggleOverview())],
      ["Full screen", "F", () => (this.close(), fullScreen())],
      ["Speaker", "S", () => (this.close(), notes()?.open())],
      ["Keys", "?", () => (this.close(), Reveal.toggleHelp())],
    ];
  }

  bind() {
    const keys = [
      [77, "M", "Contents, search and tools", () => this.toggle()],
      [68, "D", "Draw on the slide", () => this.ink.setDrawing()],
      [81, "Q", "Pointer", () => this.ink.setPointing()],
      [90, "Z", "Zoom in where the mouse is, and out", () => zoom.toggle()],
      [84, "T", "Dark slides, or light ones", () => (theme.set(!theme.dark), this.press())],
    ];
    for (const [keyCode, key, description, run] of keys) Reveal.addKeyBinding({ keyCode, key, description }, run);
    Reveal.registerKeyboardShortcut("Ctrl + Shift + F", "Search the slides");
    Reveal.registerKeyboardShortcut("Esc, in a figure", "Give the arrow keys back to the deck");
    document.addEventListener("pointermove", (event) => (zoom.at = [event.clientX, event.clientY]));
    // Before the deck and its figures: what is on is ended by Escape, and nothing else is.
    window.addEventListener("keydown", (event) => this.early(event), true);
    this.panel.addEventListener("keydown", (event) => this.inside(event));
    Reveal.on("slidechanged", () => this.panel.hidden || this.show());
    document.addEventListener("pointerdown", (event) => {
      if (!this.panel.hidden && !event.target.closest?.(".tools, .tools-open")) this.close();
    });
  }

  early(event) {
    const stop = () => (event.preventDefault(), event.stopImmediatePropagation());
    if (event.key === "Escape") {
      if (this.ink.drawing) return stop(), this.ink.setDrawing(false);
      if (this.ink.pointing) return stop(), this.ink.setPointing(false);
      if (zoom.on) return stop(), zoom.toggle();
      if (this.panel.hidden && this.marked) return stop(), this.forget();
    }
    // Whatever key a keyboard has it on.
    if (event.key === "?" && Reveal.getConfig().keyboardCondition(event) && event.target !== this.field) {
      return stop(), this.close(), Reveal.toggleHelp();
    }
    const command = event.ctrlKey || event.metaKey;
    if (command && event.shiftKey && event.key.toLowerCase() === "f") {
      stop();
      this.open();
      this.field.focus();
      this.field.select();
    }
    if (command && event.key.toLowerCase() === "z" && this.ink.drawing) stop(), this.ink.undo();
  }

  // The panel's own keys. A clicker's go to the deck.
  inside(event) {
    if (["PageUp", "PageDown"].includes(event.key)) return;
    event.stopPropagation();
    const typing = event.target === this.field;
    if (event.key === "Escape" || (event.key === "m" && !typing)) this.close();
    else if (event.key === "Enter" && typing) this.list.querySelector("a")?.click();
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const links = [...this.list.querySelectorAll("a")];
      const at = links.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
      (at < 0 ? this.field : links[Math.min(at, links.length - 1)])?.focus();
    } else return;
    event.preventDefault();
  }

  toggle() {
    if (this.panel.hidden) this.open();
    else this.close();
  }

  open() {
    this.panel.hidden = false;
    this.opener.setAttribute("aria-expanded", "true");
    this.show();
    this.press();
    const current = this.list.querySelector("[aria-current]") ?? this.list.querySelector("a");
    current?.focus({ preventScroll: true });
    current?.scrollIntoView({ block: "center" });
  }

  close() {
    if (this.panel.hidden) return;
    this.panel.hidden = true;
    this.opener.setAttribute("aria-expanded", "false");
    document.activeElement?.blur?.(); // the keys are the deck's again
  }

  press() {
    for (const [made, on] of this.actions) if (on) made.setAttribute("aria-pressed", String(on()));
  }

  go(number, all) {
    this.close();
    if (this.reading.on) this.reading.to(number);
    else Reveal.slide(number, 0, all ? 99 : undefined);
  }

  entry(number, where, ...words) {
    const link = make("a", "", make("b", "", where), make("span", "", ...words));
    link.href = `#/${number}`;
    return link;
  }

  show() {
    if (this.field.value.trim().length > 1) return;
    const now = this.reading.on ? this.reading.current : Reveal.getIndices().h;
    this.contents ??= contentsOf(this.sections);
    this.said.textContent = "";
    this.list.replaceChildren(
      ...this.contents.map(({ nodes, first, last }) => {
        const where = last > first ? `${first + 1}–${last + 1}` : `${first + 1}`;
        const link = this.entry(first, where, ...nodes.map((node) => node.cloneNode(true)));
        if (first <= now && now <= last) link.setAttribute("aria-current", "true");
        link.onclick = (event) => (event.preventDefault(), this.go(first));
        return make("li", "", link);
      }),
    );
  }

  async search() {
    const words = this.field.value;
    const found = await this.finder.find(words);
    if (words !== this.field.value) return; // somebody has typed on
    this.marked = found.length > 0;
    if (words.trim().length < 2) return this.show();
    this.said.textContent = `On ${found.length} ${found.length === 1 ? "slide" : "slides"}.`;
    this.list.replaceChildren(
      ...found.map(({ number, waits, excerpt }) => {
        const link = this.entry(number, `${number + 1}`, ...excerpt);
        link.onclick = (event) => (event.preventDefault(), this.go(number, waits));
        return make("li", "", link);
      }),
    );
  }

  forget() {
    this.field.value = "";
    this.marked = false;
    this.finder.mark([]);
  }
}

function fullScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen?.();
}

function addTools() {
  if (isPlain()) return;
  theme.restore();
  new Tools();
}
