// The page: a question kept in the address, asked part by part, side by side, or one answer in a file.
const NETWORKS = [
  ["AlexNet", { network: "alexnet", batch: 256, device: "v100" }], ["ResNet-50", { network: "resnet50", batch: 192, device: "v100" }],
  ["GPT-2 small", { network: "gpt2", batch: 8, device: "rtx4090" }], ["ViT-B/16", { network: "vit-b", batch: 128, device: "rtx4090" }],
  ["BERT large", { network: "bert-large", batch: 16, device: "a100-40" }], ["3D U-Net", { network: "unet3d", batch: 2, device: "v100" }],
];
const RECIPES = [
  ["Inside PyTorch", "with ferry_torch.record(\"step.json.gz\", model, optimizer):\n    step()"],
  ["Any CUDA program", "ferry profile -o step.json -- python train.py"],
  ["A profile that you have", "ferry import step.et.json step.kineto.json -o step.json"],
];
// A plan within a second or so: no cuts, no other order, a short search.
const QUICK = { sections: "off", order: "as-is", limit_ticks: 1000 };
const HEAD_START_MS = 1500; // that it has before the other parts share the processors with it
const LEAST_RATE = 1e9;

const state = { trace: "", b: "70%", device: "", link: "", for: "replay", allow: "rso", effort: "normal", tab: "timeline", with: "", host: "" };
const known = { traces: [], devices: [], hosts: [], files: new Map(), info: null, needs: 0, current: new AbortController(), ofTab: new AbortController(), shown: null, jobs: {} };
let showTab = () => {}, pending = 0;

// ---- the question ----

const percentOf = () => state.b.endsWith("%") ? Number(state.b.slice(0, -1)) : 100 * Number(state.b) / known.needs;
const bytesOf = () => state.b.endsWith("%") ? known.needs * percentOf() / 100 : Number(state.b);
const cardName = () => state.device || known.info?.device || "";

// The card with another link; as it is, its name says all.
function deviceOf() {
  if (!state.link) return state.device || null;
  const card = known.files.get(cardName());
  if (!card) return state.device || null;
  const rate = Math.round(Number(state.link) * 1e9), was = card.link;
  const both = Math.round(2 * rate * Math.min(1, was.both_bytes_per_s / (was.d2h_bytes_per_s + was.h2d_bytes_per_s)));
  return { ...card, link: { ...was, d2h_bytes_per_s: rate, h2d_bytes_per_s: rate, both_bytes_per_s: both } };
}

const withDevice = () => { const d = deviceOf(); return d ? { device: d } : {}; };
const budget = () => state.b.endsWith("%") ? { budget_ppm: Math.round(percentOf() * 10000) } : { budget_bytes: Math.round(Number(state.b)) };

function allowed() {
  const out = {};
  if (!state.allow.includes("r")) out.recompute = "off";
  if (!state.allow.includes("s")) out.sections = "off";
  if (!state.allow.includes("o")) out.order = "as-is";
  return out;
}

const executor = () => state.for === "replay" ? {} : { for: state.for };
const searched = () => state.effort === "normal" ? {} : { effort: state.effort };

function commandText() {
  const name = known.info?.name ? `${known.info.name}.json` : "step.json", words = ["ferry solve", /^[\w.-]+$/.test(name) ? name : "step.json"];
  words.push("-b", state.b.endsWith("%") ? state.b : `${state.b}B`);
  if (state.link) words.push("-d", `${cardName() || "card"}-${state.link}GBs.json`);
  else if (state.device) words.push("-d", state.device);
  if (state.for !== "replay") words.push("--for", state.for);
  for (const [key, value] of Object.entries(allowed())) words.push(`--${key}`, value);
  if (state.effort !== "normal") words.push("--effort", state.effort);
  return [...words, "-o plan.json"].join(" ");
}

// ---- the form ----

// Of the budget's number: that of what the step needs.
const unitOf = () => known.needs && known.needs < 2 ** 30 ? ["MiB", 2 ** 20] : ["GiB", 2 ** 30];
const rateOf = i => LEAST_RATE * 10 ** (i / 20);
const placeOf = rate => Math.round(20 * Math.log10(rate / LEAST_RATE));

