// Blocks are measured in the deck's own typefaces, and dealt out to sheets of 1280 × 720: at most one
// figure a sheet, nothing cut off. What stands under one heading is one sheet if that can be had: by
// folding code away, by a sentence beside the title, by smaller text.

const GAP = 16; // between blocks, as in deck.css
const GAPS = { "": 16, tight: 12, tighter: 8 }; // with smaller text
const LINES_BESIDE = 10; // of code on a sheet with other things, if some of it can be folded
// A figure shares its sheet with text of this size if this part of its own size remains.
const KEEP = { "": 0.8, tight: 0.6, tighter: 0.45 };
const LARGE = 1.25; // or if it still is so much larger than drawn
const LEGIBLE = 18; // pixels of the smallest text in a figure: it gives no room away below that
// Lines that a sentence beside the title may have, and pixels of a character in them, as in deck.css.
const LEAD = { "lead": { lines: 2, wide: 9.6, size: 20 }, "lead small": { lines: 3, wide: 8.64, size: 18 } };
const BESIDE = 360; // pixels that text beside a figure needs

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
  constructor(gap = GAP) {
    this.gap = gap;
    this.blocks = [];
    this.figure = null; // the entry with the one figure or bench
    this.beside = 0; // width of the text at the figure's side
  }
  get height() {
    const rest = this.blocks.filter((entry) => entry !== this.figure);
    return rest.reduce((sum, entry) => sum + entry.height + this.gap, 0);
  }
  get lines() {
    return this.blocks.reduce((sum, entry) => sum + entry.lines, 0);
  }
}

function deal(entries, room, how) {
  const gap = GAPS[how.text];
  const pages = [new Page(gap)];
  const last = () => pages.at(-1);
  for (const [number, entry] of entries.entries()) {
    if (!fits(last(), entry, room, entries.slice(number + 1), how)) {
      const page = new Page(gap);
      // A heading stays with what it is the heading of.
      while (last().blocks.length > 1 && last().blocks.at(-1).heading) page.blocks.unshift(last().blocks.pop());
      pages.push(page);
    }
    last().blocks.push(entry);
    if (entry.figure || entry.bench) last().figure = entry;
  }
  return pages;
}

function fits(page, entry, room, after, how) {
  if (page.blocks.every((one) => one.heading)) return true;
  const { gap } = page;
  if (page.lines + entry.lines > how.lines) return false;
  if (entry.bench || page.figure?.bench) return false;
  if (entry.figure && page.figure) return false;
  const figure = entry.figure ?? page.figure?.figure;
  const taken = page.height + (entry.figure ? 0 : entry.height + gap);
  if (!figure) {
    // Code and what it shows stand together.
    const shows = entry.code && after[0]?.output && !after[0].figure && !after[0].bench;
    const both = shows ? taken + after[0].height + gap : taken;
    if (shows && both - gap > room.height && entry.height + after[0].height + gap <= room.height) return false;
    return taken - gap <= room.height;
  }
  const tallest = { ...figure, ratio: figure.worst };
  const alone = scaleIn(tallest, room.width, room.height);
  const good = (scale) =>
    figure.smallest * scale >= LEGIBLE && (scale >= how.keep * alone || scale >= how.large);
  const under = scaleIn(tallest, room.width, room.height - taken);
  const beside = under < 0.95 * alone ? besideScale(page, entry, room, tallest, alone) : null;
  if (beside && beside.scale > under && good(beside.scale)) {
    page.beside = beside.width;
    return true;
  }
  page.beside = 0;
  return good(under);
}

// How large a figure becomes with all text at its side, and how wide the text.
function besideScale(page, entry, room, figure, alone) {
  const holder = entry.figure ? entry : page.figure;
  const texts = [...page.blocks, entry].filter((one) => one !== holder);
  if (texts.some((one) => !one.prose)) return null;
  const width = Math.max(BESIDE, room.width - alone * figure.width - 2 * GAP);
  const scale = scaleIn(figure, room.width - width - 2 * GAP, room.height);
  return scale > 0 && heightAt(texts, width, room) <= room.height ? { scale, width } : null;
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
      const narrow = yield () => (before.querySelector("table")?.offsetWidth ?? Infinity) < 0.5 * body.clientWidth &&
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
    fragment: block.matches(".fragment"),
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
  const wide = page.beside ? room.width - page.beside - 2 * GAP : room.width;
  const width = scaleIn(figure, wide, height) * figure.width;
  node.style.setProperty("--player-max-height", `${Math.floor(height - figure.around)}px`);
  node.style.setProperty("--figure-width", `${Math.floor(width)}px`);
}

