// What a clicker leads through: of each slide its figure's key frames, what is revealed step by step,
// and then the next slide; the same way back.
// A key frame is a fragment of reveal.js, and as such known to its keys, its addresses, a finger and
// the speaker's window.

let leading = false; // the deck moves a figure: nothing has to follow
let following = false; // a figure moves the deck

const playerOf = (section) => section?.querySelector(".figure-player[data-key-frames]:not(.figure-player-still)");
const keysOf = (player) => player.dataset.keyFrames.split(" ").map(Number);
const stepOf = (player) => Number(player.dataset.step);
const marksOf = (section) => [...section.querySelectorAll(".key-frame")];

// Unseen marks, one for each key frame but the first, where the figure stands in its slide. Returns
// whether they are others than before.
function markKeyFrames(section) {
  const player = playerOf(section);
  const had = marksOf(section);
  const [first, ...rest] = player ? keysOf(player) : [];
  section.dataset.firstFrame = first ?? "";
  if (had.map((mark) => mark.dataset.step).join() === rest.join()) return false;
  for (const mark of had) mark.remove();
  const place = player?.closest(".figure") ?? player?.parentElement;
  place?.append(...rest.map((step) => {
    const mark = make("span", "fragment key-frame");
    mark.dataset.step = step;
    mark.hidden = true;
    return mark;
  }));
  return true;
}

// Bring the figure to the step that the slide is at.
function lead(section) {
  const player = playerOf(section);
  if (!player) return;
  const shown = marksOf(section).filter((mark) => mark.classList.contains("visible")).at(-1);
  const step = Number((shown ?? { dataset: { step: section.dataset.firstFrame } }).dataset.step);
  leading = true;
  goTo(player, step);
  leading = false;
}

function goTo(player, step) {
  const playing = player.matches(".figure-player-playing");
  if (playing || stepOf(player) !== step) player.dispatchEvent(new CustomEvent("figure-go", { detail: { step } }));
}

function stop(section) {
  for (const player of section?.querySelectorAll(".figure-player-playing") ?? []) {
    player.dispatchEvent(new CustomEvent("figure-go", { detail: {} }));
  }
}

function showMarks(section, count) {
  const marks = marksOf(section);
  const at = (mark) => Number(mark.dataset.fragmentIndex);
  following = true;
  if (marks.length) Reveal.navigateFragment(count ? at(marks[count - 1]) : at(marks[0]) - 1);
  following = false;
}

// The deck has moved.
function onFragments({ type, fragments }) {
  const marks = fragments.filter((one) => one.matches(".key-frame"));
  if (following || !marks.length) return;
  const section = Reveal.getCurrentSlide();
  const player = playerOf(section);
  // One back from between two key frames is the one before.
  const between = type === "fragmenthidden" && marks.length === 1 && stepOf(player) > Number(marks[0].dataset.step);
  if (between) showMarks(section, marksOf(section).indexOf(marks[0]) + 1);
  lead(section);
}

// The viewer has moved a figure: the clicker goes on from there.
function onStep(event) {
  const section = event.target.closest("section");
  if (leading || following || isRead()) return;
  if (markKeyFrames(section)) Reveal.syncFragments(section);
  if (section !== Reveal.getCurrentSlide()) return;
  const marks = marksOf(section);
  const fragments = [...section.querySelectorAll(".fragment")];
  const later = fragments.slice(fragments.indexOf(marks.at(-1)) + 1);
  if (later.some((one) => one.classList.contains("visible"))) return; // an answer stays
  const count = marks.filter((mark) => Number(mark.dataset.step) <= stepOf(event.target)).length;
  if (count !== marks.filter((mark) => mark.classList.contains("visible")).length) showMarks(section, count);
}

// Where a phone shows all slides below each other, keys and addresses are those of any page.
const isRead = () => document.documentElement.classList.contains("reading");

const isTyped = (node) =>
  node.closest?.("textarea, [contenteditable], input:not([type=radio], [type=checkbox], [type=range], [type=button])");

// These work wherever the focus is: a lecturer at the other end of the room does not see it.
const CLICKER = {
  PageDown: () => Reveal.isPaused() || Reveal.next(),
  PageUp: () => Reveal.isPaused() || Reveal.prev(),
  b: () => Reveal.togglePause(),
  ".": () => Reveal.togglePause(),
  s: () => window.parent === window && Reveal.getPlugin("notes").open(),
};

function onClicker(event) {
  const action = CLICKER[event.key.length > 1 ? event.key : event.key.toLowerCase()];
  if (!action || isRead() || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyped(event.target) || event.target.closest?.("dialog") || Reveal.isOverlayOpen()) return;
  event.preventDefault(); // a list or a slider would take it
  event.stopImmediatePropagation();
  action();
}

function startKeys() {
  for (const held of slides.querySelectorAll(".figure-player-controls, .choices-slider, .bench-source, .figure-drag")) {
    held.setAttribute("data-prevent-swipe", ""); // a finger moves what it holds, and not the deck
  }
  if (Reveal.isPrintView()) return;
  Reveal.on("fragmentshown", onFragments);
  Reveal.on("fragmenthidden", onFragments);
  Reveal.on("slidechanged", ({ previousSlide, currentSlide }) => {
    stop(previousSlide);
    lead(currentSlide);
  });
  Reveal.on("paused", () => stop(Reveal.getCurrentSlide()));
  slides.addEventListener("figure-step", onStep);
  window.addEventListener("keydown", onClicker, true);
  lead(Reveal.getCurrentSlide());
}

// ---- addresses: #/12/step-5 is the thirteenth slide with its figure at the fifth step

let readLast = ""; // the address that was last read or written here

function showAddressed() {
  readLast = window.location.hash;
  const step = /\/step-(\d+)$/.exec(window.location.hash)?.[1];
  const player = playerOf(Reveal.getCurrentSlide());
  if (step && player) goTo(player, Number(step) - 1);
}

function writeAddress() {
  // An address that has just been typed and not read yet stays: its own event comes next.
  if (isRead() || ![readLast, ""].includes(window.location.hash)) return;
  const section = Reveal.getCurrentSlide();
  const player = playerOf(section);
  const others = section.querySelector(".fragment.visible:not(.key-frame)");
  const { h } = Reveal.getIndices();
  const step = player && stepOf(player) !== Number(section.dataset.firstFrame) ? `/step-${stepOf(player) + 1}` : "";
  const path = step && !others && !section.id ? `/${h}` : Reveal.getSlidePath();
  readLast = `#${path}${step}`;
  window.history.replaceState(null, "", readLast);
}

// Browsers take a few changes a second.
let addressing = null;
function address() {
  clearTimeout(addressing);
  addressing = setTimeout(writeAddress, 300);
}

function startAddresses() {
  if (Reveal.isPrintView()) return;
  showAddressed();
  window.addEventListener("hashchange", showAddressed);
  if (window.parent !== window) return; // in the speaker's window
  for (const event of ["slidechanged", "fragmentshown", "fragmenthidden"]) Reveal.on(event, address);
  slides.addEventListener("figure-step", address);
}
