// The answer in words and in four figures, and how far the search has come.

// c: what is predicted; proof: the certificate, or null; asked: bytes of the budget.
function showAnswer(c, proof, moves) {
  const gap = proof && proof.lower_bound_ns ? c.step_ns / proof.lower_bound_ns - 1 : null;
  const sure = gap !== null && gap < 5e-4, slower = c.step_ns / c.baseline_ns - 1;
  const cost = slower < 5e-4 ? make("strong", {}, "no longer than without a limit") : make("strong", {}, `${shareText(slower)} longer`);
  const bound = gap === null ? "" : sure ? " No plan is faster." : ` No plan of this kind is more than ${shareText(1 - proof.lower_bound_ns / c.step_ns)} faster.`;
  const copies = c.d2h_bytes + c.h2d_bytes ? ` ${bytesText(c.d2h_bytes)} leave and ${bytesText(c.h2d_bytes)} come back each step${moves ? `, in ${countText(moves, "move", "moves")}` : ""}.` : " Nothing has to move.";
  at("words").replaceChildren("In ", make("strong", {}, bytesText(c.peak_bytes)), " a step takes ", make("strong", {}, timeText(c.step_ns)), ", ", cost, ".", bound, copies, c.settled ? "" : " The steps do not settle: an estimate.");
  setText("f-step", timeText(c.step_ns), `${c.step_ns} ns`);
  setText("f-step-sub", slower < 5e-4 ? "as without a limit" : `${slowerText(c.step_ns, c.baseline_ns)} on ${timeText(c.baseline_ns)}`, `${c.baseline_ns} ns without a plan`);
  setText("f-memory", bytesText(c.peak_bytes), `${c.peak_bytes} bytes`);
  setText("f-memory-sub", `host ${bytesText(c.host_peak_bytes)}`, `${c.host_peak_bytes} bytes of the host`);
  setText("f-bound", proof ? timeText(proof.lower_bound_ns) : "\u2013", proof ? `${proof.lower_bound_ns} ns, by ${proof.bound_by}; it covers ${proof.covers}` : undefined);
  setText("f-bound-sub", gap === null ? "no bound yet" : sure ? "gap 0: optimal" : `gap ${shareText(gap)}`);
  setText("f-bytes", pairText(c.d2h_bytes, c.h2d_bytes), `${c.d2h_bytes} bytes out, ${c.h2d_bytes} in`);
  setText("f-bytes-sub", c.stall_ns ? `${timeText(c.stall_ns)} of stalls` : "no stalls");
  at("answer").dataset.fits = "yes";
}

// No plan: r is the refusal; retry: asks for a budget that has one.
function showNone(r, sure, retry) {
  const least = r.floor_bytes > r.budget_bytes ? r.found_bytes || r.least_bytes : r.found_bytes || null;
  at("words").replaceChildren(make("strong", {}, sure ? `Nothing fits in ${bytesText(r.budget_bytes)}. ` : `No plan was found in ${bytesText(r.budget_bytes)}. `),
    least ? `Whole ops need ${bytesText(least)}, set by ${r.floor_op.name}. ` : "", "Allow more, or ",
    make("button", { type: "button", class: "link", onclick: () => retry(least) }, least ? `ask for ${bytesText(Math.ceil(least * 1.02))}` : "ask for more memory"), ".");
  for (const id of ["f-step", "f-memory", "f-bound", "f-bytes"]) { setText(id, "\u2013"); setText(id + "-sub", "\u00a0"); }
  setText("f-memory", bytesText(r.floor_bytes), `${r.floor_bytes} bytes`);
  setText("f-memory-sub", "the least of whole ops");
  at("answer").dataset.fits = "no";
}

function clearAnswer(text) {
  at("words").replaceChildren(text);
  for (const id of ["f-step", "f-memory", "f-bound", "f-bytes"]) { setText(id, "\u2013"); setText(id + "-sub", "\u00a0"); }
  at("answer").dataset.fits = "";
}

// ---- how far the search is ----

const fall = { seen: [] };

function drawFall() {
  const all = fall.seen, svg = at("fall");
  const [bound, best] = svg.querySelectorAll("path");
  svg.classList.toggle("none", all.length === 0);
  if (!all.length) return;
  const last = all[all.length - 1].t, t0 = all[0].t, span = Math.max(1, last - t0);
  const top = Math.max(...all.map(p => p.step)), low = Math.min(...all.map(p => p.bound || p.step)), room = Math.max(1, top - low);
  const x = t => 2 + 116 * (t - t0) / span, y = v => 3 + 20 * (1 - (v - low) / room);
  const path = key => all.map((p, i) => `${i ? "H" + x(p.t).toFixed(1) + "V" : "M" + x(p.t).toFixed(1) + " "}${y(p[key] || low).toFixed(1)}`).join("") + "H118";
  best.setAttribute("d", path("step"));
  bound.setAttribute("d", path("bound"));
}

function noteIncumbent(step, bound) {
  const last = fall.seen[fall.seen.length - 1] ?? { step: Infinity, bound: 0 };
  fall.seen.push({ t: performance.now(), step: Math.min(step, last.step), bound: Math.max(bound || 0, last.bound) });
  drawFall();
}

// state: "idle", "busy" or "wrong".
function say(text, state = "busy") {
  setText("state", text);
  at("busy").dataset.state = state;
  at("cancel").hidden = state !== "busy";
}
