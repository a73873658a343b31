# SPDX-License-Identifier: GPL-3.0-or-later
# The API of ferry serve, as a client meets it.
import csv, gzip, hashlib, io, os, re, resource, sqlite3, sys, time
from common import *
sys.dont_write_bytecode = True
sys.path.append (os.path.join (os.environ["srcdir"], "tests/second"))
import made

work = scratch ()
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
ferry ("zoo", "-q", *SMALL, "--optimizer", "adam", "-o", "b.json")
trace_bytes = open ("a.json", "rb").read ()
budget = int (json.loads (ferry ("info", "a.json", "--json").stdout)["peak_bytes"] * 0.7)
open ("cards.json", "w").write ("{}")
s = Server (work, "--workers", "2", "--inventory", "cards.json", "--max-body", "8MiB", "--max-decoded", "64MiB", "--worker-memory", "2GiB")
trace = s.upload ("a.json")
other = s.upload ("b.json")
asked = {"trace": trace, "budget_bytes": budget, "limit_ticks": 20000}
short = ("--limit", "20000")

@claim ("a trace is named by its bytes, and sent twice it is the same")
def _ ():
  r = s.ask ("POST", "/v1/traces", trace_bytes)
  assert r.status == 200 and r.json ()["trace"] == trace, r.body
  r = s.ask ("GET", f"/v1/traces/{trace}/content")
  assert hashlib.sha256 (r.body).hexdigest () == trace
  assert r.headers["ETag"] == f'"{trace}"'
  assert json.loads (r.body)["format"] == "ferry-trace/1"

@claim ("a list goes on with what it was asked for")
def _ ():
  for path in ("a.json", "b.json"): s.upload (path, query="?fingerprint=both")
  found, path = [], "/v1/traces?limit=1&fingerprint=both"
  while path:
    r = s.ask ("GET", path)
    found += [(t["trace"], t["fingerprint"]) for t in r.json ()["traces"]]
    path = re.match ("<(.*)>", r.headers["Link"])[1] if "Link" in r.headers else None
  assert found == sorted ([(trace, "both"), (other, "both")]), found
  for print in ("", "a/b", "-a", "x" * 65): problem (s.ask ("GET", "/v1/traces?fingerprint=" + print), 422)
  for kind in ("traces", "schedules"):
    for limit in ("abc", "", "-1", "1x"): problem (s.ask ("GET", f"/v1/{kind}?limit={limit}"), 422)
    assert s.ask ("GET", f"/v1/{kind}?limit=1000").status == 200

@claim ("gzip and zstd are undone; what is known by its digest need not be sent")
def _ ():
  packed = gzip.compress (trace_bytes, mtime=0)
  r = s.ask ("POST", "/v1/traces", packed, {"Content-Encoding": "gzip"})
  assert r.status == 201 and r.json ()["trace"] == trace
  r = s.ask ("GET", "/v1/uploads/" + hashlib.sha256 (packed).hexdigest ())
  assert r.status == 200 and r.json ()["trace"] == trace
  problem (s.ask ("GET", "/v1/uploads/" + "0" * 64), 404)
  problem (s.ask ("POST", "/v1/traces", b"x", {"Content-Encoding": "br"}), 415)

@claim ("the plan is, to the byte, that of the command")
def _ ():
  job = s.job ("schedules", asked)
  assert job["state"] == "done" and job["verified"]["predicted"]["step_ns"] == job["result"]["predicted"]["step_ns"]
  p = ferry ("solve", "a.json", "--budget", f"{budget}B", "-o", "local.json", *short, "--json", status=None)
  assert p.returncode == job["exit"]
  r = s.ask ("GET", job["links"]["plan"])
  assert r.body == open ("local.json", "rb").read ()
  assert s.ask ("GET", job["links"]["result"]).body.decode () == p.stdout

@claim ("the same question is the same job, whatever the order of its members")
def _ ():
  first = s.job ("schedules", asked)
  again = s.job ("schedules", dict (reversed (asked.items ())))
  assert first["id"] == again["id"] and again["attempt"] == first["attempt"] == 1

@claim ("a result has an ETag, is not sent to who has it, and comes from memory the second time")
def _ ():
  path = s.job ("schedules", asked)["links"]["result"]
  r = s.ask ("GET", path)
  assert "immutable" in r.headers["Cache-Control"]
  assert s.ask ("GET", path, None, {"If-None-Match": r.headers["ETag"]}).status == 304
  def hits ():
    found = re.search ('ferry_cache_hits_total{kind="schedules"} (\\d+)', s.ask ("GET", "/metrics").body.decode ())
    return int (found[1]) if found else 0
  before = hits ()
  assert s.ask ("GET", path).body == r.body
  assert hits () == before + 1
  head = s.ask ("HEAD", path)
  assert head.status == 200 and head.body == b""
  problem (s.ask ("GET", path, None, {"Accept": "image/png"}), 406)

@claim ("no plan fits: the job is done, the answer says why")
def _ ():
  job = s.job ("schedules", {"trace": trace, "budget_bytes": 1 << 20})
  assert job["state"] == "done" and job["exit"] == 1 and job["result"]["fits"] is False
  assert job["result"]["floor_bytes"] > 1 << 20
  assert "plan" not in job["links"]
  problem (s.ask ("GET", job["links"]["self"] + "/files/plan"), 404)

@claim ("a job that failed has its log, and is no fault of the service; links are of what there is")
def _ ():
  job = s.job ("schedules", {"trace": trace, "budget_bytes": budget, "policy": "lru", "policy_options": "no=such"})
  path = job["links"]["self"]
  assert job["state"] == "failed" and set (job["links"]) == {"events", "log", "self"}, job
  r = s.ask ("GET", job["links"]["log"])
  assert r.status == 200 and job["problem"]["detail"] in r.body.decode () and r.headers["Content-Type"].startswith ("text/plain"), r.body
  for rest in ("/result", "/files/plan", "/files/result"): problem (s.ask ("GET", path + rest), 409, "failed")
  job = s.job ("schedules", asked)
  for name, link in job["links"].items (): assert s.ask ("GET", link).status == 200, name
  job = s.job ("max-batch", {"network": "alexnet", "device": "v100", "memory_bytes": 1 << 30, "image": 64, "width_divisor": 4,
                             "classes": 10, "limit_ticks": 100, "most": 64})
  for name, link in job["links"].items (): assert s.ask ("GET", link).status == 200, name

@claim ("curves, least memory, comparisons, what-if and packs are what the commands print")
def _ ():
  for kind, body, line in (
      ("curves", {"trace": trace, "points": 3, "limit_ticks": 1000}, "curve a.json --points 3 --limit 1000"),
      ("min-memory", {"trace": trace, "slowdown_ppm": 50000, "limit_ticks": 1000, "sections": "off"}, "min-memory a.json --slowdown 5% --limit 1000 --sections off"),
      ("what-if", {"trace": trace, "memory": ["75%"], "batches": [1, 2], "limit_ticks": 1}, "whatif a.json --budget 75% --batch x1,x2 --limit 1"),
      ("what-if", {"trace": trace, "memory": ["75%"], "devices": ["h200"], "scale_ppm": 125000, "limit_ticks": 1},
       "whatif a.json --budget 75% --device h200 --scale 12.5% --limit 1"),
      ("what-if", {"trace": trace, "memory": ["75%"], "host": "workstation-2x5090", "ranks": [1, 2], "limit_ticks": 1},
       "whatif a.json --budget 75% --host workstation-2x5090 --ranks 1,2 --limit 1"),
      ("comparisons", {"trace": trace, "budget_bytes": budget, "policies": ["lru", "ferry"], "limit_ticks": 1000},
       f"compare a.json --budget {budget}B --policies lru,ferry --limit 1000"),
      ("packs", {"jobs": [{"name": "b", "trace": other}, {"name": "a", "trace": trace}], "points": 3, "limit_ticks": 1000, "sections": "off"},
       "pack b.json a.json --points 3 --limit 1000 --sections off"),
      ("max-batch", {"network": "alexnet", "device": "v100", "memory_bytes": 1 << 30, "image": 64, "width_divisor": 4,
                     "classes": 10, "limit_ticks": 100, "most": 64},
       "max-batch alexnet --device v100 --budget 1GiB --image 64 --width-divisor 4 --classes 10 --limit 100 --most 64")):
    job = s.job (kind, body)
    assert job["state"] == "done", (kind, job)
    local = json.loads (ferry (*line.split (), "--json", status=None).stdout)
    assert job["result"] == local, kind

@claim ("jobs of a pack have their names, whatever these are, and their traces stay as they are")
def _ ():
  names = ["result", "verified", "a.trace", "a", "b.json", "x.gz"]
  job = s.job ("packs", {"jobs": [{"name": n, "trace": trace} for n in names], "points": 3, "limit_ticks": 100, "swap_only": True})
  assert job["state"] == "done" and sorted (j["name"] for j in job["result"]["jobs"]) == sorted (names), job
  for n in names: assert s.ask ("GET", f"{job['links']['self']}/files/plan.{n}").status == 200, n
  assert s.ask ("GET", f"/v1/traces/{trace}/content").body == open (f"state/blobs/{trace}", "rb").read () != b""

@claim ("lists may be as long as openapi.json says")
def _ ():
  for kind, body in (
      ("packs", {"jobs": [{"name": f"j{i}", "trace": trace} for i in range (10)], "devices": ["v100"] * 8, "points": 3, "limit_ticks": 1, "swap_only": True}),
      ("what-if", {"trace": trace, "batches": [*range (1, 33)], "memory": ["100%"], "limit_ticks": 1, "swap_only": True}),
      ("what-if", {"trace": trace, "devices": ["v100"] * 32, "memory": ["100%"], "limit_ticks": 1, "swap_only": True})):
    job = s.job (kind, body)
    assert job["state"] == "done", job["problem"]

@claim ("a device may be given whole")
def _ ():
  device = json.load (open (os.environ["FERRY_DATADIR"] + "/devices/v100.json"))
  device["name"] = "mine"
  job = s.job ("schedules", {**asked, "device": device, "limit_ticks": 1000})
  assert job["state"] == "done" and job["result"]["fits"]

@claim ("devices and hosts that a request may name are those of the commands")
def _ ():
  told = s.ask ("GET", "/v1/devices").json ()
  names = told["devices"]
  assert [d["name"] for d in told["files"]] == names and all (d["format"] == "ferry-device/1" for d in told["files"]), told["files"]
  assert names == [d["name"] for d in json.loads (ferry ("devices", "--json").stdout)] and "v100" in names, names
  assert told["hosts"] == json.loads (ferry ("hosts", "--json").stdout) and any (h["name"] == "hgx-h100" for h in told["hosts"]), told["hosts"]

