// Light or dark, if a reader has chosen: before anything is drawn, so that nothing flashes.
// Where nothing can be remembered, as in a private window, the system's choice holds.
(() => {
  try {
    const chosen = localStorage.getItem("page-theme");
    if (/^(light|dark)$/.test(chosen)) document.documentElement.dataset.theme = chosen;
  } catch { /* not allowed here */ }
})();
