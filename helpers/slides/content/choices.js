// Controls that pick among results made at export: what `interact` offers, in a page without Python.
// A result is HTML of its own, or new values for other figures of the page, or both.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function render({ model, el, models = [] }) {
  const id = `c${Math.random().toString(36).slice(2, 10)}`;
  const controls = model.get("controls");
  const results = model.get("results");
  const settings = { ...model.get("settings") };
  const bar = element("div", { class: "choices-bar" });
  const shown = element("div", { class: "choices-shown" });
  const root = element("div", { class: "choices", role: "group", "aria-label": "Settings" }, bar, shown);

  function show() {
    const found = results.find((result) => controls.every(({ name }) => result.settings[name] === settings[name]));
    if (!found) return;
    if (found.html !== undefined) shown.innerHTML = found.html;
    for (const { target, values } of found.changes ?? []) models[target]?.set(values);
  }

  function turn(name, value) {
    settings[name] = value;
    show();
  }

  const words = (value) =>
    typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 6 }) : String(value);

  for (const { name, label, choices } of controls) {
    if (choices.length > 8) {
      const output = element("output", {}, words(settings[name]));
      const slider = element("input", {
        type: "range", min: 0, max: choices.length - 1, step: 1, "data-name": name, "aria-label": label,
      });
      slider.value = choices.indexOf(settings[name]);
      slider.oninput = () => {
        const value = choices[Number(slider.value)];
        output.textContent = words(value);
        slider.setAttribute("aria-valuetext", words(value));
        turn(name, value);
      };
      bar.append(element("label", { class: "choices-slider" }, element("b", {}, label), slider, output));
      continue;
    }
    const group = element("fieldset", {}, element("legend", {}, label));
    for (const choice of choices) {
      const input = element("input", { type: "radio", name: `${id}-${name}` });
      input.dataset.name = name;
      input.dataset.value = String(choice);
      input.checked = choice === settings[name];
      input.onchange = () => turn(name, choice);
      group.append(element("label", {}, input, element("span", {}, words(choice))));
    }
    bar.append(group);
  }

  // A deck turns pages at the arrows: what is typed here is for the controls. Escape gives the keys back.
  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(Tab|PageUp|PageDown|F\d+)$/.test(event.key)) return;
    event.stopPropagation();
    if (event.type === "keydown" && event.key === "Escape") document.activeElement?.blur?.();
  }
  for (const type of ["keydown", "keypress", "keyup"]) root.addEventListener(type, onKey);
  show();
  el.append(root);
  return () => root.remove();
}

export default { render };
