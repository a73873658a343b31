# SPDX-License-Identifier: GPL-3.0-or-later
# Two daemons on one PostgreSQL, four clients, one daemon killed half way: each job is done exactly
# once. replicas.py JOBS STORE
import threading
from common import *

jobs, store = int (sys.argv[1]), sys.argv[2]
work = scratch ()
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
budget = int (json.loads (ferry ("info", "a.json", "--json").stdout)["peak_bytes"] * 0.7)
servers = []
for n in "01":
  os.makedirs (n)
  servers.append (Server (os.path.join (work, n), "--workers", "2", "--tries", "1000", "--worker-memory", "2GiB", store=store))
trace = servers[0].upload ("a.json")
ids, lock = [], threading.Lock ()

def client (k):
  for i in range (k, jobs, 4):
    body = {"trace": trace, "budget_bytes": budget, "limit_ticks": 1, "seed": i}
    while True:
      try:
        r = servers[k % 2].ask ("POST", "/v1/schedules", body, timeout=30)
        break
      except (OSError, http.client.HTTPException):
        k += 1 # the other one lives
    assert r.status in (200, 202), (r.status, r.body)
    with lock: ids.append (r.json ()["id"])

clients = [threading.Thread (target=client, args=(k,)) for k in range (4)]
for c in clients: c.start ()
while len (ids) < jobs // 2: time.sleep (0.01)
servers[1].stop (signal.SIGKILL)
for c in clients: c.join ()

@claim ("each job is done exactly once, with one daemon killed half way")
def _ ():
  assert len (set (ids)) == jobs, len (set (ids))
  end = time.time () + 60 + jobs
  for id in ids:
    while (j := servers[0].ask ("GET", f"/v1/schedules/{id}", None, {"Prefer": "wait=30"}).json ())["state"] != "done":
      assert j["state"] != "failed" and time.time () < end, j
    assert len ([f for f in (j["links"]["plan"],) if servers[0].ask ("GET", f).status == 200]) == 1

@claim ("what one has stored the other has too")
def _ ():
  servers[1].start ()
  for id in ids[:10] + ids[-10:]:
    a, b = (z.ask ("GET", f"/v1/schedules/{id}/files/plan") for z in servers)
    assert a.status == b.status == 200 and a.body == b.body
  open ("plan.json", "wb").write (b.body)
  ferry ("check", "a.json", "plan.json")

for z in servers: assert z.stop () == 0
finish ()
