// A phone held upright has no room for a slide: the chapter is a page to read there, all sheets
// below each other in its own width. Turned, it shows the slide that was being read.

const UPRIGHT = matchMedia("(orientation: portrait) and (max-width: 600px)");
const READABLE = 16; // pixels of the smallest text in a figure, which is moved sideways for it
const WIDEST = 1400;

class Reading {
  constructor() {
    this.sections = Reveal.getHorizontalSlides();
    this.on = false;
    this.watch = new IntersectionObserver((seen) => this.see(seen), { rootMargin: "-20% 0px -75% 0px" });
    Reveal.on("slidechanged", () => this.on && this.to(Reveal.getIndices().h));
    UPRIGHT.addEventListener("change", () => this.set(UPRIGHT.matches));
    this.set(UPRIGHT.matches);
  }

  set(on) {
    if (on === this.on) return;
    this.on = on;
    this.current = on ? Reveal.getIndices().h : this.current;
    document.documentElement.classList.toggle("reading", on);
    Reveal.configure({ keyboard: !on, touch: !on, controls: !on, progress: !on });
    if (on) {
      this.spread();
      this.turnListings();
      this.to(this.current);
      for (const section of this.sections) this.watch.observe(section);
    } else {
      this.watch.disconnect();
      for (const made of document.querySelectorAll(".reading-show")) made.remove();
      this.turnListings();
      Reveal.sync();
      Reveal.slide(this.current);
    }
  }

  // Which slide is being read; its address is the one that it has as a slide.
  see(seen) {
    const now = seen.find((one) => one.isIntersecting);
    if (!now || !this.on) return;
    this.current = this.sections.indexOf(now.target);
    history.replaceState(null, "", `#/${this.current}`);
  }

  to(number) {
    this.unhide();
    this.sections[number]?.scrollIntoView();
  }

  // The deck hides all slides but one, from screen readers as well.
  unhide() {
    for (const section of this.sections) {
      section.removeAttribute("hidden");
      section.removeAttribute("aria-hidden");
    }
  }

  spread() {
    let before = null;
    for (const section of this.sections) {
      const title = section.querySelector(".title")?.cloneNode(true);
      title?.querySelectorAll(".title-part, .lead").forEach((part) => part.remove());
      const words = title?.textContent ?? "";
      section.classList.toggle("continues", words === before);
      before = words;
      this.offer(section);
      section.querySelectorAll("svg").forEach(widen);
      section.querySelectorAll(".kernel-bench").forEach(showBusiest);
      // About half as wide as in one line: a heading is no column of single words.
      for (const head of section.querySelectorAll(".table th")) head.style.setProperty("--reading-width", `${0.3 * head.textContent.trim().length}em`);
      // What waits for a step has no width yet.
      for (const one of section.querySelectorAll(SCROLLED)) {
        if (one.scrollWidth > one.clientWidth || !one.clientWidth) one.tabIndex = 0;
      }
    }
  }

  // A listing stands once, whole, where the slide has a part of it and the rest with its code.
  turnListings() {
    for (const listing of listingsOf(slides)) {
      const { whole } = listing;
      if (!whole) continue;
      const place = make("i");
      whole.replaceWith(place);
      listing.replaceWith(whole);
      place.replaceWith(listing);
    }
  }

  // What a step reveals on a slide is asked for here.
  offer(section) {
    const waiting = section.querySelector(".fragment:not(.visible, .key-frame, .kl-row)");
    if (!waiting) return;
    const kind = waiting.matches(".answer") ? "Show the answer" : "Show what comes of it";
    const made = make("button", "reading-show", kind);
    made.type = "button";
    made.onclick = () => {
      const index = waiting.dataset.fragmentIndex;
      for (const one of section.querySelectorAll(".fragment:not(.visible)")) {
        if (one.dataset.fragmentIndex === index) one.classList.add("visible");
      }
      made.remove();
      this.offer(section);
    };
    waiting.before(made);
  }
}

const SCROLLED = ".figure-player-stage, .kernel-figure, .bench-figure, .bench-sweep, pre.lines, .kernel-listing, .table, .maths-line, .bench-wide";

// As wide as its smallest text needs to be read.
function widen(svg) {
  if (svg.matches(".maths, .ink") || !svg.viewBox.baseVal?.width) return;
  const told = Number(svg.closest("[data-smallest]")?.dataset.smallest);
  const sizes = told ? [told] : [...svg.querySelectorAll("text")].map((text) => parseFloat(text.getAttribute("font-size") ?? text.style.fontSize)).filter(Boolean);
  if (!sizes.length) return;
  const width = Math.min(WIDEST, (svg.viewBox.baseVal.width * READABLE) / Math.min(...sizes));
  const holder = svg.closest(".figure-player-stage, .choices-shown") ?? svg;
  holder.style.setProperty("--reading-width", `${Math.ceil(width)}px`);
}
