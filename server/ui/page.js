// The page asks the service what its commands would answer; pictures are those that plot/ draws.
import { gib, slower, seconds, fill } from "./tables.js";

const at = id => document.getElementById (id);
const wanted = new URLSearchParams (location.hash.slice (1));
let current = new AbortController (); // of the question that is being answered; a newer one ends it
let pending = 0;

function say (text) { at ("state").textContent = text; }

async function ask (method, path, body, headers = {}) {
  const reply = await fetch (path, { method, body, headers });
  const told = reply.status === 204 ? {} : await reply.json ();
  if (!reply.ok)
    throw new Error ([told.detail, ...(told.errors ?? []).map (e => `${e.pointer}: ${e.detail}`)].join ("; "));
  return told;
}

// The end of a job that goes on; what it has found meanwhile is said.
function followed (it, kind, signal) {
  return new Promise ((done, failed) => {
    const events = new EventSource (it.links.events);
    const end = (how, what) => { events.close (); how (what); };
    events.addEventListener ("incumbent", e => {
      const found = JSON.parse (e.data);
      say (`${kind}: ${seconds (found.step_ns)}, at least ${seconds (found.bound_ns)}`);
    });
    events.addEventListener ("done", e => end (done, JSON.parse (e.data)));
    events.addEventListener ("shutdown", () => end (failed, new Error ("the service stops")));
    signal.addEventListener ("abort", () => end (failed, signal.reason));
  });
}

const goesOn = it => it.state === "queued" || it.state === "running";

// A job to its end. Nobody waits for the job of an older question, so it is stopped.
async function job (kind, request, signal, again = true) {
  const headers = { "Content-Type": "application/json", "Prefer": "wait=1" };
  let it = await ask ("POST", `/v1/${kind}`, JSON.stringify (request), headers);
  if (signal.aborted && goesOn (it)) await ask ("DELETE", it.links.self);
  signal.throwIfAborted ();
  try {
    if (goesOn (it)) it = await followed (it, kind, signal);
  } catch (e) {
    if (signal.aborted) await ask ("DELETE", it.links.self);
    throw e;
  }
  if (it.state === "cancelled" && again) return job (kind, request, signal, false); // another page of this reader stopped it
  if (it.state !== "done") throw new Error (`${kind}: ${it.problem?.detail ?? it.state}`);
  return it;
}

const picture = it => `${it.links.self}/files/picture`;

function show (id, rows, marked) {
  at (id).hidden = false;
  fill (at (id).querySelector ("table"), rows, marked);
}

function costs (c, bound) {
  return [["step", seconds (c.step_ns)], ["without a plan", seconds (c.baseline_ns)],
          ["slower by", slower (c.step_ns, c.baseline_ns)], ["no plan takes less than", seconds (bound)],
          ["device", gib (c.peak_bytes)], ["host", gib (c.host_peak_bytes)], ["copied out", gib (c.d2h_bytes)], ["copied in", gib (c.h2d_bytes)]];
}

// A search that ended by its limit knows no more than that.
const none = sure => sure ? "no plan fits" : "no plan was found";

// The device of a request; the trace's own needs no name.
const device = () => at ("device").value ? { device: at ("device").value } : {};
const devices = () => at ("device").value ? { devices: [at ("device").value] } : {};

async function plan (trace, ppm, signal) {
  const it = await job ("schedules", { trace, budget_ppm: ppm, ...device () }, signal);
  if (!it.result.fits) {
    show ("plan", [[none (it.exit !== 4), it.result.why], ["the least is", gib (it.result.floor_bytes)]]);
    for (const i of at ("plan").querySelectorAll ("img")) i.removeAttribute ("src");
    return;
  }
  show ("plan", costs (it.result.predicted, it.result.certificate.lower_bound_ns));
  at ("after").src = picture (it);
  // A step that does not fit has no such picture: that is what the plan is for.
  const all = await job ("schedules", { trace, budget_ppm: 1000000, ...device () }, signal).catch (() => null);
  signal.throwIfAborted ();
  at ("before-figure").hidden = !all;
  if (all) at ("before").src = picture (all);
}

async function curve (trace, signal) {
  const it = await job ("curves", { trace, points: 8, ...device () }, signal);
  show ("curve", [["budget", "step", "slower", "bound"], ...it.result.points.map (p => [gib (p.budget_bytes),
    ...(p.predicted ? [seconds (p.predicted.step_ns), slower (p.predicted.step_ns, it.result.baseline_ns), seconds (p.lower_bound_ns)]
                    : ["no plan found", "", ""])])], it.result.knee + 1);
  at ("curve").querySelector ("img").src = picture (it);
}

async function compare (trace, ppm, signal) {
  const it = await job ("comparisons", { trace, budget_ppm: ppm, ...device () }, signal);
  show ("compare", [["policy", "step", "slower", "device", "host"], ...it.result.rows.map (r => [r.label,
    ...(r.fits ? [seconds (r.predicted.step_ns), slower (r.predicted.step_ns, r.predicted.baseline_ns), gib (r.predicted.peak_bytes), gib (r.predicted.host_peak_bytes)] : ["does not fit", "", "", ""])])]);
}

