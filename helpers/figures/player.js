// The player: frames of SVG with a caption each, played, stepped and scrubbed.
// It knows its model by get, set, on, off and save_changes alone, so that it runs under anywidget
// and in an exported page alike.

const SPEEDS = [0.5, 1, 2, 4];
const LARGEST = 1.4; // how much larger than drawn a frame is shown at most
const ALL_KEYS = 8; // so many steps are all key frames
const SOME_KEYS = 6; // of more, so many are
const ICONS = {
  first: "M5 5h2.5v14H5zM19 5v14L8.5 12z",
  previous: "M17 5v14L6.5 12z",
  play: "M7 4.5v15L19 12z",
  pause: "M6.5 5h4v14h-4zM13.5 5h4v14h-4z",
  next: "M7 5v14l10.5-7z",
  last: "M5 5v14l10.5-7zM16.5 5H19v14h-2.5z",
  loop: "M7 7h9v3l5-4-5-4v3H5v7h2zm10 10H8v-3l-5 4 5 4v-3h11v-7h-2z",
};

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function icon(name) {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", "0 0 24 24");
  drawing.setAttribute("aria-hidden", "true");
  const shape = document.createElementNS(SVG, "path");
  shape.setAttribute("d", ICONS[name]);
  drawing.append(shape);
  return drawing;
}

// The steps that tell the story, from where it begins: those chosen; else all of a few, and of many
// some, the last and the telling ones among them.
function keyFrames(chosen, frames, begin) {
  const ordered = (steps) => [...new Set(steps)].sort((a, b) => a - b);
  const within = ordered(chosen).filter((step) => step >= 0 && step < frames.length);
  if (within.length) return ordered([begin, ...within.filter((step) => step > begin)]);
  const left = frames.length - begin;
  const count = left > ALL_KEYS ? SOME_KEYS : left;
  const gap = count > 1 ? (left - 1) / (count - 1) : 0;
  const even = Array.from({ length: count }, (_, n) => begin + Math.round(n * gap));
  return ordered([...even, ...frames.keys()].filter((step, n) => n < count || (step > begin && frames[step].telling)));
}

