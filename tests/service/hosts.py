# SPDX-License-Identifier: GPL-3.0-or-later
# Advice for ranks on the cards of one host: planned here, and from a server's what-if; the schedulers' words.
import base64
from common import *

scratch ()
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
quick = ("--swap-only", "--limit", "200")
s = Server (".", "--workers", "1", "--worker-memory", "2GiB")
trace = s.upload ("a.json", query="?fingerprint=net")
host = "workstation-2x5090"
memory = ["100%", "90%", "80%", "70%"]
grid = s.job ("what-if", {"trace": trace, "host": host, "ranks": [1, 2], "memory": memory, "swap_only": True, "limit_ticks": 200})
rows = s.ask ("GET", f"/v1/what-if/{grid['id']}/result").json ()

def advice (**query):
  r = s.ask ("GET", "/v1/advice?" + "&".join (f"{k}={v}" for k, v in {"fingerprint": "net", "host": host, **query}.items ()))
  return r.json () if r.status == 200 else r

def best (slowdown, ranks=None): # by the rows: the most ranks, then the least budget
  good = [r for r in rows["rows"] if 0 <= r["step_ns"] <= rows["baseline_ns"] * (1 + slowdown) and ranks in (None, r["ranks"])]
  return min (good, key=lambda r: (-r["ranks"], r["budget_bytes"]), default=None)

@claim ("a server's advice for a host is the row of its what-if with the most ranks and the least budget")
def _ ():
  for slowdown in (0, 2, 4, 5):
    for ranks in (None, 1, 2):
      a, r = advice (max_slowdown_ppm=round (slowdown * 1e6), **({"ranks": ranks} if ranks else {})), best (slowdown, ranks)
      assert a["fits"] and (a["ranks"], a["memory_bytes"], a["step_ns"], a["pinned_host_bytes"]) == (r["ranks"], r["budget_bytes"], r["step_ns"], r["pinned_bytes"]), (a, r)
      assert a["slowdown_bound"] <= a["slowdown"] <= slowdown and a["host"] == host and a["curve"] == grid["id"]
  assert len ({advice (max_slowdown_ppm=p)["memory_bytes"] for p in (0, 4000000)}) == 2

