// Lays the chapter out, with what deck_blocks.js and deck_sheets.js do, and starts reveal.js.

const slides = document.querySelector(".reveal .slides");

// A bench shows its source, the figure of its run or the charts of all settings, in the same place.
function addViews(bench) {
  const names = { source: "Source", figure: "Figure", charts: "All settings" };
  if (!bench.querySelector(".bench-sweep")) delete names.charts;
  if (!bench.querySelector(".bench-figure > svg")) delete names.figure;
  if (Object.keys(names).length < 2) return;
  const buttons = Object.entries(names).map(([view, name]) => {
    const button = make("button", "", name);
    button.type = "button";
    button.dataset.view = view;
    button.onclick = () => show(view);
    return button;
  });
  const show = (view) => {
    bench.dataset.view = view;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.view === view));
  };
  const views = make("div", "bench-view", ...buttons);
  views.setAttribute("role", "group");
  views.setAttribute("aria-label", "View");
  bench.querySelector(":scope > .bench-controls").after(views); // as Tab goes
  show("source");
}

// The line at fault, or the one that counts most, is in sight when a bench comes up.
function showBusiest(bench) {
  const source = bench.querySelector(".bench-source");
  if (!source || source.scrollTop) return;
  const most = (row) => Math.max(0, ...[...row.querySelectorAll(".kl-v")].map(
    (cell) => Number(cell.textContent.replaceAll(",", ""))));
  const rows = [...source.querySelectorAll(".kl-row:not(.kl-headings, .kl-sums)")];
  const line = source.querySelector(".kl-marked") ?? rows.reduce(
    (best, row) => (most(row) > (best ? most(best) : 0) ? row : best), null);
  if (!line) return;
  const scale = source.getBoundingClientRect().height / source.offsetHeight;
  const below = (line.getBoundingClientRect().bottom - source.getBoundingClientRect().bottom) / scale;
  source.scrollTop = Math.max(0, below + source.clientHeight / 4);
}

// Long captions are set smaller: the picture above them has to be read as well.
function setCaptions() {
  for (const longest of slides.querySelectorAll(".figure-player-tallest")) {
    longest.parentElement.classList.toggle("long", longest.textContent.length > 210);
  }
}

// Whether a line of code is broken into two.
const wraps = (body) => [...body.querySelectorAll("pre.lines")].some((pre) => {
  const height = parseFloat(getComputedStyle(pre).lineHeight);
  return [...pre.children].some((line) => line.offsetHeight > 1.5 * height);
});

// Text with much room grows. Text that is still too long grows smaller, and in the end can be
// scrolled.
function* fill(sheet) {
  const body = sheet.querySelector(".body");
  const over = () => body.scrollHeight > body.clientHeight + 1 || body.scrollWidth > body.clientWidth + 1;
  const broken = () => wraps(body);
  const whole = body.querySelector(":scope > .figure, :scope > .bench");
  sheet.classList.remove("tight");
  if (whole && (yield over)) sheet.classList.add("tight");
  if (!whole) {
    const statement = !sheet.matches(".opening") &&
      [...body.children].every((block) => block.matches(".prose, .answer"));
    for (const size of statement ? ["statement", "roomy"] : ["roomy"]) {
      sheet.classList.add(size);
      if (size === "roomy" && (yield broken)) sheet.classList.add("narrow");
      const high = () => over() || (size === "statement" && body.clientHeight > 400);
      if (!(yield high)) break;
      sheet.classList.remove(size, "narrow");
    }
  }
  if (yield broken) {
    sheet.classList.add("fine");
    if (yield broken) sheet.classList.remove("fine");
  }
  for (const step of ["tight", "tighter"]) {
    if (!(yield over)) return;
    sheet.classList.remove("tight");
    sheet.classList.add(step);
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
  arrange(section, body);
  const blocks = [];
  for (const block of [...body.children]) blocks.push(...(yield* split(block)));
  body.replaceChildren(...blocks);
}

async function start() {
  const shown = await window.figuresReady;
  await Promise.all([...document.fonts].map((font) => font.load()));
  await imagesReady();
  setCaptions();
  const sections = [...slides.children];
  setTitles(sections);
  inStep(sections.map(prepare));
  for (const bench of slides.querySelectorAll(".kernel-bench")) addViews(bench);
  inStep(sections.map((section) => {
    const body = section.querySelector(".body");
    return besideTables([...body.children], body);
  }));
  const plans = sections.map(plan);
  plans.forEach(leaveDrawingOut);
  plans.forEach(leadIn);
  mendLonely(plans);
  plans.forEach(layOut);
  slides.querySelectorAll(":scope > section").forEach(markKeyFrames);
  const sheets = [...slides.querySelectorAll(".sheet")];
  inStep(sheets.map(fill));
  const foot = sheets[0]?.querySelector(".sheet-foot > span:nth-last-child(2)"); // the same everywhere
  if (foot) slides.style.setProperty("--foot", `${48 + foot.offsetLeft + foot.offsetWidth + 24}px`);
  sheets.forEach((sheet, number) => {
    sheet.querySelector(".sheet-number").textContent = `${number + 1} / ${sheets.length}`;
  });
  arrangeNotes();
  document.body.classList.remove("laying-out");
  const inside = () => document.activeElement?.closest?.(".figure-player, .kernel-bench, .choices, [data-keys]");
  await Reveal.initialize({
    width: 1280,
    height: 720,
    margin: 0,
    minScale: 0.1,
    maxScale: 4,
    center: false,
    hash: false, // deck_keys.js writes it, with the figure's step
    slideNumber: false,
    transition: "none",
    pdfSeparateFragments: false,
    pdfMaxPagesPerSlide: 1,
    scrollActivationWidth: null, // its view writes all slides anew, and with them goes what runs
    keyboardCondition: () => !inside(),
    navigationMode: "linear",
    plugins: [RevealNotes, RevealZoom],
  });
  addTools();
  readyForPaper();
  startKeys();
  startAddresses();
  if (!Reveal.isPrintView()) new Speaker();
  const busiest = () => Reveal.getCurrentSlide()?.querySelectorAll(".kernel-bench").forEach(showBusiest);
  Reveal.on("slidechanged", busiest);
  busiest();
  // Where a sheet itself is scrolled, Escape gives the keys back as it does in a figure.
  slides.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target.matches?.("[data-keys]")) event.target.blur();
  });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
  return shown;
}

window.deckReady = start();
