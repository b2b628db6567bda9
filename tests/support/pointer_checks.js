// Whether a pointer reaches the controls of a page, and what it does there; read by pointer_checks.py.

const CONTROLS = "button, input, select, textarea, summary, a[href], [role=slider], [role=button]";

// Whether something is there to be pointed at.
const isSeen = (node) =>
  node.checkVisibility({ checkVisibilityCSS: true, visibilityProperty: true }) && node.getClientRects().length > 0;

// The visible controls under `root` that do not get what is pointed at their middle or just inside
// one of their edges, and what gets it instead.
function covered(root = document) {
  const name = (node) => !node ? "nothing" : node.localName +
    [...(node.classList ?? [])].map((one) => `.${one}`).join("") +
    (node.getAttribute("aria-label") ? ` “${node.getAttribute("aria-label")}”`
      : node.matches("button, a") ? ` “${node.textContent}”` : "");
  // What a pointer takes hold of: an input that is not drawn itself is turned by its label.
  const faceOf = (control) => {
    const label = control.closest("label");
    const { opacity, clipPath, appearance } = getComputedStyle(control);
    const drawn = Number(opacity) > 0 && clipPath === "none" && appearance !== "none";
    return label && !drawn ? label : control;
  };
  const clips = (node) => {
    const { overflowX, overflowY } = getComputedStyle(node);
    return overflowX !== "visible" || overflowY !== "visible";
  };
  const seen = (box, node) => {
    let [left, top, right, bottom] = [box.left, box.top, box.right, box.bottom];
    for (let one = node; one && getComputedStyle(one).position !== "fixed"; one = one.parentElement) {
      if (one === node || !clips(one) || one === document.documentElement || one === document.body) continue;
      const edge = one.getBoundingClientRect();
      [left, top] = [Math.max(left, edge.left), Math.max(top, edge.top)];
      [right, bottom] = [Math.min(right, edge.right), Math.min(bottom, edge.bottom)];
    }
    return { left, top, right, bottom, width: right - left, height: bottom - top };
  };
  const bad = [];
  let count = 0;
  for (const control of root.querySelectorAll(CONTROLS)) {
    if (control.disabled || control.matches("[type=hidden]") || control.closest("[inert]")) continue;
    if (!isSeen(control)) continue;
    const face = faceOf(control);
    let box = seen(face.getClientRects()[0], face);
    const outside = () => box.width < 2 || box.height < 2 || box.top < 0 || box.left < 0 ||
      box.bottom > innerHeight + 1 || box.right > innerWidth + 1;
    if (outside()) {
      face.scrollIntoView({ block: "center", inline: "center" });
      box = seen(face.getClientRects()[0], face);
    }
    count += 1;
    if (box.width < 2 || box.height < 2) {
      bad.push(`${name(control)} cannot be seen`);
      continue;
    }
    const missedIn = ({ left, top, right, bottom, width, height }) => {
      const inset = Math.min(3, width / 4, height / 4);
      const [x, y] = [(left + right) / 2, (top + bottom) / 2];
      const points = {
        middle: [x, y], left: [left + inset, y], right: [right - inset, y],
        top: [x, top + inset], bottom: [x, bottom - inset],
      };
      const missed = {};
      for (const [where, at] of Object.entries(points)) {
        const hit = document.elementFromPoint(...at);
        const own = hit && (face.contains(hit) || hit.closest("label")?.control === control);
        if (!own) (missed[name(hit)] ??= []).push(where);
      }
      return missed;
    };
    let missed = missedIn(box);
    if (Object.keys(missed).length) { // a reader moves it away from what floats over a page
      face.scrollIntoView({ block: "center", inline: "center" });
      missed = missedIn(seen(face.getClientRects()[0], face));
    }
    for (const [by, where] of Object.entries(missed)) {
      bad.push(`${name(control)}: its ${where.join(", ")} under ${by}`);
    }
  }
  return { count, bad };
}

// The same of all slides that have controls, at the size that the page has.
function coveredSlides() {
  if (document.documentElement.classList.contains("reading")) return covered(); // all below each other
  const found = { count: 0, bad: [] };
  [...document.querySelectorAll(".slides section")].forEach((section, number) => {
    if (number && !section.querySelector(CONTROLS)) return;
    Reveal.slide(number, 0, 99);
    const { count, bad } = covered();
    found.count += count;
    found.bad.push(...bad.map((one) => `slide ${number + 1}: ${one}`));
  });
  return found;
}

// Then `aim(selector)` goes to the first slide with such a control and says where in the window to
// click it, or null where there is none; `changed()`: whether anything is another way since then.
function takeAim() {
  const state = () => {
    const sheet = document.querySelector(".slides .present") ?? document.body;
    const inputs = [...sheet.querySelectorAll("input, select, details")];
    return JSON.stringify([
      sheet.innerHTML, inputs.map((one) => [one.value, one.checked, one.open]), Reveal.getIndices().h,
      document.activeElement?.localName === "select", window.followed,
    ]);
  };
  let before = null;
  window.aimed = (window.aimed ?? 0) + 1;
  window.followed = 0;
  window.addEventListener("click", (event) => {
    if (!event.target.closest?.("a[href]")) return;
    event.preventDefault();
    window.followed += 1;
  }, true);
  window.aim = (selector) => {
    const sections = [...document.querySelectorAll(".slides section")];
    const anywhere = [...document.querySelectorAll(selector)].some((one) => !one.closest(".slides"));
    const number = anywhere ? 1 : sections.findIndex((one) => one.querySelector(selector));
    if (number < 0) return null;
    Reveal.slide(number, 0, 99);
    const control = [...document.querySelectorAll(selector)].find(
      (one) => isSeen(one) && !one.closest(".slides section:not(.present)"));
    if (!control) return null;
    document.activeElement?.blur?.();
    const box = control.getClientRects()[0];
    before = state();
    // A slider is taken hold of where its thumb is not, and a plane somewhere else than before.
    const along = control.matches("[type=range]")
      ? (2 * control.value > control.max ? 0.2 : 0.8)
      : control.matches(".figure-drag") ? 0.4 + 0.1 * (window.aimed % 2) : 0.5;
    return [box.left + along * box.width, box.top + box.height / 2];
  };
  window.changed = async () => {
    for (let wait = 0; wait < 400 && state() === before; wait++) {
      await new Promise((done) => setTimeout(done, 20)); // a tap is heard a little later, on a busy machine by seconds
    }
    return state() !== before;
  };
}
