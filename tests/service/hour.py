# SPDX-License-Identifier: GPL-3.0-or-later
# Mixed load for a while: uploads, jobs, cancellations, streams, waiting and hasty clients. Memory, files
# and threads of the daemon are looked at sixty times, and must not grow behind the first third: the least of
# the last sixth is held against that of the third one. hour.py SECONDS
import random, threading
from common import *

seconds = float (sys.argv[1])
work = scratch ()
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
plain = json.load (open ("a.json"))
s = Server (work, "--workers", "2", "--worker-memory", "2GiB", "--max-queue", "50", "-q")
trace = s.upload ("a.json")
SPARE_FILES = 4 # a connection or two that nobody has closed yet
BUSY_FILES = 30 # of six clients and two workers
stop, wrong, count, left = time.time () + seconds, [], [0], []

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
        left.append (time.time ())
        continue
      else: r = s.ask ("GET", dice.choice (["/metrics", "/v1/traces", "/v1/schedules?limit=50", "/", "/readyz"]))
      count[0] += 1
      if r.status >= 500 and r.status != 503: wrong.append ((r.status, r.body[:200]))
    except (OSError, http.client.HTTPException) as e: wrong.append (repr (e))

def used ():
  process = f"/proc/{s.process.pid}"
  return int (open (process + "/statm").read ().split ()[1]) * 4096, len (os.listdir (process + "/fd")), len (os.listdir (process + "/task"))

calm = used ()
clients = [threading.Thread (target=client, args=(k,)) for k in range (6)]
for c in clients: c.start ()
rows = []
while time.time () < stop:
  time.sleep (max (0, min (seconds / 60, stop - time.time ())))
  rows.append ((*used (), count[0], sum (t > time.time () - 3 for t in left)))
for c in clients: c.join ()
end = time.time () + 5
while (rest := used ())[1] > calm[1] + SPARE_FILES and time.time () < end: time.sleep (0.5)
parts = [rows[k * len (rows) // 6:(k + 1) * len (rows) // 6] for k in range (6)]

claim ("no answer is a 5xx, and none is missing") (lambda: None if not wrong else 1 / 0)
@claim ("memory does not grow behind the first third")
def _ ():
  early, late = (min (r[0] for r in parts[k]) for k in (2, 5)) # above it is what requests need for a moment
  assert late <= early + max (early // 10, 1 << 20), (early, late)
@claim ("no file and no thread is left over: seconds behind the last client there are as many as before the first")
def _ ():
  assert rest[1] <= calm[1] + SPARE_FILES and rest[2] <= calm[2], (calm, rest)
  for r in rows: # nobody who left more than three seconds ago has a connection and a file
    assert r[1] <= calm[1] + BUSY_FILES + 2 * r[4] and r[2] <= calm[2], (calm, r)
claim ("the daemon ends in order, and leaves nothing behind") (lambda: None if s.stop () == 0 and not os.listdir ("state/work") and not os.listdir ("state/spool") else 1 / 0)
print ("seconds  requests  resident  files  threads")
for k, (resident, files, threads, done, _) in enumerate (rows):
  if len (rows) <= 12 or (k + 1) % (len (rows) // 12) == 0:
    print (f"{(k + 1) * seconds / 60:7.0f}  {done:8}  {resident / (1 << 20):4.1f} MiB  {files:5}  {threads:7}")
print (f"at rest before {calm[0] / (1 << 20):.1f} MiB, {calm[1]} files, behind it {rest[0] / (1 << 20):.1f} MiB, {rest[1]} files", wrong[:3])
finish ()
