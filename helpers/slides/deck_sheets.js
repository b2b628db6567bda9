// Blocks are measured once, in the deck's own typefaces, and dealt out to sheets of 1280 × 720: at
// most one figure and ten lines of code a sheet, nothing cut off.

const GAP = 16; // between blocks, as in deck.css
const KEEP = 0.8; // a figure shares its sheet with text if this part of its size remains
const LARGE = 1.25; // or if it still is so much larger than drawn
const LEGIBLE = 18; // pixels of the smallest text in a figure: it gives no room away below that
const BESIDE = 400; // pixels that text beside a figure needs

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
  // Of a player's frames the export knows, of another drawing its texts.
  const told = (name) => [...block.querySelectorAll(`[data-${name}]`)].map((one) => Number(one.dataset[name]));
  const known = told("smallest");
  const sizes = known.length ? known : [...image.querySelectorAll("text")].map(
    (text) => parseFloat(text.getAttribute("font-size") ?? text.style.fontSize)).filter(Boolean);
  // What is turned may become as tall as this.
  const worst = Math.min(ratio, 1 / Math.max(...told("tallest"), 1e-3));
  return { width, ratio, worst, around, smallest: Math.min(Infinity, ...sizes) };
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
    if (!fits(last(), entry, room, entries.slice(number + 1))) {
      const page = new Page();
      // A heading stays with what it is the heading of.
      while (last().blocks.length > 1 && last().blocks.at(-1).heading) page.blocks.unshift(last().blocks.pop());
      pages.push(page);
    }
    last().blocks.push(entry);
    if (entry.figure || entry.bench) last().figure = entry;
  }
  return pages;
}

function fits(page, entry, room, after) {
  if (page.blocks.every((one) => one.heading)) return true;
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
  const tallest = { ...figure, ratio: figure.worst };
  const alone = scaleIn(tallest, room.width, room.height);
  const shared = scaleIn(tallest, room.width, room.height - taken);
  return figure.smallest * shared >= LEGIBLE && (shared >= KEEP * alone || shared >= LARGE);
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
function* besideTables(blocks, body) {
  const found = [];
  for (const block of blocks) {
    const before = found.at(-1);
    const joins = block.matches(".prose") && !block.matches(".fragment");
    if (joins && before?.matches(".table")) {
      const narrow = yield () => (before.querySelector("table")?.offsetWidth ?? Infinity) < 0.45 * body.clientWidth &&
        before.offsetHeight > 180;
      if (narrow) {
        const pair = make("div", "block pair");
        pair.toggleAttribute("data-output", before.hasAttribute("data-output"));
        before.replaceWith(pair);
        pair.append(before, make("div", "column", block));
        found[found.length - 1] = pair;
        continue;
      }
    } else if (joins && before?.matches(".pair")) {
      const [table, column] = before.children;
      if (yield () => column.offsetHeight + block.offsetHeight < table.offsetHeight) {
        column.append(block);
        continue;
      }
    }
    found.push(block);
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
    heading: block.hasAttribute("data-heading"),
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
  const title = [...(section.querySelector(".title")?.children ?? [])];
  const taken = title.reduce((sum, part) => sum + part.offsetWidth + GAP, 100);
  // Characters of two lines, as they are set there.
  const leadRoom = title.length ? (2 * 0.92 * (room.width - taken)) / 9.6 : 0;
  return { section, body, room, entries, leadRoom, told: [], pages: deal(entries, room) };
}

// Code that draws the figure of the next sheet goes into the notes, and so does what a sheet would
// show of code alone, without what comes of it.
function leaveDrawingOut(one) {
  if (one.section.closest(".as-written")) return; // nobody's code but the course's own goes out of sight
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

// One short sentence before a figure or a bench stands beside the title: the figure needs its sheet.
function leadIn(one) {
  const [first, next] = one.pages;
  const paragraph = first.blocks[0]?.node.firstElementChild;
  const alone = first.blocks.length === 1 && first.blocks[0].prose && !first.blocks[0].node.matches(".fragment") &&
    paragraph?.localName === "p" && paragraph.parentElement.children.length === 1;
  if (!alone || !next?.figure || one.section.querySelector(".opening")) return;
  if (paragraph.querySelector(".maths-line") || paragraph.textContent.length > one.leadRoom) return;
  one.pages.shift();
  one.lead = paragraph;
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

function layOut({ section, pages, room, told, lead }) {
  if (told.length) tell(section, ...told.map((entry) => entry.node));
  const made = pages.map((page, number) => sheetFor(section, page, number));
  if (lead) made[0].querySelector(".title").append(make("span", "lead", ...lead.childNodes));
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
