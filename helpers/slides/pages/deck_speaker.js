// The speaker's window of reveal.js: what the notebook says for the speaker first, then the code that
// the slides leave out; the next slide's title; and figures that stand as they do in the room.

const SPEAKER = `
  body, #speaker-controls { font-family: "Source Sans Pro", "DejaVu Sans", Arial, sans-serif; color: #1c2026; }
  .speaker-controls-notes .value { font-size: 1.1em; line-height: 1.4; }
  .speaker-controls-notes :is(p, ul, ol) { margin: 0 0 10px; }
  .speaker-controls-notes h4, #next-title b { margin: 14px 0 4px; font-size: 0.8em; color: #5b6470; }
  .speaker-controls-notes pre { margin: 0; padding: 8px 10px; background: #f4f6f8; font: 15px/1.4 monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
  /* reveal.js lays "Upcoming" and the choice of a layout over the next slide: they get a strip above it. */
  #upcoming-slide#upcoming-slide { padding-top: 50px; }
  #next-title { padding: 0 16px 10px; } #next-title b { display: block; }
`;
const SET = ".choices-bar input, .bench-control input, .bench-view button, .bench-tabs button";

function arrangeNotes() {
  for (const notes of slides.querySelectorAll("aside.notes")) {
    // The speaker's window has none of this page's glyphs.
    for (const maths of notes.querySelectorAll("svg.maths")) {
      maths.replaceWith(make("i", "", maths.getAttribute("aria-label")));
    }
    const code = [...notes.querySelectorAll(":scope > .block.code")];
    const other = [...notes.querySelectorAll(":scope > .block:not(.code)")];
    notes.append(...other); // what the notebook says for the speaker stands before it
    if (!code.length) continue;
    const lines = code.map((one) => one.textContent.trim()).join("\n\n");
    for (const one of code) one.remove();
    notes.append(make("h4", "", "Code of this slide"), make("pre", "", lines));
  }
}

class Speaker {
  constructor() {
    this.window = null; // the speaker's, in the room
    this.inside = window.parent !== window; // one of its two frames
    this.ahead = this.inside && /[?&]controls=false/.test(window.location.search); // that of what comes
    this.applying = false;
    this.due = 0; // the timer of what is to be told
    this.touched = !this.inside; // a frame speaks for a hand on it, not for what the room has told it
    for (const type of ["pointerdown", "keydown"]) {
      window.addEventListener(type, (event) => { this.touched ||= event.isTrusted; }, true);
    }
    window.addEventListener("message", (event) => this.hear(event));
    for (const type of ["figure-step", "input", "change", "click"]) {
      slides.addEventListener(type, () => this.tellSoon());
    }
    if (this.inside) return;
    for (const type of ["slidechanged", "fragmentshown", "fragmenthidden"]) Reveal.on(type, () => this.tellSoon());
  }

  hear({ data, source }) {
    let heard = null;
    try {
      heard = JSON.parse(data);
    } catch {
      return; // not for us
    }
    if (heard?.namespace === "reveal-notes" && ["connected", "heartbeat"].includes(heard.type) && !this.inside) {
      if (this.window !== source || !source.document.getElementById("next-title")) this.furnish(source);
      this.window = source;
      this.tellSoon();
    } else if (heard?.namespace === "deck-figures" && !this.due) { // else its own word comes first
      this.touched = !this.inside;
      this.apply(heard);
    } else if (heard?.method) this.touched = !this.inside; // reveal.js itself turns the frame
  }

  furnish(speaker) {
    const page = speaker.document;
    const style = page.createElement("style");
    style.textContent = SPEAKER;
    page.head.append(style);
    const next = page.createElement("div");
    next.id = "next-title";
    page.querySelector(".speaker-controls-notes").before(next);
  }

  tellSoon() {
    if (this.applying || leading && this.inside || this.ahead || !this.touched) return;
    clearTimeout(this.due);
    this.due = setTimeout(() => {
      this.due = 0;
      this.tell();
    }, 60);
  }

  tell() {
    const section = Reveal.getCurrentSlide();
    const player = playerOf(section);
    const set = [...section.querySelectorAll(SET)].map(
      (one) => one.type === "range" ? one.value : one.checked ?? one.getAttribute("aria-pressed") === "true");
    const told = JSON.stringify({
      namespace: "deck-figures", h: Reveal.getIndices().h, step: player ? stepOf(player) : null, set,
    });
    if (this.inside) {
      window.parent.opener?.postMessage(told, "*");
    } else if (this.window && !this.window.closed) {
      for (let n = 0; n < this.window.frames.length; n++) this.window.frames[n].postMessage(told, "*");
      const titles = [...slides.children].map((one) => one.getAttribute("aria-label") || "");
      const next = this.window.document.getElementById("next-title");
      const label = this.window.document.createElement("b");
      label.textContent = "NEXT SLIDE";
      next?.replaceChildren(label, titles[Reveal.getIndices().h + 1] ?? "the end");
    }
  }

  apply({ h, step, set }) {
    const section = Reveal.getCurrentSlide();
    if (h !== Reveal.getIndices().h) return;
    this.applying = true;
    [...section.querySelectorAll(SET)].forEach((one, n) => {
      if (one.type === "range" && one.value !== set[n]) {
        one.value = set[n];
        one.dispatchEvent(new Event("input", { bubbles: true }));
      } else if (set[n] === true && !(one.checked ?? one.getAttribute("aria-pressed") === "true")) one.click();
    });
    const player = playerOf(section);
    if (player && step !== null && !this.ahead) goTo(player, step);
    this.applying = false;
  }
}
