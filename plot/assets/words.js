// Numbers and elements as people read them.
const at = id => document.getElementById(id);

// Three digits that count, as the command line writes them.
function three(x) {
  const a = Math.abs(x);
  return a >= 100 ? x.toFixed(0) : a >= 10 ? x.toFixed(1) : x.toFixed(2);
}

function bytesText(n) {
  if (n === 0) return "0";
  for (const [unit, size] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]])
    if (Math.abs(n) >= 0.9995 * size) return `${three(n / size)} ${unit}`;
  return `${n} B`;
}

// The same on an axis: "1 GiB", "1.5 GiB".
const tickText = n => bytesText(n).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");

// Two amounts with one unit where they have the same.
function pairText(a, b) {
  const [x, unit] = bytesText(a).split(" "), [, other] = bytesText(b).split(" ");
  return unit === other && unit ? `${x} / ${bytesText(b)}` : `${bytesText(a)} / ${bytesText(b)}`;
}

function timeText(ns) {
  if (ns === 0) return "0";
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]])
    if (Math.abs(ns) >= 0.9995 * size) return `${three(ns / size)} ${unit}`;
  return `${Math.round(ns)} ns`;
}

const rateText = perSecond => `${three(perSecond / 1e9)} GB/s`;

// 0.0123 as "1.2 %"; what is above nothing is never written as nothing.
function shareText(x) {
  const p = 100 * x;
  if (p > 0 && p < 0.05) return "< 0.1 %";
  return `${Math.abs(p) >= 100 ? p.toFixed(0) : p.toFixed(1)} %`;
}
const slowerText = (ns, without) => (ns < without ? "−" : "+") + shareText(Math.abs(ns / without - 1));
const countText = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

function ordinal(n) {
  const rest = n % 100, last = n % 10;
  return n + (rest > 10 && rest < 14 ? "th" : last === 1 ? "st" : last === 2 ? "nd" : last === 3 ? "rd" : "th");
}

// make("td", { class: "x", onclick: f }, "text", node, ...)
function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) node.setAttribute(key, value);
  node.append(...children.filter(c => c !== null && c !== undefined));
  return node;
}

function setText(id, text, exact) {
  const node = at(id);
  if (node.textContent !== text) node.textContent = text;
  if (exact === undefined) node.removeAttribute("title"); else node.title = exact;
}

async function copyText(text, button) {
  const before = button.textContent;
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
  catch { button.textContent = "Press Ctrl C"; }
  setTimeout(() => { button.textContent = before; }, 1500);
}
