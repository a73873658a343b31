# SPDX-License-Identifier: GPL-3.0-or-later
# Limits mean what they say, and a head that is not clear ends its connection.
import re, sqlite3
from common import *

work = scratch ()
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
text = open ("a.json", "rb").read ()
s = Server (work, "--workers", "1", "--job-seconds", "4", "-q")
trace = s.upload ("a.json")
def long (**more): return {"trace": trace, "budget_ppm": 700000, "limit_ticks": 10**12, **more}
def lasts (body):
  start = time.time ()
  s.job ("schedules", body)
  return time.time () - start

@claim ("--job-seconds and time_limit_s end a job with two seconds of grace")
def _ ():
  for most, body in ((4, long ()), (2, long (time_limit_s=2, budget_ppm=650000))):
    took = lasts (body)
    assert took < most + 2 + 4, (most, took) # its plan is checked behind that

@claim ("an upload is not behind jobs: it has a worker of its own")
def _ ():
  job = s.ask ("POST", "/v1/schedules", long (budget_ppm=600000)).json ()
  start = time.time ()
  assert s.ask ("POST", "/v1/traces", text + b" ").status in (200, 201)
  assert time.time () - start < 4 and s.ask ("GET", job["links"]["self"]).json ()["state"] == "running"
  s.ask ("DELETE", job["links"]["self"])

@claim ("short questions go before long ones that have come first")
def _ ():
  links = []
  for body in (long (budget_ppm=610000), long (budget_ppm=620000), long (budget_ppm=630000, limit_ticks=1000)):
    links.append (s.ask ("POST", "/v1/schedules", body).json ()["links"]["self"])
    while s.ask ("GET", links[0]).json ()["state"] == "queued": time.sleep (0.02)
  place = lambda i: s.ask ("GET", links[i]).json ()["position"]
  assert (place (1), place (2)) == (1, 0), (place (1), place (2))
  s.ask ("DELETE", links[0])
  assert s.ask ("GET", links[2], headers={"Prefer": "wait=30"}).json ()["state"] == "done"
  assert s.ask ("GET", links[1]).json ().get ("finished_ms", 0) == 0
  s.ask ("DELETE", links[1])

@claim ("a card that is not named, or has less than is asked for, is a 422 at once, asked in earnest or not")
def _ ():
  bare = json.loads (text)
  del bare["source"]
  none = s.ask ("POST", "/v1/traces", json.dumps (bare).encode ()).json ()["trace"]
  job = lambda **more: {"jobs": [{"name": "a", "trace": trace}], **more}
  cases = (("schedules", {"trace": none, "budget_ppm": 700000}, "/device"), ("schedules", {"trace": trace, "budget_bytes": 30 << 30}, "/budget_bytes"),
           ("schedules", {"trace": trace, "budget_bytes": 20 << 30, "device": "v100"}, "/budget_bytes"), ("schedules", {"trace": trace, "budget_ppm": 100000000}, "/budget_ppm"),
           ("curves", {"trace": none, "points": 3}, "/device"), ("curves", {"trace": trace, "budgets": [30 << 30, 40 << 30]}, "/budgets"), ("min-memory", {"trace": none}, "/device"),
           ("comparisons", {"trace": trace, "budget_bytes": 30 << 30}, "/budget_bytes"), ("what-if", {"trace": none}, "/devices"),
           ("packs", job (memory_bytes=30 << 30), "/memory_bytes"), ("packs", job (memory_bytes=30 << 30, devices=["a100-80", "v100"]), "/memory_bytes"), ("packs", {"jobs": [{"name": "a", "trace": none}]}, "/devices"))
  for kind, body, pointer in cases:
    for only in ({}, {"validate_only": True}):
      assert [e["pointer"] for e in problem (s.ask ("POST", f"/v1/{kind}", {**body, **only}), 422)["errors"]] == [pointer], (kind, body)
  for kind, body in (("schedules", {"trace": trace, "budget_bytes": 30 << 30, "device": "a100-40"}), ("schedules", {"trace": none, "device": "v100"}), ("curves", {"trace": trace, "budgets": [30 << 30, 1 << 30]}),
                     ("what-if", {"trace": none, "devices": ["v100"]}), ("packs", job (memory_bytes=30 << 30, devices=["a100-80"]))):
    r = s.ask ("POST", f"/v1/{kind}", {**body, "validate_only": True})
    assert r.status == 200, r.body

@claim ("an upload keeps its file's name, which the query or Content-Disposition says, or the client")
def _ ():
  def said (body, query="", headers={}): return problem (s.ask ("POST", "/v1/traces" + query, body, headers), 422)["detail"]
  assert said (b"nonsense 1").startswith ("body")
  assert said (b"nonsense 2", "?name=step.json").startswith ("step.json")
  assert said (b"nonsense 3", "?name=..%2F..%2Fa%5Cb%22c.json").startswith ("b_c.json")
  assert said (b"nonsense 4", headers={"Content-Disposition": 'attachment; filename="of mine.json"'}).startswith ("of mine.json")
  assert said (b"nonsense 5", headers={"Content-Disposition": "attachment; filename=-v"}).startswith ("-v")
  assert said (b"nonsense 6", "?name=.." ).startswith ("body")
  open ("my step.csv", "w").write ("nonsense 7")
  assert "my_step.csv" in ferry ("submit", "my step.csv", "--server", s.url, status=3).stderr

