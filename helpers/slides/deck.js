// Lays the chapter out on sheets of 1280 × 720 and then starts reveal.js.
// What stands under a heading comes as a list of blocks. They are measured once, in the deck's own
// typefaces, and dealt out: at most one figure and ten lines of code a sheet, nothing cut off.
(() => {
  const LINES = 10; // of code on a sheet
  const GAP = 16; // between blocks, as in deck.css
  const KEEP = 0.86; // a figure shares its sheet with text if this part of its size remains
  const SMALL = 14; // pixels under which text in a figure is small: such figures
  const KEEP_SMALL = 0.89; // give less room away: a line
  const BESIDE = 400; // pixels that text beside a figure needs
  const slides = document.querySelector(".reveal .slides");

  const make = (tag, name, ...children) => {
    const made = document.createElement(tag);
    made.className = name;
    made.append(...children);
    return made;
  };

  // ---- blocks

  // Paragraphs, tables and code inside a text are blocks of their own.
  function flatten(body) {
    for (const block of [...body.querySelectorAll(":scope > .prose")]) {
      const parts = [...block.children].map((child) => {
        if (child.classList.contains("code")) {
          child.classList.add("block");
          return child;
        }
        const kind = child.localName === "details" ? "answer" : child.localName === "table" ? "table" : "prose";
        const part = make("div", `block ${kind}`, child);
        if (block.classList.contains("fragment")) part.classList.add("fragment");
        return part;
      });
      block.replaceWith(...parts);
    }
    for (const details of body.querySelectorAll(":scope > .answer > details")) {
      // Revealed by the key that turns pages, and there on paper.
      const answer = details.parentElement;
      const summary = details.querySelector("summary");
      const parts = [...details.childNodes].filter((node) => node !== summary);
      answer.replaceChildren(make("p", "answer-head", summary.textContent), ...parts);
      answer.classList.add("fragment");
    }
  }

  // What a widget is set to stands under its picture. Code that only calls for a listing is for the
  // speaker: the listing says itself what it is.
  function arrange(section, body) {
    for (const settings of body.querySelectorAll(":scope > .settings")) {
      const next = settings.nextElementSibling;
      if (next?.matches(".figure")) next.after(settings);
    }
    // Controls stand above the figure that they turn.
    for (const choices of body.querySelectorAll(":scope > .choices")) {
      const figure = choices.nextElementSibling;
      if (figure?.matches(".figure")) {
        figure.prepend(...choices.childNodes);
        figure.classList.add("turned");
        choices.remove();
      }
    }
    for (const listing of body.querySelectorAll(":scope > .listing[data-output]")) {
      const code = listing.previousElementSibling;
      if (code?.matches(".code") && code.querySelectorAll("pre.lines > span").length <= 4) tell(section, code);
    }
  }

  // Move something into the speaker's notes.
  function tell(section, ...nodes) {
    const notes = section.querySelector("aside.notes") ?? section.appendChild(make("aside", "notes"));
    notes.append(...nodes);
  }

  // Whether a line counts as one of code: one with nothing but brackets, or nothing, does not.
  const counts = (text) => (/\w/.test(text) ? 1 : 0);
  const countOf = (texts) => texts.reduce((sum, text) => sum + counts(text), 0);

  // Where to cut `texts` into so many pieces of at most `most` lines that count: evenly, rather at
  // blank lines and rather where the indentation is small.
  function cuts(texts, most, count) {
    const found = [];
    let from = 0;
    for (let left = count; left > 1; left--) {
      const even = countOf(texts.slice(from)) / left;
      let best = null;
      for (let at = from + 1; at < texts.length; at++) {
        const taken = countOf(texts.slice(from, at));
        if (taken > most) break;
        if (countOf(texts.slice(at)) > most * (left - 1)) continue;
        const indent = texts[at].trim() ? texts[at].search(/\S/) : 0;
        const blank = texts[at - 1].trim() === "" ? -6 : 0;
        const closing = /^\s*[})\]]/.test(texts[at]) ? 8 : 0;
        const cost = Math.abs(taken - even) + indent / 2 + blank + closing;
        if (!best || cost < best.cost) best = { at, cost };
      }
      if (!best) break; // fewer lines than pieces
      from = best.at;
      found.push(from);
    }
    return found;
  }

  function pieces(items, texts, most, count) {
    const ends = [...cuts(texts, most, count), items.length];
    return ends.map((end, n) => items.slice(n ? ends[n - 1] : 0, end));
  }

  // Long code, listings, texts and tables become several blocks.
  function split(block) {
    const parts = (items, texts, most, build) => {
      const heights = items.map((item) => item.offsetHeight);
      const whole = heights.reduce((sum, height) => sum + height, 0);
      const room = block.parentElement.clientHeight - (block.offsetHeight - whole);
      const least = Math.ceil(countOf(texts) / most);
      // Some unevenness is to be reckoned with, where lines are broken.
      const count = whole <= room ? least : Math.max(least, Math.ceil(whole / (0.85 * room)));
      if (count < 2) return [block];
      return pieces(items, texts, most, count).map((piece, n, all) => {
        const part = block.cloneNode(false);
        part.append(build(piece, n, all.length));
        part.dataset.part = `${n + 1}/${all.length}`;
        return part;
      });
    };
    const pre = block.querySelector(":scope > pre.lines");
    if (pre && (block.matches(".code") || block.matches(".text"))) {
      const lines = [...pre.children];
      const most = block.matches(".code") ? LINES : 14;
      // Of a text, every line counts.
      const words = (line) => (block.matches(".code") ? "" : "x") + line.textContent;
      return parts(lines, lines.map(words), most, (piece) => {
        while (piece.length > 1 && !piece[0].textContent.trim()) piece.shift();
        while (piece.length > 1 && !piece.at(-1).textContent.trim()) piece.pop();
        const inner = make("pre", "lines");
        piece.forEach((line, n) => inner.append(...(n ? ["\n"] : []), line));
        return inner;
      });
    }
    const listings = block.matches(".listing") ? [...block.querySelectorAll(".kernel-listing")] : [];
    if (listings.length > 1) {
      return listings.flatMap((one) => {
        const part = block.cloneNode(false);
        part.append(one);
        block.before(part); // to be measured
        return split(part);
      });
    }
    if (listings.length === 1) {
      const [listing] = listings;
      const table = listing.querySelector(".kl-table");
      const rows = [...table.querySelectorAll(":scope > .kl-row:not(.kl-headings, .kl-sums)")];
      const head = table.querySelector(".kl-headings");
      const sums = table.querySelector(".kl-sums");
      const texts = rows.map((row) => row.querySelector(".kl-c").textContent);
      return parts(rows, texts, LINES, (piece, n, count) => {
        const copy = listing.cloneNode(false);
        const inner = table.cloneNode(false);
        if (head) inner.append(head.cloneNode(true));
        const empty = (row) => !row.querySelector(".kl-c").textContent.trim();
        while (piece.length > 1 && empty(piece[0])) piece.shift();
        while (piece.length > 1 && empty(piece.at(-1))) piece.pop();
        inner.append(...piece);
        if (sums && n === count - 1) {
          sums.querySelector(".kl-c").textContent = "sum of all lines";
          inner.append(sums);
        }
        copy.append(listing.querySelector(".kl-title").cloneNode(true), inner);
        return copy;
      });
    }
    const rows = block.matches(".table") ? [...block.querySelectorAll("tbody > tr")] : [];
    if (rows.length > 11) {
      const table = block.querySelector("table");
      const rest = [...block.children].filter((child) => child !== table);
      const made = parts(rows, rows.map(() => "x"), 11, (piece) => {
        const copy = table.cloneNode(false);
        copy.append(table.tHead?.cloneNode(true) ?? "", make("tbody", "", ...piece));
        return copy;
      });
      made.at(-1).append(...rest);
      return made;
    }
    return [block];
  }

  // ---- figures

  // The picture of a block, what stands around it, and its extent as drawn.
  function pictureOf(block) {
    if (!block.matches(".figure")) return null;
    const stage = block.querySelector(".figure-player-stage");
    const images = [...block.querySelectorAll(stage ? ".figure-player-stage > svg" : "svg:not(.maths), img")];
    if (!images.length) return null;
    const image = images.reduce((a, b) => (area(b) > area(a) ? b : a));
    const frame = stage ?? image;
    const box = image.viewBox?.baseVal;
    let width = box?.width || image.naturalWidth || frame.offsetWidth;
    let ratio = box?.width ? box.width / box.height : frame.clientWidth / frame.clientHeight;
    if (stage?.style.aspectRatio) ratio = Number(stage.style.aspectRatio.split("/")[0]);
    if (stage?.style.maxWidth) width = parseFloat(stage.style.maxWidth) / 1.4;
    const around = block.offsetHeight - (frame.offsetHeight ?? frame.clientHeight);
    const sizes = [...image.querySelectorAll("[font-size]")].map(
      (text) => parseFloat(text.getAttribute("font-size")));
    return { width, ratio, around, smallest: Math.min(Infinity, ...sizes) };
  }

  const area = (node) => node.clientWidth * node.clientHeight;

  // How large a figure becomes in this room, 1 being as drawn.
  function scaleIn(figure, width, height) {
    return Math.max(0, Math.min(width, (height - figure.around) * figure.ratio)) / figure.width;
  }

  // ---- dealing out

  class Page {
    constructor() {
      this.blocks = [];
      this.figure = null; // the entry with the one figure or bench
      this.beside = false;
    }
    get height() {
      const rest = this.blocks.filter((entry) => entry !== this.figure);
      return rest.reduce((sum, entry) => sum + entry.height + GAP, 0);
    }
    get lines() {
      return this.blocks.reduce((sum, entry) => sum + entry.lines, 0);
    }
  }

  function deal(entries, room) {
    const pages = [new Page()];
    const last = () => pages.at(-1);
    for (const [number, entry] of entries.entries()) {
      if (!fits(last(), entry, room, entries.slice(number + 1))) pages.push(new Page());
      last().blocks.push(entry);
      if (entry.figure || entry.bench) last().figure = entry;
    }
    return pages;
  }

  function fits(page, entry, room, after) {
    if (!page.blocks.length) return true;
    if (page.lines + entry.lines > LINES) return false;
    if (entry.bench || page.figure?.bench) return false;
    if (entry.figure && page.figure) return false;
    const figure = entry.figure ?? page.figure?.figure;
    const taken = page.height + (entry.figure ? 0 : entry.height + GAP);
    if (!figure) {
      // Code and what it shows stand together.
      const shows = entry.code && after[0]?.output && !after[0].figure && !after[0].bench;
      const both = shows ? taken + after[0].height + GAP : taken;
      if (shows && both - GAP > room.height && entry.height + after[0].height + GAP <= room.height) return false;
      return taken - GAP <= room.height;
    }
    if (besideFits(page, entry, room)) return true;
    const alone = scaleIn(figure, room.width, room.height);
    const shared = scaleIn(figure, room.width, room.height - taken);
    const keep = figure.smallest * alone < SMALL ? KEEP_SMALL : KEEP;
    return shared >= keep * alone || (shared >= 1.25 && figure.smallest * shared >= SMALL);
  }

  // A figure that is high leaves room beside it for text.
  function besideFits(page, entry, room) {
    const holder = entry.figure ? entry : page.figure;
    const texts = [...page.blocks, entry].filter((one) => one !== holder);
    if (texts.some((one) => !one.prose)) return false;
    const alone = scaleIn(holder.figure, room.width, room.height) * holder.figure.width;
    const width = room.width - alone - 2 * GAP;
    if (width < BESIDE || heightAt(texts, width, room) > room.height) return false;
    page.beside = true;
    return true;
  }

  function heightAt(entries, width, room) {
    const column = make("div", "beside-measure", ...entries.map((one) => one.node.cloneNode(true)));
    column.style.width = `${width}px`;
    room.body.append(column);
    const height = column.offsetHeight;
    column.remove();
    return height;
  }

  // A narrow table takes the text that follows it to its side, where that saves a sheet or height.
  function besideTables(blocks, body) {
    const found = [];
    for (const block of blocks) {
      const table = found.at(-1);
      const wide = (node) => node.querySelector("table")?.offsetWidth ?? Infinity;
      const joins = table?.matches(".table") && block.matches(".prose") && !block.matches(".fragment");
      if (joins && wide(table) < 0.45 * body.clientWidth && table.offsetHeight > 180) {
        const pair = make("div", "block pair");
        pair.toggleAttribute("data-output", table.hasAttribute("data-output"));
        table.replaceWith(pair);
        const column = make("div", "column", block);
        pair.append(table, column);
        found[found.length - 1] = pair;
      } else if (table?.matches(".pair") && block.matches(".prose") && !block.matches(".fragment") &&
          table.lastElementChild.offsetHeight + block.offsetHeight < table.firstElementChild.offsetHeight) {
        table.lastElementChild.append(block);
      } else {
        found.push(block);
      }
    }
    return found;
  }

  function entryOf(block) {
    const lines = block.matches(".code, .listing")
      ? [...block.querySelectorAll("pre.lines > span, .kl-row:not(.kl-headings, .kl-sums) > .kl-c")]
      : [];
    return {
      node: block,
      lines: countOf(lines.map((line) => line.textContent)),
      height: block.getBoundingClientRect().height,
      figure: pictureOf(block),
      bench: block.matches(".bench"),
      prose: block.matches(".prose, .settings, .answer"),
      code: block.matches(".code"),
      output: block.hasAttribute("data-output"),
    };
  }

  function sheetFor(section, page, number) {
    const made = number ? section.cloneNode(false) : section;
    const sheet = section.querySelector(".sheet");
    let body = sheet.querySelector(".body");
    if (number) {
      const copy = make("div", "sheet");
      copy.append(...[...sheet.children].map((child) => child.cloneNode(child !== body)));
      made.append(copy);
      made.removeAttribute("id");
      body = copy.querySelector(".body");
      copy.classList.add(...[...sheet.classList].filter((name) => name !== "opening"));
    }
    body.replaceChildren(...page.blocks.map((entry) => entry.node));
    if (page.beside && page.figure) {
      const texts = page.blocks.filter((entry) => entry !== page.figure).map((entry) => entry.node);
      body.classList.add("beside");
      body.replaceChildren(page.figure.node, make("div", "column", ...texts));
    }
    return made;
  }

  // The figure takes what the rest leaves.
  function size(page, room) {
    if (!page.figure?.figure) return;
    const { figure, node } = page.figure;
    const height = page.beside ? room.height : room.height - page.height;
    const width = scaleIn(figure, room.width, height) * figure.width;
    node.style.setProperty("--player-max-height", `${Math.floor(height - figure.around)}px`);
    node.style.setProperty("--figure-width", `${Math.floor(width)}px`);
  }

  // What is turned may bring a picture of another shape, or a longer caption.
  function sizeAgain(page, room) {
    page.figure.figure = pictureOf(page.figure.node) ?? page.figure.figure;
    size(page, room);
  }

  // Everything is measured before anything is moved, which would have it all laid out again.
  function plan(section) {
    const body = section.querySelector(".body");
    const room = { body, width: body.clientWidth, height: body.clientHeight };
    const entries = [...body.children].map(entryOf);
    return { section, body, room, entries, told: [], pages: deal(entries, room) };
  }

  // Code that draws the figure of the next sheet goes into the notes, and so does what a sheet would
  // show of code alone, without what comes of it.
  function leaveDrawingOut(one) {
    one.told = one.pages.flatMap((page, number) => {
      const next = one.pages[number + 1]?.blocks[0];
      const from = page.blocks.findLastIndex((entry) => !entry.code) + 1;
      const drawn = next?.figure || next?.bench || (next?.output && from === 0);
      return drawn ? page.blocks.slice(from) : [];
    });
    if (!one.told.length) return;
    one.entries = one.entries.filter((entry) => !one.told.includes(entry));
    one.pages = deal(one.entries, one.room);
  }

  const isLonely = ({ pages, room }) =>
    pages.length > 1 && pages.at(-1).blocks.every((entry) => entry.prose) &&
    pages.at(-1).height < 0.3 * room.height;

  // A last sheet with a sentence or two on it is no slide: rather smaller text, or a fuller last one.
  function mendLonely(plans) {
    const lonely = plans.filter(isLonely);
    const sheetOf = ({ section }) => section.querySelector(".sheet");
    for (const one of lonely) sheetOf(one).classList.add("tight");
    for (const one of lonely) one.closer = one.entries.map((entry) => entryOf(entry.node));
    for (const one of lonely) {
      const closer = deal(one.closer, one.room);
      if (closer.length < one.pages.length) {
        one.pages = closer;
        continue;
      }
      sheetOf(one).classList.remove("tight");
      const before = one.pages.at(-2);
      while (isLonely(one) && before.blocks.length > 2 && before.blocks.at(-1).prose) {
        one.pages.at(-1).blocks.unshift(before.blocks.pop());
      }
    }
  }

  function layOut({ section, pages, room, told }) {
    if (told.length) tell(section, ...told.map((entry) => entry.node));
    const made = pages.map((page, number) => sheetFor(section, page, number));
    made.forEach((one, number) => {
      const part = make("span", "title-part", `${number + 1} / ${made.length}`);
      if (made.length > 1) one.querySelector(".title")?.append(part);
    });
    for (const page of pages) {
      size(page, room);
      for (const type of ["input", "change"]) {
        page.figure?.node.addEventListener(type, (event) => {
          if (event.target.closest(".choices")) sizeAgain(page, room);
        });
      }
      // What opens a sheet is not waited for.
      if (page.blocks[0]?.node.matches(".answer")) page.blocks[0].node.classList.remove("fragment");
    }
    // What explains a figure from the next sheet on is at hand in the speaker's notes.
    pages.forEach((page, number) => {
      const next = pages[number + 1];
      if (!page.figure || !next) return;
      const words = next.blocks.filter((entry) => entry.prose).map((entry) => entry.node.cloneNode(true));
      if (!words.length) return;
      tell(made[number], ...words);
    });
    section.after(...made.slice(1));
  }

  // A bench shows its source or the charts of all settings, in the same place.
  function addViews(bench) {
    if (!bench.querySelector(".bench-sweep")) return;
    const buttons = ["Source", "All settings"].map((name, number) => {
      const button = make("button", "", name);
      button.type = "button";
      button.onclick = () => show(number);
      return button;
    });
    const show = (chosen) => {
      bench.classList.toggle("bench-charts", chosen === 1);
      buttons.forEach((button, number) => button.setAttribute("aria-pressed", String(number === chosen)));
    };
    const views = make("div", "bench-view", ...buttons);
    views.setAttribute("role", "group");
    views.setAttribute("aria-label", "View");
    bench.append(views);
    show(0);
  }

  // The line at fault, or the one that counts most, is in sight when a bench comes up.
  function showBusiest(bench) {
    const source = bench.querySelector(".bench-source");
    if (!source || source.scrollTop) return;
    const most = (row) => Math.max(0, ...[...row.querySelectorAll(".kl-v")].map(
      (cell) => Number(cell.textContent.replaceAll(",", ""))));
    const rows = [...source.querySelectorAll(".kl-row:not(.kl-headings, .kl-sums)")];
    const line = source.querySelector(".kl-marked") ?? rows.reduce(
      (best, row) => (most(row) > (best ? most(best) : 0) ? row : best), null);
    if (!line) return;
    const scale = source.getBoundingClientRect().height / source.offsetHeight;
    const below = (line.getBoundingClientRect().bottom - source.getBoundingClientRect().bottom) / scale;
    source.scrollTop = Math.max(0, below + source.clientHeight / 4);
  }

  // Whether a line of code is broken into two.
  const wraps = (body) => [...body.querySelectorAll("pre.lines")].some((pre) => {
    const height = parseFloat(getComputedStyle(pre).lineHeight);
    return [...pre.children].some((line) => line.offsetHeight > 1.5 * height);
  });

  // Text with much room grows. Text that is still too long grows smaller, and in the end can be
  // scrolled.
  function fill(sheet) {
    const body = sheet.querySelector(".body");
    const over = () => body.scrollHeight > body.clientHeight + 1 || body.scrollWidth > body.clientWidth + 1;
    const whole = body.querySelector(":scope > .figure, :scope > .bench");
    sheet.classList.remove("tight");
    if (whole && over()) sheet.classList.add("tight");
    if (!whole) {
      const statement = !sheet.matches(".opening") &&
        [...body.children].every((block) => block.matches(".prose, .answer"));
      for (const size of statement ? ["statement", "roomy"] : ["roomy"]) {
        sheet.classList.add(size);
        sheet.classList.toggle("narrow", size === "roomy" && wraps(body));
        if (!over() && !(size === "statement" && body.clientHeight > 400)) break;
        sheet.classList.remove(size, "narrow");
      }
    }
    if (wraps(body)) {
      sheet.classList.add("fine");
      if (wraps(body)) sheet.classList.remove("fine");
    }
    for (const step of ["tight", "tighter"]) {
      if (!over()) return;
      sheet.classList.remove("tight");
      sheet.classList.add(step);
    }
    if (over()) {
      body.classList.add("scrolls");
      body.tabIndex = 0;
      body.dataset.keys = "";
    }
  }

  async function start() {
    const shown = await window.figuresReady;
    await Promise.all([...document.fonts].map((font) => font.load()));
    const sections = [...slides.children];
    for (const section of sections) {
      const body = section.querySelector(".body");
      flatten(body);
      arrange(section, body);
      const blocks = [...body.children].flatMap(split);
      body.replaceChildren(...blocks);
    }
    for (const bench of slides.querySelectorAll(".kernel-bench")) addViews(bench);
    for (const section of sections) {
      const body = section.querySelector(".body");
      besideTables([...body.children], body);
    }
    const plans = sections.map(plan);
    plans.forEach(leaveDrawingOut);
    mendLonely(plans);
    plans.forEach(layOut);
    const sheets = [...slides.querySelectorAll(".sheet")];
    sheets.forEach((sheet, number) => {
      fill(sheet);
      sheet.querySelector(".sheet-number").textContent = `${number + 1} / ${sheets.length}`;
    });
    // The speaker's window has none of this page's glyphs.
    for (const maths of slides.querySelectorAll("aside.notes svg.maths")) {
      maths.replaceWith(make("i", "", maths.getAttribute("aria-label")));
    }
    document.body.classList.remove("laying-out");
    const inside = () => document.activeElement?.closest?.(".figure-player, .kernel-bench, .choices, [data-keys]");
    await Reveal.initialize({
      width: 1280,
      height: 720,
      margin: 0,
      minScale: 0.1,
      maxScale: 4,
      center: false,
      hash: true,
      slideNumber: false,
      transition: "none",
      pdfSeparateFragments: false,
      pdfMaxPagesPerSlide: 1,
      keyboardCondition: () => !inside(),
      plugins: [RevealNotes],
    });
    const busiest = () => Reveal.getCurrentSlide()?.querySelectorAll(".kernel-bench").forEach(showBusiest);
    Reveal.on("slidechanged", busiest);
    busiest();
    // Where a sheet itself is scrolled, Escape gives the keys back as it does in a figure.
    slides.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && event.target.matches?.("[data-keys]")) event.target.blur();
    });
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
    return shown;
  }

  window.deckReady = start();
})();
