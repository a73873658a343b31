// Canvases: as sharp as the screen, in the colours of the style sheet.
const kindNames = ["parameter", "optimizer", "input", "activation", "gradient", "workspace", "temporary", "workspace", "pool"];
const colours = {};

function readColours() {
  const style = getComputedStyle(document.documentElement), get = name => style.getPropertyValue(`--${name}`).trim();
  for (const name of ["ink", "soft", "line", "panel", "accent", "band", "stall", "forward", "backward", "update", "other", "limit", "grid", ...new Set(kindNames)])
    colours[name] = get(name);
  colours.kinds = kindNames.map(k => colours[k]);
  colours.phases = [colours.forward, colours.backward, colours.update, colours.other];
}

// The context of a canvas that is as large as its box.
function fit(canvas) {
  const box = canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
  const w = Math.round(box.width * scale), h = Math.round(box.height * scale);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const g = canvas.getContext("2d");
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.clearRect(0, 0, box.width, box.height);
  return { g, w: box.width, h: box.height };
}

const fontOf = (size, weight = 400) => `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;

function label(g, text, x, y, { align = "left", colour = colours.soft, size = 11, weight = 400, base = "middle" } = {}) {
  g.font = fontOf(size, weight);
  g.textAlign = align;
  g.textBaseline = base;
  g.fillStyle = colour;
  g.fillText(text, x, y);
}

// Black or white, whichever is easier to read on a colour written as "#rrggbb".
function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map(i => (parseInt(colour.slice(i, i + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? "#111" : "#fff";
}

// Steps of 1, 2 or 5 (powers of 2 for bytes) so that about `want` of them cover `span`.
function niceStep(span, want, binary) {
  const least = span / Math.max(1, want);
  if (binary) {
    const unit = 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(1, least)) / 10));
    return unit * 2 ** Math.ceil(Math.log2(least / unit) - 1e-9);
  }
  const unit = 10 ** Math.floor(Math.log10(least));
  for (const k of [1, 2, 5]) if (k * unit >= least) return k * unit;
  return 10 * unit;
}

function ticks(low, high, want, binary) {
  const step = niceStep(high - low, want, binary), out = [];
  for (let x = Math.ceil(low / step - 1e-9) * step; x <= high * (1 + 1e-9); x += step) out.push(x);
  return out;
}

// Runs f once, before the next picture, however often it is asked for.
function soon(f) {
  let due = false;
  return () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => { due = false; f(); });
  };
}