async function linked (trace, percent, rate, signal) {
  const it = await job ("what-if", { trace, memory: [`${percent}%`], links_bytes_per_s: [rate * 1e9], ...devices () }, signal);
  const r = it.result.rows[0];
  show ("linked", [["link", "step", "slower"], [`${rate} GB/s`, r.predicted ? seconds (r.predicted.step_ns) : none (r.answer === "none fits"), r.predicted ? slower (r.predicted.step_ns, r.baseline_ns) : ""]]);
}

async function pack (trace, beside, signal) {
  if (!beside) { at ("pack").hidden = true; return; }
  const it = await job ("packs", { jobs: [{ name: "a", trace }, { name: "b", trace: beside }], points: 4, limit_ticks: 20000, ...devices () }, signal);
  show ("pack", [["answer", it.exit === 0 ? "both have a place" : it.exit === 4 ? "no place for both was found" : "not both have a place"], ...it.result.jobs.map (j => j.predicted
    ? [j.name, gib (j.budget_bytes), seconds (j.predicted.step_ns), slower (j.predicted.step_ns, j.baseline_ns)] : [j.name, j.why ?? "no place"])]);
}

function remember () {
  const s = new URLSearchParams ({ trace: at ("trace").value, budget: at ("budget").value, link: at ("link").value, device: at ("device").value, beside: at ("beside").value });
  history.replaceState (null, "", "#" + s);
}

async function answer () {
  const trace = at ("trace").value, percent = Number (at ("budget").value), rate = Number (at ("link").value);
  const { signal } = begin ();
  remember ();
  if (!trace) { say ("Drop a file here, or choose a trace."); return; }
  const steps = [["plan", () => plan (trace, percent * 10000, signal)], ["linked", () => linked (trace, percent, rate, signal)], ["curve", () => curve (trace, signal)],
                 ["pack", () => pack (trace, at ("beside").value, signal)], ["compare", () => compare (trace, percent * 10000, signal)]];
  const wrong = new Set ();
  for (const [id, step] of steps) {
    say (`${id}…`);
    try { await step (); } catch (e) {
      if (signal.aborted) return;
      wrong.add (e.message);
      at (id).hidden = true; // it shows an older answer
    }
    if (signal.aborted) return;
  }
  say ([...wrong].join ("; ") || "done");
  document.body.dataset.done = "yes";
}

function begin () {
  clearTimeout (pending);
  document.body.dataset.done = "";
  current.abort ();
  return current = new AbortController ();
}

// A slider that is still on its way asks nothing.
function answerSoon () {
  begin ();
  remember ();
  pending = setTimeout (answer, 250);
}

// One that is chosen is there, though it be beyond what a list holds.
async function list (chosen) {
  const { traces } = await ask ("GET", "/v1/traces?limit=100");
  if (chosen && !traces.some (t => t.trace === chosen))
    await ask ("GET", `/v1/traces/${chosen}`).then (t => traces.unshift (t), () => {});
  for (const [id, first] of [["trace", "none"], ["beside", "nothing"]]) {
    const before = at (id).value;
    at (id).replaceChildren (new Option (first, ""), ...traces.map (t => new Option (`${t.info.name || "a trace"} (${t.trace.slice (0, 8)})`, t.trace)));
    at (id).value = id === "trace" ? chosen ?? before : before;
  }
}

// One profile, or the two files of one run as a form.
async function upload (files) {
  if (!files.length) return;
  say (`sending ${[...files].map (f => f.name).join (" and ")}`);
  const form = new FormData ();
  for (const f of files) form.append ("file", f);
  try {
    let t = files.length > 1 ? await ask ("POST", "/v1/traces", form)
      : await ask ("POST", "/v1/traces", files[0], { "Content-Type": "application/octet-stream" });
    if (goesOn (t)) { // a long import is a job
      const it = await followed (t, "import", begin ().signal);
      if (it.state !== "done") throw new Error (it.problem?.detail ?? it.state);
      t = it.result;
    }
    await list (t.trace);
    await answer ();
  } catch (e) { say (e.message); }
}

function sliders () {
  at ("budget-out").textContent = `${at ("budget").value} %`;
  at ("link-out").textContent = `${at ("link").value} GB/s`;
}

at ("budget").value = wanted.get ("budget") ?? 70;
at ("link").value = wanted.get ("link") ?? 25;
at ("file").addEventListener ("change", e => upload (e.target.files));
for (const id of ["budget", "link"]) {
  at (id).addEventListener ("input", sliders);
  at (id).addEventListener ("change", answerSoon);
}
for (const id of ["trace", "device", "beside"]) at (id).addEventListener ("change", answer);
for (const kind of ["dragover", "dragleave", "drop"])
  at ("question").addEventListener (kind, e => {
    e.preventDefault ();
    at ("question").classList.toggle ("over", kind === "dragover");
    if (kind === "drop") upload (e.dataTransfer.files);
  });
sliders ();

async function start () {
  await list (wanted.get ("trace") ?? "");
  at ("device").append (...(await ask ("GET", "/v1/devices")).devices.map (d => new Option (d, d)));
  for (const id of ["device", "beside"]) at (id).value = wanted.get (id) ?? "";
  await answer ();
}
start ().catch (e => say (e.message));