function showQuestion() {
  const percent = percentOf(), card = known.files.get(cardName()), link = card?.link;
  at("budget").value = Math.round(percent);
  setText("budget-share", `${+percent.toFixed(1)} %`);
  const [unit, size] = unitOf();
  if (document.activeElement !== at("budget-amount")) at("budget-amount").value = +(bytesOf() / size).toPrecision(3);
  setText("budget-unit", unit);
  at("budget-amount").setAttribute("aria-label", `Memory budget in ${unit}`);
  setText("needs", bytesText(known.needs), `${known.needs} bytes`);
  at("handle").setAttribute("aria-valuenow", Math.round(percent));
  at("handle").setAttribute("aria-valuetext", `${bytesText(bytesOf())}, ${Math.round(percent)} %`);
  at("device").value = state.device;
  at("link").disabled = !card;
  at("link").value = state.link ? placeOf(Number(state.link) * 1e9) : link ? placeOf(link.h2d_bytes_per_s) : 20;
  setText("link-out", state.link ? `${state.link} GB/s` : link ? `${three(link.h2d_bytes_per_s / 1e9)} GB/s, as it is` : "as it is");
  const over = card && known.needs ? ` ${bytesText(card.memory_bytes - card.reserved_bytes)} to give` : "";
  const other = state.device && known.info?.device && state.device !== known.info.device ? `; times are those of ${known.info.device}` : "";
  setText("device-note", card ? over.trim() + other : known.info && !cardName() ? "The profile names no card that ferry knows: choose one." : "\u00a0");
  for (const r of document.getElementsByName("executor")) r.checked = r.value === state.for;
  for (const [id, letter] of [["recompute", "r"], ["sections", "s"], ["order", "o"]]) at(id).checked = state.allow.includes(letter);
  at("effort").value = state.effort;
  setText("paste", commandText());
}

function remember() {
  const kept = Object.entries(state).filter(([k, v]) => (k === "allow" ? v !== "rso" : v) && !(k === "for" && v === "replay") && !(k === "effort" && v === "normal") && !(k === "tab" && v === "timeline"));
  history.replaceState(null, "", state.trace ? "#" + new URLSearchParams(kept) : location.pathname);
}

function readAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(state)) if (wanted.has(key)) state[key] = wanted.get(key);
  if (!/^(\d+(\.\d+)?%|\d+)$/.test(state.b)) state.b = "70%";
  if (!/^[rso]*$/.test(state.allow)) state.allow = "rso";
  if (!/^\d*(\.\d+)?$/.test(state.link)) state.link = "";
}

// ---- the answer, part by part ----

function begin() {
  clearTimeout(pending);
  document.body.dataset.done = "";
  known.current.abort();
  return (known.current = new AbortController()).signal;
}

function learnNeeds(result) {
  const asked = result.budget_bytes + (result.reserve_bytes ?? 0);
  if (state.b.endsWith("%") && asked) known.needs = asked / percentOf() * 100;
}

// A plan is shown if it is better than what is shown for the same question.
async function showPlan(it, signal, final) {
  const r = it.result;
  learnNeeds(r);
  if (!r.fits) {
    if (!final || known.shown) return; // parts or another order may fit
    known.jobs.schedules = null;
    showNone(r, it.exit !== 4, least => { state.b = least ? String(Math.ceil(least * 1.02)) : `${Math.min(100, Math.round(percentOf()) + 10)}%`; showQuestion(); answer(); });
    showTimeline(null);
    at("timeline-empty").textContent = "There is no step to show: nothing fits.";
    showOnCurve(bytesOf(), null);
    return;
  }
  const c = r.predicted, proof = r.certificate;
  if (known.shown && known.shown.predicted.step_ns < c.step_ns) { // the quick one stays, with the better bound
    showAnswer(known.shown.predicted, proof, known.shown.moves);
    return;
  }
  known.shown = r;
  known.jobs.schedules = it;
  showAnswer(c, proof, r.moves);
  noteIncumbent(c.step_ns, proof.lower_bound_ns);
  showOnCurve(r.budget_bytes, c);
  showQuestion();
  listDownloads();
  const json = await ask("GET", `${it.links.self}/files/timeline`);
  signal.throwIfAborted();
  showTimeline(json);
}

