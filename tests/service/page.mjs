// The page in a headless Chromium: upload, slide, read the numbers, compare them with the API's.
// page.mjs URL TRACE-FILE MODULES EXECUTION-TRACE KINETO
import { createRequire } from "node:module";
const [url, file, modules, ...run] = process.argv.slice (2);
const { chromium } = createRequire (modules + "/x.js") ("playwright-core");
let passed = 0, failed = 0;
const claim = (text, holds) => { if (holds) passed++; else { failed++; console.log ("does not hold:", text); } };

const browser = await chromium.launch ({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage ();
const complaints = [];
page.on ("console", m => m.type () === "error" && complaints.push (m.text ()));
const elsewhere = [];
page.on ("request", r => r.url ().startsWith (url) || r.url ().startsWith ("data:") || elsewhere.push (r.url ()));
page.on ("pageerror", e => complaints.push (e.message));
page.setDefaultTimeout (240000);
const done = () => page.waitForFunction (() => document.body.dataset.done === "yes");
const rows = id => page.$$eval (`#${id} tr`, all => all.map (r => [...r.cells].map (c => [c.textContent, c.title])));
const drawn = id => page.$eval (`${id}`, i => i.decode ().then (() => i.naturalWidth > 100));
const get = async path => (await fetch (url + path)).json ();

await page.goto (url + "/");
await page.setInputFiles ("#file", file);
await done ();
const trace = await page.$eval ("#trace", s => s.value);
claim ("the upload is chosen", /^[0-9a-f]{64}$/.test (trace));
const job = async (kind, test) => (await Promise.all ((await get (`/v1/${kind}?limit=100`)).jobs.filter (test).map (j => get (j.links.self))))[0];
const at = async percent => (await job ("schedules", j => j.request.budget_ppm === percent * 10000)).result;

let plan = await rows ("plan"), is = await at (70);
const peak = rows => rows.find (r => r[0][0] === "device")[1];
claim ("the device's bytes are the API's, to the byte", peak (plan)[1] === `${is.predicted.peak_bytes} bytes`);
claim ("the step is the API's", plan[0][1][0] === `${(is.predicted.step_ns / 1e6).toFixed (2)} ms`);
claim ("before and after are drawn", await drawn ("#before") && await drawn ("#after") && await drawn ("#curve img"));
const points = (await job ("curves", () => true)).result.points;
claim ("the curve's table has its points", (await rows ("curve")).length === points.length + 1);
claim ("the knee is marked", (await page.$$ ("#curve .marked")).length === 1);
const rivals = (await job ("comparisons", () => true)).result.rows;
claim ("every policy has a row", (await rows ("compare")).length === rivals.length + 1);

await page.$eval ("#budget", s => s.focus ());
for (let i = 0; i < 10; i++) await page.keyboard.press ("ArrowRight");
await page.waitForFunction (() => location.hash.includes ("budget=80"));
await done ();
plan = await rows ("plan");
is = await at (80);
claim ("the slider asks again, by keyboard", peak (plan)[1] === `${is.predicted.peak_bytes} bytes`);

const between = (await get ("/v1/schedules?limit=100")).jobs.filter (j => j.state === "done").length;
claim (`a slider on its way asks nothing: ${between} schedules`, between < 8);

const address = page.url ();
const other = await browser.newPage ();
other.setDefaultTimeout (240000);
await other.goto (address);
await other.waitForFunction (() => document.body.dataset.done === "yes");
claim ("the address brings the same view back", await other.$eval ("#plan table", t => t.textContent) === await page.$eval ("#plan table", t => t.textContent));
await page.selectOption ("#beside", trace);
await done ();
claim ("two jobs on one card have an answer", (await rows ("pack"))[0][0][0] === "answer");
await page.$eval ("#link", s => s.focus ());
await page.keyboard.press ("Home");
await page.waitForFunction (() => location.hash.includes ("link=1"));
await done ();
const cells = (await get ("/v1/what-if?limit=100")).jobs.find (j => (j.request.links_bytes_per_s ?? [])[0] === 1e9);
claim ("another link is another question, with a table", cells && (await rows ("linked")).length > 1);
const slide = to => page.$eval ("#budget", (s, to) => { s.value = to; s.dispatchEvent (new Event ("change")); }, to);
const state = () => job ("schedules", j => j.request.budget_ppm === 600000).then (j => j?.state);
await slide (60);
const until = async is => { for (let i = 0; i < 500 && await state () !== is; i++) await new Promise (r => setTimeout (r, 20)); };
await until ("running");
await slide (80);
await done ();
await until ("cancelled");
claim ("a question that is left is stopped: " + await state (), await state () === "cancelled");
const ground = () => page.$eval ("body", b => getComputedStyle (document.documentElement).getPropertyValue ("--accent"));
await page.emulateMedia ({ colorScheme: "light" });
const light = await ground ();
await page.emulateMedia ({ colorScheme: "dark" });
claim ("it is dark where the reader wants it dark", await ground () !== light);
claim ("the three lanes, the budget's line and the bound are in its pictures", await page.evaluate (async () => {
  const text = async id => (await fetch (document.querySelector (id).src)).text ();
  const [after, curve] = [await text ("#after"), await text ("#curve img")];
  return ["compute", "out", "in", "budget"].every (w => after.includes (w)) && curve.includes ("bound");
}));
claim ("it asks nobody else: " + elsewhere, elsewhere.length === 0);
claim ("nothing complained: " + complaints, complaints.length === 0);
const pair = await browser.newPage ();
pair.setDefaultTimeout (240000);
await pair.goto (url + "/");
await pair.setInputFiles ("#file", run);
await pair.waitForFunction (() => document.querySelector ("#trace").value);
const joined = await get (`/v1/traces/${await pair.$eval ("#trace", s => s.value)}`);
claim ("two files of one run are one upload", joined.trace !== trace && joined.info.plannable);
await pair.close ();
await browser.close ();
console.log (`${passed} passed, ${failed} failed`);
process.exit (failed ? 1 : 0);
