// A page to read: light or dark, its contents, and keys for what can be scrolled.
(() => {
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";

  for (const button of document.querySelectorAll("button.theme")) {
    const say = () => { button.textContent = isDark() ? "Light page" : "Dark page"; };
    button.onclick = () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try {
        localStorage.setItem("page-theme", root.dataset.theme);
      } catch { /* it holds for this page alone */ }
      say();
    };
    prefersDark.addEventListener("change", say);
    // Another page of the course was turned, or the one before this is still writing its choice.
    addEventListener("storage", ({ key, newValue }) => {
      if (key === "page-theme" && /^(light|dark)$/.test(newValue)) root.dataset.theme = newValue;
      say();
    });
    say();
    button.hidden = false;
  }

  // Beside the text the contents are open; above it they would push it down.
  const contents = document.querySelector(".contents details");
  const wide = matchMedia("(min-width: 1180px)");
  if (contents) {
    const fold = () => { contents.open = wide.matches; };
    wide.addEventListener("change", fold);
    fold();
    contents.addEventListener("click", (event) => {
      if (event.target.closest("a") && !wide.matches) contents.open = false;
    });
    follow();
  }

  // The contents show which section is being read.
  function follow() {
    const links = new Map([...contents.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
    const seen = new Set();
    let last = null;
    const observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
      const first = [...seen].sort((a, b) => (a.compareDocumentPosition(b) & 2 ? 1 : -1))[0];
      const link = first && links.get(first.getAttribute("aria-labelledby"));
      if (!link || link === last) return;
      last?.removeAttribute("aria-current");
      link.setAttribute("aria-current", "true");
      last = link;
      const list = contents.parentElement;
      if (wide.matches && list.scrollHeight > list.clientHeight) {
        const top = link.getBoundingClientRect().top - list.getBoundingClientRect().top;
        if (top < 0 || top > list.clientHeight - 40) list.scrollTop += top - list.clientHeight / 3;
      }
    }, { rootMargin: "0px 0px -70% 0px" });
    for (const section of document.querySelectorAll("main > section[aria-labelledby]")) observer.observe(section);
  }

  // What scrolls sideways has to answer to keys, too; whoever comes by is told what it is.
  const SCROLLS = ".block pre, .block.table, .prose table, .kernel-listing, .bench-source, .bench-wide, " +
    ".figure-player-stage, .maths-line, .block.html, .block.figure, .choices-shown, .bench-ladder";
  function scrollable() {
    for (const one of document.querySelectorAll(SCROLLS)) {
      const does = one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1;
      const may = /auto|scroll/.test(getComputedStyle(one).overflow);
      if (does && may) one.tabIndex = 0;
      else if (one.tabIndex === 0) one.removeAttribute("tabindex");
    }
  }
  const later = () => requestAnimationFrame(scrollable);
  Promise.resolve(window.figuresReady).then(later);
  addEventListener("resize", later);
  // A bench shows other tables when it is turned.
  document.addEventListener("change", later);
  document.addEventListener("click", later);
})();
