// Code on a slide: set so that no line breaks, marked lines first, and folded where it crowds the idea.

const ADVANCE = 0.6021; // of a character of the deck's monospaced typeface, in its size
const CODE = { most: 23, least: 18 }; // pixels of code and listings
const LINE = 1.34; // height of a listing's line, where there is little room
const ROWS = 21; // of a listing that has a sheet for itself

const rowsOf = (listing) => [...listing.querySelectorAll(".kl-row:not(.kl-headings, .kl-sums)")];
const codeOf = (row) => row.querySelector(".kl-c").textContent;
const listingsOf = (node) => [...node.querySelectorAll(".kernel-listing")].filter((one) => !one.closest(".bench"));

// ---- folded

// Code that makes what stands below it, a figure or a table, says how and not what: it may be folded
// away. Code that prints is folded only where nothing else helps.
// A listing says itself what it is, so that the call for it is always folded.
function foldable(blocks, most) {
  return blocks.filter((block, place) => {
    if (!block.matches(".code:not(.gaps)")) return false;
    const shown = blocks.slice(place + 1).find((one) => !one.matches(".code"));
    if (!shown?.hasAttribute("data-output")) return false;
    if (shown.matches(".listing")) return most > 0 || shown === blocks[place + 1];
    return most > (shown.matches(".text, .html") ? 1 : 0);
  });
}

// What is folded comes up in place of the slide's body, by a button or a key.
function addPanel(sheet, blocks) {
  if (!blocks.length) return;
  let panel = sheet.querySelector(":scope > .code-panel");
  if (!panel) {
    panel = make("div", "code-panel");
    panel.hidden = true;
    panel.tabIndex = 0;
    panel.setAttribute("role", "region");
    panel.setAttribute("aria-label", "Code of this slide");
    const button = make("button", "show-code", "Code");
    button.type = "button";
    button.title = "Show the code of this slide (C)";
    button.setAttribute("aria-expanded", "false");
    button.onclick = () => turnPanel(sheet);
    sheet.classList.add("has-code");
    sheet.append(button, panel);
  }
  for (const block of blocks) block.classList.remove("fragment");
  panel.append(...blocks);
}

function turnPanel(sheet, open = sheet.querySelector(".code-panel")?.hidden) {
  const panel = sheet?.querySelector(".code-panel");
  if (!panel || panel.hidden === !open) return;
  panel.hidden = !open;
  sheet.querySelector(".show-code").setAttribute("aria-expanded", String(open));
  if (open) panel.focus({ preventScroll: true });
  else if (panel.contains(document.activeElement)) document.activeElement.blur();
}

function watchPanels() {
  document.addEventListener("keydown", (event) => {
    const sheet = Reveal.getCurrentSlide()?.querySelector(".sheet.has-code");
    if (!sheet || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea")) return;
    const open = !sheet.querySelector(".code-panel").hidden;
    if (event.key.toLowerCase() === "c") turnPanel(sheet);
    else if (event.key === "Escape" && open) turnPanel(sheet, false);
    else return;
    event.stopImmediatePropagation();
  }, true);
  Reveal.registerKeyboardShortcut("C", "Show the code of a slide");
  Reveal.on("slidechanged", ({ previousSlide }) => turnPanel(previousSlide?.querySelector(".sheet.has-code"), false));
}

// ---- listings

// A listing that is too long for its sheet keeps the lines that are marked or counted and those
// near them; the whole of it is folded.
function shorten(listing, most) {
  const rows = rowsOf(listing);
  if (rows.length <= most) return null;
  const whole = listing.cloneNode(true);
  listing.whole = whole;
  const marked = rows.flatMap((row, n) => (row.matches(".kl-marked") ? [n] : []));
  const near = (n) => Math.min(...marked.map((one) => Math.abs(one - n)), rows.length);
  const worth = (row, n) => {
    if (row.matches(".kl-marked")) return 1000;
    const text = codeOf(row).trim();
    const counted = [...row.querySelectorAll(":is(.kl-m, .kl-v)")].some((cell) => cell.textContent.trim());
    const opens = /^(?:for|if|while|else|extern|__global__|template)\b/.test(text);
    const empty = !text || /^(?:\/\/|[})\]];?$)/.test(text);
    return (counted ? 40 : 0) + (opens ? 12 : 0) - (empty ? 15 : 0) - near(n);
  };
  const order = rows.map((row, n) => [worth(row, n), n]).sort((a, b) => a[0] - b[0]);
  const left = new Set();
  // Each gap takes a line for itself.
  const gaps = () => [...left].filter((n) => !left.has(n - 1)).length;
  for (const [, n] of order) {
    if (rows.length - left.size + gaps() <= most) break;
    left.add(n);
  }
  for (const n of [...left].sort((a, b) => a - b)) {
    if (left.has(n - 1)) {
      rows[n].remove();
      continue;
    }
    for (const cell of rows[n].children) cell.textContent = "";
    rows[n].className = "kl-row kl-gap";
    rows[n].querySelector(".kl-n").textContent = "⋮";
    rows[n].querySelector(".kl-c").textContent = " ";
  }
  return whole;
}

