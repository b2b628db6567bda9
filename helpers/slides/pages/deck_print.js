// The deck on paper: its slides as pages, or, with `?handout` in the address, two of them a page with
// room for notes. What is done before printing is undone after it.

const PAGE_LINES = 6; // to write on, where the speaker has no notes for a slide

const onPaper = document.documentElement.classList;
let undo = null; // what brings the deck back, while it is on paper

function swap(node, other) {
  node.replaceWith(other);
  undo.push(() => other.replaceWith(node));
}

function setOn(node, name, value) {
  const before = node.getAttribute(name);
  if (value === null) node.removeAttribute(name);
  else node.setAttribute(name, value);
  undo.push(() => (before === null ? node.removeAttribute(name) : node.setAttribute(name, before)));
}

// The outline of a PDF is made of headings: each title once, its further slides below it.
function addHeadings(sections) {
  let last = null;
  for (const section of sections) {
    const title = section.querySelector(".title");
    if (!title) continue;
    const rest = [...title.children].filter((part) => part.matches(".lead, .title-part"));
    const words = [...title.children].filter((part) => !rest.includes(part));
    const text = words.map((part) => part.textContent).join(" ");
    // What stands apart on the slide is told apart in the outline by letters that nobody sees.
    const heading = make("span", "paper-heading", ...words.flatMap((part, number) => [
      ...(number && part.textContent ? [make("span", "paper-unseen", ": ")] : []), part.cloneNode(true),
    ]));
    if (text === last && rest.length) heading.append(make("span", "paper-unseen", ` (${rest.at(-1).textContent})`));
    heading.setAttribute("role", "heading");
    heading.setAttribute("aria-level", section.querySelector(".opening") ? 1 : text === last ? 3 : 2);
    const outer = make("div", title.className, heading, ...rest.map((part) => part.cloneNode(true)));
    last = text;
    swap(title, outer);
  }
}

// Of a bench the figure of its run, or else its busiest line and as many whole ones as there is room for.
function settleBench(bench) {
  const figure = bench.querySelector(".bench-figure > svg");
  setOn(bench, "data-view", figure ? "figure" : "source");
  const source = bench.querySelector(".bench-source");
  if (figure || !source) return;
  const rows = rowsOf(source);
  const heights = rows.map((row) => row.getBoundingClientRect().height);
  const room = source.getBoundingClientRect().height;
  const whole = source.scrollHeight * (room / source.clientHeight || 1);
  let left = room - (whole - heights.reduce((sum, height) => sum + height, 0));
  if (left <= 0 || whole <= room) return;
  let from = rows.indexOf(busiestOf(rows));
  let to = from;
  left -= heights[from];
  // Upwards and downwards in turns.
  for (let up = true, stuck = 0; stuck < 2; up = !up) {
    const next = up ? from - 1 : to + 1;
    if (!(heights[next] <= left)) {
      stuck += 1;
      continue;
    }
    stuck = 0;
    left -= heights[next];
    if (up) from = next;
    else to = next;
  }
  rows.forEach((row, n) => (n < from || n > to) && setOn(row, "hidden", ""));
}

// ---- the handout

// What a class is to find out by itself: an answer, or a result that a step reveals. A hint may stand.
const answersOf = (sheet) => [...sheet.querySelectorAll(".fragment.answer, .fragment[data-output]")]
  .concat([...sheet.querySelectorAll(".answer:not(.fragment), [data-answer]")])
  .filter((one) => !/^hint/i.test(one.querySelector(".answer-head")?.textContent ?? ""));

function addNotes(section) {
  const said = [...(section.querySelector("aside.notes")?.children ?? [])]
    // Blocks of slides are not the speaker's own words, and some of those are for nobody else.
    .filter((one) => !one.matches(".block, .speaker"))
    .map((one) => one.cloneNode(true));
  const lines = Array.from({ length: PAGE_LINES }, () => make("div", "handout-line"));
  const notes = said.length ? make("div", "handout-notes", ...said) : make("div", "handout-lines", ...lines);
  section.append(notes);
  undo.push(() => notes.remove());
}

function handOut(sections) {
  for (const section of sections) {
    const sheet = section.querySelector(".sheet");
    const answers = answersOf(sheet);
    for (const answer of answers) setOn(answer, "data-withheld", "");
    const blocks = [...sheet.querySelectorAll(".body > .block")];
    if (answers.length && blocks.every((block) => answers.includes(block))) setOn(section, "data-withheld", "");
    else addNotes(section);
    const slide = make("div", "handout-slide");
    swap(sheet, slide);
    slide.append(sheet);
  }
}

// ----

function toPaper() {
  if (undo) return;
  undo = [];
  const sections = [...slides.querySelectorAll("section")];
  // reveal.js has a layout of its own for paper, which it does not apply to what bears this class.
  onPaper.add("print-pdf", "on-paper");
  undo.push(() => onPaper.remove("print-pdf"));
  for (const section of sections) {
    for (const name of ["hidden", "aria-hidden"]) if (section.hasAttribute(name)) setOn(section, name, null);
  }
  addHeadings(sections);
  if (onPaper.contains("handout")) handOut(sections);
  for (const bench of slides.querySelectorAll(".kernel-bench")) settleBench(bench);
}

function fromPaper() {
  for (const step of (undo ?? []).reverse()) step();
  undo = null;
}

// Pages have names, so that slides and handouts have each their size; a handout has any paper's.
function pageRules(title) {
  const quoted = JSON.stringify(title).replaceAll("<", "\\3c ");
  const small = 'font: 9pt "Deck Sans", Arial, sans-serif; color: #5b6470;';
  return `@page slide { size: 1280px 720px; margin: 0; }
    @page handout { margin: 14mm 20mm 16mm;
      @bottom-left { content: ${quoted}; ${small} }
      @bottom-right { content: counter(page) " / " counter(pages); ${small} } }`;
}

function readyForPaper() {
  document.head.append(make("style", "", pageRules(document.title)));
  if (/[?&]handout\b/.test(location.search)) onPaper.add("handout");
  window.addEventListener("beforeprint", toPaper);
  window.addEventListener("afterprint", fromPaper);
  // Laid out as on paper at once, to be looked at.
  if (/[?&](handout|print-pdf)\b/.test(location.search)) window.dispatchEvent(new Event("beforeprint"));
}