@claim ("an upload may name a network of the zoo, and is then the trace of that command")
def _ ():
  network = {"format": "ferry-network/1", "network": "alexnet", "batch": 2, "image": 64, "classes": 10, "width_divisor": 4, "device": "v100"}
  made = s.ask ("POST", "/v1/traces", json.dumps (network).encode ()).json ()
  ferry ("zoo", "-q", "alexnet", "--batch", "2", "--image", "64", "--classes", "10", "--width-divisor", "4", "-d", "v100", "-o", "named.json")
  assert made["trace"] == s.upload ("named.json") and made["info"]["device"] == "v100", made
  for odd, says in (({"network": "alexnot"}, "alexnot"), ({"device": "/etc/passwd"}, "no name of a device"), ({"batch": 0}, "batch"), ({"more": 1}, "more")):
    detail = problem (s.ask ("POST", "/v1/traces", json.dumps ({**network, **odd}).encode ()), 422, "import-failed")["detail"]
    assert says in detail, (odd, detail)

@claim ("every fault of a request is named with its place")
def _ ():
  p = problem (s.ask ("POST", "/v1/schedules", {"trace": trace, "budget_bytes": -1, "recompute": "zip"}), 422, "invalid")
  assert {e["pointer"] for e in p["errors"]} == {"/budget_bytes", "/recompute"}, p
  p = problem (s.ask ("POST", "/v1/schedules", {"trace": trace, "budget": 1}), 422)
  assert "/budget" in p["errors"][0]["pointer"] or "budget" in p["errors"][0]["detail"]
  solve, pack = {"trace": trace}, {"jobs": [{"name": "a", "trace": trace}, {"name": "b", "trace": other}]}
  batch, cells = {"network": "alexnet", "device": "v100", "memory_bytes": 1 << 30}, {"trace": trace, "memory": ["75%"]}
  for kind, body, pointers in (
      ("schedules", {**solve, "order": "as-is updates"}, ["/order"]), ("schedules", {**solve, "order": ""}, ["/order"]),
      ("schedules", {**solve, "policy": "nobody"}, ["/policy"]), ("schedules", {**solve, "policy": "list"}, ["/policy"]),
      ("schedules", {**solve, "device": "nothing"}, ["/device"]), ("max-batch", {**batch, "device": "nothing"}, ["/device"]),
      ("schedules", {**solve, "effort": "quick", "limit_ticks": 5}, ["/limit_ticks"]),
      ("schedules", {**solve, "swap_only": True, "recompute": "off", "order": "any"}, ["/order", "/recompute"]),
      ("schedules", {**solve, "for": "run", "recompute": "auto", "placement": "arena"}, ["/recompute", "/placement"]),
      ("schedules", {**solve, "for": "torch", "order": "any", "proof": True}, ["/order", "/proof"]),
      ("schedules", {**solve, "policy": "lru", "limit_ticks": 5, "seed": 2}, ["/limit_ticks", "/seed"]),
      ("max-batch", {**batch, "network": "nonet"}, ["/network"]), ("max-batch", {"network": "alexnet"}, ["/device"]),
      *(("max-batch", {**batch, m: most + 1}, ["/" + m]) for m, most in (("classes", 1 << 24), ("depth_divisor", 1 << 24), ("fine", 1 << 20), ("most", 1 << 20))),
      ("comparisons", {**solve, "policies": ["lru", "nobody"]}, ["/policies/1"]),
      ("what-if", {**cells, "from": "v100", "scale_ppm": 500000}, ["/scale_ppm"]), ("what-if", {**cells, "scale_ppm": 999}, ["/scale_ppm"]),
      ("what-if", {**cells, "host": "nothing"}, ["/host"]), ("what-if", {**cells, "host": "hgx-h100", "ranks": [8, 9]}, ["/ranks"]), ("what-if", {**cells, "ranks": [2]}, ["/ranks"]),
      ("what-if", {**cells, "host": "hgx-h100", "devices": ["v100"], "host_bytes": 1 << 30}, ["/devices", "/host_bytes"]), ("what-if", {**cells, "devices": ["v100", "nothing"]}, ["/devices/1"]), ("what-if", {**cells, "batches": [65537]}, ["/batches/0"]),
      *(("what-if", {**cells, "memory": ["50%", m]}, ["/memory/1"]) for m in ("1.2.3%", "...%", "%", ".5%", "5.%", "0%", "0.0%", "12345%", "5%5", "5")),
      ("curves", {"trace": trace, "for": "run", "sections": "auto"}, ["/sections"]),
      ("curves", {**solve, "points": 1}, ["/points"]), ("curves", {**solve, "points": 513}, ["/points"]),
      ("packs", {**pack, "points": 2}, ["/points"]), ("packs", {**pack, "devices": ["v100"] * 9}, ["/devices"]),
      ("packs", {"jobs": [{"name": f"j{i}", "trace": trace} for i in range (11)]}, ["/jobs"]),
      ("what-if", {**cells, "batches": [*range (1, 34)]}, ["/batches"]), ("curves", {**solve, "budgets": [5] * 65}, ["/budgets"]),
      ("packs", {"jobs": [pack["jobs"][0], {"name": "a", "trace": other}]}, ["/jobs/1/name"]),
      ("packs", {"jobs": [pack["jobs"][0], {"name": "b", "trace": "0" * 64}]}, ["/jobs/1/trace"])):
    p = problem (s.ask ("POST", f"/v1/{kind}", {**body, "validate_only": True}), 422, "invalid")
    assert [e["pointer"] for e in p["errors"]] == pointers, (kind, body, p)
  for kind, body in (
      ("schedules", {**solve, "policy": "lru", "device": "v100", "same_places": False}), ("schedules", {**solve, "for": "torch", "recompute": "auto"}),
      ("schedules", {**solve, "for": "run", "sections": "off", "order": "as-is", "recompute": "off", "placement": "granules"}), ("schedules", {**solve, "swap_only": False, "recompute": "off"}),
      *((kind, {"trace": trace, **more, "for": word}) for kind, more in (("curves", {}), ("min-memory", {}), ("comparisons", {"budget_ppm": 800000}), ("what-if", cells)) for word in ("run", "torch", "compile", "replay")),
      ("max-batch", {**batch, "network": "resnet26"}), ("comparisons", {**solve, "policies": ["lru", "ferry", "ferry-all"]}),
      ("what-if", {**cells, "devices": ["v100", "h200"], "batches": [65536], "memory": ["12.5%", "100%", "0.25%", 5]}),
      ("curves", {**solve, "points": 512}), ("packs", {**pack, "points": 3}), ("packs", {"jobs": [{"name": n, "trace": trace} for n in "ab"]})):
    r = s.ask ("POST", f"/v1/{kind}", {**body, "validate_only": True})
    assert r.status == 200, (kind, body, r.body)
  problem (s.ask ("POST", "/v1/schedules", {}), 422)
  problem (s.ask ("POST", "/v1/schedules", {"trace": "0" * 64}), 422)
  problem (s.ask ("POST", "/v1/schedules", {**asked, "device": "../../etc/passwd"}), 422)
  problem (s.ask ("POST", "/v1/schedules", {**asked, "budget_ppm": 1}), 422)
  problem (s.ask ("POST", "/v1/schedules", [1]), 422)
  problem (s.ask ("POST", "/v1/schedules", "{", {"Content-Type": "application/json"}), 400)
  problem (s.ask ("POST", "/v1/schedules", "[" * 100000, {"Content-Type": "application/json"}), 400)
  problem (s.ask ("POST", "/v1/schedules", "x=1", {"Content-Type": "application/x-www-form-urlencoded"}), 415)
  assert s.ask ("POST", "/v1/schedules", {**asked, "validate_only": True}).json ()["valid"] is True

@claim ("a member of the query that is misspelt, or there twice, is named")
def _ ():
  for path, wrong in (("/v1/advice?fingerprint=" + "0" * 64 + "&max_slowdown=5", "max_slowdown"), ("/v1/traces?limits=5", "limits"), ("/v1/version?a=1", "a"),
                      ("/v1/schedules?format=csv", "format"), ("/v1/traces?limit=5&limit=6", "limit"), ("/v1/traces?=1", "")):
    r = s.ask ("GET", path)
    problem (r, 400)
    assert f'"{wrong}"' in r.json ()["detail"], r.body
  assert s.ask ("GET", "/v1/traces?limit=5&after=").status == 200 and s.ask ("GET", "/metrics?whatever=1").status == 200

@claim ("what is not there is 404, a wrong method says which are right")
def _ ():
  problem (s.ask ("GET", "/v1/schedules/" + "0" * 64), 404)
  problem (s.ask ("GET", "/v1/schedules/nonsense"), 404)
  problem (s.ask ("GET", "/v1/nonsense"), 404)
  problem (s.ask ("GET", "/v1/traces/%2e%2e%2f%2e%2e"), 404)
  r = s.ask ("PUT", "/v1/traces")
  problem (r, 405)
  assert r.headers["Allow"] == "GET, HEAD, POST"
  problem (s.ask ("GET", "/v1/traces/a b".replace (" ", "%20")), 400)
  for path in ("/healthz%00x", "/healthz%00", "/v1/traces?limit=5%00x", "/v1/traces?limit%00=5"): problem (s.ask ("GET", path), 400)
  for n, status in ((50, 200), (65, 431)):
    assert s.ask ("GET", "/healthz?" + "&".join (f"a{i}=1" for i in range (n))).status == status
    assert s.ask ("GET", "/v1/traces", None, {f"X-{i}": "1" for i in range (n)}).status == status

@claim ("an upload that is no trace is told so, and not kept as one")
def _ ():
  p = problem (s.ask ("POST", "/v1/traces", b"hello"), 422, "import-failed")
  assert p["detail"]
  problem (s.ask ("POST", "/v1/traces", b""), 422)
  odd = json.loads (trace_bytes)
  for odd["tensors"][0]["kind"] in ("é" * 1000, "x" + "é" * 1000):
    assert "is not one of: parameter" in problem (s.ask ("POST", "/v1/traces", json.dumps (odd, ensure_ascii=False).encode ()), 422, "import-failed")["detail"]
  assert "\x3f" in problem (s.ask ("POST", "/v1/traces", b"ferry-text/1\nop \xff\xfe caf\xe9\n"), 422, "import-failed")["detail"]
  assert any (j["state"] == "failed" for j in s.ask ("GET", "/v1/imports?limit=100").json ()["jobs"])
  odd["tensors"][0]["kind"] = 'a"b\\'
  assert 'a"b\\` is not one of: parameter' in problem (s.ask ("POST", "/v1/traces", json.dumps (odd)), 422, "import-failed")["detail"]