@claim ("every kind can be asked for by the client, a pack by a file for each job, a batch by no file")
def _ ():
  shutil.copy ("a.json", "b.json")
  os.makedirs ("more", exist_ok=True)
  shutil.copy ("a.json", "more/a.json")
  def ask (kind, files, **more): return json.loads (ferry ("submit", *files, "-k", kind, "--with", json.dumps (more), "--wait", "--server", s.url, status=None).stdout)
  pack = ask ("packs", ["a.json", "b.json", "more/a.json"], limit_ticks=100, points=3, sections="off")
  assert [j["name"] for j in pack["request"]["jobs"]] == ["a", "b", "a.3"]
  batch = ask ("max-batch", [], network="alexnet", device="v100", image=64, width_divisor=2, most=2, limit_ticks=10)
  assert batch["kind"] == "max-batch" and batch["request"]["network"] == "alexnet"
  for words in (["-k", "packs"], ["-k", "schedules"], [], ["a.json", "-k", "max-batch"], ["a.json"] * 3, ["a.json"] * 3 + ["-k", "curves"]): ferry ("submit", *words, "--server", s.url, status=2)

@claim ("a question that has its answer gets it from memory, the same to the byte, and its own owner alone")
def _ ():
  body = {"trace": trace, "budget_ppm": 900000, "limit_ticks": 1000}
  first = s.job ("schedules", body)
  hits = lambda: sum (int (v) for v in re.findall (r'ferry_cache_hits_total\{kind="schedules"\} (\d+)', s.ask ("GET", "/metrics").body.decode ()))
  replies = [s.ask ("POST", "/v1/schedules", body) for _ in range (3)]
  assert all (r.status == 200 and r.body == replies[0].body and r.headers["Location"] == first["links"]["self"] for r in replies)
  assert hits () >= 1 and replies[0].json ()["state"] == "done"
  before = hits ()
  problem (s.ask ("POST", "/v1/schedules", {**body, "nonsense": 1}), 422)
  assert s.ask ("POST", "/v1/schedules", body, {"Idempotency-Key": "k"}).status == 200
  problem (s.ask ("POST", "/v1/schedules", {**body, "limit_ticks": 2000}, {"Idempotency-Key": "k"}), 422)
  assert hits () == before

def raw (*parts):
  c = socket.create_connection (("127.0.0.1", s.port), PATIENCE)
  c.sendall (b"".join (parts))
  out = b""
  try:
    while data := c.recv (65536): out += data
  except ConnectionResetError: pass
  return re.findall (rb"HTTP/1.1 (\d+)", out)

@claim ("a head that is not clear is a 400, and nothing behind it is read as a request")
def _ ():
  next = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
  post = b"POST /v1/schedules HTTP/1.1\r\nHost: localhost\r\n"
  for head in (post + b"Content-Length : %d\r\n\r\n" % len (next), b"GET /v1/traces HTTP/1.1\r\n\r\n",
               b"GET /v1/traces HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n"):
    assert raw (head, next) == [b"400"], head
  chunked = post + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
  for body in (b"2\r\n{}\r\n0\r\n\r\n", b"2\n{}\n0\n\n"): assert raw (chunked + body, next) in ([b"422"], [b"400"]), body

@claim ("a probe without a Host is answered, ready or not")
def _ ():
  for path in (b"/healthz", b"/readyz"): assert raw (b"GET " + path + b" HTTP/1.1\r\nConnection: close\r\n\r\n") == [b"200"]

@claim ("no answer's type is guessed")
def _ ():
  for path in ("/v1/version", "/v1/traces", "/nowhere", "/metrics", "/"):
    assert s.ask ("GET", path).headers["X-Content-Type-Options"] == "nosniff", path

@claim ("a backup that was made while the daemon ran has all")
def _ ():
  path = s.job ("schedules", {"trace": trace, "budget_ppm": 900000, "limit_ticks": 1000})["links"]["plan"]
  os.makedirs ("again/state")
  with sqlite3.connect ("state/store.sqlite") as db, sqlite3.connect ("again/state/store.sqlite") as copy: db.backup (copy)
  shutil.copytree ("state/blobs", "again/state/blobs")
  z = Server (f"{work}/again", "-q")
  assert z.ask ("GET", path).body == s.ask ("GET", path).body and z.upload ("a.json") == trace
  assert z.stop () == 0

@claim ("a store of a later version is refused")
def _ ():
  assert s.stop () == 0
  with sqlite3.connect ("state/store.sqlite") as db: db.execute ("update version set number = 1000")
  assert "newer" in ferry ("serve", "--state", "state", "--listen", "127.0.0.1:0", status=3).stderr
  with sqlite3.connect ("state/store.sqlite") as db: db.execute ("update version set number = 1")

@claim ("a service without room is not ready, and its older store is moved forward")
def _ ():
  full = Server (work, "--disk-quota", "1KiB", "-q")
  assert full.ask ("GET", "/healthz").status == 200
  problem (full.ask ("GET", "/readyz"), 503)
  assert full.stop () == 0
  with sqlite3.connect ("state/store.sqlite") as db: assert db.execute ("select number from version").fetchone ()[0] > 1
finish ()
