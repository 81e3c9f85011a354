// What a person would notice on a page: gives a list of sentences, empty if all is well.
const problems = [], width = arguments[0];
const name = (node) => `${node.tagName.toLowerCase()} “${node.textContent.trim().slice(0, 40)}”`;
const isSeen = (node) => node.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && node.getClientRects().length > 0;

if (document.documentElement.scrollWidth > width)
  problems.push(`the page is ${document.documentElement.scrollWidth} wide on a screen of ${width}`);

// WCAG 2: relative luminance, and the ratio of two of them.
const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
const luminance = ([red, green, blue]) => {
  const [r, g, b] = [red, green, blue].map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const over = (top, below) => {
  const alpha = top[3] ?? 1;
  return [0, 1, 2].map((place) => alpha * top[place] + (1 - alpha) * below[place]);
};
const behind = (node) => {
  const layers = [];
  for (let one = node; one; one = one.parentElement) layers.unshift(numbers(getComputedStyle(one).backgroundColor));
  return layers.reduce((below, top) => over(top, below), [255, 255, 255]);
};
const ratio = (first, second) => {
  const [low, high] = [luminance(first), luminance(second)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};

const texts = [...document.querySelectorAll("body *")].filter((node) =>
  !node.closest("script, style, noscript") && [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()) && isSeen(node));
for (const node of texts) {
  const style = getComputedStyle(node), isDrawn = node instanceof SVGElement;
  const ground = behind(isDrawn ? node.closest("div") : node);
  const found = ratio(over(numbers(isDrawn ? style.fill : style.color), ground), ground);
  const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
  if (found < (large ? 3 : 4.5)) problems.push(`${name(node)} has a contrast of ${found.toFixed(2)}`);
  if (!isDrawn && style.overflowX === "hidden" && node.scrollWidth > node.clientWidth + 1) problems.push(`${name(node)} is cut off`);
}

// Text that lies beyond the screen without a box that can be scrolled to it.
for (const node of texts) {
  const box = node.getBoundingClientRect(), scrolls = node.closest(".scroll, pre");
  if (!scrolls && (box.right > width + 1 || box.left < -1)) problems.push(`${name(node)} lies beyond the screen`);
}

for (const node of document.querySelectorAll("input, button, progress, svg[role=img], [role=region]")) {
  const label = node.getAttribute("aria-label") || node.labels?.[0]?.textContent || node.textContent;
  if (!label.trim()) problems.push(`${node.tagName} has no name`);
}
for (const node of document.querySelectorAll("button, input")) {
  const box = node.getBoundingClientRect();
  if (isSeen(node) && box.height < 24) problems.push(`${name(node)} is ${box.height} high, too low for a finger`);
}
return problems;