// Groups of marked lines come one after the other, and then the rest.
function stepThrough(sheet) {
  let index = 0;
  let first = true; // is there when the slide comes
  const wait = (rows) => {
    for (const row of rows) row.dataset.fragmentIndex = index;
    for (const row of rows) row.classList.add("fragment");
    index += 1;
  };
  for (const listing of listingsOf(sheet.querySelector(".body"))) {
    const rows = rowsOf(listing);
    const rest = rows.filter((row) => !row.matches(".kl-marked"));
    if (listing.closest(".fragment") || rest.length === rows.length || rest.length < 3) continue;
    const groups = [];
    rows.forEach((row, n) => {
      if (!row.matches(".kl-marked")) return;
      if (rows[n - 1]?.matches(".kl-marked")) groups.at(-1).push(row);
      else groups.push([row]);
    });
    for (const group of groups) {
      if (!first) wait(group);
      first = false;
    }
    for (const row of rest) row.classList.add("kl-rest");
    wait([...rest, ...listing.querySelectorAll(".kl-sums")]);
    listing.classList.add("stepped");
  }
}

// ---- sizes at which no line breaks

// Code at the size of its sheet again.
function unfitCode(body) {
  for (const one of body.querySelectorAll("pre.lines, .kernel-listing")) one.style.fontSize = "";
}

// Reads what it has to know, and gives back what sets the sizes.
function fitCode(body) {
  const set = [];
  for (const pre of body.querySelectorAll(":scope pre.lines")) {
    const style = getComputedStyle(pre);
    const width = pre.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const longest = Math.max(0, ...[...pre.children].map((line) => line.textContent.length));
    const size = Math.min(parseFloat(style.fontSize), width / ADVANCE / (longest + 0.1));
    const fits = Math.floor(10 * Math.max(CODE.least, size)) / 10;
    if (fits < parseFloat(style.fontSize)) set.push(() => (pre.style.fontSize = `${fits}px`));
    if (size < CODE.least) set.push(() => [...pre.children].forEach((line) => narrowIndent(line)));
  }
  for (const listing of listingsOf(body)) set.push(...fitListing(listing));
  return set;
}

// The pixels that each line of a listing has, and the largest size of text at which none breaks.
function roomOf(listing) {
  const rows = rowsOf(listing);
  const table = listing.clientWidth;
  const gutter = Math.max(...rows.map((row) => row.firstElementChild.textContent.length)) * ADVANCE;
  const heads = [...listing.querySelectorAll(":scope .kl-headings > :is(.kl-m, .kl-v)")].map((cell) => cell.offsetWidth);
  // Over cells that are empty a line may reach.
  const free = (row) => {
    const first = [...row.querySelectorAll(":scope > :is(.kl-m, .kl-v)")].findIndex((cell) => cell.textContent.trim());
    return first < 0 ? 0 : heads.slice(first).reduce((sum, wide) => sum + wide, 0);
  };
  const needed = rows.map((row) => [codeOf(row).trimEnd().length, table - 45 - free(row)]);
  const largest = Math.min(...needed.map(([length, wide]) => wide / ADVANCE / (length + gutter / ADVANCE + 0.5)));
  return { rows, gutter, needed, largest };
}

