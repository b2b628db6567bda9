// Searching all chapters: a section is found if each word asked for stands in it, at the start of a
// word, endings left aside. The sections lie in this page; nothing is fetched.
(() => {
  const MOST = 40;
  const form = document.querySelector(".search");
  const input = form.querySelector("input");
  const status = document.querySelector(".found");
  const list = document.querySelector(".results");
  const chapters = JSON.parse(document.getElementById("words").textContent);
  const sections = chapters.flatMap(([chapter, address, parts]) => parts.map(([anchor, name, text]) => ({
    chapter, name, text, address: anchor ? `${address}#${encodeURIComponent(anchor)}` : address,
  })));

  // "coalescing" finds "coalesced", "rows" finds "row".
  const stem = (word) => word.replace(/(?<=.{4})(ing|ed|es)$|(?<=.{3})s$/, "");
  const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  // In code a word begins behind anything but a letter or digit: `tx` finds `s_K[tx]`, `dot` finds `add_dot`.
  const pattern = (word) => new RegExp(`(?<![\\p{L}\\p{N}])${literal(word)}`, "giu");
  const count = (text, word) => (text.match(pattern(word)) ?? []).length;

  function find(asked) {
    const words = asked.split(/\s+/).filter(Boolean).map(stem);
    if (!words.length) return [];
    const whole = words.length > 1 ? pattern(words.join(" ").replace(/ /g, "\u0000")) : null;
    const phrase = whole && new RegExp(whole.source.replace(/\u0000/g, "\\S*\\s+"), "giu");
    return sections.map((section) => {
      let score = 0;
      for (const word of words) {
        const [named, said, about] = [section.name, section.text, section.chapter].map((text) => count(text, word));
        if (!named && !said) return { section, score: 0 };
        score += 12 * Math.min(named, 1) + Math.min(said, 4) + 2 * Math.min(about, 1);
      }
      if (phrase && (section.name.match(phrase) || section.text.match(phrase))) score += 10;
      return { section, score, words };
    }).filter(({ score }) => score).sort((a, b) => b.score - a.score);
  }

  // Some words around the first place, with what was asked for marked.
  function excerpt(text, words) {
    const places = words.map((word) => text.search(pattern(word))).filter((place) => place >= 0);
    const from = Math.max(0, (places.length ? Math.min(...places) : 0) - 60);
    const start = from ? text.indexOf(" ", from) + 1 : 0;
    const shown = text.slice(start, start + 200).replace(/\s\S*$/, "");
    const made = document.createElement("p");
    if (start) made.append("… ");
    const all = new RegExp(words.map((word) => `(?:${pattern(word).source}[\\p{L}\\p{N}]*)`).join("|"), "giu");
    let last = 0;
    for (const hit of shown.matchAll(all)) {
      const marked = document.createElement("mark");
      marked.textContent = hit[0];
      made.append(shown.slice(last, hit.index), marked);
      last = hit.index + hit[0].length;
    }
    made.append(shown.slice(last), start + shown.length < text.length ? " …" : "");
    return made;
  }

  function item({ section, words }) {
    const made = document.createElement("li");
    const link = document.createElement("a");
    link.href = section.address;
    link.textContent = section.name;
    const where = document.createElement("span");
    where.className = "where";
    where.textContent = ` ${section.chapter}`;
    made.append(link, where, excerpt(section.text, words));
    return made;
  }

  function show() {
    const asked = input.value.trim();
    const found = asked.length > 1 ? find(asked) : [];
    list.replaceChildren(...found.slice(0, MOST).map(item));
    list.hidden = !found.length;
    const more = found.length > MOST ? `, the first ${MOST} of them below` : "";
    status.textContent = asked.length < 2 ? ""
      : found.length ? `${found.length} ${found.length === 1 ? "section" : "sections"}${more}`
      : `Nothing has “${asked}” in it. Fewer words find more.`;
    return found.length;
  }

  let due = null;
  input.addEventListener("input", () => {
    clearTimeout(due);
    due = setTimeout(show, 120);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (show()) list.querySelector("a").focus();
  });
  // Up and down go through what was found.
  addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = [input, ...list.querySelectorAll("a")];
    const place = links.indexOf(document.activeElement);
    if (!step || place < 0 || list.hidden) return;
    event.preventDefault();
    links[Math.min(Math.max(place + step, 0), links.length - 1)].focus();
  });

  input.value = new URLSearchParams(location.search).get("q") ?? "";
  if (input.value) show();
})();
