// Searches all slides: texts, listings, tables, drawings, and what figures say at their other steps.

// The text of a section, and where in it each of its text nodes stands. Blocks are apart, so that
// no match runs from one into the next.
function textOf(section) {
  const nodes = [];
  let text = "";
  for (const part of section.querySelectorAll(".sheet > .title, .sheet > .body")) {
    const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    let before = null;
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const holder = node.parentElement;
      if (holder.closest("style, noscript, button, select, .figure-player-status, .figure-player-tallest")) continue;
      const block = holder.closest("p, li, tr, td, th, h2, h3, .kl-c, pre > span, text, .block, figcaption");
      if (block !== before) text += "\n";
      before = block;
      nodes.push([text.length, node]);
      text += node.data;
    }
  }
  return { text, nodes };
}

// Of each figure's place what it says at all of its steps; unpacked when somebody first searches.
async function readCaptions() {
  const packed = document.getElementById("figure-states")?.textContent;
  if (!packed) return [];
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const [, figures] = await new Response(stream).json();
  return figures.map(({ state }) => (state.frames ?? []).map((frame) => frame.caption ?? "").filter(Boolean));
}

const pattern = (words) =>
  new RegExp(words.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+"), "gi");

class Finder {
  constructor(sections) {
    this.sections = sections;
    this.captions = null;
  }

  // For each section with a match: its number, words around the first match, whether it is hidden.
  async find(words) {
    this.captions ??= await readCaptions();
    this.mark([]);
    if (words.trim().length < 2) return [];
    const sought = pattern(words);
    const found = [];
    const ranges = [];
    this.sections.forEach((section, number) => {
      const { text, nodes } = textOf(section);
      const matches = [...text.matchAll(sought)];
      const said = [...section.querySelectorAll("[data-figure]")].flatMap(
        (place) => this.captions[place.dataset.figure] ?? []);
      const caption = said.find((one) => one.search(sought) >= 0);
      if (!matches.length && caption === undefined) return;
      const made = matches.map((match) => rangeOf(nodes, match.index, match.index + match[0].length));
      ranges.push(...made);
      const [around, at, length] = matches.length
        ? [text, matches[0].index, matches[0][0].length]
        : [caption, caption.search(sought), caption.match(sought)[0].length];
      const waits = made[0]?.startContainer.parentElement.closest(".fragment") != null;
      found.push({ number, waits, excerpt: excerpt(around, at, length) });
    });
    this.mark(ranges);
    return found;
  }

  // Set off without touching the slides: elements put around words would take drawings apart.
  mark(ranges) {
    if (typeof Highlight === "undefined") return;
    CSS.highlights.set("found", new Highlight(...ranges));
  }
}

function rangeOf(nodes, from, to) {
  const range = document.createRange();
  const at = (place) => nodes.findLast(([start]) => start <= place) ?? nodes[0];
  const [first, begins] = at(from);
  const [last, ends] = at(to - 1);
  range.setStart(begins, Math.min(from - first, begins.length));
  range.setEnd(ends, Math.min(to - last, ends.length));
  return range;
}

function excerpt(text, at, length) {
  const tidy = (words) => words.replace(/\s+/g, " ");
  const line = text.lastIndexOf("\n", at - 1) + 1;
  const from = at - line > 40 ? Math.min(at, text.indexOf(" ", at - 40) + 1 || at) : line;
  const end = text.indexOf("\n", at + length);
  const to = Math.min(end < 0 ? text.length : end, at + length + 60);
  return [
    (from > line ? "…" : "") + tidy(text.slice(from, at)),
    make("mark", "", tidy(text.slice(at, at + length))),
    tidy(text.slice(at + length, to)),
  ];
}
