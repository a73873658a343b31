// One axis of time for memory by kind and for the lanes, before and after: zoomed and panned together,
// with a cursor that names what is at it.  The pictures are drawn on one canvas, cursor and choice on
// another above it, so that to move the mouse draws no step again.
const timeline = {
  model: null, view: { start: 0, end: 1 }, mode: "both", cursor: null, chosen: null, lit: null, boxes: [],
};

function boxesOf(w, h) {
  const left = w < 520 ? 54 : 66, width = w - left - 8, lanes = timeline.mode === "before" ? 1 : 3;
  const lane = 20, axis = 20, gap = 6, foot = lanes * (lane + 3) + axis + gap;
  const room = h - foot - 14, out = [];
  const sides = timeline.mode === "both" ? ["before", "after"] : [timeline.mode];
  const each = (room - (sides.length - 1) * 18) / sides.length;
  let top = 14;
  for (const name of sides) {
    out.push({ what: "memory", name, left, top, width, height: each });
    top += each + 18;
  }
  top += gap - 18;
  const side = sides[sides.length - 1];
  for (let i = 0; i < lanes; i++, top += lane + 3) out.push({ what: "lane", name: side, lane: i, left, top, width, height: lane });
  out.push({ what: "axis", left, top, width, height: axis });
  return out;
}

function drawAxis(g, box, bottom) {
  const { start, end } = timeline.view;
  for (const t of ticks(start, end, box.width / 90, false)) {
    const x = box.left + box.width * (t - start) / (end - start);
    g.fillStyle = colours.grid;
    g.fillRect(Math.round(x), 14, 1, bottom - 14);
    if (x > box.left + 14 && x < box.left + box.width - 14) label(g, timeText(t), x, box.top + 12, { align: "center" });
  }
}

function drawTrack(g, box) {
  const m = timeline.model, side = m.side(box.name), most = m.most * 1.04;
  const y = n => box.top + box.height * (1 - n / most);
  drawMemory(g, side, timeline.view, box, most);
  for (const n of ticks(0, most, box.height / 36, true)) {
    g.fillStyle = colours.grid;
    g.fillRect(box.left, Math.round(y(n)), box.width, 1);
    if (n > 0) label(g, tickText(n), box.left - 6, y(n), { align: "right" });
  }
  const limit = Math.round(y(m.budget)) + 0.5;
  if (box.name === "before" && side.peakBytes > m.budget) { // what is above has no room
    g.save();
    g.beginPath();
    g.rect(box.left, box.top - 2, box.width, limit - box.top + 2);
    g.clip();
    const shade = hatch(g, colours.limit);
    const all = moments(side, timeline.view, box.left, box.width);
    g.fillStyle = shade;
    for (const [x0, x1, e] of all) if (side.total[e] > m.budget) g.fillRect(x0, y(side.total[e]), x1 - x0, limit - y(side.total[e]));
    g.restore();
  }
  g.strokeStyle = colours.limit;
  g.setLineDash([5, 4]);
  g.lineWidth = 1.25;
  g.beginPath();
  g.moveTo(box.left, limit);
  g.lineTo(box.left + box.width, limit);
  g.stroke();
  g.setLineDash([]);
  const title = box.name === "before" ? "Before: everything on the device" : "After: under the budget";
  label(g, title, box.left, box.top - 7, { colour: colours.ink, weight: 600 });
  if (box.width > 420) label(g, `most held ${bytesText(side.peakBytes)}, budget ${bytesText(m.budget)}`, box.left + box.width, box.top - 7, { align: "right" });
  else label(g, bytesText(side.peakBytes), box.left + box.width, box.top - 7, { align: "right" });
}

function laneColour(side, lane, i) {
  if (lane === 0) return colours.phases[side.ops.phase[side.lanes[0].ref[i]]];
  return colours.kinds[side.tensors.kind[side.moves.tensor[side.lanes[lane].ref[i]]]];
}