// Of a tab's job: its place in the queue, then how many of its parts are done.
const partHooks = id => ({
  place: n => { if (n >= 0) setText(id, placeText(n)); },
  part: (done, all) => setText(id, all ? `${done} of ${all} done…` : `${done} ${done === 1 ? "plan" : "plans"} made…`),
});

const placeText = n => n < 0 ? "Searching." : n <= 1 ? "Next in the queue." : `${ordinal(n)} in the queue.`;

const planRequest = () => ({ trace: state.trace, ...budget(), ...withDevice(), ...executor(), ...allowed() });
const quickPlan = signal => job("schedules", { ...planRequest(), ...QUICK, gap_ppm: 50000 }, signal, { wait: 2, place: n => say(placeText(n)), found: noteIncumbent });

async function plan(signal, quick) {
  const request = planRequest();
  const whole = job("schedules", { ...request, ...searched() }, signal, {
    place: n => { if (known.shown) say(n < 0 ? "A quick plan is shown; a better one is sought." : `A quick plan is shown; the search is ${n <= 1 ? "next" : ordinal(n)} in the queue.`); },
    found: (step, bound) => {
      noteIncumbent(step, bound);
      say(`Searching: ${timeText(step)} found${bound ? `, none is below ${timeText(bound)} (gap ${shareText(step / bound - 1)})` : ""}.`);
    } });
  whole.catch(() => {});
  try { await showPlan(await quick, signal, false); } catch (e) { if (signal.aborted) throw e; }
  if (known.shown) say("A quick plan is shown; a better one is sought.");
  await showPlan(await whole, signal, true);
}

async function curvePart(signal) {
  const request = { trace: state.trace, ...withDevice(), ...executor(), ...allowed() };
  const show = (it, note) => { if (it.result.needs_bytes) known.needs = it.result.needs_bytes; known.jobs.curves = it; showCurve(it.result, note); showQuestion(); listDownloads(); };
  show(await job("curves", { ...request, ...QUICK, points: 5, limit_ticks: 100 }, signal), "rough; band: not known");
  show(await job("curves", { ...request, points: 9, limit_ticks: 20000 }, signal), "band: what is not known");
}

// The budget, as what-if takes it.
const memoryAsked = () => [state.b.endsWith("%") ? `${+percentOf().toFixed(4)}%` : Math.round(Number(state.b))];

