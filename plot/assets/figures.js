// Hover and keys for the pictures of a page. The numbers are those of the table behind each picture,
// so that nothing is in the page twice; without this script the page is still whole.
'use strict';
(function () {
  const svgNames = 'http://www.w3.org/2000/svg';

  // The rows of a table: numbers where a cell has one, and the texts that people read.
  function rowsOf(table) {
    return Array.from(table.tBodies[0].rows, (row) =>
      Array.from(row.cells, (cell) => ({
        value: cell.dataset.v === undefined ? null : Number(cell.dataset.v),
        exact: cell.dataset.v,
        text: cell.textContent,
      })));
  }

  // The last of `keys`, which are in order, that is not above x.
  function lastUpTo(keys, x) {
    let low = 0, high = keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (keys[middle] <= x) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  function nearest(keys, x) {
    const at = Math.max(0, lastUpTo(keys, x));
    return at + 1 < keys.length && keys[at + 1] - x < x - keys[at] ? at + 1 : at;
  }

  function part(name, cell) {
    const span = document.createElement('span');
    const label = document.createElement('span');
    label.className = 'name';
    label.textContent = name + ' ';
    span.append(label, cell.text + '\u2003');
    if (cell.exact !== undefined) span.title = cell.exact;
    return span;
  }

  function start(section) {
    const plot = section.querySelector('g.plot'), svg = section.querySelector('svg');
    const figure = section.querySelector('figure'), out = section.querySelector('output');
    const table = section.querySelector('table');
    if (!plot || !table) return;
    const kind = plot.dataset.kind, number = (name) => Number(plot.dataset[name]);
    const left = number('left'), width = number('width'), low = number('low'), high = number('high');
    const top = number('top'), height = number('height');
    const heads = Array.from(table.tHead.rows[0].cells, (cell) => cell.textContent);
    const rows = rowsOf(table), steps = section.dataset.steps === '1';
    const lanes = [];
    let at = -1, lane = 0;
    rows.forEach((row, i) => {
      if (kind !== 'lanes') return;
      let it = lanes.find((l) => l.name === row[0].text);
      if (!it) lanes.push(it = { name: row[0].text, rows: [], starts: [] });
      it.rows.push(i);
      it.starts.push(row[3].value);
    });
    const keys = kind === 'series' ? rows.map((row) => row[0].value) : [];
    const line = document.createElementNS(svgNames, 'path');
    line.setAttribute('class', 'at');
    plot.append(line);

    function drawAt(x) {
      const px = left + width * Math.min(1, Math.max(0, (x - low) / (high - low)));
      line.setAttribute('d', `M${px} ${top}v${height}`);
    }

    function showRow(i) {
      at = Math.min(rows.length - 1, Math.max(0, i));
      const row = rows[at];
      if (!row) return;
      out.replaceChildren(...row.map((cell, k) => [heads[k], cell])
        .filter(([, cell]) => cell.text !== '').map(([name, cell]) => part(name, cell)));
      if (kind === 'series') drawAt(row[0].value);
      if (kind === 'lanes') drawAt(row[3].value);
    }

    // What every lane does at x.
    function showLanes(x) {
      drawAt(x);
      out.replaceChildren(...lanes.map((l) => {
        const i = lastUpTo(l.starts, x), row = i < 0 ? null : rows[l.rows[i]];
        const busy = row && x < row[4].value;
        const text = !busy ? 'idle' : row[1].text === l.name ? row[2].text
          : (row[1].text === 'stall' ? 'waits before ' : '') + row[2].text +
            (row[5].value > 0 ? ', ' + row[5].text : '');
        return part(l.name, { text, exact: busy ? row[3].exact : undefined });
      }));
    }

    function pointAt(event) {
      const point = new DOMPoint(event.clientX, event.clientY)
        .matrixTransform(svg.getScreenCTM().inverse());
      const x = low + (high - low) * (point.x - left) / width;
      if (point.x < left || point.x > left + width) return;
      if (kind === 'lanes') showLanes(x);
      else if (kind === 'series') showRow(steps ? lastUpTo(keys, x) : nearest(keys, x));
      else showRow(Math.floor((point.y - top) / height * rows.length));
    }

    // Left and right go through the rows, in lanes through those of one; up and down change lanes.
    function key(event) {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const turn = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const mine = lanes[lane] ? lanes[lane].rows : rows.map((_, i) => i);
      let place = mine.indexOf(at);
      if (move) place = Math.min(mine.length - 1, Math.max(0, place + move));
      else if (event.key === 'Home') place = 0;
      else if (event.key === 'End') place = mine.length - 1;
      else if (turn && lanes.length) {
        lane = (lane + turn + lanes.length) % lanes.length;
        showRow(lanes[lane].rows[0]);
        event.preventDefault();
        return;
      } else return;
      event.preventDefault();
      showRow(mine[place]);
    }

    figure.addEventListener('pointermove', pointAt);
    figure.addEventListener('pointerdown', pointAt);
    figure.addEventListener('keydown', key);
    section.dataset.ready = '1';
  }

  document.querySelectorAll('section').forEach(start);
})();
