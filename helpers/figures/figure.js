// What all figures with controls and the bench share; put in front of each one's own module.

const SVG = "http://www.w3.org/2000/svg";
const SUPPRESS = "data-lm-suppress-shortcuts"; // lumino's, on which JupyterLab and Notebook 7 stand

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
function keepKeys(root, onKey = () => {}) {
  function hear(event) {
    if (belongsToThePage(event)) return;
    event.stopPropagation();
    // When the key comes up, or the page would hear that half of it.
    if (event.key === "Escape" && event.type === "keyup") document.activeElement?.blur?.();
    if (event.type === "keydown") onKey(event);
  }
  for (const type of ["keydown", "keypress", "keyup"]) root.addEventListener(type, hear);
  // Notebook 7 hears keys before any element does, and asks of the focused element first. It leaves
  // alone what bears this attribute, which must not keep it from Control+S: so the element bears it
  // for one key at a time.
  let warned = null;
  function warn(event) {
    warned?.removeAttribute(SUPPRESS);
    warned = root.contains(event.target) && !belongsToThePage(event) ? event.target : null;
    warned?.setAttribute(SUPPRESS, "");
  }
  window.addEventListener("keydown", warn, true);
  return () => window.removeEventListener("keydown", warn, true);
}