@claim ("an execution trace and its Kineto file are one upload, by a form and by the client")
def _ ():
  net = made.Net (3)
  et, ids = made.et (net)
  files = {"run.et.json": et, "run.kineto.json": made.kineto (net, 3, record_ids=ids, memory=False)}
  for name, text in files.items ():
    with open (name, "w") as out: out.write (text)
  ferry ("import", *files, "-o", "pair.json")
  here = open ("pair.json", "rb").read ()
  def form (names, end="--"):
    parts = [f'--x y\r\nContent-Disposition: form-data; name="file"; filename="{n}"\r\n\r\n'.encode () + open (n, "rb").read () + b"\r\n" for n in names]
    return b"".join (parts) + f"--x y{end}\r\n".encode ()
  kind = {"Content-Type": "multipart/form-data; boundary=x y"}
  r = s.ask ("POST", "/v1/traces", form (files), kind)
  assert r.status == 201 and r.json ()["info"]["plannable"], r.body
  id = r.json ()["trace"]
  assert s.ask ("GET", f"/v1/traces/{id}/content").body == here
  assert s.ask ("POST", "/v1/traces", form (files), kind).status == 200
  assert ferry ("submit", *files, "--server", s.url).stdout.strip () == id
  assert ferry ("submit", *files, "--server", s.url).stdout.strip () == id
  job = ferry ("submit", *files, "-k", "schedules", "--with", '{"budget_ppm":900000,"device":"v100","limit_ticks":1000}', "--server", s.url).stdout
  assert job.startswith ("/v1/schedules/")
  assert "more than 2 files" in problem (s.ask ("POST", "/v1/traces", form ([*files, "a.json"]), kind), 422)["detail"]
  assert "nothing ends it" in problem (s.ask ("POST", "/v1/traces", form (files, "!!"), kind), 422)["detail"]
  assert "no boundary behind" in problem (s.ask ("POST", "/v1/traces", form (files)[:200], kind), 422)["detail"]
  assert s.ask ("POST", "/v1/traces", form (["a.json"]), kind).json ()["trace"] == trace
  alone = s.ask ("POST", "/v1/traces", form (["run.et.json"]), kind)
  assert alone.status == 201 and not alone.json ()["info"]["plannable"], alone.body

@claim ("too large: refused before the body, by its length, and in chunks")
def _ ():
  c = http.client.HTTPConnection ("127.0.0.1", s.port, timeout=PATIENCE)
  c.putrequest ("POST", "/v1/traces")
  c.putheader ("Content-Length", str (1 << 30))
  c.endheaders ()
  assert c.getresponse ().status == 413
  c.close ()
  def chunks ():
    for _ in range (9): yield b"x" * (1 << 20)
  problem (s.ask ("POST", "/v1/traces", chunks ()), 413, "too-large")
  problem (s.ask ("POST", "/v1/schedules", b"x" * (2 << 20), {"Content-Type": "application/json"}), 413)

@claim ("a bomb is defused in the worker, one in a request by its limit")
def _ ():
  bomb = gzip.compress (b" " * (64 << 20), mtime=0)
  problem (s.ask ("POST", "/v1/schedules", bomb, {"Content-Encoding": "gzip", "Content-Type": "application/json"}), 413)
  problem (s.ask ("POST", "/v1/traces", gzip.compress (b"\0" * (65 << 20), 1, mtime=0), {"Content-Encoding": "gzip"}), 422)
  p = problem (s.ask ("POST", "/v1/traces", gzip.compress (b" " * (17 << 20), mtime=0), {"Content-Encoding": "gzip"}), 422)
  assert "larger than 16.0 MiB when decompressed" in p["detail"], p

@claim ("events tell of what was found, and are told again from where one left")
def _ ():
  job = s.job ("schedules", asked)
  def events (last=None):
    r = s.ask ("GET", job["links"]["events"], None, {"Last-Event-ID": last} if last else {})
    assert r.headers["Content-Type"] == "text/event-stream"
    return [dict (l.split (": ", 1) for l in e.split ("\n")) for e in r.body.decode ().strip ().split ("\n\n")]
  all = events ()
  assert all[-1]["event"] == "done" and json.loads (all[-1]["data"])["state"] == "done"
  found = [e for e in all if e["event"] == "incumbent"]
  assert found, all
  steps = [json.loads (e["data"])["step_ns"] for e in found]
  assert steps == sorted (steps, reverse=True) and steps[-1] >= json.loads (found[-1]["data"])["bound_ns"]
  assert [e.get ("id") for e in events (found[0]["id"])] == [e.get ("id") for e in all[1:]]

@claim ("jobs of many parts tell how many of them are done")
def _ ():
  for kind, body in (("curves", {"trace": trace, "points": 3, "limit_ticks": 1000, "sections": "off"}), ("packs", {"jobs": [{"name": "a", "trace": trace}], "points": 3, "limit_ticks": 1000, "sections": "off"})):
    told = s.ask ("GET", s.job (kind, body)["links"]["events"]).body.decode ()
    news = [json.loads (e.split ("data: ")[1]) for e in told.strip ().split ("\n\n") if "event: progress" in e]
    assert news and all (n["done"] >= 1 and n["done"] <= n.get ("all", n["done"]) for n in news), told

@claim ("a job with very many events tells all of them before its end")
def _ ():
  job = s.job ("schedules", {**asked, "seed": 12})
  with sqlite3.connect ("state/store.sqlite", timeout=PATIENCE) as db:
    db.executemany ("insert or replace into event values (?, ?, 'incumbent', '{}')", [(job["id"], i) for i in range (1, 2501)])
  told = s.ask ("GET", job["links"]["events"]).body.decode ().strip ().split ("\n\n")
  assert [e.split ("\n")[0] for e in told] == [f"id: {i}" for i in range (1, 2501)] + ["event: done"], (len (told), told[-1])

long = {"trace": trace, "budget_bytes": budget, "limit_ticks": 1000000000000, "gap_ppm": 1, "sections": "auto", "recompute": "auto"}

@claim ("a running job is cancelled, its worker ends, and asked for again it runs again")
def _ ():
  r = s.ask ("POST", "/v1/schedules", {**long, "seed": 5})
  assert r.status == 202 and r.headers["Location"] and r.headers["Retry-After"], r.status
  path = r.headers["Location"]
  problem (s.ask ("GET", path + "/result"), 409)
  end = time.time () + PATIENCE
  while s.ask ("GET", path).json ()["state"] != "running": assert time.time () < end
  assert s.ask ("DELETE", path).status == 202
  assert s.ask ("GET", path).json ()["state"] == "cancelled"
  assert s.ask ("DELETE", path).status == 204
  problem (s.ask ("GET", path + "/result"), 410)
  while "\nferry_solves_running 0\n" not in s.ask ("GET", "/metrics").body.decode (): assert time.time () < end
  r = s.ask ("POST", "/v1/schedules", {**long, "seed": 5})
  assert r.status == 202 and r.json ()["state"] in ("queued", "running")
  assert s.ask ("DELETE", path).status == 202

@claim ("a job that was stopped is counted as ended")
def _ ():
  def ended (): return sum (int (n) for n in re.findall (r'(?m)^ferry_jobs_total{kind="schedules",state="cancelled"} (\d+)$', s.ask ("GET", "/metrics").body.decode ()))
  before = ended ()
  path = s.ask ("POST", "/v1/schedules", {**long, "seed": 9}).headers["Location"]
  assert s.ask ("DELETE", path).status == 202 and s.ask ("DELETE", path).status == 204
  assert ended () == before + 1

@claim ("a POST is answered whatever its client has; a status is another one once its place in the queue is, and If-Match holds a DELETE back")
def _ ():
  done = s.job ("schedules", asked)
  r = s.ask ("POST", "/v1/schedules", asked, {"If-None-Match": "*"})
  assert r.status == 200 and r.json ()["id"] == done["id"], (r.status, r.body)
  assert s.ask ("GET", done["links"]["self"], None, {"If-None-Match": r.headers["ETag"]}).status == 304
  jobs = [s.ask ("POST", "/v1/schedules", {**long, "seed": seed}).json ()["links"]["self"] for seed in range (20, 25)]
  end = time.time () + PATIENCE
  while s.ask ("GET", jobs[1]).json ()["state"] != "running": assert time.time () < end # two have a worker
  before = s.ask ("GET", jobs[4])
  problem (s.ask ("DELETE", jobs[4], None, {"If-Match": '"running-1-0-0"'}), 412, "changed")
  assert s.ask ("DELETE", jobs[3], None, {"If-Match": f'"x", {s.ask ("GET", jobs[3]).headers["ETag"]}'}).status == 202
  now = s.ask ("GET", jobs[4], None, {"If-None-Match": before.headers["ETag"]})
  assert (before.json ()["position"], now.status, now.json ()["position"]) == (2, 200, 1), (before.body, now.status, now.body)
  s.ask ("DELETE", jobs[4]), s.ask ("POST", "/v1/schedules", {**long, "seed": 24})
  new = s.ask ("GET", jobs[4], None, {"If-None-Match": now.headers["ETag"]})
  assert new.status == 200 and new.json ()["position"] == 1, (new.status, new.body)
  for path in jobs: s.ask ("DELETE", path)
  for tag in ('"x"', f'W/"{trace}"', f'"x", W/"{trace}"'): problem (s.ask ("DELETE", f"/v1/traces/{trace}", None, {"If-Match": tag}), 412, "changed")
  assert s.ask ("GET", f"/v1/traces/{trace}").status == 200

@claim ("a time limit ends a solve with what was found")
def _ ():
  job = s.job ("schedules", {**long, "time_limit_s": 1})
  assert job["state"] == "done" and job["exit"] in (0, 4) and job["result"]["fits"], job

@claim ("a quota that is used up takes no new work, and answers what it has")
def _ ():
  os.mkdir ("quota")
  z = Server (os.path.join (work, "quota"), "--workers", "1", "--disk-quota", f"{3 * len (trace_bytes)}B")
  try:
    id = z.upload ("a.json")
    mine = {**asked, "trace": id, "limit_ticks": 100}
    done, kept = z.job ("schedules", mine), lambda: sum (os.path.getsize (f"quota/state/blobs/{n}") for n in os.listdir ("quota/state/blobs"))
    assert kept () > 3 * len (trace_bytes)
    problem (z.ask ("POST", "/v1/schedules", {**mine, "seed": 2}), 507, "disk-full")
    problem (z.ask ("POST", "/v1/traces", trace_bytes + b" "), 507, "disk-full")
    assert z.ask ("POST", "/v1/schedules", mine).json ()["id"] == done["id"] and z.ask ("POST", "/v1/schedules", {**mine, "seed": 2, "validate_only": True}).status == 200
  finally:
    assert z.stop () == 0