function moveName(side, i) {
  const m = side.moves, more = m.more[i] ? ` and ${m.more[i]} more` : "";
  return side.tensors.name[m.tensor[i]] + more + (m.of[i] > 1 ? `, part ${m.part[i] + 1} of ${m.of[i]}` : "");
}

function drawLaneOf(g, box) {
  const side = timeline.model.side(box.name), lane = side.lanes[box.lane];
  g.fillStyle = colours.grid;
  g.fillRect(box.left, box.top, box.width, box.height);
  drawLane(g, lane, timeline.view, box, i => laneColour(side, box.lane, i),
    i => box.lane === 0 ? side.ops.name[lane.ref[i]] : moveName(side, lane.ref[i]));
  label(g, lane.name, box.left - 6, box.top + box.height / 2, { align: "right" });
}

const drawTimeline = soon(() => {
  const { g, w, h } = fit(at("base")), m = timeline.model;
  if (!m || w < 50) return;
  timeline.boxes = boxesOf(w, h);
  const axis = timeline.boxes[timeline.boxes.length - 1];
  drawAxis(g, axis, axis.top);
  for (const box of timeline.boxes)
    if (box.what === "memory") drawTrack(g, box);
    else if (box.what === "lane") drawLaneOf(g, box);
  drawOver();
});

const toX = (box, t) => box.left + box.width * (t - timeline.view.start) / (timeline.view.end - timeline.view.start);

// Where a tensor of the profile is, in both stacks and in the lanes of copies.
function drawChosen(g, origin, strong) {
  const m = timeline.model, ink = colours.ink;
  g.globalAlpha = strong ? 0.92 : 0.6;
  for (const box of timeline.boxes) {
    const side = box.name && m.side(box.name), mine = side && new Set(side.ofOrigin.get(origin) ?? []);
    if (box.what === "memory")
      side.held.tensor.forEach((x, row) => { if (mine.has(x)) drawBand(g, side, row, timeline.view, box, m.most * 1.04, ink); });
    else if (box.what === "lane") {
      const lane = side.lanes[box.lane];
      g.fillStyle = ink;
      for (let i = 0; i < lane.n; i++) {
        const ref = lane.ref[i];
        const is = box.lane > 0 ? mine.has(side.moves.tensor[ref]) : !lane.stall[i] && (side.ops.reads[ref].some(x => mine.has(x)) || side.ops.writes[ref].some(x => mine.has(x)));
        if (!is || lane.end[i] < timeline.view.start || lane.start[i] > timeline.view.end) continue;
        const a = Math.max(box.left, toX(box, lane.start[i])), b = Math.min(box.left + box.width, toX(box, lane.end[i]));
        g.fillRect(a, box.top + box.height - 4, Math.max(2, b - a), 4);
      }
    }
  }
  g.globalAlpha = 1;
}

const drawOver = soon(() => {
  const { g } = fit(at("over")), m = timeline.model;
  if (!m || !timeline.boxes.length) return;
  const axis = timeline.boxes[timeline.boxes.length - 1];
  if (timeline.chosen !== null) drawChosen(g, timeline.chosen, true);
  if (timeline.lit !== null && timeline.lit !== timeline.chosen) drawChosen(g, timeline.lit, false);
  if (timeline.cursor !== null && timeline.cursor >= timeline.view.start && timeline.cursor <= timeline.view.end) {
    const x = Math.round(toX(axis, timeline.cursor)) + 0.5;
    g.strokeStyle = colours.ink;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(x, 14);
    g.lineTo(x, axis.top);
    g.stroke();
  }
});

// ---- the view ----

function setView(start, end) {
  const all = timeline.model.period, span = Math.min(all, Math.max(end - start, Math.min(all, 200)));
  start = Math.min(all - span, Math.max(0, start));
  timeline.view = { start, end: start + span };
  drawTimeline();
}

function zoom(factor, around) {
  const { start, end } = timeline.view, t = around ?? timeline.cursor ?? (start + end) / 2;
  setView(t - (t - start) * factor, t + (end - t) * factor);
}

