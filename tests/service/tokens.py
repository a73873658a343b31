# SPDX-License-Identifier: GPL-3.0-or-later
# Tokens while the daemon runs: new ones, revoked ones, and what a scheduler's may see.
from common import *

work = scratch ()
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
made, lines = {}, {}
def token (name, role):
  p = ferry ("token", "--owner", name, "--role", role)
  made[name], lines[name] = p.stderr.strip (), p.stdout
def write (*names):
  with open ("new", "w") as f:
    os.chmod ("new", 0o600)
    f.write ("".join (lines[n] for n in names))
  os.rename ("new", "tokens")
for name, role in (("ada", "submit"), ("bob", "submit"), ("slurm", "site"), ("eve", "read"), ("root", "admin")): token (name, role)
write ("ada", "slurm", "eve", "root")
s = Server (work, "--tokens", "tokens", "--workers", "1", "--card-reserve", "300MiB")
trace = s.upload ("a.json", made["ada"], "?fingerprint=net")
curve = s.job ("curves", {"trace": trace, "points": 3, "limit_ticks": 1000, "sections": "off"}, made["ada"])

def within (seconds, f):
  end = time.time () + seconds
  while not f (): assert time.time () < end; time.sleep (0.02)

@claim ("a token that leaves the file is refused within a second, a new one is known, and SIGHUP ends nothing")
def _ ():
  assert s.ask ("GET", "/v1/traces", token=made["bob"]).status == 401
  write ("ada", "bob", "slurm", "root")
  within (2, lambda: s.ask ("GET", "/v1/traces", token=made["eve"]).status == 401)
  within (2, lambda: s.ask ("GET", "/v1/traces", token=made["bob"]).status == 200)
  s.process.send_signal (signal.SIGHUP)
  with open ("tokens", "a") as f: f.write ("nonsense\n")
  time.sleep (1)
  s.process.send_signal (signal.SIGHUP)
  within (10, lambda: "line 5" in open ("log").read ())
  assert s.process.poll () is None and s.ask ("GET", "/v1/traces", token=made["ada"]).status == 200

@claim ("a stream ends with its token")
def _ ():
  job = s.ask ("POST", "/v1/schedules", {"trace": trace, "budget_ppm": 700000, "limit_ticks": 10**12}, token=made["ada"]).json ()
  c = http.client.HTTPConnection ("127.0.0.1", s.port, timeout=PATIENCE)
  c.request ("GET", job["links"]["events"], headers={"Authorization": "Bearer " + made["ada"]})
  r = c.getresponse ()
  write ("bob", "slurm", "root")
  start = time.time ()
  r.read ()
  assert time.time () - start < 5
  write ("ada", "bob", "slurm", "root")
  within (2, lambda: s.ask ("DELETE", job["links"]["self"], token=made["ada"]).status == 202)

@claim ("a site's token reads every owner's advice and nothing else of theirs")
def _ ():
  mine = s.ask ("GET", "/v1/advice?fingerprint=net", token=made["ada"])
  assert s.ask ("GET", "/v1/advice?fingerprint=net", token=made["bob"]).status == 404
  for who in ("slurm", "root"):
    for name in ("net", "ada/net"):
      r = s.ask ("GET", f"/v1/advice?fingerprint={name}", token=made[who])
      assert r.status == 200 and r.json ()["memory_bytes"] == mine.json ()["memory_bytes"], r.body
    assert s.ask ("GET", "/v1/advice?fingerprint=bob/net", token=made[who]).status == 404
  problem (s.ask ("GET", "/v1/advice?fingerprint=ada/net", token=made["ada"]), 422)
  for path in (f"/v1/traces/{trace}", f"/v1/traces/{trace}/content", curve["links"]["self"], curve["links"]["result"]):
    assert s.ask ("GET", path, token=made["slurm"]).status == 404, path
  assert s.ask ("POST", "/v1/curves", {"trace": trace}, token=made["slurm"]).status == 403

@claim ("an answer from memory is its owner's, and ends with the token's role")
def _ ():
  body = {"trace": trace, "points": 3, "limit_ticks": 1000, "sections": "off"}
  for _ in range (3): assert s.ask ("POST", "/v1/curves", body, token=made["ada"]).json ()["id"] == curve["id"]
  problem (s.ask ("POST", "/v1/curves", body, token=made["bob"]), 422)
  assert s.ask ("POST", "/v1/curves", body, token=made["slurm"]).status == 403 and s.ask ("POST", "/v1/curves", body).status == 401

