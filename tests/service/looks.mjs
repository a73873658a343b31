// What eyes would find, computed: text that cannot be read on its ground, things too small to hit, things
// that lie on each other, a page wider than its window.  Runs in the page; an empty list is good.
export function looks () {
  const found = [], shown = e => e.checkVisibility ({ opacityProperty: true, visibilityProperty: true }) && !e.closest (".sr, .skip");
  const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const colour = text => { const [r, g, b, a] = text.match (/[\d.]+/g).map (Number); return { r, g, b, a: a ?? 1 }; };
  const over = (top, low) => ({ r: top.r * top.a + low.r * (1 - top.a), g: top.g * top.a + low.g * (1 - top.a), b: top.b * top.a + low.b * (1 - top.a), a: 1 });
  const light = c => 0.2126 * channel (c.r) + 0.7152 * channel (c.g) + 0.0722 * channel (c.b);
  const ground = e => { const own = colour (getComputedStyle (e).backgroundColor); return own.a === 1 || !e.parentElement ? own : over (own, ground (e.parentElement)); };
  const name = e => `${e.tagName.toLowerCase ()}${e.id ? "#" + e.id : ""}${e.className && typeof e.className === "string" ? "." + e.className : ""} "${(e.textContent || "").trim ().slice (0, 24)}"`;
  const texts = [...document.body.querySelectorAll ("*")].filter (e => shown (e) && !(e instanceof SVGElement) && [...e.childNodes].some (n => n.nodeType === 3 && n.data.trim ()));
  for (const e of texts) {
    const style = getComputedStyle (e), low = ground (e), a = light (over (colour (style.color), low)), b = light (low);
    const ratio = (Math.max (a, b) + 0.05) / (Math.min (a, b) + 0.05);
    if (ratio < 4.5) found.push (`contrast ${ratio.toFixed (2)}: ${name (e)}`);
    if (parseFloat (style.fontSize) < 11) found.push (`text of ${style.fontSize}: ${name (e)}`);
  }
  for (const e of document.querySelectorAll ("button, a[href], select, summary, input:not([type=file])")) {
    if (!e.checkVisibility () || e.closest (".skip") || e.classList.contains ("skip")) continue;
    const r = (e.matches ("input[type=checkbox], input[type=radio]") ? e.closest ("label") : e).getBoundingClientRect ();
    if (r.width < 24 || r.height < 22) found.push (`${Math.round (r.width)} x ${Math.round (r.height)} to hit: ${name (e)}`);
    if (!(e.textContent.trim () || e.ariaLabel || e.labels?.length || e.title)) found.push (`no name: ${name (e)}`);
  }
  const clipped = e => { // what is seen of it, in its scrolling parents
    let r = e.getBoundingClientRect ();
    for (let p = e.parentElement; p && p !== document.body; p = p.parentElement)
      if (getComputedStyle (p).overflow !== "visible") {
        const q = p.getBoundingClientRect ();
        r = { left: Math.max (r.left, q.left), right: Math.min (r.right, q.right), top: Math.max (r.top, q.top), bottom: Math.min (r.bottom, q.bottom) };
      }
    return r;
  };
  const boxes = texts.filter (e => !e.closest (".over, .empty, option, select") && getComputedStyle (e).display !== "inline").map (e => [e, clipped (e)]).filter (([, r]) => r.right - r.left > 2 && r.bottom - r.top > 2);
  for (let i = 0; i < boxes.length; i++)
    for (let k = i + 1; k < boxes.length; k++) {
      const [a, p] = boxes[i], [b, q] = boxes[k];
      if (a.contains (b) || b.contains (a)) continue;
      if (Math.min (p.right, q.right) - Math.max (p.left, q.left) > 2 && Math.min (p.bottom, q.bottom) - Math.max (p.top, q.top) > 2)
        found.push (`${name (a)} lies on ${name (b)}`);
    }
  if (document.documentElement.scrollWidth > innerWidth) found.push (`${document.documentElement.scrollWidth} pixels wide in ${innerWidth}`);
  for (const [e, r] of boxes) if (r.right > innerWidth + 1 && !e.closest (".tabs, .scroll, pre, code")) found.push (`out of the window: ${name (e)}`);
  return found;
}
