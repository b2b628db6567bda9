// Drawings as text made into elements of the page: cleaned of all that runs or leaves it.

// What a drawing may consist of. Everything else, scripts and animations among it, is left out.
const ELEMENTS = new Set(
  ("svg g path rect circle ellipse line polyline polygon text tspan textPath title desc defs use " +
    "symbol marker clipPath mask pattern linearGradient radialGradient stop style image").split(" "),
);

function leavesThePage(value) {
  return /url\(\s*['"]?\s*(?!#|data:)[^)]/i.test(value) || /@import/i.test(value);
}

function isHarmful(node, { name, value }) {
  const key = name.toLowerCase();
  if (key.startsWith("on")) return true;
  if (key === "href" || key === "xlink:href") {
    const image = node.localName === "image" && /^data:image\/(png|jpeg|gif|webp);/i.test(value);
    return !(value.startsWith("#") || image);
  }
  return leavesThePage(value);
}

function clean(root) {
  for (const node of [root, ...root.querySelectorAll("*")]) {
    if (node.namespaceURI !== SVG || !ELEMENTS.has(node.localName)) {
      node.remove();
      continue;
    }
    for (const attribute of [...node.attributes]) {
      if (isHarmful(node, attribute)) node.removeAttributeNode(attribute);
    }
    if (node.localName === "style" && leavesThePage(node.textContent)) node.remove();
  }
}

// Ids are shared by the whole page: two frames that both define "clip1" would use one clip.
function makeIdsUnique(root, prefix) {
  const ids = new Set();
  for (const node of root.querySelectorAll("[id]")) {
    ids.add(node.id);
    node.id = prefix + node.id;
  }
  root.removeAttribute("id");
  const renamed = (id) => (ids.has(id) ? prefix + id : id);
  for (const node of [root, ...root.querySelectorAll("*")]) {
    for (const attribute of node.attributes) {
      const { name, value } = attribute;
      if (value.includes("url(")) {
        attribute.value = value.replace(
          /url\(\s*(['"]?)#([^)'"]+)\1\s*\)/g, (_, quote, id) => `url(#${renamed(id)})`,
        );
      } else if (/href$/.test(name) && value.startsWith("#")) {
        attribute.value = "#" + renamed(value.slice(1));
      } else if (/^aria-(labelledby|describedby)$/.test(name)) {
        attribute.value = value.split(/\s+/).map(renamed).join(" ");
      }
    }
    if (node.localName === "style") {
      const rules = node.textContent.replace(
        /#([\w-]+)/g, (whole, id) => (ids.has(id) ? "#" + prefix + id : whole),
      );
      root.id = `${prefix}frame`;
      node.textContent = nested(rules, root.id);
    }
  }
}

// A style element speaks to the whole page; nested in a selector, to its own frame only. The browser
// reads the rules first, so that no stray brace ends the nesting.
function nested(rules, id) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rules);
  return `#${id} { ${[...sheet.cssRules].map((rule) => rule.cssText).join(" ")} }`;
}

function parse(text, prefix) {
  const named = /^[^>]*<svg[^>]*\sxmlns=/.test(text)
    ? text
    : text.replace(/<svg(?=[\s>/])/, `<svg xmlns="${SVG}" xmlns:xlink="http://www.w3.org/1999/xlink"`);
  const read = new DOMParser().parseFromString(named, "image/svg+xml");
  const fault = read.querySelector("parsererror");
  const root = read.documentElement;
  if (fault || root.namespaceURI !== SVG || root.localName !== "svg") {
    const reason = /(?:column \d+:|Error:)\s*(.+?)\s*(?:Below is|Location:|$)/s.exec(fault?.textContent ?? "");
    throw new Error(reason?.[1] ?? "there is no <svg> in it");
  }
  clean(root);
  makeIdsUnique(root, prefix);
  const { width, height } = extent(text);
  if (width && !root.hasAttribute("viewBox")) root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  for (const name of ["width", "height", "style"]) root.removeAttribute(name);
  root.setAttribute("aria-hidden", "true"); // the stage around it has the name
  root.setAttribute("focusable", "false");
  return document.importNode(root, true);
}

// From the text alone: nothing is laid out yet where a slide is hidden.
function extent(text) {
  const tag = /<svg\b[^>]*>/.exec(text)?.[0] ?? "";
  const box = /\bviewBox\s*=\s*["']\s*[-\d.eE]+[\s,]+[-\d.eE]+[\s,]+([\d.eE]+)[\s,]+([\d.eE]+)/.exec(tag);
  if (box) return { width: Number(box[1]), height: Number(box[2]) };
  const width = /\swidth\s*=\s*["']([\d.]+)(px|pt)?["']/.exec(tag);
  const height = /\sheight\s*=\s*["']([\d.]+)(px|pt)?["']/.exec(tag);
  return width && height ? { width: Number(width[1]), height: Number(height[1]) } : {};
}
