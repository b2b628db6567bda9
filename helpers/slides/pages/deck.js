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
    showBusiest(bench);
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.view === view));
  };
  const views = make("div", "bench-view", ...buttons);
  views.setAttribute("role", "group");
  views.setAttribute("aria-label", "View");
  bench.querySelector(":scope > .bench-controls").after(views); // as Tab goes
  show("source");
  // What is turned brings another source, after the bench's own listeners.
  for (const type of ["input", "change", "click"]) bench.addEventListener(type, () => showBusiest(bench));
}

// Long captions are set smaller: the picture above them has to be read as well.
function setCaptions() {
  for (const longest of slides.querySelectorAll(".figure-player-tallest")) {
    longest.parentElement.classList.toggle("long", longest.textContent.length > 210);
  }
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
  const plans = planAll(sections);
  plans.forEach(mendLonely);
  plans.forEach(layOut);
  slides.querySelectorAll(":scope > section").forEach(markKeyFrames);
  const sheets = [...slides.querySelectorAll(".sheet")];
  inStep(sheets.map(fill));
  const feet = sheets.map((sheet) => sheet.querySelector(".sheet-foot > span:nth-last-child(2)"));
  const ends = feet.map((foot) => (foot ? 48 + foot.offsetLeft + foot.offsetWidth + 24 : 0));
  sheets.forEach((sheet, number) => sheet.style.setProperty("--foot", `${ends[number]}px`));
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
  watchPanels();
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
