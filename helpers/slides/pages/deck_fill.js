// What stands on a sheet, set as large as its room allows.

// Text with much room grows. Text that is still too long grows smaller, and in the end can be
// scrolled. Code shrinks before a line of it breaks.
function* fill(sheet) {
  const body = sheet.querySelector(".body");
  const over = () => body.scrollHeight > body.clientHeight + 1 || body.scrollWidth > body.clientWidth + 1;
  const whole = body.querySelector(":scope > .figure, :scope > .bench");
  const fit = function* () {
    unfitCode(body);
    for (const set of yield () => fitCode(body)) set();
  };
  // What was made smaller to be one sheet has more room now that code is folded away.
  // Only a bench, or a figure that is turned, may ask for more than it does now.
  if (!whole?.matches(".bench, .turned")) sheet.classList.remove("tight", "tighter");
  const small = sheet.matches(".tight, .tighter");
  if (whole && !small && (yield over)) sheet.classList.add("tight");
  if (!whole && !small) {
    const statement = !sheet.matches(".opening") &&
      [...body.children].every((block) => block.matches(".prose, .answer"));
    for (const size of statement ? [["statement", "large"], ["statement"], ["roomy"]] : [["roomy"]]) {
      sheet.classList.add(...size);
      yield* fit();
      const most = size[1] ? 330 : 400;
      const high = () => over() || (size[0] === "statement" && body.clientHeight > most);
      if (!(yield high)) return;
      sheet.classList.remove(...size);
    }
  }
  yield* fit();
  for (const step of ["tight", "tighter"]) {
    if (!(yield over)) return;
    sheet.classList.remove("tight");
    sheet.classList.add(step);
    yield* fit();
  }
  if (yield over) yield* shrink(body, over);
  if (yield over) {
    body.classList.add("scrolls");
    body.tabIndex = 0;
    body.dataset.keys = "";
  }
}

// Take the blocks of a section apart.
function* prepare(section) {
  const body = section.querySelector(".body");
  flatten(body);
  arrange(body);
  const blocks = [];
  for (const block of [...body.children]) blocks.push(...(yield* split(block)));
  body.replaceChildren(...blocks);
}
