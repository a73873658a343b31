// Numbers as people read them, each with the exact one beside it.
const cell = (text, exact) => ({ text, exact });
export const gib = bytes => cell (`${(bytes / 2 ** 30).toFixed (2)} GiB`, bytes);
export const seconds = ns => cell (ns >= 1e9 ? `${(ns / 1e9).toFixed (2)} s` : `${(ns / 1e6).toFixed (2)} ms`, ns).text;
export const slower = (ns, baseline) => `${(100 * ns / baseline - 100).toFixed (1)} %`;

export function fill (table, rows, marked) {
  table.replaceChildren (...rows.map ((row, i) => {
    const line = document.createElement ("tr");
    line.classList.toggle ("marked", i === marked);
    for (const value of row) {
      const td = document.createElement (i === 0 && rows.length > 1 && row.length > 2 ? "th" : "td");
      td.textContent = value?.text ?? value ?? "";
      if (value?.exact !== undefined) td.title = `${value.exact} bytes`;
      line.append (td);
    }
    return line;
  }));
}
