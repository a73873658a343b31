# SPDX-License-Identifier: GPL-3.0-or-later
# Mixed load for a while: uploads, jobs, cancellations, streams, waiting and hasty clients. Memory, files
# and processes of the daemon are flat behind the first fifth. hour.py SECONDS
import random, threading
from common import *

seconds = float (sys.argv[1])
work = scratch ()
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
plain = json.load (open ("a.json"))
s = Server (work, "--workers", "2", "--worker-memory", "2GiB", "--max-queue", "50", "-q")
trace = s.upload ("a.json")
stop, wrong, count = time.time () + seconds, [], [0]

def client (seed):
  dice = random.Random (seed)
  last = None
  while time.time () < stop:
    what = dice.random ()
    try:
      if what < 0.3:
        r = s.ask ("POST", "/v1/schedules", {"trace": trace, "budget_ppm": 800000, "limit_ticks": 1000, "seed": dice.randrange (200)}, {"Prefer": f"wait={dice.randrange (3)}"})
        last = r.json ()["links"] if r.status in (200, 202) else last
      elif what < 0.35: r = s.ask ("POST", "/v1/traces", json.dumps (dict (plain, name=f"n{dice.randrange (50)}")))
      elif what < 0.4: r = s.ask ("POST", "/v1/traces", dice.randbytes (100000))
      elif what < 0.5 and last: r = s.ask ("GET", last["events"])
      elif what < 0.55 and last: r = s.ask ("DELETE", last["self"])
      elif what < 0.8 and last: r = s.ask ("GET", last["result"])
      elif what < 0.85:
        c = socket.create_connection (("127.0.0.1", s.port))
        c.sendall (b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx")
        c.close ()
        continue
      else: r = s.ask ("GET", dice.choice (["/metrics", "/v1/traces", "/v1/schedules?limit=50", "/", "/readyz"]))
      count[0] += 1
      if r.status >= 500 and r.status != 503: wrong.append ((r.status, r.body[:200]))
    except (OSError, http.client.HTTPException) as e: wrong.append (repr (e))

def used ():
  return (int (open (f"/proc/{s.process.pid}/statm").read ().split ()[1]) * 4096, len (os.listdir (f"/proc/{s.process.pid}/fd")), len (os.listdir (f"/proc/{s.process.pid}/task")))

clients = [threading.Thread (target=client, args=(k,)) for k in range (6)]
for c in clients: c.start ()
time.sleep (seconds / 5)
early = [used () for _ in range (5) if not time.sleep (seconds / 50)]
for c in clients: c.join ()
time.sleep (1)
late = used ()
claim ("no answer is a 5xx, and none is missing") (lambda: None if not wrong else 1 / 0)
@claim ("memory, files and threads are flat")
def _ ():
  assert late[0] < max (e[0] for e in early) * 1.25 + (8 << 20), (early, late)
  assert late[1] <= max (e[1] for e in early) and late[2] <= max (e[2] for e in early), (early, late)
claim ("the daemon ends in order, and leaves nothing behind") (lambda: None if s.stop () == 0 and not os.listdir ("state/work") and not os.listdir ("state/spool") else 1 / 0)
print (f"{seconds:.0f} s, {count[0]} requests: {early[0][0] >> 10} KiB and {early[0][1]} files, then {late[0] >> 10} KiB and {late[1]} files", wrong[:3])
finish ()