// What is turned may bring a picture of another shape, or a longer caption.
function sizeAgain(page, room) {
  page.figure.figure = pictureOf(page.figure.node) ?? page.figure.figure;
  size(page, room);
}

// ---- one sheet for a heading

function begin(section) {
  const body = section.querySelector(".body");
  const sheet = section.querySelector(".sheet");
  const title = [...(section.querySelector(".title")?.children ?? [])];
  const blocks = [...body.children];
  const written = section.closest(".as-written"); // nobody's code but the course's own goes out of sight
  const folds = [0, 1, 2].map((most) => (written ? [] : foldable(blocks, most)));
  return { section, sheet, body, title, blocks, folds, written, best: null };
}

// Everything is measured before anything is moved, which would have it all laid out again.
function measure(one) {
  const { body, title } = one;
  one.room ??= { body, width: body.clientWidth, height: body.clientHeight };
  const taken = title.reduce((sum, part) => sum + part.offsetWidth + GAP, 100);
  one.leadRoom ??= title.length ? one.room.width - taken : 0;
  one.entries = one.blocks.map(entryOf);
}

const WAYS = [
  { text: "", fold: 0 },
  { text: "", fold: 1 },
  { text: "", fold: 1, lead: true },
  { text: "tight", fold: 1 },
  { text: "tight", fold: 1, lead: true },
  { text: "tight", fold: 2 },
  { text: "tighter", fold: 1 },
  { text: "tighter", fold: 1, lead: true },
  { text: "tighter", fold: 2 },
  { text: "tighter", fold: 2, lead: true },
];

// Tries the ways of one size of text; whether the heading has its one sheet.
function seek(one, text) {
  for (const way of WAYS.filter((each) => each.text === text)) {
    const folded = one.folds[way.fold];
    if (way.fold === 2 && folded.length === one.folds[1].length) continue;
    const lead = way.lead ? leadOf(one, text) : null;
    if (way.lead && !lead) continue;
    const entries = one.entries.filter(({ node }) => !folded.includes(node) && node !== lead);
    if (!entries.length) continue;
    const lines = way.fold || folded.length === one.folds[1].length ? 99 : LINES_BESIDE;
    // Plots of others take what room there is.
    const shares = one.written ? { keep: text ? 1 : KEEP[""], large: Infinity } : { keep: KEEP[text], large: LARGE };
    const pages = deal(entries, one.room, { text, lines, ...shares });
    // What fits no sheet counts as two.
    const over = pages.filter(({ blocks: [entry, next] }) => !next && !entry.figure && !entry.bench && entry.height > one.room.height);
    const found = { ...way, pages, lead, folded, cost: pages.length + over.length };
    const folds = one.best && !one.best.fold && one.folds[1].length > one.folds[0].length;
    if (!one.best || found.cost < one.best.cost || folds) one.best = found;
    if (found.cost === 1) return true;
  }
  return false;
}

// One short sentence before a figure or a bench can stand beside the title; and so can the only one
// behind a figure, where text has to be small anyhow.
function leadOf(one, text) {
  const blocks = one.blocks.filter((each) => !one.folds[1].includes(each));
  const [first, next] = blocks;
  const words = blocks.filter((each) => !each.matches(".figure"));
  const before = next?.matches(".figure, .bench, .choices");
  const block = before ? first : text && words.length === 1 && first.matches(".figure") ? words[0] : null;
  const paragraph = block?.firstElementChild;
  const alone = block?.matches(".prose:not(.fragment)") && paragraph?.localName === "p" &&
    block.children.length === 1;
  if (!alone || one.sheet.matches(".opening")) return null;
  if (paragraph.querySelector(".maths-line") && paragraph.textContent.trim()) return null; // but alone
  return leadSize(one, block) === "lead" || (text && leadSize(one, block)) ? block : null;
}

// The class of a sentence beside the title, or none where it is too long.
function leadSize(one, block) {
  const formula = parseFloat(block.querySelector(".maths-line > .maths")?.style.width ?? 0); // in em
  const fits = ({ lines, wide, size }) => formula
    ? formula * size + 2 * GAP <= one.leadRoom
    : block.textContent.trim().length <= (lines * 0.92 * one.leadRoom) / wide;
  return Object.keys(LEAD).find((size) => fits(LEAD[size]));
}