function render({ model, el }) {
  const prefix = `f${Math.random().toString(36).slice(2, 10)}`;
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  let frames = [];
  let drawn = []; // the frames' SVG elements, each made when it is first shown
  let index = 0;
  let begin = 0; // the step that the figure opens on, or an earlier one that the viewer went back to
  let speed = 1;
  let timer = null;
  let due = 0; // when the next frame is to be shown
  const playing = () => timer !== null;

  const button = (name, label) => {
    const made = element("button", { type: "button", "aria-label": label, title: label }, icon(name));
    made.className = `figure-player-${name}`;
    return made;
  };
  const stage = element("div", { class: "figure-player-stage", role: "img" });
  const caption = element("p", { class: "figure-player-caption" });
  const tallest = element("p", { class: "figure-player-tallest", "aria-hidden": "true" });
  const first = button("first", "First step (Home)");
  const previous = button("previous", "Previous step (left arrow)");
  const play = button("play", "Play (space)");
  const next = button("next", "Next step (right arrow)");
  const last = button("last", "Last step (End)");
  const scrubber = element("input", { type: "range", min: 0, step: 1, "aria-label": "Step" });
  const counter = element("span", { class: "figure-player-counter" });
  const speeds = element("select", { "aria-label": "Speed", title: "Speed" });
  for (const value of SPEEDS) speeds.append(element("option", { value }, `${value}×`));
  speeds.value = "1";
  const loop = button("loop", "Loop: start again after the last step");
  const tabs = element("div", { class: "figure-player-tabs" });
  const controls = element(
    "div", { class: "figure-player-controls", role: "group", "aria-label": "Playback" },
    first, previous, play, next, last, scrubber, counter, speeds, loop, tabs,
  );
  const strip = element("div", { class: "figure-player-strip" });
  const status = element("p", { class: "figure-player-status", role: "status" });
  const captions = element("div", { class: "figure-player-captions" }, tallest, caption);
  const root = element(
    "div", { class: "figure-player", role: "group", tabindex: 0 }, stage, captions, controls, status,
  );

  const count = () => frames.length;
  const clamp = (value) => Math.min(Math.max(Math.round(Number(value) || 0), 0), Math.max(count() - 1, 0));
  const place = () => `Step ${index + 1} of ${count()}`;

  function drawing(number) {
    if (!drawn[number]) {
      try {
        drawn[number] = parse(String(frames[number].svg ?? ""), `${prefix}-${number}-`);
      } catch (error) {
        const text = `Step ${number + 1} cannot be drawn; its SVG is not well-formed: ${error.message}`;
        drawn[number] = element("p", { class: "figure-player-message" }, text);
      }
    }
    return drawn[number];
  }

  // A page around the player may follow its steps, and lead them.
  const say = () => {
    if (before !== null) return; // on paper
    root.dataset.step = index;
    root.dispatchEvent(new CustomEvent("figure-step", { bubbles: true, detail: { step: index, playing: playing() } }));
  };

  function draw() {
    const empty = count() === 0;
    if (before === null && index < begin) {
      begin = index;
      onKeys();
    }
    root.classList.toggle("figure-player-still", count() < 2);
    if (empty) {
      stage.replaceChildren(element("p", { class: "figure-player-message" }, "No steps to show."));
      stage.setAttribute("aria-label", "No steps to show.");
      caption.textContent = "";
      return;
    }
    const text = String(frames[index].caption ?? "");
    const shown = drawing(index);
    if (stage.firstChild !== shown) stage.replaceChildren(shown);
    stage.setAttribute("aria-label", [model.get("alt"), text].filter(Boolean).join(". "));
    caption.textContent = text;
    scrubber.value = index;
    scrubber.setAttribute("aria-valuetext", place());
    scrubber.style.setProperty("--share", `${count() > 1 ? (100 * index) / (count() - 1) : 0}%`);
    counter.textContent = `${index + 1} / ${count()}`;
    [...tabs.children].forEach((tab, step) => tab.setAttribute("aria-pressed", String(step === index)));
    const atEnd = !model.get("loop") && index === count() - 1;
    const atStart = !model.get("loop") && index === 0;
    for (const [control, off] of [[first, index === 0], [previous, atStart], [next, atEnd], [last, index === count() - 1]]) {
      control.setAttribute("aria-disabled", String(off));
    }
    say();
  }

  function drawPlay() {
    play.replaceChildren(icon(playing() ? "pause" : "play"));
    const label = playing() ? "Pause (space)" : "Play (space)";
    play.setAttribute("aria-label", label);
    play.title = label;
    root.classList.toggle("figure-player-playing", playing());
  }

  // Only when the viewer stops somewhere: not on every frame of a running animation.
  function tell() {
    if (model.get("index") !== index) {
      model.set("index", index);
      model.save_changes();
    }
    if (count() === 0) return;
    // A reader says the scrubber's step by itself.
    const text = document.activeElement === scrubber ? "" : `${place()}. `;
    status.textContent = text + caption.textContent;
  }

  function tick() {
    const end = index >= count() - 1;
    if (count() < 2 || (end && !model.get("loop"))) return pause();
    index = end ? 0 : index + 1;
    draw();
    schedule(due);
    if (index === count() - 1 && !model.get("loop")) pause();
  }

  // By the clock, so that the time a frame takes to draw does not add up.
  function schedule(from = performance.now()) {
    clearTimeout(timer);
    const now = performance.now();
    due = Math.max(from + Math.max(model.get("interval"), 1) / speed, now);
    timer = setTimeout(tick, due - now);
  }

  function start() {
    if (count() < 2 || playing()) return;
    if (index === count() - 1) {
      index = 0;
      draw();
    }
    status.textContent = "";
    schedule();
    drawPlay();
  }

  function pause() {
    if (playing()) {
      clearTimeout(timer);
      timer = null;
      drawPlay();
    }
    tell();
  }

  function go(target) {
    if (count() === 0) return;
    const around = model.get("loop") && (target < 0 || target >= count());
    index = around ? (target + count()) % count() : clamp(target);
    draw();
    pause();
  }

  // To a step, where one is given, and in any case no further.
  root.addEventListener("figure-go", ({ detail }) => {
    if (detail?.step === undefined || clamp(detail.step) === index) pause();
    else go(clamp(detail.step));
  });

  const isOff = (control) => control.getAttribute("aria-disabled") === "true";
  first.onclick = () => go(0);
  previous.onclick = () => isOff(previous) || go(index - 1);
  next.onclick = () => isOff(next) || go(index + 1);
  last.onclick = () => go(count() - 1);
  play.onclick = () => (playing() ? pause() : start());
  scrubber.oninput = () => {
    if (playing()) {
      clearTimeout(timer);
      timer = null;
      drawPlay();
    }
    index = clamp(scrubber.value);
    draw();
  };
  scrubber.onchange = () => go(scrubber.value);
  speeds.onchange = () => {
    speed = Number(speeds.value);
    if (playing()) schedule();
  };
  loop.onclick = () => {
    model.set("loop", !model.get("loop"));
    model.save_changes();
  };

  const actions = {
    ArrowLeft: () => go(index - 1),
    ArrowRight: () => go(index + 1),
    Home: () => go(0),
    End: () => go(count() - 1),
    " ": () => (playing() ? pause() : start()),
  };
  const leaveKeys = keepKeys(root, (event) => {
    // These have keys of their own.
    if (event.target === speeds || (event.key === " " && event.target.closest("button"))) return;
    const action = actions[event.key];
    if (!action || count() === 0) return;
    event.preventDefault(); // the page would scroll, the scrubber step once more
    if (!(event.repeat && event.key === " ")) action();
  });

  // On paper the figure stands at its telling steps, side by side where there are several; without
  // any at the step that it was made with, or where that is the first at the last.
  const made = model.get("index");
  let before = null; // the step that was shown before
  function toPaper() {
    if (before !== null || count() === 0) return;
    if (playing()) pause();
    before = index;
    const marked = frames.flatMap(({ telling }, number) => (telling ? [number] : []));
    const steps = marked.length ? marked : [made > 0 ? clamp(made) : count() - 1];
    index = steps.at(-1);
    draw();
    if (steps.length < 2) return;
    strip.replaceChildren(...steps.map((number) => element(
      "figure", {}, drawing(number), element("figcaption", {}, String(frames[number].caption ?? "")),
    )));
    stage.after(strip);
  }
  function fromPaper() {
    if (before === null) return;
    index = clamp(before);
    before = null;
    strip.remove();
    draw();
  }

  function onKeys() {
    root.dataset.keyFrames = keyFrames(model.get("key_frames") ?? [], frames, begin).join(" ");
  }
  // Steps with names are a switch: a button for each, and none that plays.
  function onLabels() {
    const labels = model.get("labels") ?? [];
    const named = count() > 1 && labels.length === count();
    root.classList.toggle("figure-player-switch", named);
    tabs.replaceChildren(...(named ? labels : []).map((label, step) => {
      const tab = element("button", { type: "button" }, label);
      tab.onclick = () => go(step);
      return tab;
    }));
  }
  function onFrames() {
    frames = model.get("frames") ?? [];
    drawn = [];
    onLabels();
    [index, begin] = [clamp(index), clamp(begin)];
    onKeys();
    scrubber.max = Math.max(count() - 1, 0);
    const words = frames.map(({ caption }) => String(caption ?? ""));
    tallest.textContent = words.reduce((a, b) => (b.length > a.length ? b : a), "");
    captions.hidden = tallest.textContent === "";
    counter.style.setProperty("--digits", String(count()).length);
    // Room for the tallest frame, so that the controls stay where they are.
    let [ratio, widest] = [0, 0];
    for (const { svg } of frames) {
      const { width, height } = extent(String(svg ?? ""));
      if (!(width && height)) continue;
      ratio = Math.max(ratio, height / width);
      widest = Math.max(widest, width);
    }
    stage.style.aspectRatio = ratio ? String(1 / ratio) : "";
    stage.style.maxWidth = widest ? `${LARGEST * widest}px` : "";
    if (playing() && count() < 2) pause();
    draw();
  }
  function onIndex() {
    const wanted = clamp(model.get("index"));
    if (wanted === index) return;
    index = begin = wanted;
    onKeys();
    draw();
  }
  function onLoop() {
    loop.setAttribute("aria-pressed", String(Boolean(model.get("loop"))));
    draw();
  }
  function onWords() {
    root.setAttribute("aria-label", model.get("name") || model.get("alt") || "Figure in steps");
    root.setAttribute("aria-roledescription", "figure in steps");
    draw();
  }
  const watched = [
    ["change:frames", onFrames], ["change:index", onIndex], ["change:loop", onLoop],
    ["change:key_frames", onKeys], ["change:labels", onFrames],
    ["change:alt", onWords], ["change:name", onWords],
  ];
  for (const [what, callback] of watched) model.on(what, callback);
  window.addEventListener("beforeprint", toPaper);
  window.addEventListener("afterprint", fromPaper);

  frames = model.get("frames") ?? [];
  index = begin = clamp(model.get("index"));
  onFrames();
  onLoop();
  onWords();
  drawPlay();
  el.append(root);

  // An animation starts by itself only where it is seen, and not for those who want calm.
  let sight = null;
  if (model.get("autoplay") && !calm.matches && count() > 1) {
    sight = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) {
        sight.disconnect();
        start();
      }
    }, { threshold: 0.5 });
    sight.observe(root);
  }

  return () => {
    clearTimeout(timer);
    timer = null;
    leaveKeys();
    window.removeEventListener("beforeprint", toPaper);
    window.removeEventListener("afterprint", fromPaper);
    sight?.disconnect();
    for (const [what, callback] of watched) model.off(what, callback);
    root.remove();
  };
}

export default { render };