const tabParts = {
  timeline: async () => {},
  policies: async signal => {
    waiting("policies", "Policies at this budget", "Every policy is planned at this budget…");
    const it = await job("comparisons", { trace: state.trace, ...budget(), ...withDevice(), ...executor(), effort: "quick" }, signal, partHooks("policies-state"));
    known.jobs.comparisons = it;
    showPolicies(it.result, bytesOf());
    listDownloads();
  },
  cards: async signal => {
    waiting("cards", "The same step on other cards", "The step is planned on every card…");
    const it = await job("what-if", { trace: state.trace, memory: memoryAsked(), devices: known.devices.slice(0, 32), ...executor(), limit_ticks: 2000, swap_only: true }, signal, partHooks("cards-state"));
    known.jobs["what-if"] = it;
    showCards(it.result, cardName(), name => { state.device = name; state.link = ""; showTab("timeline"); changed(); });
    listDownloads();
  },
  ranks: async signal => {
    const host = known.hosts.find(h => h.name === state.host) ?? known.hosts.find(h => h.device === cardName()) ?? [...known.hosts].sort((a, b) => b.cards - a.cards)[0];
    if (!host) { waiting("ranks", "Ranks on one host", "This server knows no hosts."); return; }
    const select = make("select", { id: "host", onchange: e => { state.host = e.target.value; remember(); askTab(); } }, ...known.hosts.map(h => new Option(h.name, h.name, false, h === host)));
    at("ranks").replaceChildren(tabHead("Equal ranks on one host", "One on each card, at the same budget, planned together for the links that they share."),
      make("p", {}, make("label", { for: "host" }, "Host "), select), make("p", { class: "note" }, hostText(host)),
      make("div", { id: "ranks-answer" }, make("p", { class: "empty", id: "ranks-state", role: "status" }, "Ranks are planned together…")));
    const ranks = [...new Set([1, 2, 4, 8, host.cards].filter(n => n <= host.cards))].sort((a, b) => a - b);
    const it = await job("what-if", { trace: state.trace, memory: memoryAsked(), host: host.name, ranks, ...executor(), ...allowed(), limit_ticks: 2000 }, signal, partHooks("ranks-state"));
    known.jobs.ranks = it;
    let drawing = new AbortController();
    const draw = async n => {
      drawing.abort();
      drawing = new AbortController();
      const last = AbortSignal.any([signal, drawing.signal]);
      at("ranks-lanes").replaceChildren(make("p", { class: "empty", id: "lanes-state", role: "status" }, "Their lanes are drawn…"));
      try {
        const one = await job("schedules", { trace: state.trace, ...budget(), host: host.name, ranks: n, ...allowed(), limit_ticks: 2000 }, last, partHooks("lanes-state"));
        if (one.result.step_ns === undefined) { setText("lanes-state", "No plan was found for their lanes."); return; }
        known.jobs.lanes = one;
        showLanes(one, n, known.info.device && known.info.device !== host.device ? known.info.device : "");
        listDownloads();
      } catch (e) { if (!last.aborted) setText("lanes-state", e.message); }
    };
    showRanks(it.result, at("ranks-answer"), draw);
    listDownloads();
    const most = it.result.rows.filter(r => !r.why).map(r => r.ranks).pop();
    if (!most) return;
    if (state.for === "replay") await draw(most);
    else at("ranks-lanes").replaceChildren(make("p", { class: "note" }, "Lanes are drawn for the executor Replay."));
  },
  jobs: async signal => {
    const others = known.traces.filter(t => t.info.plannable);
    const select = make("select", { id: "with", onchange: e => { state.with = e.target.value; remember(); askTab(); } }, new Option("none", ""),
      ...others.map(t => new Option(`${t.info.name || "a step"} (${t.trace.slice(0, 6)})`, t.trace)));
    select.value = state.with;
    at("jobs").replaceChildren(tabHead("Several jobs on one card", "Each gets a part of the card's memory and of its link, so that the one that suffers most suffers least."),
      make("p", {}, make("label", { for: "with" }, "Beside this step "), select), make("div", { id: "pack-answer" }));
    if (!state.with) return;
    at("pack-answer").replaceChildren(make("p", { class: "empty", id: "pack-state", role: "status" }, "Places are searched for…"));
    const it = await job("packs", { jobs: [{ name: "this", trace: state.trace }, { name: "other", trace: state.with }], points: 4, limit_ticks: 20000, ...(cardName() ? { devices: [cardName()] } : {}) }, signal, partHooks("pack-state"));
    showPack(it.result, it.exit);
  },
};

// Whoever looks at another tab, or asks another question there, waits for the former no more.
async function askTab() {
  const focused = document.activeElement?.id;
  known.ofTab.abort();
  known.ofTab = new AbortController();
  const signal = AbortSignal.any([known.current.signal, known.ofTab.signal]), name = state.tab, part = tabParts[name](signal);
  if (focused === "host" || focused === "with") at(focused)?.focus();
  try { await part; } catch (e) { if (!signal.aborted) waiting(name, at(`tab-${name}`).textContent, e.message); }
}

