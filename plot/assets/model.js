// A ferry-timeline/1 as what the pictures ask for: who holds memory when, who is busy when, and what
// becomes of a tensor.  Nothing is simulated here: all times are the program's.

// The last of keys[0..n), which rise, that is not above x; -1: none.
function lastUpTo(keys, x, n = keys.length) {
  let low = 0, high = n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle] <= x) low = middle + 1; else high = middle;
  }
  return low - 1;
}

// Spans that repeat every period, as pieces inside [0, period).
function pieces(start, end, period, add) {
  if (end <= start) return;
  if (end - start >= period) { add(0, period); return; }
  const a = start - Math.floor(start / period) * period, b = a + end - start;
  if (b <= period) add(a, b); else { add(a, period); add(0, b - period); }
}

// A lane: spans in order of their start. ref: an op or a move; stall: an op waits.
function makeLane(name, rows) {
  rows.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return { name, n: rows.length, start: Float64Array.from(rows, r => r[0]), end: Float64Array.from(rows, r => r[1]),
           ref: Int32Array.from(rows, r => r[2]), stall: Uint8Array.from(rows, r => r[3] ?? 0) };
}

class Side {
  constructor(json, kinds) {
    this.period = json.period_ns;
    this.ops = json.ops;
    this.tensors = json.tensors;
    this.held = json.held;
    this.moves = json.moves ?? { tensor: [] };
    this.kinds = kinds;
    this.nOps = json.ops.name.length;
    this.makeEdges();
    this.makeLanes();
    this.ofOrigin = new Map(); // a tensor of the profile to those of this side
    this.tensors.origin.forEach((o, i) => this.ofOrigin.has(o) ? this.ofOrigin.get(o).push(i) : this.ofOrigin.set(o, [i]));
    this.opOfOrigin = new Map();
    this.ops.origin.forEach((o, i) => { if (!this.ops.again[i] && !this.opOfOrigin.has(o)) this.opOfOrigin.set(o, i); });
  }

  // times, totals, and bytes by kind behind each time.
  makeEdges() {
    const h = this.held, times = [], what = [], delta = [];
    const add = (t, kind, bytes) => { times.push(t); what.push(kind); delta.push(bytes); };
    for (let i = 0; i < h.bytes.length; i++)
      pieces(h.start_ns[i], h.end_ns[i], this.period, (a, b) => {
        add(a, h.kind[i], h.bytes[i]);
        if (b < this.period) add(b, h.kind[i], -h.bytes[i]);
      });
    const order = Uint32Array.from(times, (_, i) => i).sort((a, b) => times[a] - times[b]);
    const now = new Float64Array(this.kinds.length), at = [], rows = [];
    for (let i = 0; i < order.length; i++) {
      now[what[order[i]]] += delta[order[i]];
      if (i + 1 < order.length && times[order[i + 1]] === times[order[i]]) continue;
      at.push(times[order[i]]);
      rows.push(...now);
    }
    if (!at.length || at[0] > 0) { at.unshift(0); rows.unshift(...new Float64Array(this.kinds.length)); }
    this.times = Float64Array.from(at);
    this.byKind = Float64Array.from(rows);
    this.total = new Float64Array(at.length);
    this.peak = 0;
    const k = this.kinds.length;
    this.has = this.kinds.map(() => false);
    for (let i = 0; i < at.length; i++) {
      for (let j = 0; j < k; j++) {
        this.total[i] += this.byKind[i * k + j];
        if (this.byKind[i * k + j] > 0) this.has[j] = true;
      }
      if (this.total[i] > this.total[this.peak]) this.peak = i;
    }
    this.peakTime = this.times[this.peak];
    this.peakBytes = this.total[this.peak];
  }

  makeLanes() {
    const o = this.ops, m = this.moves, compute = [], out = [], back = [];
    for (let i = 0; i < this.nOps; i++) {
      if (o.stall_ns[i] > 0) pieces(o.start_ns[i] - o.stall_ns[i], o.start_ns[i], this.period, (a, b) => compute.push([a, b, i, 1]));
      pieces(o.start_ns[i], o.end_ns[i], this.period, (a, b) => compute.push([a, b, i, 0]));
    }
    for (let i = 0; i < m.tensor.length; i++) {
      pieces(m.out_start_ns[i], m.out_end_ns[i], this.period, (a, b) => out.push([a, b, i]));
      pieces(m.in_start_ns[i], m.in_end_ns[i], this.period, (a, b) => back.push([a, b, i]));
    }
    this.lanes = [makeLane("compute", compute), makeLane("copy out", out), makeLane("copy in", back)];
  }

  edgeAt(t) { return Math.max(0, lastUpTo(this.times, t)); }

  // The span of a lane at t; -1: it is idle.
  spanAt(lane, t) {
    const i = lastUpTo(lane.start, t, lane.n);
    return i >= 0 && t < lane.end[i] ? i : -1;
  }

  // The op at t, or the one that is waited for.
  opAt(t) {
    const lane = this.lanes[0], i = this.spanAt(lane, t);
    return i < 0 ? null : { op: lane.ref[i], stall: lane.stall[i] === 1 };
  }

