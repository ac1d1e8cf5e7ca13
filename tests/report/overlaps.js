// What is wrong with the words of a page: words over words, outside of their picture or of the page, cut off by a box,
// or broken within a name. Returns sentences. Everything that is folded is unfolded first.
() => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  const found = [], words = [];
  const page = document.documentElement.clientWidth;
  const says = (text) => `“${(text || "").trim().replace(/\s+/g, " ").slice(0, 60)}”`;
  const scrolls = (element) => {
    for (let box = element; box; box = box.parentElement)
      if (["auto", "scroll"].includes(getComputedStyle(box).overflowX) && box !== document.documentElement) return box;
    return null;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement, text = node.textContent;
    if (!text.trim() || parent.closest("script, style, title, option, .skip") || parent.namespaceURI.endsWith("svg")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter((box) => box.width > 0.5 && box.height > 0.5);
    if (!boxes.length) continue;
    const lines = new Set(boxes.map((box) => Math.round(box.top)));
    if (lines.size > 1 && !/[\s\-…]/.test(text.trim()) && !parent.closest("pre, h1, h4, .texts, .cards figcaption")) found.push(`broken: ${says(text)}`);
    for (const box of boxes) {
      if ((box.right > page + 1 || box.left < -1) && !scrolls(parent)) found.push(`outside of the page: ${says(text)}`);
      words.push({ box, text, node, trim: 0.16 * box.height });
    }
  }
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    if (!frame.width) continue;
    const panel = svg.closest(".panel"), lone = panel?.querySelectorAll("svg").length === 1;
    if (lone && frame.height > frame.width && frame.width < 0.5 * panel.clientWidth)
      found.push(`tall in a panel that is half empty: ${says(svg.getAttribute("aria-label"))}`);
    if ((frame.right > page + 1 || frame.left < -1) && !scrolls(svg.parentElement)) found.push(`picture wider than the page: ${svg.getAttribute("aria-label")}`);
    for (const node of svg.querySelectorAll("text")) {
      const box = node.getBoundingClientRect(), text = node.textContent;
      if (!text.trim() || !box.width) continue;
      const beyond = Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom);
      if (beyond > 2) found.push(`outside of its picture by ${beyond.toFixed(0)}: ${says(text)} (${says(svg.getAttribute("aria-label"))})`);
      if (text.includes("…") && !node.closest("g")?.querySelector("title")) found.push(`cut without a tooltip: ${says(text)}`);
      const size = frame.width / (svg.viewBox.baseVal.width || frame.width) * parseFloat(getComputedStyle(node).fontSize);
      if (size < 6.5) found.push(`letters of ${size.toFixed(1)} pixels: ${says(text)}`);
      words.push({ box, text, node, trim: 2.2 * size / 12 });
    }
  }
  for (const element of document.querySelectorAll("body *")) {
    const style = getComputedStyle(element);
    if (element.namespaceURI.endsWith("svg") || element.closest(".skip") || !element.textContent.trim()) continue;
    const hides = ["hidden", "clip"].includes(style.overflowX) || style.textOverflow === "ellipsis";
    if (hides && element.scrollWidth > element.clientWidth + 1) found.push(`cut off: ${says(element.textContent)}`);
  }
  if (document.documentElement.scrollWidth > page + 1) found.push(`the page is ${document.documentElement.scrollWidth} wide on a screen of ${page}`);
  words.sort((a, b) => a.box.top - b.box.top);
  for (let i = 0; i < words.length; i++)
    for (let j = i + 1; j < words.length && words[j].box.top < words[i].box.bottom; j++) {
      const [a, b] = [words[i], words[j]];
      if (a.node === b.node) continue;
      const trim = Math.min(a.trim, b.trim);
      const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left) - 2 * Math.min(trim, 1.5);
      const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top) - 2 * trim;
      if (across > 0.5 && down > 0.5 && !hidden(a, b)) found.push(`overlap: ${says(a.text)} and ${says(b.text)}`);
    }
  return [...new Set(found)];

  function hidden(a, b) {  // one of them lies in a box that scrolls, beyond what it shows
    return [a, b].some(({ node, box }) => {
      const outer = scrolls(node.parentElement)?.getBoundingClientRect();
      return outer && (box.left >= outer.right - 1 || box.top >= outer.bottom - 1 || box.right <= outer.left + 1);
    });
  }
}