function pan(share) {
  const { start, end } = timeline.view, by = share * (end - start);
  setView(start + by, end + by);
}

// ---- the cursor ----

const sideOfCursor = () => timeline.model.side(timeline.mode === "before" ? "before" : "after");

function chip(origin, name) {
  return make("button", { type: "button", class: "chip", onclick: () => choose(origin), onpointerenter: () => light(origin), onpointerleave: () => light(null) },
    make("i", { class: `dot k-${kindNames[timeline.model.before.tensors.kind[origin]]}` }), name);
}

function chips(side, list) {
  const out = list.slice(0, 12).map(x => chip(side.tensors.origin[x], side.tensors.name[x]));
  if (list.length > 12) out.push(make("span", { class: "note" }, `and ${list.length - 12} more`));
  return out;
}

const row = (key, ...value) => make("div", { class: "row" }, make("dt", {}, key), make("dd", {}, ...value));

function readCursor() {
  const m = timeline.model, t = timeline.cursor, side = sideOfCursor();
  if (t === null) return;
  const inside = Math.min(t, side.period - 1), op = side.opAt(inside), edge = side.edgeAt(inside);
  const copy = lane => { const i = side.spanAt(side.lanes[lane], inside); return i < 0 ? null : side.lanes[lane].ref[i]; };
  const out = copy(1), back = copy(2), k = m.kinds.length, phases = ["forward", "backward", "update", ""];
  const name = op ? side.ops.name[op.op] : "idle";
  const what = !op ? "" : op.stall ? "waits for memory or a copy" : [phases[side.ops.phase[op.op]], side.ops.again[op.op] ? "made again" : "", timeText(side.ops.end_ns[op.op] - side.ops.start_ns[op.op])].filter(Boolean).join(", ");
  const moveText = i => `${moveName(side, i)}, ${bytesText(side.moves.bytes[i])}`;
  at("readout").replaceChildren(
    make("div", { class: "head" }, make("strong", {}, name), make("span", { class: "num" }, timeText(t))),
    make("p", { class: "note" }, what || "\u00a0"),
    make("dl", {},
      row("held", `${bytesText(side.total[edge])}`, timeline.mode === "both" ? make("span", { class: "note" }, ` before ${bytesText(m.before.total[m.before.edgeAt(beforeTime(op, t))])}`) : ""),
      row("out", out === null ? "\u2013" : moveText(out)),
      row("in", back === null ? "\u2013" : moveText(back)),
      row("reads", ...(op ? chips(side, side.ops.reads[op.op]) : [])),
      row("writes", ...(op ? chips(side, side.ops.writes[op.op]) : []))));
  m.kinds.forEach((_, kind) => { const it = at(`legend-${kind}`); if (it) it.textContent = bytesText(side.byKind[edge * k + kind]); });
  const over = at("over");
  over.setAttribute("aria-valuenow", Math.round(t));
  over.setAttribute("aria-valuetext", `${timeText(t)}, ${name}${what ? ", " + what : ""}, ${bytesText(side.total[edge])} held`);
}

// When the same op runs in the step before.
function beforeTime(op, t) {
  const m = timeline.model, b = m.before;
  if (!op) return Math.min(t, b.period - 1);
  const i = m.after.ops.origin[op.op];
  return (b.ops.start_ns[i] + b.ops.end_ns[i]) / 2;
}

const readSoon = soon(readCursor);

function setCursor(t) {
  timeline.cursor = Math.min(timeline.model.period, Math.max(0, t));
  drawOver();
  readSoon();
}

function stepCursor(by) {
  const side = sideOfCursor(), now = timeline.cursor === null ? -1 : lastUpTo(side.ops.start_ns, timeline.cursor, side.nOps);
  const next = Math.min(side.nOps - 1, Math.max(0, now + by)), t = (side.ops.start_ns[next] + side.ops.end_ns[next]) / 2;
  setCursor(t);
  if (t < timeline.view.start || t > timeline.view.end) pan((t - (timeline.view.start + timeline.view.end) / 2) / (timeline.view.end - timeline.view.start));
}

