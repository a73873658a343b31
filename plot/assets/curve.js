// Slowdown against memory: what was found, down to what no plan can beat; between them is not known.
// The budget is a handle on it.
const curve = { json: null, x: null, low: 0, high: 1, base: 0, top: 1, dragged: null, onBudget: null, now: null, budget: null };

const slowdown = (ns, json) => ns / json.baseline_ns - 1;

// Only the part that is worth looking at: a plan that takes ten times as long would flatten the rest.
function curveTop(json) {
  const all = json.points.filter(p => p.predicted).map(p => slowdown(p.predicted.step_ns, json));
  if (!all.length) return 0.1;
  return Math.max(0.02, Math.min(Math.max(...all), Math.max(4 * [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)], 1))) * 1.12;
}

// The axis begins near the least.
function curveBase(json, top) {
  const all = json.points.filter(p => p.predicted).map(p => slowdown(Math.min(p.predicted.step_ns, p.lower_bound_ns), json));
  const least = all.length ? Math.min(...all) : 0;
  return Math.max(0, least - (top - least) / 12);
}

const drawCurve = soon(() => {
  const { g, w, h } = fit(at("curve-canvas")), json = curve.json;
  if (!json || w < 50) return;
  const box = { left: 54, top: 10, width: w - 54 - 12, height: h - 10 - 22 };
  const points = json.points, low = json.floor_bytes ?? points[0].budget_bytes, high = Math.max(json.needs_bytes, points[points.length - 1].budget_bytes);
  curve.low = low;
  curve.high = high;
  curve.top = curveTop(json);
  curve.base = curveBase(json, curve.top);
  const x = n => box.left + box.width * (n - low) / (high - low || 1), y = s => box.top + box.height * (1 - Math.min(1.05, Math.max(0, s - curve.base) / (curve.top - curve.base)));
  curve.x = x;
  curve.back = px => low + (px - box.left) / box.width * (high - low);
  for (const s of ticks(curve.base, curve.top, box.height / 34, false)) {
    g.fillStyle = colours.grid;
    g.fillRect(box.left, Math.round(y(s)), box.width, 1);
    label(g, s === 0 ? "0" : `+${+(100 * s).toFixed(1)} %`, box.left - 6, y(s), { align: "right" });
  }
  for (const n of ticks(low, high, box.width / 90, true)) label(g, tickText(n), x(n), h - 10, { align: x(n) > w - 40 ? "right" : x(n) < box.left + 20 ? "left" : "center" });
  const found = points.filter(p => p.predicted), step = p => slowdown(p.predicted.step_ns, json), bound = p => slowdown(p.lower_bound_ns, json);
  g.save();
  g.beginPath();
  g.rect(box.left, box.top - 4, box.width + 4, box.height + 6);
  g.clip();
  g.fillStyle = colours.band;
  g.beginPath();
  found.forEach((p, i) => i ? g.lineTo(x(p.budget_bytes), y(step(p))) : g.moveTo(x(p.budget_bytes), y(step(p))));
  [...found].reverse().forEach(p => g.lineTo(x(p.budget_bytes), y(bound(p))));
  g.closePath();
  g.fill();
  const line = (value, colour, dash, width) => {
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.setLineDash(dash);
    g.beginPath();
    found.forEach((p, i) => i ? g.lineTo(x(p.budget_bytes), y(value(p))) : g.moveTo(x(p.budget_bytes), y(value(p))));
    g.stroke();
    g.setLineDash([]);
  };
  line(bound, colours.soft, [2, 3], 1.25);
  line(step, colours.accent, [], 2);
  for (const p of found) { g.fillStyle = colours.accent; g.beginPath(); g.arc(x(p.budget_bytes), y(step(p)), 2.5, 0, 7); g.fill(); }
  g.restore();
  const knee = points[json.knee];
  if (knee && knee.predicted) {
    const kx = x(knee.budget_bytes), right = kx > w - 90;
    g.strokeStyle = colours.ink;
    g.lineWidth = 1.25;
    g.beginPath();
    g.arc(kx, y(step(knee)), 5.5, 0, 7);
    g.stroke();
    label(g, "knee", kx + (right ? -9 : 9), y(step(knee)) - 9, { align: right ? "right" : "left", colour: colours.ink });
  }
  const budget = curve.dragged ?? curve.budget;
  if (budget !== null) {
    const bx = Math.min(box.left + box.width, Math.max(box.left, x(budget)));
    g.strokeStyle = colours.limit;
    g.setLineDash([5, 4]);
    g.lineWidth = 1.25;
    g.beginPath();
    g.moveTo(bx, box.top);
    g.lineTo(bx, box.top + box.height);
    g.stroke();
    g.setLineDash([]);
    at("handle").style.left = `${bx}px`;
    at("handle").hidden = false;
    if (curve.now && curve.dragged === null) {
      const s = slowdown(curve.now.step_ns, curve.now), right = bx > w - 90;
      g.fillStyle = colours.limit;
      g.beginPath();
      if (s <= curve.top) g.arc(bx, y(s), 4, 0, 7);
      else { // above the picture: an arrow and the figure
        g.moveTo(bx, box.top - 4);
        g.lineTo(bx + 6, box.top + 6);
        g.lineTo(bx - 6, box.top + 6);
        label(g, `+${three(100 * s)} %`, bx + (right ? -10 : 10), box.top + 3, { align: right ? "right" : "left", colour: colours.limit });
        g.fillStyle = colours.limit;
      }
      g.fill();
    }
  }
});

// The bytes of a budget on the curve that shows; rough where there is none yet.
function showCurve(json, note) {
  curve.json = json;
  at("curve-empty").hidden = Boolean(json);
  if (!json) { fit(at("curve-canvas")); at("handle").hidden = true; curve.x = null; }
  setText("curve-note", note ?? "");
  drawCurve();
}

// now: what is predicted at the budget, or null.
function showOnCurve(budget, now) {
  curve.budget = budget;
  curve.now = now;
  drawCurve();
}

function wireCurve() {
  const plot = at("curve-plot"), handle = at("handle");
  const bytesAt = e => Math.max(curve.low, Math.min(curve.high, curve.back(e.clientX - plot.getBoundingClientRect().left)));
  const drag = e => { curve.dragged = bytesAt(e); curve.onBudget(curve.dragged, false); drawCurve(); };
  plot.addEventListener("pointerdown", e => { if (!curve.x || !curve.onBudget) return; plot.setPointerCapture(e.pointerId); drag(e); });
  plot.addEventListener("pointermove", e => { if (curve.dragged !== null) drag(e); });
  const end = e => {
    if (curve.dragged === null) return;
    const to = curve.dragged;
    curve.dragged = null;
    if (e.type === "pointerup") curve.onBudget(to, true);
    drawCurve();
  };
  plot.addEventListener("pointerup", end);
  plot.addEventListener("pointercancel", end);
  handle.addEventListener("keydown", e => {
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5 }[e.key];
    if (!by || !curve.onBudget) return;
    e.preventDefault();
    at("budget").value = Number(at("budget").value) + by;
    at("budget").dispatchEvent(new Event("input"));
    at("budget").dispatchEvent(new Event("change"));
  });
  new ResizeObserver(() => drawCurve()).observe(plot);
}