// A listing that leaves no room for the words about it keeps what matters of it.
function* shortenListings(one) {
  const listings = one.blocks.filter((block) => block.matches(".listing"));
  if (!listings.length) return;
  const spare = yield () => {
    const rows = listings.flatMap((block) => [...block.querySelectorAll(".kernel-listing")].flatMap(rowsOf));
    const around = listings.reduce((sum, block) => sum + block.offsetHeight, 0) -
      rows.reduce((sum, row) => sum + row.offsetHeight, 0);
    const others = one.blocks.filter((block) => !listings.includes(block) && !one.folds[1].includes(block));
    const words = others.reduce((sum, block) => sum + block.offsetHeight + GAP, 0);
    const room = one.body.clientHeight;
    // Words that take more than a part of the sheet get their own.
    const left = room - around - (words < 0.6 * room ? words : 0) - GAP * (listings.length - 1);
    return Math.floor(left / (CODE.least * LINE) / listings.length);
  };
  one.whole = listings.flatMap((block) => [...block.querySelectorAll(".kernel-listing")].flatMap((listing) => {
    const whole = shorten(listing, Math.max(6, Math.min(ROWS, spare)));
    return whole ? [make("div", "block listing", whole)] : [];
  }));
}

// A sheet's worth of everything that stands under each heading.
function planAll(sections) {
  const all = sections.map(begin);
  let open = all;
  for (const text of ["", "tight", "tighter"]) {
    for (const { sheet } of open) sheet.classList.remove("tight");
    if (text) for (const { sheet } of open) sheet.classList.add(text);
    for (const { body } of open) unfitCode(body);
    // Lines that break would make it higher than it is to be.
    for (const set of open.flatMap(({ body }) => fitCode(body))) set();
    if (text === "tight") inStep(open.map(shortenListings));
    for (const one of open) measure(one);
    open = open.filter((one) => !seek(one, text));
  }
  for (const { sheet, best } of all) {
    sheet.classList.remove("tight", "tighter");
    if (best?.text) sheet.classList.add(best.text);
  }
  return all.filter(({ best }) => best);
}

// A last sheet with a sentence or two on it is no slide: rather a fuller last one.
function mendLonely({ best: { pages }, room }) {
  const lonely = () => pages.length > 1 && pages.at(-1).blocks.every((entry) => entry.prose) &&
    pages.at(-1).height < 0.3 * room.height;
  const before = pages.at(-2);
  while (lonely() && before.blocks.length > 2 && before.blocks.at(-1).prose) {
    pages.at(-1).blocks.unshift(before.blocks.pop());
  }
}

function layOut(one) {
  const { section, room, best: { pages, lead, folded } } = one;
  const made = pages.map((page, number) => sheetFor(section, page, number));
  if (lead) made[0].querySelector(".title").append(make("span", leadSize(one, lead), ...lead.firstElementChild.childNodes));
  made.forEach((one, number) => {
    const part = make("span", "title-part", `${number + 1} / ${made.length}`);
    if (made.length > 1) one.querySelector(".title")?.append(part);
  });
  // What is folded is with what it makes, and in the speaker's notes as well.
  const blocks = one.blocks;
  const sheetOf = (block) => made[Math.max(0, pages.findIndex((page) =>
    page.blocks.some(({ node }) => blocks.indexOf(node) > blocks.indexOf(block))))];
  for (const block of folded) {
    tell(sheetOf(block), block.cloneNode(true));
    addPanel(sheetOf(block).querySelector(".sheet"), [block]);
  }
  const listed = one.whole?.length ? made.find((each) => each.querySelector(".body .kernel-listing")) : null;
  if (listed) addPanel(listed.querySelector(".sheet"), one.whole);
  for (const each of made) stepThrough(each.querySelector(".sheet"));
  for (const page of pages) {
    size(page, room);
    for (const type of ["input", "change"]) {
      page.figure?.node.addEventListener(type, (event) => {
        if (event.target.closest(".choices")) sizeAgain(page, room);
      });
    }
    // What opens a sheet is not waited for.
    const opens = page === pages[0] ? null : page.blocks[0]?.node;
    if (opens?.matches(".fragment[data-output]")) opens.dataset.answer = "";
    opens?.classList.remove("fragment");
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