// ---- the choice ----

function light(origin) { timeline.lit = origin; drawOver(); }

function choose(origin) {
  timeline.chosen = origin === timeline.chosen ? null : origin;
  timeline.lit = null;
  showHolders();
  drawOver();
}

const fateWords = { moves: "moves to the host", again: "is recomputed", parts: "runs in parts", stays: "stays" };

function showHolders() {
  const m = timeline.model, into = at("holders");
  if (!m) { into.replaceChildren(); return; }
  if (timeline.chosen !== null) { into.replaceChildren(...lifeOf(m, timeline.chosen)); return; }
  const side = timeline.mode === "after" ? m.after : m.before, all = m.holders(side), most = all.length ? all[0].bytes : 1;
  const op = side.opAt(Math.min(side.peakTime, side.period - 1));
  const list = make("ol", {}, ...all.slice(0, 40).map(it => {
    const bar = make("i", { class: `bar k-${kindNames[it.kind]}` });
    bar.style.width = `${100 * it.bytes / most}%`;
    const fate = it.origin >= 0 ? m.fates[it.origin] : "stays";
    return make("li", {}, make("button", { type: "button", disabled: it.origin < 0, onclick: () => choose(it.origin), onpointerenter: () => light(it.origin < 0 ? null : it.origin),
      onpointerleave: () => light(null), onfocus: () => light(it.origin < 0 ? null : it.origin), onblur: () => light(null) },
      make("span", { class: "name" }, it.name), make("span", { class: "num" }, bytesText(it.bytes)), make("span", { class: `fate ${fate}` }, fateWords[fate]), bar));
  }));
  into.replaceChildren(make("h3", {}, "Largest at the fullest moment"),
    make("p", { class: "note" }, `${bytesText(side.peakBytes)} ${timeline.mode === "after" ? "after" : "before"}${op ? `, at ${side.ops.name[op.op]}` : ""}`), list);
}

// ---- the pointer and the keys ----

function hitAt(x, y) {
  const m = timeline.model;
  for (const box of timeline.boxes) {
    if (y < box.top || y > box.top + box.height || !box.name) continue;
    const side = m.side(box.name), t = timeline.view.start + (x - box.left) / box.width * (timeline.view.end - timeline.view.start);
    if (t < 0 || t >= side.period) return null;
    if (box.what === "memory") {
      const row = side.hit(t, (1 - (y - box.top) / box.height) * m.most * 1.04);
      return row < 0 || side.originOf(row) < 0 ? null : side.originOf(row);
    }
    const i = side.spanAt(side.lanes[box.lane], t);
    if (i >= 0 && box.lane > 0) return side.tensors.origin[side.moves.tensor[side.lanes[box.lane].ref[i]]];
  }
  return null;
}

function largestAtCursor() {
  const side = sideOfCursor(), op = side.opAt(Math.min(timeline.cursor ?? 0, side.period - 1));
  if (!op) return null;
  const all = [...side.ops.reads[op.op], ...side.ops.writes[op.op]].sort((a, b) => side.tensors.bytes[b] - side.tensors.bytes[a]);
  return all.length ? side.tensors.origin[all[0]] : null;
}

const timelineKeys = {
  ArrowRight: e => stepCursor(e.shiftKey ? 10 : 1), ArrowLeft: e => stepCursor(e.shiftKey ? -10 : -1),
  Home: () => stepCursor(-1e9), End: () => stepCursor(1e9),
  "+": () => zoom(0.6), "=": () => zoom(0.6), w: () => zoom(0.6), "-": () => zoom(1 / 0.6), s: () => zoom(1 / 0.6),
  a: () => pan(-0.2), d: () => pan(0.2), 0: () => zoom(1e12), f: () => zoom(1e12),
  Enter: () => { const it = largestAtCursor(); if (it !== null) choose(it); }, Escape: () => { if (timeline.chosen !== null) choose(timeline.chosen); },
};

