# SPDX-License-Identifier: GPL-3.0-or-later
# kill -9 at random moments: the daemon, one of its workers, or PostgreSQL, round after round. No job that was
# accepted is lost, none is stored twice, and every stored plan passes `ferry check`.
# kill.py ROUNDS SEED [STORE]
import fcntl, hashlib, itertools, random, threading
from common import *

rounds, seed = int (sys.argv[1]), int (sys.argv[2])
efforts = [1000, 20000, 60000] if rounds < 100 else [1000, 100000, 400000]
store = sys.argv[3] if len (sys.argv) > 3 else None
dice = random.Random (seed)
work = scratch ()
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
budget = int (json.loads (ferry ("info", "a.json", "--json").stdout)["peak_bytes"] * 0.7)
plain = open ("a.json", "rb").read ()
s = Server (work, "--workers", "2", "--tries", "1000", "--worker-memory", "2GiB", store=store)
accepted, uploads, kills = {}, {}, {"daemon": 0, "worker": 0, "database": 0}
crash = os.environ.get ("FERRY_CRASH") # kills the store's database and starts it again

def children (pid):
  try:
    return [int (c) for t in os.listdir (f"/proc/{pid}/task") for c in open (f"/proc/{pid}/task/{t}/children").read ().split ()]
  except OSError:
    return []

def state_of (pid):
  try: return open (f"/proc/{pid}/stat").read ().rsplit (")", 1)[1].split ()[0]
  except OSError: return None

def is_there (pid): return state_of (pid) not in (None, "Z")

def submit (n):
  body = {"trace": trace, "budget_bytes": budget, "limit_ticks": dice.choice (efforts), "sections": "off",
          "recompute": "off", "order": "as-is", "seed": n}
  try:
    r = s.ask ("POST", "/v1/schedules", body, timeout=20)
    if r.status in (200, 202): accepted[r.json ()["id"]] = body
    if n % 5 == 0: # an upload that nobody has seen
      t = json.loads (plain)
      t["name"] = f"upload {n}"
      r = s.ask ("POST", "/v1/traces", json.dumps (t), timeout=20)
      if r.status in (200, 201): uploads[r.json ()["trace"]] = t["name"]
      elif r.status == 202: accepted[r.json ()["id"]] = None
  except (OSError, http.client.HTTPException):
    pass # not accepted: nobody was told that it was

