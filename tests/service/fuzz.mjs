// SPDX-License-Identifier: GPL-3.0-or-later
// Requests that fast-check makes from the OpenAPI text, valid and mutated; ajv holds the replies against
// it. Never a 5xx, never a hang, no status that is not described.
// fuzz.mjs URL DAEMON-PID TRACE-ID REQUESTS MODULES
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
const [url, pid, trace, requests, modules] = process.argv.slice (2);
const need = createRequire (modules + "/x.js");
const fc = need ("fast-check"), Ajv = need ("ajv/dist/2020").default;

const doc = await (await fetch (url + "/openapi.json")).json ();
const ajv = new Ajv ({ strict: false, validateSchema: false, validateFormats: false });
ajv.addSchema (doc, "api");
const inside = pointer => ajv.compile ({ $ref: "api#" + pointer });
const escaped = s => encodeURIComponent (s.replace (/~/g, "~0").replace (/\//g, "~1"));
const problem = inside ("/components/schemas/problem");

const least = Number.MIN_SAFE_INTEGER, most = Number.MAX_SAFE_INTEGER;
const made = schema => {
  if (schema.$ref) return made (schema.$ref.split ("/").slice (1).reduce ((at, k) => at[k], doc));
  if (schema.oneOf) return fc.oneof (...schema.oneOf.map (made));
  if (schema.enum) return fc.constantFrom (...schema.enum);
  switch (schema.type) {
    case "boolean": return fc.boolean ();
    case "integer": {
      const min = Math.max (schema.minimum ?? 0, least), max = Math.min (schema.maximum ?? most, most);
      return fc.oneof (fc.constantFrom (min, max), fc.maxSafeInteger ().map (n => min + Math.abs (n) % (max - min + 1)));
    }
    case "array": return fc.array (made (schema.items), { minLength: schema.minItems ?? 0, maxLength: 3 });
    case "object":
      if (!schema.properties) return fc.object ({ maxDepth: 1 });
      return fc.record (Object.fromEntries (Object.entries (schema.properties).map (([k, s]) => [k, made (s)])), { requiredKeys: schema.required ?? [] });
    case "string":
      if (schema.pattern === "^[0-9a-f]{64}$") return fc.oneof ({ weight: 4, arbitrary: fc.constant (trace) }, fc.stringMatching (/^[0-9a-f]{64}$/));
      return schema.pattern ? fc.stringMatching (new RegExp (schema.pattern)) : fc.string ();
    default: return fc.jsonValue ();
  }
};
const mutated = whole => fc.tuple (whole, fc.nat (), fc.nat (3), fc.jsonValue (), fc.string ()).map (([value, n, how, odd, name]) => {
  const keys = Object.keys (value ?? {}), key = keys[n % (keys.length || 1)];
  if (how === 0 || !keys.length) return odd;
  const out = { ...value };
  if (how === 1) delete out[key];
  else out[how === 2 ? key : name] = odd;
  return out;
});

const operations = Object.entries (doc.paths).flatMap (([path, methods]) => Object.entries (methods).map (([method, op]) => ({ path, method, op })))
  .filter (o => !o.path.endsWith ("/events"));
for (const o of operations)
  o.schemas = Object.fromEntries (Object.entries (o.op.responses).filter (([, r]) => r.content?.["application/json"]?.schema)
    .map (([status]) => [status, inside (`/paths/${escaped (o.path)}/${o.method}/responses/${status}/content/application~1json/schema`)]));
const bodies = operations.map (o => {
  const json = o.op.requestBody?.content["application/json"]?.schema;
  if (!json) return o.op.requestBody ? fc.uint8Array ({ maxLength: 2000 }).map (b => ({ raw: b })) : fc.constant ({});
  const valid = json.properties || json.$ref ? made (json).map (v => ({ ...v, validate_only: true })) : fc.object ();
  return fc.oneof (valid.map (value => ({ value, valid: Boolean (json.$ref) })), mutated (valid).map (value => ({ value })),
    fc.tuple (valid, fc.nat (), fc.nat (255)).map (([v, at, c]) => {
      const text = Buffer.from (JSON.stringify (v));
      text[at % text.length] = c;
      return { raw: text };
    }));
});
const asked = fc.nat (operations.length - 1).chain (i => fc.record ({
  i: fc.constant (i), body: bodies[i],
  parts: fc.array (fc.oneof (fc.constant (trace), fc.constantFrom ("plan", "..", "%00", "%ff", "-"), fc.stringMatching (/^[\x21-\x7e]{1,80}$/).map (encodeURIComponent)), { minLength: 3, maxLength: 3 }),
  query: fc.option (fc.tuple (fc.constantFrom ("limit", "after", "fingerprint", "format", "gpu_memory_bytes"), fc.string ()).map (([k, v]) => `?${k}=${encodeURIComponent (v)}`), { nil: "" }),
  headers: fc.constantFrom ({}, { Prefer: "wait=0" }, { Accept: "text/csv" }, { "If-None-Match": "*" }, { "Idempotency-Key": "x" }, { "Content-Encoding": "gzip" }),
}));

const memory = () => Number (readFileSync (`/proc/${pid}/statm`, "utf8").split (" ")[1]) * 4096;
const general = new Set ([400, 401, 403, 404, 405, 406, 413, 415, 421, 422, 429, 503]);
const seen = {};
let settled = 0, count = 0;
const property = fc.asyncProperty (asked, async ({ i, body, parts, query, headers }) => {
  const { path, method, op, schemas } = operations[i];
  let k = 0;
  const target = url + path.replace (/\{\w+\}/g, () => parts[k++]) + query;
  const json = body.value !== undefined;
  const r = await fetch (target, { method: method.toUpperCase (), headers: { ...headers, ...(json ? { "Content-Type": "application/json" } : {}) },
    body: json ? JSON.stringify (body.value) : body.raw, signal: AbortSignal.timeout (30000), redirect: "manual" });
  const text = await r.text (), type = r.headers.get ("content-type") ?? "";
  seen[r.status] = (seen[r.status] ?? 0) + 1;
  if (++count === Math.floor (requests / 3)) settled = memory ();
  const where = `${method} ${target} ${JSON.stringify (headers)} ${JSON.stringify (body)}: ${r.status} ${text.slice (0, 300)}`;
  if (r.status >= 500 && r.status !== 503) throw new Error ("a 5xx: " + where);
  if (!op.responses[r.status] && !general.has (r.status) && r.status !== 304 && r.status !== 200) throw new Error ("not described: " + where);
  if (r.status >= 400 && !(type === "application/problem+json" && problem (JSON.parse (text)))) throw new Error ("no problem: " + where);
  if (body.valid && r.status === 400 && !query && !headers["Content-Encoding"]) throw new Error ("valid, and called malformed: " + where);
  if (type === "application/json" && schemas[r.status] && !query && !schemas[r.status] (JSON.parse (text)))
    throw new Error ("not of its schema: " + where + JSON.stringify (schemas[r.status].errors));
});
let failed = 0;
const claim = (says, holds) => { if (!holds) { failed++; console.log ("does not hold:", says); } };
const outcome = await fc.check (property, { numRuns: Number (requests), seed: 1, endOnFailure: true, interruptAfterTimeLimit: 240000 });
claim ("replies are as described: " + (outcome.errorInstance?.message ?? outcome.error ?? ""), !outcome.failed || outcome.interrupted);
claim ("good and bad were both tried: " + JSON.stringify (seen), seen[200] && seen[400] && seen[404] && seen[422]);
claim ("the daemon lives", (await fetch (url + "/readyz")).status === 200);
claim (`its memory does not grow: ${settled}, ${memory ()}`, memory () < settled * 1.5 + (16 << 20));
console.log (`${count} requests: ${JSON.stringify (seen)}`);
console.log (`${4 - failed} passed, ${failed} failed`);
process.exit (failed ? 1 : 0);
