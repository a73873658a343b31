# SPDX-License-Identifier: GPL-3.0-or-later
# A day's clock that is put back by an hour: what waits for some seconds waits for those. The daemon
# reads a clock that is an hour ahead, and the system wakes it by its own: as if it had been put back
# at this moment.
from common import *

AHEAD = r"""
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime (clockid_t clock, struct timespec *now);
int clock_gettime (clockid_t clock, struct timespec *now) {
  int r = (int)syscall (SYS_clock_gettime, clock, now);
  now->tv_sec += clock == CLOCK_REALTIME ? 3600 : 0;
  return r;
}
"""
work = scratch ()
open ("ahead.c", "w").write (AHEAD)
subprocess.run (["cc", "-shared", "-fPIC", "-o", "ahead.so", "ahead.c"], check=True)
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
ahead = {**os.environ, "LD_PRELOAD": os.path.join (work, "ahead.so")}
if subprocess.run ([FERRY, "version"], env=ahead, capture_output=True).returncode != 0:
  print ("skipped: this build takes no library before its own") # of a sanitizer
  finish ()
os.environ["LD_PRELOAD"] = ahead["LD_PRELOAD"]
s = Server (work, "--workers", "1", "-q")
del os.environ["LD_PRELOAD"]
trace = s.upload ("a.json")

@claim ("a wait of a second is over then")
def _ ():
  # The first of them has the worker, and its news wake whoever waits; the second has none.
  asked = {"trace": trace, "budget_ppm": 700000, "limit_ticks": 1000000000000, "time_limit_s": 60}
  jobs = [s.ask ("POST", "/v1/schedules", {**asked, "seed": i}).json () for i in range (2)]
  end = time.time () + PATIENCE
  while s.ask ("GET", jobs[0]["links"]["self"]).json ()["state"] != "running": assert time.time () < end
  tasks = f"/proc/{s.process.pid}/task"
  workers = [int (p) for t in os.listdir (tasks) for p in open (f"{tasks}/{t}/children").read ().split ()]
  for p in workers: os.kill (p, signal.SIGSTOP)
  time.sleep (1) # until its last news are told
  start = time.time ()
  r = s.ask ("GET", jobs[1]["links"]["self"], None, {"Prefer": "wait=1"}, timeout=30)
  assert r.status == 200 and 0.9 < time.time () - start < 8, time.time () - start
  for p in workers: os.kill (p, signal.SIGCONT)
  for j in jobs: s.ask ("DELETE", j["links"]["self"])

@claim ("a head that is never complete is cut off before the connection's own time is over")
def _ ():
  with socket.create_connection (("127.0.0.1", s.port), PATIENCE) as c:
    start = time.time ()
    c.sendall (b"GET /healthz HTTP/1.1\r\n")
    c.settimeout (1)
    while time.time () < start + 60: # a byte each second: it is never idle
      try:
        c.sendall (b"X")
        if not c.recv (1): break
      except TimeoutError: pass
      except OSError: break
    assert 9 < time.time () - start < 30, time.time () - start

assert s.stop () == 0
finish ()