@claim ("an upload whose import is stopped is told so, and may be sent again")
def _ ():
  os.mkdir ("stopped")
  z = Server (os.path.join (work, "stopped"), "--workers", "1")
  body = trace_bytes + b" " * (64 << 20) # it takes a while to read
  def importer ():
    tasks = f"/proc/{z.process.pid}/task"
    for pid in (p for t in os.listdir (tasks) for p in open (f"{tasks}/{t}/children").read ().split ()):
      try:
        if open (f"/proc/{pid}/comm").read () == "ferry import\n": return int (pid)
      except FileNotFoundError: pass
  try:
    told = []
    sender = threading.Thread (target=lambda: told.append (z.ask ("POST", "/v1/traces", body)))
    sender.start ()
    end = time.time () + PATIENCE
    while not (pid := importer ()): assert time.time () < end
    os.kill (pid, signal.SIGSTOP)
    job = [j for j in z.ask ("GET", "/v1/imports").json ()["jobs"] if j["state"] == "running"][0]
    assert z.ask ("DELETE", job["links"]["self"]).status == 202
    sender.join ()
    problem (told[0], 410, "cancelled")
    assert z.ask ("POST", "/v1/traces", body).status == 201
  finally:
    assert z.stop () == 0

@claim ("on a full disk an upload is told so; a job whose end cannot be kept is done once there is room")
def _ ():
  def room (most): resource.prlimit (z.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
  os.mkdir ("full")
  z = Server (os.path.join (work, "full"), "--workers", "1")
  try:
    z.upload ("a.json")
    path = z.ask ("POST", "/v1/schedules", {**long, "time_limit_s": 1}).headers["Location"]
    end = time.time () + PATIENCE
    while z.ask ("GET", path).json ()["state"] != "running": assert time.time () < end
    room (0)
    problem (z.ask ("POST", "/v1/traces", b" " * 500000), 507, "disk-full")
    problem (z.ask ("POST", "/v1/schedules", asked), 503, "unavailable")
    while os.listdir ("full/state/work"): assert time.time () < end
    assert z.ask ("GET", path).json ()["state"] == "running"
    room (resource.RLIM_INFINITY)
    while z.ask ("GET", path).json ()["state"] != "done": assert time.time () < end
    while os.listdir ("full/state/work"): assert time.time () < end # a job's folder goes behind its end
    assert os.listdir ("full/state/spool") == []
    again = z.ask ("POST", "/v1/schedules", {**long, "time_limit_s": 1, "seed": 8}).headers["Location"]
    while z.ask ("GET", again).json ()["state"] != "running": assert time.time () < end
    room (0)
    while os.listdir ("full/state/work"): assert time.time () < end
  finally:
    assert z.stop () == 0 # though the disk is full

@claim ("a wait ends when its time is over")
def _ ():
  start = time.time ()
  r = s.ask ("POST", "/v1/schedules", {**long, "seed": 6}, {"Prefer": "wait=1"})
  assert r.status == 202 and 0.9 < time.time () - start < 20
  for lines in (("return=minimal", "wait=1"), ("respond-async, wait = 1",)): # a list, in one line or in several
    c = http.client.HTTPConnection ("127.0.0.1", s.port, timeout=PATIENCE)
    start = time.time ()
    c.putrequest ("GET", r.headers["Location"])
    for line in lines: c.putheader ("Prefer", line)
    c.endheaders ()
    assert c.getresponse ().read () and 0.9 < time.time () - start < 20, lines
    c.close ()
  s.ask ("DELETE", r.headers["Location"])

@claim ("many clients may come from one address, such as a proxy's")
def _ ():
  idle = [socket.create_connection (("127.0.0.1", s.port), PATIENCE) for _ in range (300)]
  assert s.ask ("GET", "/healthz").status == 200
  for c in idle: c.close ()

@claim ("who waits keeps the service's processors free")
def _ ():
  def cpu_s ():
    with open (f"/proc/{s.process.pid}/stat") as f: fields = f.read ().rsplit (")", 1)[1].split ()
    return (int (fields[11]) + int (fields[12])) / os.sysconf ("SC_CLK_TCK")
  job = s.ask ("POST", "/v1/schedules", {**long, "seed": 7})
  before = cpu_s ()
  r = s.ask ("GET", job.headers["Location"], None, {"Prefer": "wait=3"})
  assert r.json ()["state"] in ("queued", "running") and cpu_s () - before < 0.5, cpu_s () - before
  s.ask ("DELETE", job.headers["Location"])

@claim ("lists are in pages")
def _ ():
  seen, path = [], "/v1/schedules?limit=2"
  while path:
    r = s.ask ("GET", path)
    seen += [j["id"] for j in r.json ()["jobs"]]
    path = r.headers["Link"].split (">")[0][1:] if r.headers["Link"] else None
  assert seen == sorted (set (seen)) and len (seen) >= 3

@claim ("another host's name, and another site's page, are refused")
def _ ():
  assert s.ask ("GET", "/v1/traces", None, {"Host": "evil.example"}).status == 421
  problem (s.ask ("POST", "/v1/schedules", asked, {"Origin": "http://evil.example"}), 403)
  assert s.ask ("POST", "/v1/schedules", asked, {"Origin": s.url}).status in (200, 202)

@claim ("a request has an id, and keeps the trace context that it came with")
def _ ():
  sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
  r = s.ask ("GET", "/healthz", None, {"traceparent": sent})
  assert r.headers["traceparent"] == sent and len (r.headers["X-Request-Id"]) == 32
  r = s.ask ("GET", "/healthz", None, {"traceparent": "nonsense"})
  assert r.headers["traceparent"].startswith ("00-")

@claim ("the log is JSON, a line each")
def _ ():
  lines = [json.loads (l) for l in open ("log")]
  assert any (l["msg"] == "request" and l["code"] == "201" for l in lines)
  assert any (l["msg"] == "job ended" and l["state"] == "done" for l in lines)

@claim ("what is refused, and what is answered from memory, has its line too")
def _ ():
  ids = [s.ask ("GET", path, None, headers).headers["X-Request-Id"] for path, headers in (("/nope", {}), ("/v1/traces", {"Host": "elsewhere.example"}))]
  end = time.time () + PATIENCE
  while not all (any (id == json.loads (l).get ("request_id") for l in open ("log")) for id in ids): assert time.time () < end, ids
  path = s.ask ("POST", "/v1/min-memory", {"trace": trace, "limit_ticks": 1}).headers["Location"] + "/result"
  while s.ask ("GET", path).status != 200: assert time.time () < end
  def lines (): return [l["bytes_out"] for l in map (json.loads, open ("log")) if l.get ("route", "").endswith ("/result") and l["code"] == "200" and l["method"] == "GET"]
  for _ in range (3): s.ask ("GET", path)
  while len (lines ()) < 4: assert time.time () < end, lines ()
  assert len (set (lines ()[-4:])) == 1 and lines ()[-1] != "0", lines ()

@claim ("advice comes from a curve that is there, and from nothing else")
def _ ():
  r = s.ask ("POST", "/v1/traces?fingerprint=alex.64", trace_bytes)
  assert r.json ()["fingerprint"] == "alex.64"
  s.job ("curves", {"trace": trace, "points": 6, "limit_ticks": 1000, "sections": "off", "order": "as-is"})
  problem (s.ask ("GET", "/v1/advice?fingerprint=nobody"), 404, "unknown-profile")
  a = s.ask ("GET", "/v1/advice?fingerprint=alex.64&max_slowdown_ppm=1000000").json ()
  assert a["fits"] and a["memory_mib"] * (1 << 20) >= a["memory_bytes"] >= a["device_peak_bytes"]
  assert a["slowdown_bound"] <= a["slowdown"] <= 1
  tight = s.ask ("GET", f"/v1/advice?fingerprint=alex.64&max_slowdown_ppm=1000000&gpu_memory_bytes={a['memory_bytes'] - 1}").json ()
  assert not tight["fits"] and "needs" in tight["reason"]
  assert s.job ("curves", {"trace": other, "budgets": ["60%"], "limit_ticks": 1, "swap_only": True})["state"] == "done"
  s.upload ("b.json", query="?fingerprint=slow")
  none = s.ask ("GET", "/v1/advice?fingerprint=slow&max_slowdown_ppm=0").json ()
  assert none["fits"] is False and "no budget" in none["reason"] and not {"slowdown", "memory_bytes", "memory_mib", "step_ns"} & set (none), none
  assert "no budget" in ferry ("advise", "slow", "-s", "0%", "--server", s.url, status=1).stderr
  assert a["device"] is None and none["device"] is None
  mine = json.load (open (os.environ["FERRY_DATADIR"] + "/devices/v100.json"))
  for device in ("h200", {**mine, "name": "mine"}):
    s.job ("curves", {"trace": other, "budgets": ["60%"], "limit_ticks": 1, "swap_only": True, "device": device})
    assert s.ask ("GET", "/v1/advice?fingerprint=slow").json ()["device"] == (device if device == "h200" else "mine")
  for wrong in ("gpu_memory_bytes=lots", "gpu_memory_bytes=%2B5", "gpu_memory_bytes=-1", "max_slowdown_ppm=", "max_slowdown_ppm=100000001", "gpu_memory_bytes=" + "9" * 40):
    problem (s.ask ("GET", "/v1/advice?fingerprint=alex.64&" + wrong), 422)

@claim ("advice, a scheduler's question and the same question again are looks at a job")
def _ ():
  def stored (text, *values): return [x for x, in sqlite3.connect ("state/store.sqlite").execute (text, values)]
  def looked (): return stored ("select job from seen")
  def curve (points): # to its end, which to ask for would be a look
    before, end = looked (), time.time () + PATIENCE
    id = s.ask ("POST", "/v1/curves", {"trace": trace, "points": points, "limit_ticks": 1000, "sections": "off", "order": "as-is"}, {"Prefer": "wait=30"}).json ()["id"]
    assert id not in before
    while stored ("select state from job where id = ?", id) != ["done"]:
      assert time.time () < end
      time.sleep (0.05)
    return id
  for points, look in ((7, lambda: curve (7)), (8, lambda: s.ask ("GET", "/v1/advice?fingerprint=alex.64")), (9, lambda: s.ask ("POST", "/k8s/filter", {
      "Pod": {"metadata": {"annotations": {"ferry.dev/fingerprint": "alex.64"}}}, "Nodes": {"items": [{"metadata": {"name": "n", "labels": {"ferry.dev/gpu-memory-bytes": "1"}}}]}}))):
    id = curve (points)
    assert id not in looked (), points
    look ()
    assert id in looked (), points

@claim ("results as tables for spreadsheets, pictures, and steps for a trace viewer")
def _ ():
  curve = s.job ("curves", {"trace": trace, "points": 6, "limit_ticks": 1000, "sections": "off", "order": "as-is"})
  path = curve["links"]["result"]
  for r in (s.ask ("GET", path + "?format=csv"), s.ask ("GET", path, None, {"Accept": "text/csv"})):
    assert r.status == 200 and r.headers["Content-Type"].startswith ("text/csv")
    rows = list (csv.DictReader (io.StringIO (r.body.decode ())))
    assert [(int (x["budget_bytes"]), int (x["predicted.step_ns"])) for x in rows] == [
      (p["budget_bytes"], p["predicted"]["step_ns"]) for p in curve["result"]["points"]]
  rivals = s.job ("comparisons", {"trace": trace, "budget_ppm": 800000, "policies": ["lru"], "limit_ticks": 1000})
  rows = list (csv.DictReader (io.StringIO (s.ask ("GET", rivals["links"]["result"] + "?format=csv").body.decode ())))
  assert [x["label"] for x in rows] == [x["label"] for x in rivals["result"]["rows"]]
  cells = s.job ("what-if", {"trace": trace, "memory": ["75%", "100%"], "devices": ["v100", "h200"], "limit_ticks": 1})
  rows = list (csv.DictReader (io.StringIO (s.ask ("GET", cells["links"]["result"] + "?format=csv").body.decode ())))
  names = cells["result"]["grid"]["devices"]
  assert [x["device"] for x in rows] == [names[x["device"]] for x in cells["result"]["rows"]] and len (set (names)) == 2
  for x, y in zip (rows, cells["result"]["rows"]): assert x["gap"] == ("" if y["gap"] is None else str (y["gap"]).removesuffix (".0")), (x, y)
  assert s.ask ("GET", path + "?format=svg").body.startswith (b"<svg")
  job = s.job ("schedules", asked)
  steps = json.loads (s.ask ("GET", job["links"]["result"] + "?format=chrome").body)
  assert {"X", "C", "M"} <= {e["ph"] for e in steps["traceEvents"]}
  problem (s.ask ("GET", job["links"]["result"] + "?format=csv"), 406)
  problem (s.ask ("GET", path + "?format=chrome"), 404)
  problem (s.ask ("GET", path + "?format=xml"), 406)

@claim ("memory keeps the form that a plain request gets, whoever asked first")
def _ ():
  curve = s.job ("curves", {"trace": trace, "points": 4, "limit_ticks": 1000, "sections": "off"})
  for accept, type in (("image/svg+xml", "image/svg+xml"), (None, "application/json"), ("text/csv", "text/csv; charset=utf-8"), ("*/*", "application/json"), ("image/svg+xml", "image/svg+xml")):
    r = s.ask ("GET", curve["links"]["result"], None, {"Accept": accept} if accept else {})
    assert r.status == 200 and r.headers["Content-Type"] == type and r.headers["Vary"] == "Accept", (accept, r.headers)

@claim ("a form is the one that is wanted most, and none that is not wanted at all")
def _ ():
  path = s.job ("curves", {"trace": trace, "points": 4, "limit_ticks": 1000, "sections": "off"})["links"]["result"]
  for accept, type in (("application/json;q=0, text/csv", "text/csv"), ("application/json;q=0.2, image/svg+xml; q=0.5", "image/svg+xml"), ("Text/CSV", "text/csv"),
                       ("text/html;level=1;q=1, text/csv;charset=utf-8;q=0.3,application/json;q=0.2", "text/csv"), ("image/*", "image/svg+xml"), ("text/csv, */*;q=0.1", "application/json")):
    r = s.ask ("GET", path, None, {"Accept": accept})
    assert r.status == 200 and r.headers["Content-Type"].startswith (type), (accept, r.headers)
  for accept in ("text/csvx", "*/*;q=0", "text/csv;q=0", "text", ",;", "image/png;q=1"): problem (s.ask ("GET", path, None, {"Accept": accept}), 406)

@claim ("a fault's place is UTF-8 where it is cut")
def _ ():
  for key in ("\u00fc" * 100, "a" + "\u00fc" * 100): problem (s.ask ("POST", "/v1/schedules", {key: 1}), 422, "invalid")

@claim ("a key stands for one request")
def _ ():
  def ask (body, key): return s.ask ("POST", "/v1/schedules", body, {"Idempotency-Key": key, "Prefer": "wait=30"})
  a, b = ask (asked, "night-run-7"), ask (asked, "night-run-7")
  assert a.status == b.status == 200 and a.json ()["id"] == b.json ()["id"], (a.body, b.body)
  problem (ask (dict (asked, seed=99), "night-run-7"), 422, "invalid")
  problem (ask (asked, "x" * 200), 400)

@claim ("what /metrics tells is what server/metrics.md lists, by name and labels; it counts what was done")
def _ ():
  text = s.ask ("GET", "/metrics").body.decode ()
  told = dict (re.findall (r"(?m)^# TYPE (\S+) (\S+)$", text))
  page = open (os.path.join (os.environ["srcdir"], "server/metrics.md")).read ()
  listed = re.findall (r"(?m)^\| `((?:ferry|process)_[a-z0-9_]+)(?:\{([a-z,]*)\})?` \| (\w+) \|", page)
  assert {n: k for n, _, k in listed} == told, set (told.items ()) ^ {(n, k) for n, _, k in listed}
  for name, labels, kind in listed:
    used = {",".join (l for l in re.findall (r'(\w+)="', x) if l != "le") for x in re.findall (rf"(?m)^{name}(?:_bucket|_sum|_count)?(?:{{(.*)}})? ", text)}
    assert used <= {labels}, (name, used, labels)
  def value (line): return float (re.search (rf"(?m)^{re.escape (line)} (\S+)$", text)[1])
  assert value ('ferry_http_requests_total{method="POST",route="/v1/traces",code="201"}') >= 1
  assert value ('ferry_http_request_duration_seconds_bucket{route="/v1/traces",le="+Inf"}') == value ('ferry_http_request_duration_seconds_count{route="/v1/traces"}')
  assert value ('ferry_jobs_total{kind="schedules",state="done"}') >= 1 and value ("ferry_solve_gap_ratio_count") >= 1
  assert value ("ferry_worker_peak_rss_bytes") > 1e6 and value ('ferry_store_duration_seconds_count{op="read"}') > 1

@claim ("a trace context reaches the job's worker and the log")
def _ ():
  id = "4bf92f3577b34da6a3ce929d0e0e4736"
  r = s.ask ("POST", "/v1/schedules", dict (asked, seed=4711), {"traceparent": f"00-{id}-00f067aa0ba902b7-01", "Prefer": "wait=30"})
  assert r.headers["traceparent"].split ("-")[1] == id
  end = time.time () + PATIENCE
  while True: # a request's line comes behind its reply
    mine = [l for l in map (json.loads, open ("log")) if l.get ("trace_id") == id]
    if len (mine) > 2: break
    assert time.time () < end, mine
    time.sleep (0.05)
  assert [l["msg"] for l in mine if l["msg"].startswith ("job")] == ["job started", "job ended"], mine
  assert {l["span_id"] for l in mine if "job_id" in l} == {r.json ()["id"][:16]}
  access = [l for l in mine if l["msg"] == "request"]
  assert access and access[0]["span_id"] == "00f067aa0ba902b7" and int (access[0]["bytes_in"]) > 0 and int (access[0]["bytes_out"]) > 0

@claim ("the example in C asks for advice and the plan")
def _ ():
  flags = subprocess.run (["pkg-config", "--cflags", "--libs", "libcurl", "jansson"], capture_output=True, text=True).stdout.split ()
  source = os.path.join (os.environ["srcdir"], "contrib/api/scheduler.c")
  made = subprocess.run (["cc", "-Wall", "-Wextra", "-Werror", source, "-o", "scheduler", *flags], capture_output=True, text=True)
  assert made.returncode == 0, made.stderr
  def run (*arguments): return subprocess.run (["./scheduler", s.url, *arguments], capture_output=True, text=True, timeout=PATIENCE)
  fits = run ("alex.64", str (1 << 40))
  usual = s.ask ("GET", "/v1/advice?fingerprint=alex.64").json ()
  if usual["fits"]:
    assert fits.returncode == 0 and fits.stdout.startswith (f"{usual['memory_bytes']} bytes; the plan is done: "), (fits.stdout, fits.stderr)
    plan = s.ask ("GET", fits.stdout.split (s.url)[1].strip ())
    open ("example.json", "wb").write (plan.body)
    ferry ("check", "a.json", "example.json")
  small = run ("alex.64", "1")
  assert small.returncode == 1 and "needs" in small.stdout
  assert run ("nobody", "1").returncode == 2 and "record three steps" in run ("nobody", "1").stdout

@claim ("advice in the words of each scheduler, rounded up; k8s nodes in both spellings")
def _ ():
  a = s.ask ("GET", "/v1/advice?fingerprint=alex.64&max_slowdown_ppm=1000000").json ()
  mib = -(-a["card_bytes"] // (1 << 20))
  def advise (form, *more, status=0):
    return ferry ("advise", "alex.64", "-s", "100%", "--format", form, "--server", s.url, *more, status=status)
  assert f"--gres=shard:{-(-a['card_bytes'] // (1 << 26))}\n" in advise ("slurm", "--shard", "64MiB").stdout
  assert "--comment=ferry:alex.64@1000000\n" in advise ("slurm").stdout
  assert f"nvidia.com/gpumem: {mib}\n" in advise ("hami").stdout
  assert f'gpu-memory: "{mib}"' in advise ("kai").stdout
  assert f"memory: {mib}Mi\n" in advise ("dra").stdout
  assert f'ferry.dev/gpu-memory-bytes: "{a["card_bytes"]}"' in advise ("k8s").stdout
  assert 'ferry.dev/max-slowdown-ppm: "1000000"\n' in advise ("k8s").stdout
  assert "needs" in advise ("hami", "--gpu-memory", "1MiB", status=1).stderr
  advise ("slurm", "-o", "advised.json")
  ferry ("check", "a.json", "advised.json")
  assert json.load (open ("advised.json"))["budget_bytes"] == a["memory_bytes"]
  assert "nothing is known" in ferry ("advise", "nobody", "--server", s.url, status=1).stderr
  pod = {"metadata": {"name": "t", "annotations": {"ferry.dev/fingerprint": "alex.64", "ferry.dev/max-slowdown-ppm": "1000000"}}}
  def node (name, memory):
    return {"metadata": {"name": name, "labels": {"ferry.dev/gpu-memory-bytes": str (memory)} if memory else {}}}
  nodes = [node ("small", a["card_bytes"] - 1), node ("exact", a["card_bytes"]), node ("large", 4 * a["card_bytes"]), node ("odd", 0)]
  for outer in ({"Pod": pod, "Nodes": {"items": nodes}, "NodeNames": None}, {"pod": pod, "nodes": {"items": nodes}, "nodenames": None}):
    r = s.ask ("POST", "/k8s/filter", outer)
    assert r.status == 200
    f = r.json ()
    assert [n["metadata"]["name"] for n in f["Nodes"]["items"]] == ["exact", "large", "odd"] and f["NodeNames"] is None
    assert list (f["FailedNodes"]) == ["small"] and "needs" in f["FailedNodes"]["small"] and f["Error"] == ""
    scores = {h["Host"]: h["Score"] for h in s.ask ("POST", "/k8s/prioritize", outer).json ()}
    assert scores == {"small": 0, "exact": 10, "large": 2, "odd": 0}, scores
  f = s.ask ("POST", "/k8s/filter", {"Pod": pod, "Nodes": None, "NodeNames": ["n1", "n2"]}).json ()
  assert f["NodeNames"] == ["n1", "n2"] and f["FailedNodes"] == {}
  f = s.ask ("POST", "/k8s/filter", {"Pod": {"metadata": {}}, "Nodes": {"items": nodes}}).json ()
  assert len (f["Nodes"]["items"]) == 4
  problem (s.ask ("POST", "/k8s/filter", "[]", {"Content-Type": "application/json"}), 400)
  def passes (memory, slowdown="1000000", print="alex.64"):
    notes = {"ferry.dev/fingerprint": print, "ferry.dev/max-slowdown-ppm": slowdown}
    n = {"metadata": {"name": "n", "labels": {"ferry.dev/gpu-memory-bytes": memory}}}
    return s.ask ("POST", "/k8s/filter", {"Pod": {"metadata": {"annotations": notes}}, "Nodes": {"items": [n]}}).json ()["FailedNodes"] == {}
  kib, least = a["card_bytes"] >> 10, a["card_bytes"]
  for memory in (f"{least}", f"{kib + 1}Ki", f"{(kib >> 10) + 1}Mi", "24Gi", "1Ti", "24G", f"{least // 1000 + 1}k", "1T", f"{least // 10 ** 6 + 1}M"):
    assert passes (memory), memory
  for memory in (f"{least - 1}", "1", "1Ki", "1k", "1M"): assert not passes (memory), memory
  # What is not understood is not known, and the log says so.
  odd = [(m, "1000000", "alex.64") for m in ("", "-1", " 5", "5 ", "+5", "1e12", "1.5Ki", "1ki", "1K", "0x5", "9" * 30, "9000000Ti", "Gi", "one")]
  odd += [("1", p, "alex.64") for p in ("", "-5", "5%", "abc", " 5", "9" * 30, "100000001")] + [("1", "5", "a b")]
  for case in odd: assert passes (*case), case
  told = {l["value"] for l in map (json.loads, open ("log")) if l["msg"] == "a value is not understood"}
  assert told == {x for case in odd for x in case} - {"1", "1000000", "alex.64", "5"}, told
  # So with --inventory, which may change.
  cards = {"bytes": least, "few": 1, "text": "24Gi", "small": "1Ki", "odd": "24 GB", "half": 1.5, "none": None, "list": [least], "below": -1}
  json.dump (cards, open ("cards.json", "w"))
  f = s.ask ("POST", "/k8s/filter", {"Pod": pod, "NodeNames": [*cards, "other"]}).json ()
  assert set (f["FailedNodes"]) == {"few", "small"}, f
  told = [l["of"] for l in map (json.loads, open ("log")) if l.get ("key") == "--inventory"]
  assert told == ["odd", "half", "list"], told # the first three

@claim ("answers are what openapi.json says of them, and nothing else is in them")
def _ ():
  try: import jsonschema
  except ImportError:
    print ("skipped: jsonschema is not here")
    return
  doc = s.ask ("GET", "/openapi.json").json ()
  pod = {"metadata": {"annotations": {"ferry.dev/fingerprint": "alex.64"}}}
  nodes = {"items": [{"metadata": {"name": "n", "labels": {"ferry.dev/gpu-memory-bytes": "1"}}}]}
  def inside (schema): return doc["components"]["schemas"][schema["$ref"].rsplit ("/", 1)[1]] if "$ref" in schema else schema
  def extra (schema, value):
    schema = inside (schema)
    if "oneOf" in schema: return min ((extra (one, value) for one in schema["oneOf"]), key=len)
    if isinstance (value, list): return [x for v in value for x in extra (schema.get ("items", {}), v)]
    if not isinstance (value, dict) or "properties" not in schema: return []
    return [n for n in value if n not in schema["properties"]] + [x for n, v in value.items () for x in extra (schema["properties"].get (n, {}), v)]
  for method, path, query, body in (
      ("post", "/v1/traces", "", trace_bytes), ("get", "/v1/traces", "?limit=100", None), ("get", "/v1/traces/{id}", trace, None),
      ("post", "/v1/schedules", "", asked), ("post", "/v1/schedules", "", {**asked, "validate_only": True}), ("post", "/v1/schedules", "", {}),
      *(("get", f"/v1/{kind}", "", None) for kind in ("schedules", "curves", "packs", "imports")), ("get", "/v1/version", "", None), ("get", "/v1/devices", "", None),
      ("get", "/v1/advice", "?fingerprint=alex.64&max_slowdown_ppm=1000000", None), ("get", "/v1/advice", "?fingerprint=slow&max_slowdown_ppm=0", None),
      ("get", "/v1/advice", "?fingerprint=alex.64&gpu_memory_bytes=1", None), ("get", "/v1/advice", "?fingerprint=nobody", None),
      ("post", "/k8s/filter", "", {"Pod": pod, "Nodes": nodes}), ("post", "/k8s/filter", "", {"Pod": pod, "NodeNames": ["n"]}), ("post", "/k8s/prioritize", "", {"Pod": pod, "Nodes": nodes})):
    r = s.ask (method.upper (), path.replace ("{id}", query) if "{" in path else path + query, body)
    schema = list (doc["paths"][path][method]["responses"][str (r.status)]["content"].values ())[0]["schema"]
    jsonschema.Draft202012Validator ({**schema, "components": doc["components"]}).validate (r.json ())
    assert not extra (schema, r.json ()), (path, query, extra (schema, r.json ()))

@claim ("a server that is none of ours is told apart from one that knows nothing")
def _ ():
  for answers in ({}, {"/v1/schedules?limit=100": (200, {"x": 1}), "/v1/advice?fingerprint=a&gpu_memory_bytes=0&max_slowdown_ppm=50000": (404, {"type": "/problems/not-found"})}):
    z = Pretended (answers)
    for line in ("jobs", "advise a"):
      said = ferry (*line.split (), "--server", z.url, status=None)
      assert said.returncode not in (0, 1) and not said.stdout and said.stderr.count ("\n") == 1, (line, said)

@claim ("a scheduler's question is one look at the store, however many nodes it has")
def _ ():
  def reads (): return int (re.search (r'ferry_store_duration_seconds_count\{op="read"\} (\d+)', s.ask ("GET", "/metrics").body.decode ())[1])
  nodes = [{"metadata": {"name": f"n{i}", "labels": {"ferry.dev/gpu-memory-bytes": str (1 << (i % 40))}}} for i in range (500)]
  pod = {"metadata": {"annotations": {"ferry.dev/fingerprint": "alex.64", "ferry.dev/max-slowdown-ppm": "1000000"}}}
  took = []
  for n in (1, 1, 500):
    before = reads ()
    r = s.ask ("POST", "/k8s/filter", {"Pod": pod, "Nodes": {"items": nodes[:n]}})
    took.append (reads () - before)
  assert r.json ()["FailedNodes"] and len (r.json ()["Nodes"]["items"]) > 100
  assert took[1] == took[2], took

@claim ("advice without a curve of one's own says what is missing")
def _ ():
  z = Pretended ({"/v1/advice?fingerprint=prod&gpu_memory_bytes=0&max_slowdown_ppm=50000":
                  (200, {"curve": "c" * 64, "fits": True, "card_bytes": 1 << 30, "memory_bytes": 1 << 30, "pinned_host_bytes": 0, "trace": "t" * 64})})
  said = ferry ("advise", "prod", "-o", "none.json", "--server", z.url, status=1).stderr
  assert "/v1/curves/" + "c" * 64 in said and "another owner's" in said and said.count ("\n") == 1, said
  assert ferry ("advise", "prod", "--server", z.url).stdout.startswith ("#SBATCH --gres=shard:1\n")

@claim ("Slurm's prolog fetches the plan for the slowdown of the comment, for every fingerprint there may be")
def _ ():
  s.upload ("a.json", query="?fingerprint=_alex")
  shutil.copy (os.path.join (os.environ["srcdir"], "contrib/slurm/prolog.sh"), ".")
  with open ("ferry.conf", "w") as f:
    f.write (f"FERRY_SERVER={s.url} FERRY={FERRY} FERRY_SLOWDOWN=0.0001% FERRY_CARD=1TiB FERRY_PLANS={work}/plans FERRY_PATIENCE={PATIENCE}\n")
  def fetched (comment):
    subprocess.run (["sh", "prolog.sh"], timeout=PATIENCE, check=True,
                    env=dict (os.environ, SLURM_JOB_COMMENT=comment, SLURM_JOB_ID="7", SLURM_JOB_UID=str (os.getuid ())))
    path = "plans/7/plan.json"
    budget = json.load (open (path))["budget_bytes"] if os.path.exists (path) else None
    shutil.rmtree ("plans", ignore_errors=True)
    return budget
  for ppm in 1000000, 20000000:
    a = s.ask ("GET", f"/v1/advice?fingerprint=_alex&max_slowdown_ppm={ppm}").json ()
    comment = re.search ("--comment=(.*)", ferry ("advise", "_alex", "-s", f"{ppm // 10000}%", "--server", s.url).stdout)[1]
    assert comment == f"ferry:_alex@{ppm}" and fetched (comment) == a["memory_bytes"], (comment, a)
  for comment in ("ferry:_alex@", "ferry:_alex@0x5", "ferry:_alex@-5", "ferry:_alex@05", "ferry:_alex@1@1", "ferry:_alex@10000000000", "ferry:.alex", "ferry:"):
    assert fetched (comment) is None, comment

@claim ("the client uploads, asks, follows, and gets the same plan; exit statuses are the command's")
def _ ():
  here = ferry ("solve", "a.json", "--budget", f"{budget}B", "-o", "here.json", "--noise", "5%", *short, status=None)
  far = ferry ("solve", "a.json", "--budget", f"{budget}B", "-o", "there.json", "--noise", "5%", *short, "--server", s.url, status=None)
  assert far.returncode in (0, 4), far
  assert open ("here.json", "rb").read () == open ("there.json", "rb").read ()
  assert far.stdout.splitlines ()[-1] in here.stdout.splitlines (), (here.stdout, far.stdout)
  here, far = (ferry ("solve", "a.json", "--budget", "100%", *short, *more) for more in ([], ["--server", s.url]))  # the ops alone take as long
  assert far.stdout.splitlines ()[-1] in here.stdout.splitlines (), (here.stdout, far.stdout)
  no = ferry ("solve", "a.json", "--budget", "1MiB", "--server", s.url, status=1)
  assert no.stderr.count ("\n") == 1 and "ferry:" in no.stderr
  here, far = (ferry ("solve", "a.json", "--budget", "70%", *short, "--json", *more, status=None) for more in ([], ["--server", s.url]))
  assert here.stdout == far.stdout and here.returncode == far.returncode

@claim ("what is wrong with a question is said by the client as by the command, and nothing is sent")
def _ ():
  def both (file, *options):
    here, far = (ferry ("solve", file, "--budget", "70%", *options, *more, status=None) for more in ([], ["--server", "http://127.0.0.1:1"]))
    assert (here.returncode, here.stdout, here.stderr) == (far.returncode, far.stdout, far.stderr), (options, here, far)
    return here.returncode, here.stderr
  for options in (["--device", "nope"], ["--policy", "nope"], ["--limit", "9", "--effort", "quick"], ["--swap-only", "--recompute", "auto"],
                  ["--order", "bogus"], ["--sections", "99999"], ["--policy", "lru", "--limit", "9"], ["--policy-opt", "a=b"],
                  ["--for", "run", "--placement", "arena"], ["--budget", "1PiB"], ["--noise", "1.5%"]):
    assert both ("a.json", *options)[0] == 2, options
  odd = json.loads (trace_bytes)
  odd["colour"] = "red"
  open ("odd.json", "w").write (json.dumps (odd))
  status, said = both ("odd.json", "--strict")
  assert status == 3 and "colour" in said, said
  assert both ("missing.json")[0] == 3
  for options in (["--seconds", "3601"], ["--tune", "x=1"], ["--dump", "x.lp"]):
    said = ferry ("solve", "a.json", *options, "--server", "http://127.0.0.1:1", status=2).stderr
    assert options[0] in said and "--server" in said and said.count ("\n") == 1, said

@claim ("notes and doubts, a policy's answer, and standard input are the command's too")
def _ ():
  names = ["odd.json", "--budget", "75%", "--device", "a100-40", *short]
  here, far = (ferry ("solve", *names, *more) for more in ([], ["--server", s.url]))
  assert "unknown key" in far.stderr and "planned on a100-40 as they are" in far.stderr and here.stderr == far.stderr, far.stderr
  doubted = json.loads (trace_bytes)
  doubted["source"] = {**doubted.get ("source", {}), "confidence": "approximate: by hand"}
  open ("doubted.json", "w").write (json.dumps (doubted))
  here, far = (ferry ("solve", "doubted.json", "--budget", "75%", *short, *more) for more in ([], ["--server", s.url]))
  assert here.stderr == far.stderr != "" and here.stdout.splitlines ()[-2:] == far.stdout.splitlines (), (here, far)
  for name, budget in ("lru", "85%"), ("vdnn-all", "60%"):
    here, far = (ferry ("solve", "a.json", "--budget", budget, "--policy", name, *more, status=None) for more in ([], ["--server", s.url]))
    assert (here.returncode, here.stdout) == (far.returncode, far.stdout), (here, far)
  assert here.returncode == 1 and "it reaches" in here.stdout
  with open ("a.json") as f: far = ferry ("solve", "-", "--budget", "75%", *short, "-o", "stdin.json", "--server", s.url, stdin=f)
  ferry ("check", "a.json", "stdin.json")

@claim ("a plan on standard output stands alone there")
def _ ():
  far = ferry ("solve", "a.json", "--budget", "75%", *short, "-o", "-", "--server", s.url)
  assert json.loads (far.stdout)["format"].startswith ("ferry-plan/") and "above what" in far.stderr
  ferry ("check", "a.json", "-", input=far.stdout)

@claim ("submit and jobs work on the command line")
def _ ():
  assert ferry ("submit", "a.json", "--server", s.url).stdout.strip () == trace
  job = ferry ("submit", "a.json", "--kind", "curves", "--with", '{"points":2,"limit_ticks":1000}', "--server", s.url).stdout.strip ()
  assert job.startswith ("/v1/curves/")
  out = ferry ("submit", "a.json", "-k", "curves", "--with", '{"limit_ticks":1000,"points":2}', "--wait", "--server", s.url).stdout
  assert json.loads (out)["state"] == "done" and json.loads (out)["links"]["self"] == job
  assert job in ferry ("jobs", "--server", s.url).stdout
  assert json.loads (ferry ("jobs", job, "--result", "--server", s.url).stdout)["points"]
  ferry ("jobs", "/v1/curves/" + "0" * 64, "--server", s.url, status=3)
  for options in (["-k", "curves", "--with", "[1]"], ["--with", "nonsense"], ["--with", "{}"], ["-k", "nonsense"],
                  *(["--fingerprint=" + it] for it in ("a b", "a#b", "a&b=c", ".a", "-a", "", "x" * 65))):
    said = ferry ("submit", "a.json", *options, "--server", "http://127.0.0.1:1", status=2).stderr
    assert said.count ("\n") == 1 and "running?" not in said, (options, said)
  ferry ("submit", "a.json", "-k", "curves", "--with", '{"points":-1}', "--server", s.url, status=2)
  assert ferry ("submit", "a.json", "--fingerprint", "_x", "--server", s.url).stdout.strip () == trace

@claim ("submit --wait ends as the command would; a job that failed says why, and what it has not is no fault of the service")
def _ ():
  def wait (**members): return ferry ("submit", "a.json", "-k", "schedules", "--with", json.dumps (members), "--wait", "--server", s.url, status=1)
  def jobs (*options, status=0): return ferry ("jobs", *options, "--server", s.url, status=status)
  none, broken = wait (budget_bytes=1 << 20), wait (budget_bytes=1 << 30, reserve_bytes=1 << 31)
  assert "no plan fits" in none.stderr and "the reserve of" in broken.stderr and none.stderr.count ("\n") == broken.stderr.count ("\n") == 1
  none, broken = (json.loads (p.stdout) for p in (none, broken))
  assert none["state"] == "done" and broken["state"] == "failed"
  path = broken["links"]["self"]
  assert "{" not in jobs (path, "--log").stdout
  for part in "--result", "--plan": assert "the reserve of" in jobs (path, part, status=3).stderr
  assert "done and has no plan" in jobs (none["links"]["self"], "--plan", status=3).stderr
  assert jobs (none["links"]["self"], "--log").stderr == ""
  assert "the server has no" in jobs ("/v1/schedules/" + "0" * 64, "--log", status=3).stderr
  running = s.ask ("POST", "/v1/schedules", {**long, "seed": 8}).headers["Location"]
  assert re.search ("is (queued|running) and has no result", jobs (running, "--result", status=3).stderr)
  jobs (running, "--cancel")
  for options in ([path, "--log", "--plan"], ["--log"]): jobs (*options, status=2)

@claim ("jobs lists every page, and a fault of the service's own is told from one that does not answer")
def _ ():
  def page (n): return {"jobs": [{"kind": "curves", "id": f"{n}{i}", "state": "done"} for i in range (2)]}
  first = "/v1/curves?limit=100"
  pages = {f"/v1/{k}?limit=100": (200, {"jobs": []}) for k in "schedules min-memory max-batch packs comparisons what-if imports".split ()}
  z = Pretended ({**pages, first: (200, page (1), {"Link": '</v1/more>; rel="next"'}), "/v1/more": (200, page (2), {"link": '</v1/x>; rel="prev"'})})
  assert re.findall (r"curves/(\d+)", ferry ("jobs", "--server", z.url).stdout) == ["10", "11", "20", "21"]
  assert [j["job"][-2:] for j in json.loads (ferry ("jobs", "--json", "--server", z.url).stdout)["jobs"]] == ["10", "11", "20", "21"]
  for status, ours in (500, 70), (502, 69), (409, 3), (422, 3):
    ferry ("jobs", "/v1/curves/1", "--server", Pretended ({"/v1/curves/1": (status, {"detail": "no"})}).url, status=ours)

@claim ("an import that failed late says why, though the server has no room for one more listener")
def _ ():
  job = "/v1/imports/" + "1" * 64
  z = Pretended ({"/v1/traces?name=a.json": (202, {"state": "queued"}, {"Location": job}), job + "/events": (503, {"detail": "too many wait already"}, {"Retry-After": "1"}),
                  job: (200, {"state": "failed", "problem": {"detail": "body: byte 0: none of the formats"}})})
  p = ferry ("submit", "a.json", "--server", z.url, status=3)
  assert p.stderr == "ferry: the server says: body: byte 0: none of the formats\n", p.stderr

@claim ("a plan that cannot be drawn is a plan")
def _ ():
  t = json.loads (trace_bytes)
  for op in t["ops"]: op["ns"] = 0
  made = s.ask ("POST", "/v1/traces", json.dumps (t), {"Prefer": "wait=30"}).json ()["trace"]
  job = s.job ("schedules", {"trace": made, "device": "v100", "budget_ppm": 1000000})
  assert job["state"] == "done" and job["result"]["fits"], job
  problem (s.ask ("GET", f"{job['links']['self']}/files/picture"), 404)

@claim ("a server that is away is one clear line")
def _ ():
  p = ferry ("submit", "a.json", "--server", "http://127.0.0.1:1", status=69)
  assert p.stderr.count ("\n") == 1 and "is it running?" in p.stderr

@claim ("the page of a proxy, or a way elsewhere, is no answer")
def _ ():
  for answer in ((200, "hello", {"Content-Type": "text/html"}), (302, "", {"Location": "http://127.0.0.1:1/"})):
    url = Pretended ({"*": answer}).url
    for command in (["jobs"], ["jobs", "/v1/curves/1"], ["advise", "plain"], ["submit", "a.json"], ["solve", "a.json", "-b", "80%"]):
      p = ferry (*command, "--server", url, status=69)
      assert p.stderr == f"ferry: what answers at {url} is no ferry serve\n", (command, p.stderr)

@claim ("SIGTERM: streams are told, a running job waits for the next daemon, the exit is clean")
def _ ():
  r = s.ask ("POST", "/v1/schedules", {**long, "seed": 7})
  path = r.headers["Location"]
  c = http.client.HTTPConnection ("127.0.0.1", s.port, timeout=PATIENCE)
  c.request ("GET", path + "/events")
  stream = c.getresponse ()
  time.sleep (0.5)
  assert s.stop () == 0
  assert b"event: shutdown" in stream.read ()
  s.start ()
  job = s.ask ("GET", path).json ()
  assert job["state"] in ("queued", "running"), job["state"]
  s.ask ("DELETE", path)
  assert s.ask ("GET", f"/v1/traces/{trace}").status == 200

@claim ("a job whose time is up keeps what it has found, or says that it is nothing")
def _ ():
  os.makedirs ("short")
  z = Server (os.path.join (work, "short"), "--workers", "1", "--job-seconds", "2")
  try:
    t = z.upload ("a.json")
    for seed, more in ((1, {}), (2, {"time_limit_s": 3600})):
      job = z.job ("schedules", {**long, "trace": t, "seed": seed, **more})
      assert job["state"] == "done" and job["exit"] in (0, 4) and job["attempt"] == 1 and job["result"]["fits"], job
    # One that does not listen.
    path = z.ask ("POST", "/v1/schedules", {**long, "trace": t, "seed": 3}).headers["Location"]
    def metric (name): return float (re.search (rf"(?m)^{name} (\S+)$", z.ask ("GET", "/metrics").body.decode ())[1])
    tasks, pids, end = f"/proc/{z.process.pid}/task", [], time.time () + PATIENCE
    def works (pid): # and does not wait for its job any more
      try: return open (f"/proc/{pid}/comm").read () == "ferry solve\n"
      except FileNotFoundError: return False
    while not pids:
      assert time.time () < end
      pids = [n for x in os.listdir (tasks) for n in open (f"{tasks}/{x}/children").read ().split () if works (n)]
    pid = int (pids[0])
    os.kill (pid, signal.SIGSTOP)
    told = metric ("ferry_worker_kills_total")
    while metric ("ferry_worker_kills_total") == told: assert time.time () < end
    os.kill (pid, signal.SIGKILL)
    while z.ask ("GET", path).json ()["state"] == "running": assert time.time () < end
    job = z.ask ("GET", path).json ()
    assert job["state"] == "failed" and job["attempt"] == 1 and "nothing was found within the 2 seconds" in job["problem"]["detail"], job
  finally:
    assert z.stop () == 0

@claim ("a second daemon on the same folder is refused")
def _ ():
  p = ferry ("serve", "--state", "state", "--listen", "127.0.0.1:0", status=3)
  assert "in use" in p.stderr

assert s.stop () == 0

@claim ("what cannot be listened on or read is refused at the start")
def _ ():
  for port in ("99999", "65536", "-1", "", "80x", "+80"):
    assert "65535" in ferry ("serve", "--state", "state2", "--listen", f"127.0.0.1:{port}", status=2).stderr, port
  open ("garbage.json", "w").write ("{")
  open ("list.json", "w").write ("[1]")
  for name in ("absent.json", "garbage.json", "list.json"):
    p = ferry ("serve", "--state", "state2", "--listen", "127.0.0.1:0", "--inventory", name, status=3)
    assert name in p.stderr and p.stderr.count ("\n") == 1, p.stderr
  os.makedirs ("home/work/of years")
  p = ferry ("serve", "--state", "home", "--listen", "127.0.0.1:0", status=3)
  assert "home/work is not of a ferry serve" in p.stderr and os.listdir ("home") == ["work"] and os.listdir ("home/work") == ["of years"], p.stderr
  os.makedirs ("state3/lock")
  p = ferry ("serve", "--state", "state3", "--listen", "127.0.0.1:0", status=3)
  assert "state3/lock cannot be locked: Is a directory" in p.stderr, p.stderr

@claim ("others' addresses need tokens")
def _ ():
  p = ferry ("serve", "--state", "state2", "--listen", "0.0.0.0:0", status=2)
  assert "--tokens" in p.stderr

@claim ("tokens: who has none is 401, too low a role 403, another's trace is not there")
def _ ():
  os.makedirs ("t")
  made = {}
  with open ("t/tokens", "w") as f:
    os.chmod ("t/tokens", 0o600)
    for owner, role in (("ada", "submit"), ("bob", "submit"), ("eve", "read")):
      p = ferry ("token", "--owner", owner, "--role", role)
      f.write (p.stdout)
      made[owner] = p.stderr.strip ()
  z = Server (os.path.join (work, "t"), "--tokens", "t/tokens", "--workers", "1")
  try:
    assert z.ask ("GET", "/healthz").status == 200
    r = z.ask ("GET", "/v1/traces")
    problem (r, 401)
    assert r.headers["WWW-Authenticate"] == "Bearer"
    problem (z.ask ("GET", "/v1/traces", token="ferry_" + "0" * 64), 401)
    problem (z.ask ("POST", "/v1/traces", trace_bytes, token=made["eve"]), 403)
    t = z.upload ("a.json", made["ada"])
    assert z.ask ("GET", f"/v1/traces/{t}", token=made["ada"]).status == 200
    nobodys = z.ask ("GET", "/v1/traces/" + "0" * 64, token=made["bob"]).json ()
    others = z.ask ("GET", f"/v1/traces/{t}", token=made["bob"]).json ()
    assert nobodys["detail"] == others["detail"] and others["status"] == 404
    problem (z.ask ("POST", "/v1/schedules", {"trace": t}, token=made["bob"]), 422)
    job = z.job ("schedules", {**asked, "trace": t}, made["ada"])
    path = job["links"]["result"]
    assert z.ask ("GET", path, token=made["ada"]).status == 200
    assert z.ask ("GET", path, token=made["ada"]).status == 200
    problem (z.ask ("GET", path, token=made["bob"]), 404)
    # Who has the bytes has the trace.
    assert z.upload ("a.json", made["bob"]) == t
    z.job ("schedules", {**asked, "trace": t}, made["bob"])
    assert z.ask ("GET", path, token=made["bob"]).status == 200
    # A name is its owner's, and advice comes from a curve that the asker may see.
    for owner, name in (("ada", "hers"), ("bob", "his"), ("ada", "hers.too")):
      r = z.ask ("POST", f"/v1/traces?fingerprint={name}", trace_bytes, token=made[owner])
      assert r.status == 200 and r.json ()["fingerprint"] == name, r.body
    named = {(o, n): len (z.ask ("GET", f"/v1/traces?fingerprint={n}", token=made[o]).json ()["traces"])
             for o in ("ada", "bob") for n in ("hers", "hers.too", "his")}
    assert [k for k, n in named.items () if n] == [("ada", "hers"), ("ada", "hers.too"), ("bob", "his")], named
    curve = {"trace": t, "points": 3, "limit_ticks": 1000, "sections": "off"}
    def advice (owner, name): return z.ask ("GET", f"/v1/advice?fingerprint={name}", token=made[owner])
    path = z.job ("curves", curve, made["bob"])["links"]["result"]
    assert advice ("bob", "his").status == 200
    problem (advice ("ada", "hers"), 404, "unknown-profile")
    problem (z.ask ("GET", path, token=made["ada"]), 404)
    z.job ("curves", curve, made["ada"])
    assert advice ("ada", "hers").status == advice ("ada", "hers.too").status == 200
    problem (advice ("ada", "his"), 404, "unknown-profile")
    bobs = z.ask ("POST", "/v1/traces", trace_bytes + b" ", {"Prefer": "wait=30"}, made["bob"])
    assert bobs.json ()["trace"] == t and z.ask ("DELETE", f"/v1/traces/{t}", token=made["bob"]).status == 204
    imports = z.ask ("GET", "/v1/imports", token=made["bob"]).json ()["jobs"]
    assert imports and all (z.ask ("GET", j["links"]["self"], token=made["bob"]).status == 200 for j in imports)
    problem (z.ask ("GET", f"/v1/traces/{t}", token=made["bob"]), 404) # to look at an import is not to ask for it
    env = dict (os.environ, FERRY_TOKEN=made["ada"])
    assert ferry ("submit", "a.json", "--server", z.url, env=env).stdout.strip () == t
    assert "token" in ferry ("submit", "a.json", "--server", z.url, status=2).stderr.lower ()
  finally:
    assert z.stop () == 0
  os.chmod ("t/tokens", 0o644)
  assert "chmod" in ferry ("serve", "--state", "t/state", "--tokens", "t/tokens", status=3).stderr

@claim ("workers are of the daemon's own version, though its file is another's by now")
def _ ():
  shutil.copy (FERRY, "old-ferry")
  u = subprocess.Popen ([os.path.abspath ("old-ferry"), "serve", "--state", "v", "--listen", "unix:v.sock", "-q"], stdout=subprocess.PIPE, text=True)
  assert "unix:v.sock" in u.stdout.readline ()
  os.unlink ("old-ferry")
  assert ferry ("submit", "a.json", "--server", "unix:v.sock").stdout.strip () == trace
  u.terminate ()
  assert u.wait (PATIENCE) == 0

@claim ("addresses that are none, or too many, are refused")
def _ ():
  for where in ("", ",", "127.0.0.1", "127.0.0.1:65536", "unix:", ",".join (["127.0.0.1:0"] * 9), "0.0.0.0:0"):
    said = ferry ("serve", "--state", "w", "--listen", where, status=2).stderr
    assert said.count ("\n") == 1 and not said.endswith (": \n"), (where, said)

@claim ("a unix socket, and one that was handed over, are listened on")
def _ ():
  u = subprocess.Popen ([FERRY, "serve", "--state", "u", "--listen", "unix:u.sock", "-q"], stdout=subprocess.PIPE, text=True)
  assert "unix:u.sock" in u.stdout.readline ()
  assert ferry ("submit", "a.json", "--server", "unix:u.sock").stdout.strip () == trace
  u.terminate ()
  assert u.wait (PATIENCE) == 0
  given = socket.create_server (("127.0.0.1", 0))
  p = subprocess.Popen (["bash", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve --state u -q 3<&$1', FERRY, str (given.fileno ())],
                        stdout=subprocess.PIPE, text=True, pass_fds=(given.fileno (),))
  assert str (given.getsockname ()[1]) in p.stdout.readline ()
  c = http.client.HTTPConnection (*given.getsockname (), timeout=PATIENCE)
  c.request ("GET", "/readyz")
  assert c.getresponse ().status == 200
  c.close ()
  p.terminate ()
  assert p.wait (PATIENCE) == 0

finish ()
