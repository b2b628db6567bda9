// The blocks of a slide: taken apart, put in order, and split where they are too long for a sheet.

const CELL = { characters: 30, beside: 7 }; // of at most so many, which keeps its words in one line
const LINES = 18; // of code in one piece: a function is cut only if it is longer

const make = (tag, name, ...children) => {
  const made = document.createElement(tag);
  made.className = name;
  made.append(...children);
  return made;
};

// Paragraphs, tables and code inside a text are blocks of their own.
function flatten(body) {
  for (const block of [...body.querySelectorAll(":scope > .prose")]) {
    gather(block);
    const parts = [...block.children].map((child) => {
      if (child.classList.contains("code")) {
        child.classList.add("block");
        return child;
      }
      const kind = child.localName === "details" ? "answer" : child.localName === "table" ? "table" : "prose";
      const part = make("div", `block ${kind}`, child);
      if (/^h[1-6]$/.test(child.localName)) part.dataset.heading = "";
      if (block.classList.contains("fragment")) part.classList.add("fragment");
      part.toggleAttribute("data-output", block.hasAttribute("data-output"));
      return part;
    });
    block.replaceWith(...parts);
  }
  // A few words in a cell stay together: it is the headings that make a table too wide.
  for (const cell of body.querySelectorAll("table td")) {
    const narrow = cell.closest("tr").cells.length <= CELL.beside && !cell.closest(".as-written");
    cell.classList.toggle("short", narrow && cell.textContent.length <= CELL.characters);
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

// What a widget is set to stands under its picture.
function arrange(body) {
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

// Work that measures the page now and then, for many places at once. A page that is changed and
// measured in turns is laid out again each time: here all measure, and then all change it. The
// generators yield functions that measure, and get back what these return.
function inStep(generators) {
  const going = (pairs) => pairs.filter(([, step]) => !step.done);
  const results = generators.map(() => undefined);
  const next = ([generator, place], answer) => {
    const step = generator.next(answer);
    if (step.done) results[place] = step.value;
    return [generator, step, place];
  };
  let waiting = going(generators.map((generator, place) => next([generator, place])));
  while (waiting.length) {
    const answers = waiting.map(([, step]) => step.value());
    waiting = going(waiting.map(([generator, , place], n) => next([generator, place], answers[n])));
  }
  return results;
}

// Long code, listings, texts and tables become several blocks.
function* split(block) {
  function* parts(items, texts, most, build) {
    const [whole, room] = yield () => {
      const sum = items.reduce((height, item) => height + item.offsetHeight, 0);
      return [sum, block.parentElement.clientHeight - (block.offsetHeight - sum)];
    };
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
  }
  const pre = block.querySelector(":scope > pre.lines");
  if (pre && (block.matches(".code") || block.matches(".text"))) {
    const lines = [...pre.children];
    const columns = block.matches(".text") && inColumns(block, lines);
    if (columns) return columns;
    const most = block.matches(".code") ? LINES : 14;
    // Of a text, every line counts.
    const words = (line) => (block.matches(".code") ? "" : "x") + line.textContent;
    return yield* parts(lines, lines.map(words), most, (piece) => {
      while (piece.length > 1 && !piece[0].textContent.trim()) piece.shift();
      while (piece.length > 1 && !piece.at(-1).textContent.trim()) piece.pop();
      const inner = make("pre", "lines");
      piece.forEach((line, n) => inner.append(...(n ? ["\n"] : []), line));
      return inner;
    });
  }
  const listings = block.matches(".listing") ? [...block.querySelectorAll(".kernel-listing")] : [];
  if (listings.length > 1) {
    const found = [];
    for (const one of listings) {
      const part = block.cloneNode(false);
      part.append(one);
      block.before(part); // to be measured
      found.push(...(yield* split(part)));
    }
    return found;
  }
  const list = yield* splitList(block);
  if (list.length > 1) return list;
  const tables = block.matches(".table") ? yield* splitColumns(block) : [block];
  if (tables.length > 1) {
    const found = [];
    for (const one of tables) found.push(...(yield* split(one)));
    return found;
  }
  const rows = block.matches(".table") ? [...block.querySelectorAll("tbody > tr")] : [];
  if (rows.length > 11) {
    const table = block.querySelector("table");
    const rest = [...block.children].filter((child) => child !== table);
    const most = table.matches(".wide") ? 17 : 11;
    const made = yield* parts(rows, rows.map(() => "x"), most, (piece) => {
      const copy = table.cloneNode(false);
      copy.append(table.tHead?.cloneNode(true) ?? "", make("tbody", "", ...piece));
      return copy;
    });
    made.at(-1).append(...rest);
    return made;
  }
  return [block];
}
