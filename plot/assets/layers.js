// Memory as a stack of layers and lanes as boxes, with levels of detail: a column of pixels shows the
// fullest moment in it, and spans narrower than a pixel are drawn together, by how much of it they fill.

// For each moment to draw: its x, its end's x, and the place of its edge.
function moments(side, view, left, width) {
  const scale = width / (view.end - view.start), x = t => left + (t - view.start) * scale;
  const first = side.edgeAt(view.start), last = side.edgeAt(Math.min(view.end, side.period));
  const out = [], stop = Math.min(view.end, side.period);
  const endOf = e => Math.min(stop, e + 1 < side.times.length ? side.times[e + 1] : side.period);
  if (last - first <= 2 * width) {
    for (let e = first; e <= last; e++) {
      const from = Math.max(view.start, side.times[e]), to = endOf(e);
      if (to > from) out.push([x(from), x(to), e]);
    }
    return out;
  }
  for (let e = first, column = 0; column < width && e <= last; column++) {
    const until = view.start + (column + 1) / scale;
    let best = e;
    while (e + 1 <= last && side.times[e + 1] < until) if (side.total[++e] > side.total[best]) best = e;
    if (view.start + column / scale >= stop) break;
    out.push([left + column, left + column + 1, best]);
  }
  return out;
}

// box: { left, top, width, height }; most: the bytes of its height.
function drawMemory(g, side, view, box, most) {
  const all = moments(side, view, box.left, box.width), k = side.kinds.length;
  const y = n => box.top + box.height * (1 - n / most);
  const low = new Float64Array(all.length);
  for (let kind = 0; kind < k; kind++) {
    if (!side.has[kind]) continue;
    g.fillStyle = colours.kinds[kind];
    g.beginPath();
    all.forEach(([x0, x1, e], i) => {
      const high = low[i] + side.byKind[e * k + kind];
      if (i === 0) g.moveTo(x0, y(high)); else g.lineTo(x0, y(high));
      g.lineTo(x1, y(high));
    });
    for (let i = all.length - 1; i >= 0; i--) {
      g.lineTo(all[i][1], y(low[i]));
      g.lineTo(all[i][0], y(low[i]));
      low[i] += side.byKind[all[i][2] * k + kind];
    }
    g.closePath();
    g.fill();
  }
  return all;
}

// The same bands again, where a tensor lies in the stack.
function drawBand(g, side, row, view, box, most, style) {
  const scale = box.width / (view.end - view.start);
  const x = t => box.left + Math.min(box.width, Math.max(0, (t - view.start) * scale)), y = n => box.top + box.height * (1 - n / most);
  g.save();
  for (const [start, end, low, high] of side.band(row)) {
    if (end < view.start || start > view.end) continue;
    g.fillStyle = style;
    g.fillRect(x(start), y(high), Math.max(1, x(end) - x(start)), Math.max(1, y(low) - y(high)));
  }
  g.restore();
}

function hatch(g, colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const t = tile.getContext("2d");
  t.strokeStyle = colour;
  t.lineWidth = 1.4;
  t.beginPath();
  t.moveTo(-1, 7); t.lineTo(7, -1);
  t.stroke();
  return g.createPattern(tile, "repeat");
}

// Spans of a lane; `colourOf (i)` for those that are wide enough, `nameOf (i)` for those with room.
function drawLane(g, lane, view, box, colourOf, nameOf) {
  const scale = box.width / (view.end - view.start), stall = hatch(g, colours.stall);
  const from = Math.max(0, lastUpTo(lane.start, view.start, lane.n)), until = lastUpTo(lane.start, view.end, lane.n);
  const fine = new Map(); // colour to the share of each column
  for (let i = from; i <= until; i++) {
    const a = Math.max(0, (lane.start[i] - view.start) * scale), b = Math.min(box.width, (lane.end[i] - view.start) * scale);
    if (b <= a) continue;
    const colour = lane.stall[i] ? "stall" : colourOf(i);
    if (b - a < 1.5) {
      if (!fine.has(colour)) fine.set(colour, new Float32Array(Math.ceil(box.width) + 1));
      const columns = fine.get(colour), c = Math.floor(a);
      columns[c] += Math.min(b, c + 1) - a;
      if (b > c + 1) columns[c + 1] += b - c - 1;
      continue;
    }
    if (lane.stall[i]) {
      g.fillStyle = stall;
      g.fillRect(box.left + a, box.top, b - a, box.height);
      continue;
    }
    g.fillStyle = colour;
    const gap = b - a > 4 ? 0.75 : 0;
    g.fillRect(box.left + a, box.top, b - a - gap, box.height);
    if (b - a > 44) {
      g.save();
      g.beginPath();
      g.rect(box.left + a, box.top, b - a - 4, box.height);
      g.clip();
      label(g, nameOf(i), box.left + a + 4, box.top + box.height / 2 + 0.5, { colour: inkOn(colour) });
      g.restore();
    }
  }
  for (const [colour, columns] of fine) {
    g.fillStyle = colour === "stall" ? colours.stall : colour;
    for (let c = 0; c < columns.length; c++)
      if (columns[c] > 0) {
        g.globalAlpha = Math.max(0.18, Math.min(1, columns[c]));
        g.fillRect(box.left + c, box.top, 1, box.height);
      }
    g.globalAlpha = 1;
  }
}