function wireTimeline() {
  const over = at("over"), down = new Map();
  let moved = 0, spread = 0;
  const timeOf = x => { const b = timeline.boxes[0]; return timeline.view.start + (x - b.left) / b.width * (timeline.view.end - timeline.view.start); };
  const ready = () => timeline.model && timeline.boxes.length;
  over.addEventListener("pointerdown", e => { if (!ready()) return; over.setPointerCapture(e.pointerId); down.set(e.pointerId, e.offsetX); moved = 0; spread = 0; });
  over.addEventListener("pointermove", e => {
    if (!ready()) return;
    if (down.has(e.pointerId)) {
      const by = e.offsetX - down.get(e.pointerId);
      moved += Math.abs(by);
      down.set(e.pointerId, e.offsetX);
      if (down.size === 2) { // two fingers
        const [a, b] = [...down.values()], now = Math.abs(a - b);
        if (spread > 10 && now > 10) zoom(spread / now, timeOf((a + b) / 2));
        spread = now;
      } else if (moved > 4) { over.classList.add("drags"); pan(-by / timeline.boxes[0].width); }
    }
    setCursor(timeOf(e.offsetX));
  });
  const up = e => {
    if (!ready() || !down.delete(e.pointerId)) return;
    over.classList.remove("drags");
    if (moved <= 4 && e.type === "pointerup") {
      const it = hitAt(e.offsetX, e.offsetY);
      if (it !== null) choose(it); else if (timeline.chosen !== null) choose(timeline.chosen);
    }
  };
  over.addEventListener("pointerup", up);
  over.addEventListener("pointercancel", up);
  over.addEventListener("dblclick", e => { if (ready()) zoom(0.35, timeOf(e.offsetX)); });
  over.addEventListener("wheel", e => {
    if (!ready()) return;
    if (e.ctrlKey || e.metaKey) { e.preventDefault(); zoom(Math.exp(e.deltaY / 240), timeOf(e.offsetX)); }
    else if (Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey) { e.preventDefault(); pan((e.deltaX || e.deltaY) / 900); }
  }, { passive: false });
  over.addEventListener("keydown", e => {
    const act = timelineKeys[e.key] ?? timelineKeys[e.key.toLowerCase()];
    if (!act || !ready() || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    act(e);
  });
  at("zoom-in").onclick = () => ready() && zoom(0.5);
  at("zoom-out").onclick = () => ready() && zoom(2);
  at("zoom-fit").onclick = () => ready() && zoom(1e12);
  for (const r of document.querySelectorAll("#sides input"))
    r.addEventListener("change", () => { timeline.mode = r.value; drawTimeline(); showHolders(); readCursor(); });
  new ResizeObserver(() => drawTimeline()).observe(at("tracks"));
}

function showLegend(m) {
  at("legend").replaceChildren(...m.kinds.flatMap((name, kind) => m.before.has[kind] || m.after.has[kind]
    ? [make("li", {}, make("i", { class: `dot k-${kindNames[kind]}` }), name.replace(" of ops", "").replace(" of small tensors", ""), make("span", { class: "num", id: `legend-${kind}` }))] : []));
}

// A new step to show; what is looked at stays where it is.
function showTimeline(json) {
  const same = timeline.model && json && timeline.model.json.name === json.name;
  timeline.model = json && new Model(json);
  at("timeline-empty").hidden = Boolean(json);
  if (!json) { at("readout").replaceChildren(); at("legend").replaceChildren(); timeline.boxes = []; fit(at("base")); fit(at("over")); showHolders(); return; }
  const m = timeline.model, all = !same || timeline.view.end - timeline.view.start > 0.98 * timeline.period;
  timeline.period = m.period;
  if (!same) timeline.chosen = null;
  at("over").setAttribute("aria-valuemax", Math.round(m.period));
  showLegend(m);
  if (timeline.cursor === null || !same) timeline.cursor = m.after.peakTime;
  if (all) timeline.view = { start: 0, end: m.period }; else setView(timeline.view.start, timeline.view.end);
  showHolders();
  readCursor();
  drawTimeline();
}