function fitListing(listing) {
  const size = parseFloat(getComputedStyle(listing).fontSize);
  const { rows, gutter, needed, largest } = roomOf(listing);
  const fits = Math.floor(10 * Math.max(CODE.least, Math.min(size, largest))) / 10;
  return [() => {
    listing.style.fontSize = `${fits}px`;
    const over = needed.map(([length, wide]) => (length + gutter / ADVANCE + 0.5) * ADVANCE * fits > wide);
    if (over.some(Boolean)) {
      listing.classList.add("dense");
      for (const row of rows) narrowIndent(row.querySelector(".kl-c"));
    }
    rows.forEach((row, n) => {
      const indent = codeOf(row).search(/\S/);
      const length = needed[n][0] - (over.some(Boolean) ? 0.5 * Math.max(0, indent) : 0);
      const advance = over.some(Boolean) ? fits * ADVANCE - 0.6 : fits * ADVANCE;
      if (length * advance + gutter * fits <= needed[n][1]) row.classList.add("kl-whole");
    });
  }];
}

// Indentation at half its width: the depth is seen all the same.
function narrowIndent(line) {
  const text = line.firstChild;
  const found = text?.nodeType === 3 && /^ {4,}/.exec(text.data);
  if (!found) return;
  const rest = text.splitText(found[0].length);
  const indent = make("span", "indent", text.cloneNode());
  text.remove();
  rest.before(indent);
}

// ---- the source of a bench

// The line at fault, or the one that counts most.
function busiestOf(rows) {
  const most = (row) => Math.max(0, ...[...row.querySelectorAll(".kl-v")].map((cell) => Number(cell.textContent.replaceAll(",", ""))));
  return rows.find((row) => row.matches(".kl-marked")) ?? rows.reduce((best, row) => (most(row) > most(best) ? row : best));
}

// Where lines of code need the room, a column is as wide as its numbers: long words of its heading are parted.
function partHeadings(source) {
  for (const head of source.querySelectorAll(".kl-headings > .kl-v")) {
    for (const part of head.childNodes) {
      const text = part.firstChild ?? part;
      text.textContent = text.textContent.replace(/wavefront|instruct|conflict/g, (word) => `${word.slice(0, -5)}\u00ad${word.slice(-5)}`);
    }
  }
}

// That line is in sight when a bench comes up or is turned,
// among whole lines.
function showBusiest(bench) {
  const source = bench.querySelector(".bench-source");
  const listings = [...(source?.querySelectorAll(".kernel-listing") ?? [])];
  if (!listings.length || !source.offsetHeight || listings[0].dataset.shown || document.body.matches(".laying-out")) return;
  listings[0].dataset.shown = "";
  const counted = listings.filter((one) => one.querySelector(".kl-headings > .kl-v"));
  if (counted.some((one) => roomOf(one).largest < parseFloat(getComputedStyle(one).fontSize))) partHeadings(source);
  for (const set of listings.flatMap(fitListing)) set();
  source.style.maxHeight = "";
  source.scrollTop = 0;
  const rows = listings.flatMap(rowsOf);
  const line = busiestOf(rows);
  const outer = source.getBoundingClientRect();
  // Of the sheet, which is whole pixels wide: a source is thousands of pixels long, and all of them count.
  const sheet = source.closest(".sheet");
  const scale = sheet.getBoundingClientRect().width / sheet.offsetWidth;
  const places = rows.map((row) => row.getBoundingClientRect()).map(
    (box) => ({ top: (box.top - outer.top) / scale, bottom: (box.bottom - outer.top) / scale }));
  // The headings of the line's listing stay in sight.
  const above = (line.closest(".kernel-listing").querySelector(".kl-headings")?.getBoundingClientRect().height ?? 0) / scale;
  const room = source.clientHeight - above;
  const at = places[rows.indexOf(line)];
  if (!at || places.at(-1).bottom <= source.clientHeight) return;
  // Two fifths of what is in sight stand before it.
  const first = places.find(({ top }) => top >= at.top - 0.4 * room || places.at(-1).bottom - top <= room);
  const last = places.findLast(({ bottom }) => bottom - first.top <= room);
  source.style.maxHeight = `${Math.floor(last.bottom - first.top + above)}px`;
  source.scrollTop = Math.round(first.top - above);
}