@claim ("each process's own memory counts, and what does not fit is named")
def _ ():
  has = advice ()["host_bytes"]
  assert advice (rank_host_bytes=has // 2 + 1)["ranks"] == 1
  a = advice (rank_host_bytes=has + 1)
  assert not a["fits"] and a["ranks"] == 0 and "of the host's memory of" in a["reason"] and "memory_bytes" not in a, a
  assert "were not simulated" in advice (ranks=3)["reason"]
  problem (advice (host="hgx-h100"), 404, "unknown-profile")
  problem (advice (fingerprint="nobody"), 404, "unknown-profile")
  for wrong in ({"host": "../etc"}, {"ranks": 65}, {"ranks": "two"}, {"gpu_memory_bytes": 1}, {"rank_host_bytes": -1}):
    problem (advice (**wrong), 422)
  problem (s.ask ("GET", "/v1/advice?fingerprint=net&ranks=2"), 422)

@claim ("the client prints it for each scheduler, and says what is missing")
def _ ():
  a = advice (max_slowdown_ppm=4000000)
  def advise (*more, **how): return ferry ("advise", "net", "--server", s.url, "--host", host, "-s", "400%", *more, **how)
  mib = -(-a["card_bytes"] // (1 << 20))
  pinned = -(-a["pinned_host_bytes"] // (1 << 20))
  slurm = advise ().stdout
  assert "--gres=gpu:2\n" in slurm and "--ntasks-per-node=2\n" in slurm and f"# add {pinned} MB" in slurm and "ferry:net@4000000" in slurm, slurm
  both = -(-(a["pinned_host_bytes"] + (2 << 30)) // (1 << 20))
  assert f"--mem={both}M\n" in advise ("--rank-memory", "1GiB").stdout
  k8s = advise ("-f", "k8s").stdout
  assert f'ferry.dev/host: "{host}"' in k8s and f"memory: {pinned}Mi" in k8s and "nvidia.com/gpu: 2" in k8s, k8s
  assert "nvidia.com/gpu: 2\n" in advise ("-f", "hami").stdout and "count: 2\n" in advise ("-f", "dra").stdout
  assert 'num-devices: "2"' in advise ("-f", "kai").stdout
  assert json.loads (advise ("--json").stdout)["ranks"] == 2
  assert "were not simulated" in advise ("--ranks", "3", status=1).stderr
  assert "--kind what-if" in ferry ("advise", "net", "--server", s.url, "--host", "hgx-h100", status=1).stderr

@claim ("a trace is planned here: what fits is the least of the budgets, and simulated together")
def _ ():
  def here (*more, **how): return ferry ("advise", "-q", "a.json", "--host", host, "--budget", ",".join (memory), *quick, *more, **how)
  for percent in (0, 200, 400):
    a, r = json.loads (here ("-s", f"{percent}%", "--json").stdout), best (percent / 100)
    assert (a["ranks"], a["memory_bytes"], a["step_ns"]) == (r["ranks"], r["budget_bytes"], r["step_ns"]), (a, r)
    assert all (row["fits"] == (0 <= row["step_ns"] <= a["baseline_ns"] * (1 + percent / 100)) for row in a["rows"])
  assert "2 of 2 ranks fit " + host in here ("-s", "400%").stdout
  small = json.load (open (os.path.join (os.environ["srcdir"], "data/hosts", host + ".json")))
  small.update (name="tight", pinned_bytes=1 << 20, host_bytes=1 << 21)
  json.dump (small, open ("tight.json", "w"))
  def tight (*more, **how): return ferry ("advise", "-q", "a.json", "--host", "tight.json", "--budget", "80%", "-s", "400%", *quick, *more, **how)
  assert "1 rank of tight in" in tight (status=1).stderr
  assert json.loads (tight ("--json", status=1).stdout)["fits"] is False
  for words, says in ((("--ranks", "3"), "has 2 cards"), (("--ranks", "0"), "--ranks"), (("--ranks", "two"), "--ranks"), (("--gpu-memory", "1GiB"), "give one of them"), (("-o", "x"), "solve --host")):
    assert says in here (*words, status=2).stderr, words
  assert "--host: there is no host" in ferry ("advise", "a.json", "--host", "nothing", status=2).stderr
  assert "has planned already" in ferry ("advise", "net", "--host", host, "--server", s.url, "--sections", "off", status=2).stderr
  assert "needs the host" in ferry ("advise", "net", "--ranks", "2", status=2).stderr

@claim ("a pod that names its host gets the pinned memory of all its ranks, their number and the slowdown")
def _ ():
  def pod (**notes):
    return {"metadata": {"name": "p", "annotations": {"ferry.dev/fingerprint": "net", "ferry.dev/max-slowdown-ppm": "4000000", **notes}},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2", "memory": "1Gi"}}}]}}
  def mutate (**notes):
    r = s.ask ("POST", "/k8s/mutate", {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "kind": {"kind": "Pod"}, "operation": "CREATE", "object": pod (**notes)}}).json ()["response"]
    return {c["path"]: c["value"] for c in json.loads (base64.b64decode (r.get ("patch", "W10=")))}, r.get ("warnings", [""])[0]
  for ranks in (1, 2):
    a, (changes, warning) = advice (max_slowdown_ppm=4000000, ranks=ranks), mutate (**{"ferry.dev/host": host, "ferry.dev/ranks": str (ranks)})
    assert not warning and changes["/metadata/annotations/ferry.dev~1pinned-host-bytes"] == str (a["pinned_host_bytes"]), (changes, warning)
    assert changes["/spec/containers/0/resources/limits/memory"] == str ((1 << 30) + a["pinned_host_bytes"])
    said = {key: int (changes["/metadata/annotations/ferry.dev~1" + key]) for key in ("ranks", "slowdown-ppm")}
    assert said["ranks"] == a["ranks"] and abs (said["slowdown-ppm"] / 1e6 - a["slowdown"]) < 2e-6, (said, a)
  assert mutate (**{"ferry.dev/host": host})[0]["/metadata/annotations/ferry.dev~1ranks"] == str (advice (max_slowdown_ppm=4000000)["ranks"])
  assert "nothing is known of net on hgx-h100" in mutate (**{"ferry.dev/host": "hgx-h100"})[1]
  assert "not understood" in mutate (**{"ferry.dev/host": host, "ferry.dev/ranks": "many"})[1]

@claim ("Slurm's scripts ask for all tasks of a job together where the site names its host")
def _ ():
  lua = next ((l for l in ("lua5.4", "lua5.3", "lua") if shutil.which (l)), None)
  if not lua: return
  a = advice (max_slowdown_ppm=4000000, ranks=2)
  open ("ask.lua", "w").write (f"""local f, s = dofile (arg[1] .. "/ferry.lua"), dofile (arg[1] .. "/site.lua")
s.server, s.host, s.slowdown_ppm, s.per_task = "{s.url}", "{host}", 4000000, true
local c = f.rewrite (s, {{ text = "ferry:net", gres = "gpu:2", tasks_per_node = 2 }}, 60)
print (c.per_task, c.host_mib, c.say)""")
  p = subprocess.run ([lua, "ask.lua", os.path.join (os.environ["srcdir"], "contrib/slurm")], capture_output=True, text=True)
  shards, pinned = -(-a["card_bytes"] // (1 << 30)), -(-a["pinned_host_bytes"] // (1 << 20))
  assert p.stdout.split ("\t")[:2] == [f"gres/shard:{shards}", str (pinned)] and f"for 2 ranks on {host}; a step takes {100 * a['slowdown']:.1f} % longer" in p.stdout, (p.stdout, p.stderr, a)

own = json.load (open (os.path.join (os.environ["srcdir"], "data/hosts", host + ".json")))
own.update (name="mine", cards=3, pinned_bytes=own["pinned_bytes"] // 2)
own["groups"][0]["cards"] = [0, 1, 2]
json.dump (own, open ("mine.json", "w"))
plain = {"swap_only": True, "limit_ticks": 200}
def done (kind, request):
  j = s.job (kind, request)
  return j, s.ask ("GET", f"/v1/{kind}/{j['id']}/result").json ()
def kept (j, name):
  r = s.ask ("GET", f"/v1/{j['kind']}/{j['id']}/files/{name}")
  return r.body if r.status == 200 else None

@claim ("a host is a name or an object, in every kind of job, and answers are those of the commands")
def _ ():
  for given, named in ((host, host), (own, "./mine.json")):
    j, a = done ("schedules", {"trace": trace, "budget_ppm": 700000, "host": given, "ranks": 2, **plain})
    b = json.loads (ferry ("solve", "-q", "a.json", "-b", "70%", "--host", named, "--ranks", "2", *quick, "--json", "-o", "p.json").stdout)
    assert a == b and j["verified"]["step_ns"] == a["step_ns"] and j["verified"]["ranks"] == 2, (a, b, j)
    assert kept (j, "plan") == open ("p.json", "rb").read ()
    assert b"copy out" in kept (j, "picture") and kept (j, "timeline") is None
    for kind, command, more, words in (("curves", "curve", {"budgets": ["80%"]}, ("-b", "80%")), ("min-memory", "min-memory", {"slowdown_ppm": 500000}, ("-s", "50%"))):
      a = done (kind, {"trace": trace, "host": given, "ranks": 2, **more, **plain})[1]
      assert a == json.loads (ferry (command, "-q", "a.json", "--host", named, "--ranks", "2", *words, *quick, "--json").stdout), kind
    a = done ("comparisons", {"trace": trace, "host": given, "ranks": 2, "budget_ppm": 900000, "policies": ["vdnn-all", "ferry"], **plain})[1]
    assert [r["predicted"] for r in a["rows"]] == [r["predicted"] for r in json.loads (ferry ("compare", "-q", "a.json", "--host", named, "--ranks", "2", "-b", "90%", "--policies", "vdnn-all,ferry", *quick, "--json").stdout)["rows"]]
    a = done ("what-if", {"trace": trace, "host": given, "ranks": [1, 2], "memory": ["80%"], **plain})[1]
    assert a["rows"] == json.loads (ferry ("whatif", "-q", "a.json", "--host", named, "--ranks", "1,2", "-b", "80%", *quick, "--json").stdout)["rows"]
    a = done ("max-batch", {"network": "alexnet", "device": own["device"], "image": 64, "width_divisor": 4, "classes": 100, "memory_bytes": 64 << 20, "most": 64, "host": given, "ranks": 2, **plain})[1]
    assert a["device"] == own["device"] and "network" in a, a
  # the name of an object is what advice asks for; a curve with a host is no advice for one card
  assert advice (host="mine", max_slowdown_ppm=4000000)["ranks"] == 2
  problem (s.ask ("GET", "/v1/advice?fingerprint=net"), 404, "unknown-profile")

@claim ("stages of one job and jobs of a host are planned by the service as here")
def _ ():
  ferry ("zoo", "-q", *SMALL[:1], "--batch", "8", *SMALL[3:], "-o", "b.json")
  second = s.upload ("b.json")
  assert second != trace
  j, a = done ("schedules", {"trace": trace, "stages": [second], "budget_ppm": 700000, "host": own, **plain})
  b = json.loads (ferry ("solve", "-q", "a.json", "b.json", "-b", "70%", "--host", "./mine.json", *quick, "--json", "-o", "p.json").stdout)
  assert a == b and j["verified"]["plans"] == 2, (a, b)
  assert [kept (j, n) for n in ("plan", "plan.1", "plan.2")] == [open ("p.json", "rb").read (), open ("p.1.json", "rb").read (), None]
  for kind, more, words in (("curves", {"budgets": ["80%"]}, ("curve", "-b", "80%")), ("min-memory", {"slowdown_ppm": 500000}, ("min-memory", "-s", "50%"))):
    assert done (kind, {"trace": trace, "stages": [second], "host": own, **more, **plain})[1] == json.loads (ferry (*words, "-q", "a.json", "b.json", "--host", "./mine.json", *quick, "--json").stdout)
  j, a = done ("packs", {"jobs": [{"name": "a", "trace": trace}, {"name": "b", "trace": second}], "memory_bytes": 140 << 20, "host": own, **plain})
  assert a == json.loads (ferry ("pack", "-q", "a.json", "b.json", "-b", "140MiB", "--host", "./mine.json", *quick, "--json").stdout)
  assert kept (j, "plan.a") and kept (j, "plan.b")

@claim ("hosts that are none, and what does not go with one, are refused at their place")
def _ ():
  base = {"trace": trace, "budget_ppm": 700000}
  def refused (pointer, kind="schedules", **more):
    r = s.ask ("POST", f"/v1/{kind}", {**(base if kind == "schedules" else {"trace": trace}), **more})
    problem (r, 422)
    assert pointer in [e["pointer"] for e in r.json ()["errors"]], (pointer, r.json ())
  changed = lambda **how: {**own, **how}
  refused ("/host", host="nothing")
  refused ("/host/name", host={k: v for k, v in own.items () if k != "name"})
  refused ("/host/name", host=changed (name="../etc"))
  refused ("/host/device", host=changed (device="./device.json"))
  refused ("/host/cards", host=changed (cards=65))
  refused ("/host/format", host=changed (format="ferry-host/9"))
  refused ("/host/groups/0/cards/2", host=changed (cards=2))
  refused ("/host/pinned_bytes", host=changed (pinned_bytes=own["host_bytes"] + 1))
  refused ("/host", host=7)
  refused ("/ranks", host=own, ranks=4)
  refused ("/ranks", ranks=2)
  refused ("/stages", stages=[trace])
  refused ("/stages", host=own, stages=[trace] * 3)
  refused ("/stages", host=own, stages=[])
  refused ("/host_bytes", host=own, host_bytes=1)
  refused ("/for", host=own, **{"for": "run"})
  refused ("/policy", host=own, policy="lru")
  refused ("/devices", "what-if", host=own, devices=["v100"])

@claim ("it ends in order")
def _ (): assert s.stop () == 0
finish ()