  // Rows of `held` that hold memory at t, in the order in which the stack has them.
  heldAt(t) {
    const h = this.held, out = [];
    for (let i = 0; i < h.bytes.length; i++) {
      let is = false;
      pieces(h.start_ns[i], h.end_ns[i], this.period, (a, b) => { is ||= a <= t && t < b; });
      if (is) out.push(i);
    }
    return out;
  }

  // What the stack has at t, `bytes` from below: a row of `held`, or -1.
  hit(t, bytes) {
    const rows = this.heldAt(t);
    let sum = 0;
    for (let kind = 0; kind < this.kinds.length; kind++)
      for (const i of rows)
        if (this.held.kind[i] === kind && bytes < (sum += this.held.bytes[i])) return i;
    return -1;
  }

  originOf(row) { return this.held.tensor[row] < 0 ? -1 : this.tensors.origin[this.held.tensor[row]]; }

  // Bands [start, end, low, high] where a row of the stack lies, piece by piece: as its neighbours
  // below come and go.
  band(row) {
    const h = this.held, kind = h.kind[row], k = this.kinds.length, out = [];
    const below = [];
    for (let i = 0; i < row; i++)
      if (h.kind[i] === kind) pieces(h.start_ns[i], h.end_ns[i], this.period, (a, b) => below.push([a, b, h.bytes[i]]));
    const changes = below.flatMap(([a, b, n]) => [[a, n], [b, -n]]).sort((a, b) => a[0] - b[0]);
    pieces(h.start_ns[row], h.end_ns[row], this.period, (from, to) => {
      let c = 0, inner = 0;
      for (let e = this.edgeAt(from); e < this.times.length && this.times[e] < to; e++) {
        const start = Math.max(from, this.times[e]), end = Math.min(to, e + 1 < this.times.length ? this.times[e + 1] : this.period);
        while (c < changes.length && changes[c][0] <= start) inner += changes[c++][1];
        let low = inner;
        for (let j = 0; j < kind; j++) low += this.byKind[e * k + j];
        const last = out[out.length - 1];
        if (last && last[1] === start && last[2] === low) last[1] = end;
        else out.push([start, end, low, low + h.bytes[row]]);
      }
    });
    return out;
  }
}

class Model {
  constructor(json) {
    this.json = json;
    this.kinds = json.holders;
    this.before = new Side(json.before, this.kinds);
    this.after = new Side(json.after, this.kinds);
    this.period = Math.max(this.before.period, this.after.period);
    this.budget = json.budget_bytes;
    this.most = Math.max(this.before.peakBytes, this.after.peakBytes, this.budget);
    this.fates = this.makeFates();
  }

  side(name) { return name === "before" ? this.before : this.after; }
  name(origin) { return this.before.tensors.name[origin]; }

  // What the plan does with each tensor of the profile: "moves", "again", "parts" or "stays".
  makeFates() {
    const a = this.after, out = new Array(this.before.tensors.name.length).fill("stays");
    for (const [origin, all] of a.ofOrigin) if (all.length > 1) out[origin] = "parts";
    a.tensors.again.forEach((again, i) => { if (again) out[a.tensors.origin[i]] = "again"; });
    for (const x of a.moves.tensor) out[a.tensors.origin[x]] = "moves";
    return out;
  }

  // The holders of memory at a side's fullest moment, largest first, one a tensor of the profile.
  holders(side) {
    const sums = new Map();
    for (const row of side.heldAt(side.peakTime)) {
      const origin = side.originOf(row);
      const key = origin >= 0 ? origin : row + 1e9;
      const it = sums.get(key) ?? { origin, kind: side.held.kind[row], bytes: 0, row,
        name: origin >= 0 ? this.name(origin) : side.held.op[row] >= 0 ? `workspace of ${side.ops.name[side.held.op[row]]}` : this.kinds[side.held.kind[row]] };
      it.bytes += side.held.bytes[row];
      sums.set(key, it);
    }
    return [...sums.values()].sort((x, y) => y.bytes - x.bytes || x.row - y.row);
  }

  // The life of a tensor under the plan.
  life(origin) {
    const a = this.after, mine = new Set(a.ofOrigin.get(origin) ?? []), m = a.moves;
    const held = [], moves = [], users = [], again = [];
    a.held.tensor.forEach((x, i) => { if (mine.has(x)) held.push(i); });
    m.tensor.forEach((x, i) => { if (mine.has(x)) moves.push(i); });
    for (let i = 0; i < a.nOps; i++) {
      const reads = a.ops.reads[i].some(x => mine.has(x)), writes = a.ops.writes[i].some(x => mine.has(x));
      if (reads || writes) users.push({ op: i, reads, writes });
      if (a.ops.again[i] && writes) again.push(i);
    }
    return { origin, held, moves, users, again, fate: this.fates[origin], bytes: this.before.tensors.bytes[origin], kind: this.before.tensors.kind[origin] };
  }

  // The most that the step without a plan holds between two ops of the step after, and where.
  pressure(after, before) {
    const a = this.after, b = this.before, n = a.nOps;
    let most = { bytes: 0, op: -1 };
    for (let i = (after + 1) % n, left = n; left > 0 && i !== before % n; i = (i + 1) % n, left--) {
      const op = a.ops.origin[i], bytes = b.total[b.edgeAt((b.ops.start_ns[op] + b.ops.end_ns[op]) / 2)];
      if (bytes > most.bytes) most = { bytes, op: i };
    }
    return most;
  }
}
