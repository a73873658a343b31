// Questions to the service, each a job: where it is in the queue, what it has found, its end.
async function ask(method, path, body, headers = {}) {
  const reply = await fetch(path, { method, body, headers });
  const told = reply.status === 204 ? {} : await reply.json();
  if (!reply.ok) throw new Error((told.errors?.length ? told.errors.map(e => `${e.pointer}: ${e.detail}`) : [told.detail]).join("; "));
  return told;
}

// Jobs that this page waits for: who leaves it waits no more.
const waitedFor = new Set();
addEventListener("pagehide", () => { for (const path of waitedFor) fetch(path, { method: "DELETE", keepalive: true }).catch(() => {}); });

const goesOn = it => it.state === "queued" || it.state === "running";

// The end of a job that goes on; hooks.place, hooks.found and hooks.part are told what happens meanwhile.
function followed(it, signal, hooks = {}) {
  return new Promise((done, failed) => {
    const events = new EventSource(it.links.events);
    let timer = 0;
    waitedFor.add(it.links.self);
    const end = (how, what) => { waitedFor.delete(it.links.self); events.close(); clearInterval(timer); how(what); };
    const look = async () => {
      const now = await ask("GET", it.links.self).catch(() => null);
      if (now && now.state === "queued") hooks.place?.(now.position ?? 0);
      else if (now) { clearInterval(timer); if (now.state === "running") hooks.place?.(-1); }
    };
    if (it.state === "queued") { hooks.place?.(it.position ?? 0); timer = setInterval(look, 1000); }
    events.addEventListener("incumbent", e => { const f = JSON.parse(e.data); hooks.found?.(f.step_ns, f.bound_ns); });
    events.addEventListener("progress", e => { const p = JSON.parse(e.data); hooks.part?.(p.done, p.all); });
    events.addEventListener("done", e => end(done, JSON.parse(e.data)));
    events.addEventListener("shutdown", () => end(failed, new Error("the service stops")));
    signal.addEventListener("abort", () => end(failed, signal.reason));
  });
}

// A job to its end. Nobody waits for the job of an older question, so it is stopped.
async function job(kind, request, signal, hooks = {}, again = true) {
  const headers = { "Content-Type": "application/json", "Prefer": `wait=${hooks.wait ?? 1}` };
  let it = await ask("POST", `/v1/${kind}`, JSON.stringify(request), headers);
  if (signal.aborted && goesOn(it)) await ask("DELETE", it.links.self);
  signal.throwIfAborted();
  try {
    if (goesOn(it)) it = await followed(it, signal, hooks);
  } catch (e) {
    if (signal.aborted) await ask("DELETE", it.links.self).catch(() => {});
    throw e;
  }
  if (it.state === "cancelled" && again) return job(kind, request, signal, hooks, false); // another page of this reader stopped it
  if (it.state !== "done") throw new Error(it.problem?.detail ?? it.state);
  if (!it.result) it.result = await ask("GET", it.links.result);
  return it;
}

// One profile, or the two files of one run as a form; a network of the zoo as its name.
async function upload(files, signal, hooks) {
  let t;
  const empty = [...files].find(f => !f.size);
  if (empty) throw new Error(`${empty.name}: this is an empty file, or a folder. If a profiler wrote it, let that finish`);
  if (files.length > 1) {
    const form = new FormData();
    for (const f of files) form.append("file", f);
    t = await ask("POST", "/v1/traces", form);
  } else t = await ask("POST", `/v1/traces?name=${encodeURIComponent(files[0].name.replace(/[^!-~]/g, "_"))}`, files[0], { "Content-Type": "application/octet-stream" });
  if (!goesOn(t)) return t;
  const it = await followed(t, signal, hooks);
  if (it.state !== "done") throw new Error(it.problem?.detail ?? it.state);
  return ask("GET", `/v1/traces/${it.result.trace}`);
}
