// The bench's page: controls, and a result that always says which settings it belongs to.
// Every change has a number. What does not answer the newest one is greyed here, at once, whether or
// not Python has time to notice. With `sweep` in the model the results are all here, and no Python
// is needed: an exported page picks among them.
// The model is known by get, on, off and, where there is Python, send. Changes go out as messages of
// their own: they arrive one by one and in order, which is not promised of a model's state.

const SILENCE = 4000; // milliseconds without an answer before that is said

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function same(a, b) {
  const names = Object.keys(a ?? {});
  return names.length === Object.keys(b ?? {}).length && names.every((name) => a[name] === b[name]);
}

// The settings that differ from others; all, where there are no others.
function differing(settings, others) {
  return Object.fromEntries(
    Object.entries(settings ?? {}).filter(([name, value]) => others?.[name] !== value),
  );
}

function textOf(settings) {
  return Object.entries(settings ?? {}).map(([name, value]) => `${name}=${value}`).join(" · ");
}

function render({ model, el }) {
  const id = `b${Math.random().toString(36).slice(2, 10)}`;
  const sweep = () => model.get("sweep") ?? [];
  const offline = () => sweep().length > 0;
  let timer = null;
  let tab = null; // name of the kernel whose source is open
  let size = null; // N of the ladder's bars, where the viewer has chosen one
  let drawn = {}; // what is on the page, so that it is not drawn again

  const controls = element("div", { class: "bench-controls" });
  const spinner = element("span", { class: "bench-spinner", "aria-hidden": "true" });
  const words = element("span");
  const status = element("p", { class: "bench-status" }, spinner, words);
  const spoken = element("p", { class: "bench-spoken", role: "status" });
  const head = element("div", { class: "bench-head" });
  const tabs = element("div", { class: "bench-tabs", role: "group", "aria-label": "Source of" });
  const figure = element("div", { class: "bench-figure" });
  const source = element("div", { class: "bench-source", tabindex: 0, role: "region", "aria-label": "Source" });
  const panel = element("div", { class: "bench-panel" }, head, tabs, figure, source);
  const result = element("div", { class: "bench-result" }, status, panel);
  const refused = element("div", { class: "bench-refusals" });
  const past = element("details", { class: "bench-past", open: "" });
  const ladder = element("details", { class: "bench-ladder", open: "" });
  const root = element(
    "div", { class: "kernel-bench", role: "group" },
    controls, spoken, result, refused, past, ladder,
  );

  // What the controls say. What Python says of them counts where it is newer, or puts them right.
  let mine = { request: -1, settings: {} };
  function wanted() {
    const theirs = model.get("wanted") ?? {};
    if (theirs.request >= mine.request) mine = theirs;
    return mine;
  }
  const shown = () => {
    if (!offline()) return model.get("shown") ?? {};
    return sweep().find((result) => same(result.settings, wanted().settings)) ?? {};
  };
  const fresh = () =>
    same(shown().settings, wanted().settings) &&
    (offline() || shown().request === wanted().request);

  function turn(settings) {
    const { request, settings: before } = wanted();
    mine = { request: request + 1, settings: { ...before, ...settings } };
    if (!offline()) model.send(mine);
    draw();
  }

  function again() {
    turn({});
  }

  function drawControls() {
    const listed = model.get("controls") ?? [];
    const key = JSON.stringify(listed) + offline();
    if (drawn.controls !== key) {
      drawn.controls = key;
      controls.replaceChildren(...listed.map(makeControl));
      if (!offline()) {
        const button = element(
          "button",
          { type: "button", class: "bench-again", title: "Read the files again and run the same settings" },
          "Run again",
        );
        button.onclick = again;
        controls.append(button);
      }
    }
    const reasons = new Map(
      (model.get("refused") ?? []).map(({ control, choice, reason }) => [`${control}=${choice}`, reason]),
    );
    for (const input of controls.querySelectorAll("input")) {
      const { name, value } = input.dataset;
      input.checked = String(wanted().settings[name]) === value;
      const reason = reasons.get(`${name}=${value}`);
      input.parentElement.classList.toggle("bench-cannot", Boolean(reason));
      input.parentElement.title = reason ? `Cannot run: ${reason}` : "";
      if (reason) input.setAttribute("aria-description", `Cannot run: ${reason}`);
      else input.removeAttribute("aria-description");
    }
  }

  function makeControl({ name, label, choices, description, kind }) {
    const group = element(
      "fieldset", { class: `bench-control bench-${kind}` },
      element("legend", { title: description ?? "" }, label),
    );
    for (const choice of choices) {
      const input = element("input", { type: "radio", name: `${id}-${name}`, value: choice });
      input.dataset.name = name;
      input.dataset.value = String(choice);
      input.onchange = () => turn({ [name]: choice });
      const text = typeof choice === "number" ? choice.toLocaleString("en") : choice;
      group.append(element("label", {}, input, element("span", {}, text)));
    }
    return group;
  }

  function drawPanel() {
    const result = shown();
    const key = `${result.request}|${textOf(result.settings)}`;
    if (drawn.result === key) return;
    drawn.result = key;
    head.innerHTML = result.head ?? "";
    const kernels = result.kernels ?? [];
    const open = kernels.find(({ name }) => name === tab) ?? kernels[0];
    // What is at fault is what one wants to see.
    const shownFirst = result.status === "error" ? kernels[kernels.length - 1] : open;
    tabs.hidden = kernels.length < 2;
    tabs.replaceChildren(...kernels.map((kernel) => {
      const button = element("button", { type: "button" }, kernel.name);
      button.onclick = () => {
        tab = kernel.name;
        openTab(kernel);
      };
      return button;
    }));
    openTab(shownFirst);
  }

  function openTab(kernel) {
    const again = drawn.tab === kernel?.name;
    const first = again ? firstInSight() : null;
    drawn.tab = kernel?.name;
    source.innerHTML = kernel?.html ?? "";
    figure.innerHTML = kernel?.figure ?? "";
    figure.hidden = !kernel?.figure;
    // The same line as before stays on top, so that two results can be compared.
    if (!first || !putOnTop(first)) requestAnimationFrame(showBusiest);
    for (const button of tabs.children) {
      button.setAttribute("aria-pressed", String(button.textContent === kernel?.name));
    }
  }

  const topOf = (node) => node.getBoundingClientRect().top;
  const rows = () => [...source.querySelectorAll(".kl-row:not(.kl-headings)")];

  function firstInSight() {
    if (!source.scrollTop) return null;
    const row = rows().find((one) => topOf(one) >= topOf(source));
    return row && { number: row.firstChild.textContent, below: topOf(row) - topOf(source) };
  }

  function putOnTop({ number, below }) {
    const row = rows().find((one) => one.firstChild.textContent === number);
    if (!row) return false;
    source.scrollTop += topOf(row) - topOf(source) - below;
    return true;
  }

  // Scroll the source, and nothing else, to the line at fault or to the one that counts most.
  function showBusiest() {
    const most = (row) => Math.max(
      0, ...[...row.querySelectorAll(".kl-v")].map((cell) => Number(cell.textContent.replaceAll(",", ""))),
    );
    const counted = rows().filter((row) => !row.classList.contains("kl-sums"));
    const line = source.querySelector(".kl-marked") ??
      counted.reduce((a, b) => (b && most(b) > (a ? most(a) : 0) ? b : a), null);
    if (!line) return;
    const below = line.getBoundingClientRect().bottom - source.getBoundingClientRect().bottom;
    source.scrollTop = Math.max(0, source.scrollTop + below + source.clientHeight / 3);
  }

  function drawStatus() {
    const state = model.get("state") ?? {};
    const isFresh = fresh();
    const none = !shown().settings;
    panel.classList.toggle("bench-stale", !isFresh);
    panel.setAttribute("aria-busy", String(!isFresh));
    for (const part of [head, tabs, source]) part.inert = !isFresh;
    root.classList.toggle("bench-working", !isFresh && !offline());
    clearTimeout(timer);
    status.hidden = isFresh;
    if (isFresh) {
      if (drawn.spoken !== drawn.result) {
        drawn.spoken = drawn.result;
        spoken.textContent = `${shown().said ?? ""} ${textOf(shown().settings)}`;
      }
      return;
    }
    const settings = textOf(differing(wanted().settings, shown().settings)) || "the same settings";
    if (offline()) {
      words.textContent = `${settings}: not among the results in this page.`;
      return;
    }
    const mine = state.request === wanted().request;
    const doing = mine && state.phase === "working" && state.stage ? state.stage : "waiting";
    words.textContent = `${settings}: ${doing} …`;
    if (drawn.spoken !== "working") {
      drawn.spoken = "working";
      spoken.textContent = "Working";
    }
    timer = setTimeout(() => {
      words.textContent =
        `${settings}: no answer yet. The kernel may be busy with another cell, or be stopped.`;
    }, SILENCE);
  }

  function drawRefused() {
    const listed = offline() ? [] : model.get("refused") ?? [];
    const key = JSON.stringify(listed);
    if (drawn.refused === key) return;
    drawn.refused = key;
    refused.hidden = listed.length === 0;
    if (!listed.length) return refused.replaceChildren();
    const choices = new Map(); // those that cannot run for one reason stand together
    for (const { control, choice, reason } of listed) {
      choices.set(reason, [...(choices.get(reason) ?? []), `${control}=${choice}`]);
    }
    const items = [...choices].map(([reason, names]) =>
      element("li", {}, element("b", {}, names.join(", ")), ` ${reason}`));
    refused.replaceChildren(
      element("p", {}, "With the other controls as they are, these cannot run:"), element("ul", {}, ...items),
    );
  }

  function drawPast() {
    const html = offline() ? "" : model.get("past") ?? "";
    if (drawn.past === html) return;
    drawn.past = html;
    past.hidden = html === "";
    const table = element("div");
    table.innerHTML = html;
    past.replaceChildren(
      element("summary", {}, "Runs so far, each compared with the one before"), table,
    );
  }

  function drawLadder() {
    const data = (offline() && shown().ladder) || (model.get("ladder") ?? {});
    const stage = fresh() ? model.get("state")?.stage : "";
    const key = JSON.stringify(data) + size + stage;
    if (drawn.ladder === key) return;
    drawn.ladder = key;
    ladder.hidden = !data.html && !data.note;
    if (ladder.hidden) return;
    const sizes = data.sizes ?? [];
    const now = sizes.includes(size) ? size : data.chosen;
    const choice = element("fieldset", { class: "bench-control" }, element("legend", {}, "N"));
    for (const n of sizes) {
      const input = element("input", { type: "radio", name: `${id}-ladder`, value: n });
      input.checked = n === now;
      input.onchange = () => {
        size = n;
        drawLadder();
        ladder.querySelector("input:checked")?.focus();
      };
      choice.append(element("label", {}, input, element("span", {}, n.toLocaleString("en"))));
    }
    const chart = element("div");
    chart.innerHTML = data.html?.[String(now)] ?? "";
    ladder.replaceChildren(
      element("summary", {}, "The ladder so far"),
      ...(sizes.length > 1 ? [element("div", { class: "bench-controls" }, choice)] : []),
      chart,
      ...[data.note, stage && `${stage} …`].filter(Boolean).map(
        (text) => element("p", { class: "bench-of" }, text),
      ),
    );
  }

  function draw() {
    root.setAttribute("aria-label", `Bench of ${model.get("title")}`);
    drawControls();
    drawPanel();
    drawStatus();
    drawRefused();
    drawPast();
    drawLadder();
  }

  const leaveKeys = keepKeys(root);

  // Several parts arrive in one message, which is drawn once.
  let due = false;
  const later = () => {
    if (due) return;
    due = true;
    queueMicrotask(() => {
      due = false;
      draw();
    });
  };
  const watched = ["title", "controls", "wanted", "state", "shown", "past", "ladder", "refused", "sweep"];
  for (const name of watched) model.on(`change:${name}`, later);
  draw();
  el.append(root);

  return () => {
    clearTimeout(timer);
    leaveKeys();
    for (const name of watched) model.off(`change:${name}`, later);
    root.remove();
  };
}

export default { render };