@claim ("figures for a card count what a process takes of it beside its plan")
def _ ():
  a = s.ask ("GET", "/v1/advice?fingerprint=net", token=made["ada"]).json ()
  result = s.ask ("GET", curve["links"]["result"], token=made["ada"]).json ()
  assert a["reserved_bytes"] == (result["reserved_bytes"] or 300 << 20) and a["card_bytes"] == a["memory_bytes"] + a["reserved_bytes"], a
  assert a["memory_mib"] == -(-a["card_bytes"] // (1 << 20))
  tight = s.ask ("GET", f"/v1/advice?fingerprint=net&gpu_memory_bytes={a['memory_bytes']}", token=made["ada"]).json ()
  assert tight["fits"] is False and "needs" in tight["reason"]
  out = ferry ("advise", "net", "--format", "hami", "--server", s.url, env=dict (os.environ, FERRY_TOKEN=made["ada"])).stdout
  assert f"gpumem: {a['memory_mib']}\n" in out, out

@claim ("an extender that can send no header has its token in its path")
def _ ():
  pod = {"Pod": {"metadata": {"annotations": {"ferry.dev/fingerprint": "net"}}},
         "Nodes": {"items": [{"metadata": {"name": "small", "labels": {"ferry.dev/gpu-memory-bytes": "100Mi"}}}]}}
  assert s.ask ("POST", "/k8s/filter", pod).status == 401
  assert s.ask ("POST", "/k8s/ferry_0/filter", pod).status == 401
  r = s.ask ("POST", f"/k8s/{made['slurm']}/filter", pod).json ()
  assert r["Nodes"]["items"] == [] and "needs" in r["FailedNodes"]["small"], r
  assert s.ask ("POST", f"/k8s/{made['slurm']}/prioritize", pod).json () == [{"Host": "small", "Score": 0}]
  assert made["slurm"] not in open ("log").read ()

@claim ("one's first upload of bytes that another has is a 201, as if nobody had them")
def _ (): assert [s.ask ("POST", "/v1/traces", open ("a.json", "rb").read (), token=made["bob"]).status for _ in range (2)] == [201, 200]

@claim ("streams of one owner leave room for another's")
def _ ():
  path = s.ask ("POST", "/v1/schedules", {"trace": trace, "budget_ppm": 710000, "limit_ticks": 10**12}, token=made["ada"]).json ()["links"]["self"]
  own = s.ask ("POST", "/v1/schedules", {"trace": trace, "budget_ppm": 720000, "limit_ticks": 10**12}, token=made["bob"]).json ()["links"]["self"]
  open_ones = []
  def stream (of, who):
    c = http.client.HTTPConnection ("127.0.0.1", s.port, timeout=PATIENCE)
    c.request ("GET", of + "/events", headers={"Authorization": "Bearer " + made[who]})
    open_ones.append (c)
    return c.getresponse ().status
  hers = [stream (path, "ada") for _ in range (140)]
  assert hers == [200] * hers.count (200) + [503] * hers.count (503) and hers.count (503) > 0, hers
  assert stream (own, "bob") == 200
  for c in open_ones: c.close ()
  for of, who in ((path, "ada"), (own, "bob")): s.ask ("DELETE", of, token=made[who])

@claim ("a file of tokens may be another user's that one's group may read, and nobody else")
def _ ():
  if os.geteuid () != 0: return
  shutil.copy ("tokens", "theirs")
  os.chown ("theirs", 65534, 0)
  for mode in (0o644, 0o660, 0o604):
    os.chmod ("theirs", mode)
    assert "can be read by others" in ferry ("serve", "--state", "none", "--listen", "127.0.0.1:0", "--tokens", "theirs", status=3).stderr, oct (mode)
  os.chmod ("theirs", 0o640)
  os.mkdir ("other")
  z = Server (f"{work}/other", "--tokens", "theirs", "-q")
  assert z.ask ("GET", "/v1/traces", token=made["ada"]).status == 200 and z.stop () == 0

@claim ("it ends in order")
def _ (): assert s.stop () == 0
finish ()