trace = s.upload ("a.json")
for n in range (rounds):
  for k in range (dice.randrange (1, 4)): submit (10 * n + k)
  time.sleep (dice.random () * 0.3)
  workers = children (s.process.pid)
  if crash and dice.random () < 0.3:
    kills["database"] += 1
    assert subprocess.run ([crash], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
  elif dice.random () < 0.5 and workers:
    kills["worker"] += 1
    try: os.kill (dice.choice (workers), signal.SIGKILL)
    except ProcessLookupError: pass
  else:
    kills["daemon"] += 1
    # A request in flight may be cut at any point of it.
    if dice.random () < 0.5:
      t = threading.Thread (target=submit, args=(10 * n + 9,))
      t.start ()
      time.sleep (dice.random () * 0.02)
      s.stop (signal.SIGKILL)
      t.join ()
    else:
      s.stop (signal.SIGKILL)
    end = time.time () + 10
    while any (map (is_there, workers)):
      assert time.time () < end, "a worker has outlived its daemon"
      time.sleep (0.01)
    s.start ()

def status (id, body, wait=30):
  kind = "imports" if body is None else "schedules"
  end = time.time () + PATIENCE # a database that was just killed is not there at once
  while (r := s.ask ("GET", f"/v1/{kind}/{id}", None, {"Prefer": f"wait={wait}"})).status == 503: assert time.time () < end
  assert r.status == 200, (id, r.status, r.body)
  return r.json ()

@claim ("no accepted job is lost")
def _ ():
  end = time.time () + 20 * PATIENCE
  for id, body in accepted.items ():
    while (j := status (id, body))["state"] in ("queued", "running"): assert time.time () < end, j
    assert j["state"] == "done", j

@claim ("no upload that was answered is lost")
def _ ():
  for t, name in uploads.items ():
    r = s.ask ("GET", f"/v1/traces/{t}")
    assert r.status == 200 and r.json ()["info"]["name"] == name

@claim ("every stored plan passes check, and its files are what they are named")
def _ ():
  for id, body in accepted.items ():
    if body is None: continue
    job = status (id, body)
    open ("plan.json", "wb").write (s.ask ("GET", job["links"]["plan"]).body)
    ferry ("check", "a.json", "plan.json")
  for name in os.listdir ("state/blobs"):
    if not name.startswith ("."):
      assert hashlib.sha256 (open ("state/blobs/" + name, "rb").read ()).hexdigest () == name, name

@claim ("none is stored twice: each job has one row, the same plan as an undisturbed run")
def _ ():
  ids, path = [], "/v1/schedules?limit=100"
  while path:
    r = s.ask ("GET", path)
    ids += [j["id"] for j in r.json ()["jobs"]]
    path = r.headers["Link"].split (">")[0][1:] if r.headers["Link"] else None
  assert len (ids) == len (set (ids)) and set (i for i, b in accepted.items () if b) <= set (ids)
  for id in dice.sample (sorted (i for i, b in accepted.items () if b), 3):
    b = accepted[id]
    ferry ("solve", "a.json", "--budget", f"{budget}B", "--limit", str (b["limit_ticks"]), "--swap-only", "--seed", str (b["seed"]),
           "-o", "again.json", status=None)
    assert s.ask ("GET", f"/v1/schedules/{id}/files/plan").body == open ("again.json", "rb").read ()

# A worker that draws has a child of its own, named `ferry export`: one that is stopped stays until somebody kills it.
seeds = itertools.count (1000)

def name_of (pid):
  try: return open (f"/proc/{pid}/comm").read ().strip ()
  except OSError: return None

def draws (pid): return name_of (pid) == "ferry export"

def stop_child ():
  for worker in children (s.process.pid):
    for child in children (worker):
      if not draws (child): continue # before it has that name it has not yet asked to end with its worker
      try: os.kill (child, signal.SIGSTOP)
      except ProcessLookupError: continue
      if child in children (worker):
        assert os.readlink (f"/proc/{worker}/fd/4").endswith ("/state/workers") # a new daemon waits for it
        return worker, child

def job_with_stopped_child ():
  end = time.time () + PATIENCE
  while time.time () < end:
    body = {"trace": trace, "budget_bytes": budget, "limit_ticks": 1000, "sections": "off", "recompute": "off",
            "order": "as-is", "seed": next (seeds)}
    r = s.ask ("POST", "/v1/schedules", body)
    if r.status == 503: continue # a database that is just up again
    id = r.json ()["id"]
    while status (id, body, 0)["state"] in ("queued", "running"):
      quiet = time.time () + 0.1
      while time.time () < quiet:
        found = stop_child ()
        if found: return id, *found
  assert False, "no worker draws"

@claim ("what a worker has started ends with it, before its job is tried again")
def _ ():
  id, worker, child = job_with_stopped_child ()
  os.kill (worker, signal.SIGKILL)
  while (j := status (id, {}))["state"] in ("queued", "running"): pass
  assert j["state"] == "done" and not is_there (child), j

def group_of (pid):
  try: return os.getpgid (pid)
  except OSError: return None

def of_daemon (): # its children, and their states, but for those that wait for a job: a job names its worker
  return {c: state_of (c) for c in children (s.process.pid) if (name_of (c) or "").startswith ("ferry ")}

@claim ("what a worker has started in a group of its own ends too, and nothing of it is left")
def _ ():
  r = s.ask ("POST", "/v1/what-if", {"trace": trace, "memory": [budget, budget * 2], "recompute": "off"})
  killed, end = None, time.time () + PATIENCE
  while not killed and time.time () < end:
    for worker in children (s.process.pid):
      for child in children (worker):
        if not killed and group_of (child) == child:
          killed = child
          os.kill (worker, signal.SIGKILL)
  assert killed, r.body
  s.ask ("DELETE", r.json ()["links"]["self"])
  end = time.time () + PATIENCE
  while time.time () < end and (is_there (killed) or of_daemon ()): time.sleep (0.05)
  assert not is_there (killed) and not of_daemon (), of_daemon ()

@claim ("it ends with the daemon too, and a new one waits until nothing of the old one is left")
def _ ():
  id, worker, child = job_with_stopped_child ()
  s.stop (signal.SIGKILL)
  late = open ("state/workers")
  fcntl.flock (late, fcntl.LOCK_SH) # as one that is slow to die
  began = time.time ()
  threading.Timer (0.5, late.close).start ()
  s.start ()
  assert time.time () - began >= 0.5 and not is_there (worker) and not is_there (child)
  while (j := status (id, {}))["state"] in ("queued", "running"): pass
  assert j["state"] == "done", j

@claim ("the daemon ends in order, and leaves no folder of a job and no upload behind")
def _ ():
  assert s.stop () == 0
  left = {n: os.listdir ("state/" + n) for n in ("work", "spool")}
  assert left == {"work": [], "spool": []}, left

print (f"{rounds} rounds: {kills['daemon']} daemons, {kills['worker']} workers and {kills['database']} databases killed, {len (accepted)} jobs, {len (uploads)} uploads")
finish ()