// Why nobody needs to be asked: this file never has a plan, or not before a card is chosen.
function lacking() {
  const it = known.info;
  if (it.plannable === false) return `${it.name || "This file"} cannot be planned: ${it.doubt || "it does not say enough"}. Record the execution trace and the Kineto file of one run, as the first page shows.`;
  return cardName() ? "" : "Which card is this for? The profile names none that ferry knows: choose one.";
}

function showNothing(text) {
  clearAnswer(text);
  showTimeline(null);
  at("timeline-empty").textContent = "There is no step to show.";
}

async function answer() {
  const signal = begin();
  known.shown = null;
  known.jobs = {};
  fall.seen = [];
  drawFall();
  remember();
  listDownloads();
  const wrong = [lacking()].filter(Boolean);
  if (wrong.length) askTab(); else await askParts(signal, wrong);
  if (signal.aborted) return;
  if (wrong.length) setText("curve-empty", "There is no curve.");
  if (wrong.length && !known.shown) showNothing(wrong[0]);
  const proof = known.shown?.certificate, failed = known.shown ? [...new Set(wrong)].join("; ") : "No plan was made.";
  say(wrong.length ? failed : proof?.limit_met ? `The search has ended by its limit of ${proof.limit_met}.` : "Done.", wrong.length ? "wrong" : "idle");
  document.body.dataset.done = "yes";
}

// The plan and the curve, side by side; what went wrong is added to `wrong`.
async function askParts(signal, wrong) {
  say("Asking.");
  const part = (f, ...more) => f(signal, ...more).catch(e => { if (!signal.aborted) wrong.push(e.message); });
  const quick = quickPlan(signal);
  await Promise.race([quick.catch(() => {}), new Promise(r => setTimeout(r, HEAD_START_MS))]);
  if (signal.aborted) return;
  askTab();
  await Promise.all([part(plan, quick), part(curvePart)]);
}

// A slider that is still on its way asks nothing.
function changed() {
  begin();
  showQuestion();
  remember();
  pending = setTimeout(answer, 250);
}

// ---- what to take along ----

const fileLink = (text, href, name) => make("li", {}, make("a", { href, download: name }, text));

function listDownloads() {
  const list = at("downloads").querySelector("ul"), s = known.jobs.schedules, name = known.info?.name || "step", out = [];
  if (s) {
    out.push(fileLink("Plan", `${s.links.self}/files/plan`, `${name}.plan.json`), fileLink("Chrome trace, for Perfetto", `${s.links.result}?format=chrome`, `${name}.chrome.json`),
      fileLink("Timeline", `${s.links.self}/files/timeline`, `${name}.timeline.json`), fileLink("Answer as JSON", s.links.result, `${name}.answer.json`));
    if (s.links.log) out.push(fileLink("Log", s.links.log, `${name}.log.txt`));
  }
  if (known.jobs.curves) out.push(fileLink("Curve as CSV", `${known.jobs.curves.links.result}?format=csv`, `${name}.curve.csv`));
  if (known.jobs.comparisons) out.push(fileLink("Policies as CSV", `${known.jobs.comparisons.links.result}?format=csv`, `${name}.policies.csv`));
  if (known.jobs["what-if"]) out.push(fileLink("Cards as CSV", `${known.jobs["what-if"].links.result}?format=csv`, `${name}.cards.csv`));
  if (known.jobs.ranks) out.push(fileLink("Ranks as CSV", `${known.jobs.ranks.links.result}?format=csv`, `${name}.ranks.csv`));
  if (known.jobs.lanes) out.push(fileLink("Lanes of all ranks", `${known.jobs.lanes.links.result}?format=svg`, `${name}.ranks.svg`));
  if (state.trace) out.push(fileLink("The step itself", `/v1/traces/${state.trace}/content`, `${name}.json`));
  if (state.link && cardName()) out.push(make("li", {}, make("button", { type: "button", class: "link", onclick: () => keep(`${cardName()}-${state.link}GBs.json`, JSON.stringify(deviceOf())) }, "Card with this link")));
  list.replaceChildren(...out);
}

