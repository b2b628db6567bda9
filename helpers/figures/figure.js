// What all figures with controls share; put in front of each one's own module.

const SVG = "http://www.w3.org/2000/svg";

// Keys that stay with the page: Tab leaves the figure, the rest is how lecturers turn pages.
const PAGE_KEYS = /^(Tab|PageUp|PageDown|F\d+|Shift|Control|Alt|Meta)$/;

function belongsToThePage(event) {
  return (
    event.ctrlKey || event.metaKey || event.altKey || PAGE_KEYS.test(event.key) ||
    (event.key === "Enter" && event.shiftKey)
  );
}

// A notebook cuts cells at "x" and a deck of slides turns pages at the arrows: what is typed in
// `root` is for the figure alone, and `onKey` hears of keys that go down. Escape gives the keys back.
// Returns what undoes this.
function keepKeys(root, onKey) {
  function hear(event) {
    if (belongsToThePage(event)) return;
    event.stopPropagation();
    // When the key comes up, or the page would hear that half of it.
    if (event.key === "Escape" && event.type === "keyup") document.activeElement?.blur?.();
    if (event.type === "keydown") onKey(event);
  }
  for (const type of ["keydown", "keypress", "keyup"]) root.addEventListener(type, hear);
  // Notebook 7 hears keys before any element does. It leaves alone what bears this attribute, which
  // must not keep it from Control+S: so it is put on for one key at a time.
  function warn(event) {
    const ours = root.contains(event.target) && !belongsToThePage(event);
    root.toggleAttribute("data-lm-suppress-shortcuts", ours);
  }
  window.addEventListener("keydown", warn, true);
  return () => window.removeEventListener("keydown", warn, true);
}

