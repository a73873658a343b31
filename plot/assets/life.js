// The life of one tensor: where it is when, and why it leaves.

// A strip of the step: on the device, on the host, nowhere.
function strip(m, life) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), a = m.after, p = a.period;
  svg.setAttribute("viewBox", "0 0 1000 26");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "strip");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "where the tensor is over the step");
  const bar = (x, y, w, h, c) => {
    const r = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [k, v] of Object.entries({ x, y, width: Math.max(2, w), height: h, class: c })) r.setAttribute(k, v);
    svg.append(r);
  };
  bar(0, 0, 1000, 10, "ground");
  bar(0, 14, 1000, 10, "ground");
  for (const i of life.held) pieces(a.held.start_ns[i], a.held.end_ns[i], p, (x, y) => bar(1000 * x / p, 0, 1000 * (y - x) / p, 10, `k-${kindNames[life.kind]}`));
  for (const i of life.moves) {
    const [start, end] = away(a, i);
    pieces(start, end, p, (x, y) => bar(1000 * x / p, 14, 1000 * (y - x) / p, 10, "host"));
  }
  return svg;
}

// From the start of its way out (or its last use, if it needs none) to its being back.
function away(side, i) {
  const m = side.moves;
  const start = m.out_start_ns[i] >= 0 || m.out_end_ns[i] > m.out_start_ns[i] ? m.out_start_ns[i] : side.ops.end_ns[m.out_after[i]];
  let end = m.in_end_ns[i];
  while (end <= start) end += side.period;
  return [start, end];
}

// Moves of one absence, which may go in parts.
function absences(side, moves) {
  const all = new Map();
  for (const i of moves) {
    const m = side.moves, key = `${m.out_after[i]} ${m.in_before[i]}`, [start, end] = away(side, i);
    const it = all.get(key) ?? { after: m.out_after[i], before: m.in_before[i], start, end, bytes: 0, parts: 0, copied: 0 };
    it.start = Math.min(it.start, start);
    it.end = Math.max(it.end, end);
    it.bytes += m.bytes[i];
    it.parts++;
    if (m.out_end_ns[i] > m.out_start_ns[i]) it.copied++;
    all.set(key, it);
  }
  return [...all.values()].sort((x, y) => x.start - y.start);
}

const opName = (side, i) => side.ops.name[((i % side.nOps) + side.nOps) % side.nOps];

function whyAway(m, it) {
  const a = m.after, most = m.pressure(it.after, it.before), over = most.bytes - m.budget;
  const idle = it.end - it.start, first = `Nothing uses it between ${opName(a, it.after)} and ${opName(a, it.before)}. `;
  if (over > 0)
    return `${first}In that time the step would hold ${bytesText(most.bytes)}, ${bytesText(over)} over the budget, at ${opName(a, most.op)}; without it there is ${bytesText(it.bytes)} less.`;
  return `${first}It gives ${bytesText(it.bytes)} to others for ${timeText(idle)}.`;
}

function lifeEvents(m, life) {
  const a = m.after, out = [];
  const add = (t, ...text) => out.push([t, make("li", {}, make("span", { class: "num" }, timeText(t)), make("span", {}, ...text))]);
  const first = life.users[0], last = life.users[life.users.length - 1];
  if (first) add(a.ops.start_ns[first.op], `${first.writes ? "written" : "read"} by ${a.ops.name[first.op]}`);
  for (const it of absences(a, life.moves)) {
    add(it.start, it.copied ? `leaves for the host${it.parts > 1 ? `, in ${it.parts} parts` : ""}` : "is dropped: the host has it already");
    add(it.end % a.period, `is back for ${opName(a, it.before)}${it.end > a.period ? ", in the next step" : ""}`);
  }
  for (const i of life.again) add(a.ops.start_ns[i], `recomputed by ${a.ops.name[i]}`);
  if (last && last !== first) add(a.ops.end_ns[last.op], `last used by ${a.ops.name[last.op]}`);
  return out.sort((x, y) => x[0] - y[0]).map(x => x[1]);
}

function lifeOf(m, origin) {
  const life = m.life(origin), events = lifeEvents(m, life), why = absences(m.after, life.moves).slice(0, 3).map(it => make("p", { class: "why" }, whyAway(m, it)));
  if (!why.length)
    why.push(make("p", { class: "why" }, life.fate === "again" ? "It is dropped after its use in the forward pass and recomputed before it is needed again: that takes less time than a copy."
      : life.fate === "parts" ? "Its op runs in parts, so that fewer bytes of it are there at once." : "It stays: its room is not needed, or a copy would cost more than another tensor's."));
  return [make("div", { class: "head" }, make("h3", {}, m.name(origin)), make("button", { type: "button", class: "quiet small", onclick: () => choose(origin) }, "Back to the list")),
    make("p", { class: "note" }, make("i", { class: `dot k-${kindNames[life.kind]}` }), `${m.kinds[life.kind]}, ${bytesText(life.bytes)}, ${fateWords[life.fate]}; used by ${countText(life.users.length, "op", "ops")}`),
    make("div", { class: "strips" }, make("span", {}, "device"), make("span", {}, "host"), strip(m, life)),
    ...why, make("ol", { class: "events" }, ...events.slice(0, 60))];
}