function keep(name, text) {
  const a = make("a", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

// ---- first view and the way in ----

function showFirst() {
  begin();
  state.trace = "";
  remember();
  at("first").hidden = false;
  at("work").hidden = at("acts").hidden = true;
  setText("about", "Training steps in less GPU memory than they need");
  document.body.dataset.done = "yes";
  listTraces().catch(e => setText("said", e.message));
}

async function listTraces() {
  known.traces = (await ask("GET", "/v1/traces?limit=100")).traces;
  if (known.traces.length)
    at("recent").replaceChildren(...known.traces.slice(0, 8).map(t => make("li", {}, make("button", { type: "button", class: "link", onclick: () => open(t) }, t.info.name || "a step"),
      make("span", { class: "note" }, `${countText(t.info.ops, "op", "ops")}, ${bytesText(t.info.peak_bytes)}`))));
}

async function open(t) {
  if (state.trace !== t.trace) Object.assign(state, { device: "", link: "", with: "", host: "" });
  state.trace = t.trace;
  known.info = t.info;
  known.needs = t.info.peak_bytes;
  at("first").hidden = true;
  at("work").hidden = at("acts").hidden = false;
  setText("about", "");
  setText("trace-name", t.info.name || "a step");
  setText("trace-facts", [countText(t.info.ops, "op", "ops"), countText(t.info.tensors, "tensor", "tensors"), t.info.batch > 1 ? `batch ${t.info.batch}` : "", t.info.compute_ns ? `${timeText(t.info.compute_ns)} of work` : ""].filter(Boolean).join(" · "));
  document.title = `${t.info.name || "a step"} - ferry`;
  at("device").options[0].textContent = t.info.device ? `${t.info.device}, as profiled` : "choose a card";
  clearAnswer("The first plan is on its way.");
  showCurve(null);
  setText("curve-empty", "The curve is on its way.");
  showTimeline(null);
  at("timeline-empty").textContent = "The step is on its way.";
  showQuestion();
  window.scrollTo(0, 0);
  listTraces().catch(() => {});
  await answer();
}

async function take(files) {
  if (!files.length) return;
  const names = [...files].map(f => f.name).join(" and "), signal = begin();
  if (at("first").hidden) say(`Reading ${names}.`); else setText("said", `Reading ${names}.`);
  try {
    const t = await upload(files, signal, { place: n => setText("said", n < 0 ? `Reading ${names}.` : `${names}: ${placeText(n).toLowerCase()}`) });
    setText("said", "");
    await open(t);
  } catch (e) {
    if (signal.aborted) return;
    setText("said", e.message);
    if (at("first").hidden) say(e.message, "wrong");
  }
}

function showZoo() {
  at("zoo").replaceChildren(...NETWORKS.map(([name, it]) => make("li", {}, make("button", { type: "button", "data-network": it.network,
    onclick: () => take([new File([JSON.stringify({ format: "ferry-network/1", ...it })], name)]) },
    make("strong", {}, name), make("span", {}, `batch ${it.batch} on ${it.device}`)))));
  at("recipes").replaceChildren(...RECIPES.flatMap(([name, text]) => { const b = make("button", { type: "button", class: "quiet small", "aria-label": `Copy: ${name}`, onclick: () => copyText(text, b) }, "Copy");
    return [make("div", { class: "recipe" }, make("div", { class: "head" }, make("span", {}, name), b), make("code", { tabindex: "0" }, text))]; }));
}

// ---- wiring ----

function wireQuestion() {
  at("budget").addEventListener("input", () => { state.b = `${at("budget").value}%`; showQuestion(); showOnCurve(bytesOf(), null); });
  at("budget").addEventListener("change", changed);
  at("budget-amount").addEventListener("change", () => { const amount = Number(at("budget-amount").value); if (amount > 0) { state.b = String(Math.round(amount * unitOf()[1])); changed(); } else showQuestion(); });
  curve.onBudget = (bytes, end) => { state.b = `${Math.round(1000 * bytes / known.needs) / 10}%`; showQuestion(); if (end) changed(); };
  at("device").addEventListener("change", () => { state.device = at("device").value; state.link = ""; changed(); });
  at("link").addEventListener("input", () => { state.link = String(+(rateOf(Number(at("link").value)) / 1e9).toPrecision(3)); showQuestion(); });
  at("link").addEventListener("change", changed);
  for (const r of document.getElementsByName("executor")) r.addEventListener("change", () => { state.for = r.value; changed(); });
  for (const [id, letter] of [["recompute", "r"], ["sections", "s"], ["order", "o"]])
    at(id).addEventListener("change", () => { state.allow = "rso".split("").filter(l => l === letter ? at(id).checked : state.allow.includes(l)).join(""); changed(); });
  at("effort").addEventListener("change", () => { state.effort = at("effort").value; changed(); });
  at("cancel").onclick = () => { begin(); say("Cancelled; what was found is shown.", "idle"); document.body.dataset.done = "yes"; };
  at("paste-copy").onclick = () => copyText(at("paste").textContent, at("paste-copy"));
}

function wireFiles() {
  at("file").addEventListener("change", e => { take([...e.target.files]); e.target.value = ""; });
  let depth = 0;
  const over = on => { depth = Math.max(0, depth + on); document.body.classList.toggle("over", depth > 0); };
  addEventListener("dragenter", e => { e.preventDefault(); over(1); });
  addEventListener("dragleave", () => over(-1));
  addEventListener("dragover", e => e.preventDefault());
  addEventListener("drop", e => { e.preventDefault(); depth = 0; over(0); take([...e.dataTransfer.files]); });
  at("other").onclick = showFirst;
  at("home").onclick = e => { e.preventDefault(); showFirst(); };
  at("share").onclick = () => copyText(location.href, at("share"));
  addEventListener("click", e => { if (!at("downloads").contains(e.target)) at("downloads").open = false; });
  addEventListener("keydown", e => { if (e.key === "Escape") at("downloads").open = false; });
}

// In a file there is nobody to ask: its one answer is shown, and the command for others.
function showFile(json) {
  document.body.classList.add("file");
  at("work").hidden = false;
  at("question").hidden = at("curve").hidden = at("tablist").hidden = at("busy").hidden = true;
  setText("about", `${json.name ?? "a step"} on ${json.device.name || "its card"}, one step in the steady state, budget ${bytesText(json.budget_bytes)}`);
  showAnswer(json.predicted, json.certificate, json.after.moves.tensor.length);
  showTimeline(json);
  at("acts").hidden = false;
  at("share").hidden = at("other").hidden = true;
  at("home").removeAttribute("href");
  at("downloads").querySelector("ul").replaceChildren(make("li", {}, make("button", { type: "button", class: "link", onclick: () => keep("timeline.json", at("data").textContent) }, "Timeline")));
  document.body.dataset.done = "yes";
}

async function startService() {
  readAddress();
  showZoo();
  wireQuestion();
  wireFiles();
  wireCurve();
  showTab = wireTabs(name => { state.tab = name; remember(); if (known.info) askTab(); });
  const told = await ask("GET", "/v1/devices");
  known.devices = told.devices;
  known.hosts = told.hosts ?? [];
  known.files = new Map((told.files ?? []).map(d => [d.name, d]));
  at("device").replaceChildren(new Option("", ""), ...told.devices.map(d => new Option(d, d)));
  if (!state.trace) { showFirst(); return; }
  const t = await ask("GET", `/v1/traces/${state.trace}`).catch(() => null);
  if (!t) { setText("said", "The step of this link is not on this server."); showFirst(); return; }
  if (state.tab !== "timeline" && tabParts[state.tab]) showTab(state.tab);
  await open(t);
}

readColours();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); drawTimeline(); drawCurve(); });
const narrow = matchMedia("(max-width: 999px)");
at("more").open = !narrow.matches;
narrow.addEventListener("change", () => { at("more").open = !narrow.matches; });
wireTimeline();
if (at("data")) showFile(JSON.parse(at("data").textContent));
else startService().catch(e => { at("first").hidden = false; setText("said", e.message); });
