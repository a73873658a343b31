// The page in a headless Chromium: from the first view to the last tab, its numbers compared with the API's.
// page.mjs URL TRACE-FILE MODULES TRACE-LARGER-THAN-ITS-DEVICE PAGE-OF-MANY-OPS EXECUTION-TRACE KINETO
import { createRequire } from "node:module";
import { looks } from "./looks.mjs";
const [url, file, modules, large, many, ...run] = process.argv.slice (2);
const { chromium } = createRequire (modules + "/x.js") ("playwright-core");
let passed = 0, failed = 0;
const claim = (text, holds) => { if (holds) passed++; else { failed++; console.log ("does not hold:", text); } };

const browser = await chromium.launch ({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const complaints = [], elsewhere = [];
// A page of its own, whose console, faults, shifts and requests are watched.
async function opened (width, scheme, to = "/") {
  const context = await browser.newContext ({ viewport: { width, height: width < 500 ? 844 : 900 }, colorScheme: scheme, permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage ();
  page.setDefaultTimeout (240000);
  page.on ("console", m => m.type () === "error" && complaints.push (m.text ()));
  page.on ("pageerror", e => complaints.push (e.message));
  page.on ("request", r => r.url ().startsWith (url) || /^(data|blob|file):/.test (r.url ()) || elsewhere.push (r.url ()));
  await page.addInitScript (() => {
    window.shifts = 0;
    addEventListener ("securitypolicyviolation", e => console.error ("refused by the policy: " + e.violatedDirective + " " + e.blockedURI));
    new PerformanceObserver (l => l.getEntries ().forEach (e => { if (!e.hadRecentInput) window.shifts += e.value; })).observe ({ type: "layout-shift", buffered: true });
  });
  await page.goto (to.startsWith ("file:") ? to : url + to);
  return page;
}
const done = page => page.waitForFunction (() => document.body.dataset.done === "yes" && document.getElementById ("work").hidden === false);
const get = async path => (await fetch (url + path)).json ();
const jobs = async (kind, test) => Promise.all ((await get (`/v1/${kind}?limit=100`)).jobs.filter (test).map (j => get (j.links.self)));
const job = async (kind, test) => (await jobs (kind, test))[0];
const exact = (page, id) => page.$eval (id, e => e.title.match (/\d+/g).map (Number));
const painted = (page, id) => page.$eval (id, c => { const d = c.getContext ("2d").getImageData (0, 0, c.width, c.height).data, seen = new Set (); for (let i = 0; i < d.length; i += 4 * 97) if (d[i + 3]) seen.add (d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size; });
const clean = async (what, page) => { const found = await page.evaluate (looks); claim (`${what}: ${found.slice (0, 6).join ("; ")}`, found.length === 0); };
const address = page => page.evaluate (() => location.hash);

// ---- the first view ----
const page = await opened (1440, "light");
await page.waitForSelector ("#zoo button");
claim ("six networks can be tried", (await page.$$ ("#zoo button")).length === 6);
await page.click (".recipe button");
claim ("a command that makes a profile is copied", (await page.evaluate (() => navigator.clipboard.readText ())).includes ("ferry_torch.record"));
const sizes = await Promise.all (["/", "/ui/page.css", "/ui/page.js"].map (async p => (await (await fetch (url + p)).arrayBuffer ()).byteLength));
claim (`all of it is below 200 kB: ${sizes}`, sizes.reduce ((a, b) => a + b) < 200000);
for (const [width, scheme] of [[1440, "light"], [1440, "dark"], [390, "light"], [390, "dark"]]) {
  const first = await opened (width, scheme);
  await first.waitForSelector ("#zoo button");
  await clean (`the first view, ${width} ${scheme}`, first);
  await first.context ().close ();
}

// ---- a profile ----
await page.setInputFiles ("#file", file);
await page.waitForFunction (() => document.getElementById ("timeline-empty").hidden);
claim ("the first picture comes before the search has ended", await page.$eval ("body", b => b.dataset.done !== "yes"));
claim ("the search says that it goes on, and can be ended", await page.$eval ("#cancel", b => !b.hidden) && (await page.textContent ("#state")).length > 5);
claim ("a small step's budget is in MiB", (await page.textContent ("#budget-unit")) === "MiB" && Math.abs (Number (await page.inputValue ("#budget-amount")) * 2 ** 20 / (await exact (page, "#needs"))[0] - 0.7) < 0.01);
await page.evaluate (() => { window.shifts = 0; });
await done (page);
claim (`nothing moves while answers arrive: ${await page.evaluate (() => window.shifts)}`, await page.evaluate (() => window.shifts < 0.01));
const trace = await page.evaluate (() => new URLSearchParams (location.hash.slice (1)).get ("trace"));
claim ("the address has the trace", /^[0-9a-f]{64}$/.test (trace));
const best = async test => (await jobs ("schedules", j => j.state === "done" && j.request.trace === trace && test (j.request))).map (j => j.result).sort ((a, b) => a.predicted.step_ns - b.predicted.step_ns)[0];
let is = await best (r => r.budget_ppm === 700000);
claim ("the figures are the API's, to the byte and the nanosecond", (await exact (page, "#f-step"))[0] === is.predicted.step_ns && (await exact (page, "#f-memory"))[0] === is.predicted.peak_bytes &&
  (await exact (page, "#f-bytes")).join () === [is.predicted.d2h_bytes, is.predicted.h2d_bytes].join ());
claim ("curve, memory and lanes are drawn in many colours", await painted (page, "#curve-canvas") > 3 && await painted (page, "#base") > 6);
claim ("the command line asks the same", (await page.textContent ("#paste")).includes ("ferry solve") && (await page.textContent ("#paste")).includes ("-b 70%"));

// ---- looks, at both widths and schemes; from here on copies alone, sought for shortly ----
for (const id of ["#recompute", "#sections", "#order"]) await page.uncheck (id);
await page.selectOption ("#effort", "quick");
await page.waitForFunction (() => /allow=(&|$)/.test (location.hash) && location.hash.includes ("effort=quick"));
await done (page);
claim ("what is forbidden stays so in the address and in the command", (await page.textContent ("#paste")).includes ("--recompute off --sections off --order as-is"));
const link = page.url ().slice (url.length);
for (const [width, scheme] of [[1440, "light"], [1440, "dark"], [390, "light"], [390, "dark"]]) {
  const other = await opened (width, scheme, link);
  await done (other);
  if (width === 1440 && scheme === "light") claim ("the address brings the same view back", !await other.isChecked ("#order") && await other.textContent ("#words") === await page.textContent ("#words"));
  await clean (`the answer, ${width} ${scheme}`, other);
  if (width === 390) {
    claim (`memory's axis and the lanes have labels, ${scheme}`, await other.$eval ("#base", c => c.getContext ("2d").getImageData (0, 0, 40, c.height).data.filter ((_, i) => i % 4 === 3).some (a => a > 0)));
    await other.click ("#more summary");
    await clean (`all questions, ${width} ${scheme}`, other);
    await other.click ("#more summary");
  }
  await other.click ("#holders ol button");
  await clean (`the life of a tensor, ${width} ${scheme}`, other);
  await other.context ().close ();
}

// ---- the timeline ----
const said = () => page.$eval ("#over", e => e.getAttribute ("aria-valuetext"));
await page.focus ("#over");
await page.keyboard.press ("Home");
await page.waitForTimeout (100);
const firstOp = await said ();
await page.keyboard.press ("ArrowRight");
await page.waitForTimeout (100);
claim (`arrow keys go from op to op: ${firstOp}, then ${await said ()}`, firstOp !== await said () && firstOp.includes ("held"));
const picture = () => page.$eval ("#base", c => c.toDataURL ());
const whole = await picture ();
await page.keyboard.press ("+");
await page.waitForTimeout (200);
const zoomed = await picture ();
await page.keyboard.press ("d");
await page.waitForTimeout (200);
claim ("it zooms and pans by keys", whole !== zoomed && zoomed !== await picture ());
await page.keyboard.press ("0");
await page.waitForTimeout (200);
claim ("it fits again", await picture () === whole);
await page.keyboard.press ("Enter");
claim ("Enter chooses the largest tensor of the op, and its life is told", (await page.textContent ("#holders")).includes ("used by"));
await page.keyboard.press ("Escape");
const box = await (await page.$ ("#over")).boundingBox ();
const chosen = async () => (await page.textContent ("#holders")).includes ("Back to the list");
for (let y = 40; y < 140 && !await chosen (); y += 10) await page.mouse.click (box.x + 100, box.y + y);
claim ("a click on the stack chooses a tensor", await chosen ());
await page.focus ("#over");
await page.keyboard.press ("Escape");
await page.hover ("#holders ol button");
const lit = () => page.$eval ("#over", c => c.toDataURL ());
await page.waitForTimeout (200);
const withLight = await lit ();
await page.mouse.move (5, 5);
await page.waitForTimeout (200);
claim ("the list lights up where a tensor is", withLight !== await lit ());
await page.click ("#sides label:nth-child(2)");
await page.waitForTimeout (200);
claim ("before alone can be looked at", await picture () !== whole);
await page.click ("#sides label:nth-child(1)");

// ---- other questions ----
const before = (await jobs ("schedules", () => true)).length;
await page.focus ("#budget");
for (let i = 0; i < 10; i++) await page.keyboard.press ("ArrowRight");
await page.waitForFunction (() => location.hash.includes ("b=80%25"));
await page.waitForFunction (() => document.body.dataset.done === "");
await done (page);
is = await best (r => r.budget_ppm === 800000);
claim ("the slider asks again, by keyboard", (await exact (page, "#f-memory"))[0] === is.predicted.peak_bytes);
const asked = (await jobs ("schedules", () => true)).length - before;
claim (`a slider on its way asks nothing: ${asked} schedules`, asked <= 4);
const plot = await (await page.$ ("#curve-plot")).boundingBox ();
await page.mouse.move (plot.x + plot.width * 0.55, plot.y + 60);
await page.mouse.down ();
await page.mouse.move (plot.x + plot.width * 0.75, plot.y + 60, { steps: 4 });
await page.mouse.up ();
await page.waitForFunction (() => !location.hash.includes ("b=80%25") && document.body.dataset.done === "");
await done (page);
claim ("the budget is dragged on the curve", !(await page.textContent ("#paste")).includes ("-b 80%"));
await page.focus ("#link");
await page.keyboard.press ("Home");
await page.waitForFunction (() => location.hash.includes ("link=1"));
await done (page);
const slower = (await jobs ("schedules", j => j.request.device?.link?.h2d_bytes_per_s === 1e9)).filter (j => j.state === "done");
claim ("another link is another question, for all parts", slower.length === 2 && (await jobs ("curves", j => j.request.device?.link?.h2d_bytes_per_s === 1e9)).length === 2);

// ---- tabs ----
await page.goto (url + link.replace ("b=70%25", "b=75%25"));
await page.reload ();
await done (page);
await page.click ("#tab-policies");
await page.waitForSelector ("#policies tbody tr");
const rivals = (await job ("comparisons", () => true)).result.rows, rows = await page.$$eval ("#policies tbody tr", all => all.map (r => r.className.includes ("out")));
claim ("every policy has a row, and what does not fit is last", rows.length === rivals.length && rows.indexOf (true) > 0 && !rows.slice (rows.indexOf (true)).includes (false));
await clean ("policies", page);
await page.keyboard.press ("ArrowRight");
await page.waitForSelector ("#cards tbody tr");
claim ("every card has a row", (await page.$$ ("#cards tbody tr")).length === (await get ("/v1/devices")).devices.length);
await clean ("cards", page);
await page.keyboard.press ("ArrowRight");
await page.waitForSelector ("#ranks tbody tr");
const told = (await get ("/v1/devices")).hosts, hostNow = told.find (h => h.name === "workstation-2x5090");
claim ("hosts can be chosen", (await page.$$ ("#host option")).length === told.length);
await page.focus ("#host");
await page.selectOption ("#host", hostNow.name);
await page.waitForFunction (() => document.querySelectorAll ("#ranks tbody tr").length === 2);
const ranked = (await job ("what-if", j => j.request.host === hostNow.name)).result.rows;
claim ("ranks of a host are planned together, beside the plan for one card", (await page.textContent ("#ranks tbody tr:last-child")).startsWith ("2 ranks") && ranked.every (r => r.step_ns <= r.alone_step_ns));
await page.waitForFunction (() => document.querySelector ("#ranks-lanes img")?.complete);
const drawn = await job ("schedules", j => j.request.host === hostNow.name && j.request.ranks === 2), lanes = await (await fetch (url + drawn.links.result + "?format=svg")).text ();
claim ("the lanes of all ranks and the load of their link are drawn", await page.$eval ("#ranks-lanes img", i => i.naturalWidth > 600) && ["0 compute", "1 compute", "1 copy in", "Load of "].every (t => lanes.includes (t)));
claim ("who chose a host by keyboard can go on", await page.evaluate (() => document.activeElement.id) === "host");
await page.click ("#ranks tbody tr:first-child button");
await page.waitForFunction (() => document.querySelector ("#ranks-lanes h3")?.textContent.includes ("1 rank:"));
claim ("the host is in the address", (await address (page)).includes ("host=workstation-2x5090"));
await clean ("ranks", page);
await page.click ("#tab-jobs");
await page.waitForSelector ("#with");
await page.selectOption ("#with", trace);
await page.waitForSelector ("#pack-answer table");
claim ("two jobs on one card have an answer: " + await page.textContent ("#pack-answer p"), (await page.$$ ("#pack-answer tbody tr")).length === 2);
await clean ("jobs", page);
const hrefs = await page.$$eval ("#downloads a", all => all.map (a => [a.textContent, a.href]));
const kept = await Promise.all (hrefs.map (async ([, href]) => (await fetch (href)).status));
claim (`plan, Chrome trace, timeline and CSV are to be had: ${hrefs.map (h => h[0])}`, hrefs.length >= 7 && kept.every (s => s === 200));

// ---- what is left is stopped ----
for (const id of ["#recompute", "#sections", "#order"]) await page.check (id);
await page.selectOption ("#effort", "normal");
const slide = to => page.$eval ("#budget", (s, to) => { s.value = to; s.dispatchEvent (new Event ("input")); s.dispatchEvent (new Event ("change")); }, to);
const states = async ppm => (await jobs ("schedules", j => j.request.budget_ppm === ppm && !j.request.limit_ticks)).map (j => j.state);
const until = async (ppm, wanted) => { for (let i = 0; i < 1000 && !(await states (ppm)).includes (wanted); i++) await new Promise (r => setTimeout (r, 20)); };
await slide (62);
await until (620000, "running");
await slide (81);
await until (620000, "cancelled");
claim ("a question that is left is stopped: " + await states (620000), (await states (620000)).includes ("cancelled"));
await slide (63);
await until (630000, "running");
await page.click ("#cancel");
await until (630000, "cancelled");
claim ("Cancel stops the search", (await states (630000)).includes ("cancelled") && (await page.textContent ("#state")).startsWith ("Cancelled"));
// ---- the queue ----
const inWay = await Promise.all ([2, 3, 4, 5].map (seed => fetch (url + "/v1/schedules", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify ({ trace, budget_ppm: 650000, effort: "thorough", seed }) }).then (r => r.json ())));
await slide (77);
const waits = await page.waitForFunction (() => /queue/.test (document.getElementById ("state").textContent)).then (() => page.textContent ("#state"));
claim ("its place in the queue is told: " + waits, /(next|\dth|\drd|\dnd|\dst) in the queue/i.test (waits));
for (const j of inWay) await fetch (url + j.links.self, { method: "DELETE" });
await slide (5);
await page.waitForFunction (() => document.getElementById ("answer").dataset.fits === "no");
claim ("where nothing fits, the least is named and can be asked for", (await page.$$ ("#words button")).length === 1);
await page.context ().close ();

// ---- other ways in ----
const refused = await opened (390, "dark");
for (const [name, text, said] of [["none.json", "", "empty"], ["cut.json.gz", "\x1f\x8b\x08\0\0\0\0\0\0\x03", "the gzip data"], ["p.json", '{"format":"ferry-plan/1"}', "own files"]]) {
  await refused.setInputFiles ("#file", { name, mimeType: "application/octet-stream", buffer: Buffer.from (text, "latin1") });
  await refused.waitForFunction (name => document.getElementById ("said").textContent.startsWith (`${name}: `), name);
  claim (`what cannot be read is told by its name: ${await refused.textContent ("#said")}`, (await refused.textContent ("#said")).includes (said));
}
await refused.setInputFiles ("#file", { name: "held.csv", mimeType: "text/csv", buffer: Buffer.from ("id,lower,upper,size\n0,0,4,1048576\n1,1,3,2097152\n") });
await refused.waitForFunction (() => document.body.dataset.done === "yes" && !document.getElementById ("work").hidden);
claim ("who can never have a plan is not sent for a card: " + await refused.textContent ("#words"), (await refused.textContent ("#words")).includes ("cannot be planned") && !(await refused.textContent ("#words")).includes ("card"));
await clean ("no plan", refused);
await refused.context ().close ();
const zoo = await opened (1440, "dark");
await zoo.click ("[data-network=alexnet]");
await zoo.waitForFunction (() => document.getElementById ("timeline-empty").hidden);
claim ("a network is planned at a click", (await zoo.textContent ("#trace-name")).startsWith ("alexnet"));
await zoo.context ().close ();
const pair = await opened (1440, "light");
await pair.setInputFiles ("#file", run);
await pair.waitForFunction (() => document.body.dataset.done === "yes" && !document.getElementById ("work").hidden);
const joined = await get (`/v1/traces/${await pair.evaluate (() => new URLSearchParams (location.hash.slice (1)).get ("trace"))}`);
claim ("two files of one run are one upload", joined.trace !== trace && joined.info.plannable);
claim ("a step without a card says so: " + await pair.textContent ("#words"), (await pair.textContent ("#words")).includes ("Which card") && (await pair.textContent ("#curve-empty")).includes ("no curve") && await pair.$eval ("#busy", b => b.dataset.state === "wrong"));
await pair.selectOption ("#device", "v100");
await pair.waitForFunction (() => document.body.dataset.done === "");
await done (pair);
claim ("a card is chosen, and what is too little for it is told", await pair.$eval ("#answer", a => a.dataset.fits === "no") && await pair.$eval ("#curve-empty", e => e.hidden));
await clean ("nothing fits", pair);
await pair.click ("#words button");
await pair.waitForFunction (() => document.body.dataset.done === "");
await done (pair);
claim ("what it asks for instead has a plan", await pair.$eval ("#timeline-empty", e => e.hidden) && await painted (pair, "#base") > 3);
await pair.context ().close ();
const beyond = await opened (1440, "light");
await beyond.setInputFiles ("#file", large);
await beyond.waitForFunction (() => document.getElementById ("timeline-empty").hidden || document.getElementById ("answer").dataset.fits === "no");
claim ("a step that is larger than its card has a plan, and its step before", await beyond.$eval ("#timeline-empty", e => e.hidden));
await beyond.context ().close ();
const slow = await opened (390, "light");
const it = (await get ("/v1/imports?limit=100")).jobs.find (j => j.state === "done");
await slow.route (/\/v1\/traces(\?|$)/, r => r.request ().method () === "POST" ? r.fulfill ({ status: 202, json: { ...it, state: "running" } }) : r.continue ());
await slow.setInputFiles ("#file", file);
await slow.waitForFunction (() => location.hash.includes ("trace="));
claim ("a long import is waited for", new RegExp ((await get (it.links.self)).result.trace).test (await slow.evaluate (() => location.hash)));
await slow.context ().close ();

// ---- one file, many ops ----
const one = await opened (1440, "light", `file://${many}`);
await one.waitForFunction (() => document.body.dataset.done === "yes");
claim ("the file has its step, and asks nobody", await painted (one, "#base") > 3 && (await one.textContent ("#words")).includes ("a step takes"));
await clean ("the file", one);
await one.focus ("#over");
const frames = await one.evaluate (async () => {
  const over = document.getElementById ("over"), took = [];
  for (let i = 0; i < 24; i++) {
    over.dispatchEvent (new KeyboardEvent ("keydown", { key: i % 3 === 2 ? "d" : i < 12 ? "+" : "-", bubbles: true }));
    const from = performance.now ();
    await new Promise (r => requestAnimationFrame (() => setTimeout (r)));
    took.push (performance.now () - from);
  }
  return took.sort ((a, b) => a - b)[12];
});
claim (`100,000 ops stay smooth: ${frames.toFixed (1)} ms a frame`, frames < 100);
await one.context ().close ();

claim ("it asks nobody else: " + elsewhere, elsewhere.length === 0);
const unexpected = complaints.filter (c => !/status of (422|409|410)/.test (c)); // refusals of a question, which the page shows
claim ("nothing complained: " + unexpected, unexpected.length === 0);
await browser.close ();
console.log (`${passed} passed, ${failed} failed`);
process.exit (failed ? 1 : 0);
