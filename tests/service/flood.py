# SPDX-License-Identifier: GPL-3.0-or-later
# Floods of connections, of each kind, from one address and from many. Another client is answered meanwhile, all is as
# before afterwards, and SIGTERM ends it within seconds. FLOOD_CONNECTIONS and FLOOD_S say how many, and for how long.
import multiprocessing, resource, statistics
from common import *

CONNECTIONS = int (os.environ.get ("FLOOD_CONNECTIONS", "1300"))
SECONDS = float (os.environ.get ("FLOOD_S", "0.3"))
MOST_S = float (os.environ.get ("FLOOD_MOST_S", "5")) # for a bystander, at the 99th percentile
BUSIEST_S = float (os.environ.get ("FLOOD_BUSIEST_S", "5")) # of the busiest thread meanwhile
KINDS = os.environ.get ("FLOOD_KINDS", "idle,half a head,half a body,half an upload,never reading,streams").split (",")

def may_open (n):
  hard = resource.getrlimit (resource.RLIMIT_NOFILE)[1]
  resource.setrlimit (resource.RLIMIT_NOFILE, (hard if hard < n else max (n, resource.getrlimit (resource.RLIMIT_NOFILE)[0]), hard))

def opening (kind, large, events):
  post = "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
  get = "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
  return {"idle": "", "half a head": "GET /healthz HTTP/1.1\r\nHost: loc", "half a body": post % "/v1/schedules",
          "half an upload": post % "/v1/traces", "never reading": get % large * 20, "streams": get % events}[kind].encode ()

def flood (port, text, many, until, began, left):
  may_open (CONNECTIONS + 64)
  all, n = [], 0
  while time.time () < until:
    if n < CONNECTIONS:
      c = socket.socket ()
      if text.count (b"GET") > 1: c.setsockopt (socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
      if many: c.bind ((f"127.{1 + n % 200}.{n // 200 % 250}.1", 0))
      c.setblocking (False)
      try: c.connect (("127.0.0.1", port))
      except BlockingIOError: pass
      all.append (c)
      n += 1
      if n == CONNECTIONS: began.set ()
    else:
      time.sleep (0.01)
    if n % 50 == 0 or n == CONNECTIONS:
      for c in [c for c in all if text and c not in sent]:
        try:
          c.send (text)
          sent.add (c)
        except OSError: pass
  left.wait (30)
sent = set ()

def used (s):
  # Seconds of a processor by thread: what the busiest took meanwhile is what a wait is where nobody else works.
  return {t: int (open (f"/proc/{s.process.pid}/task/{t}/schedstat").read ().split ()[0]) / 1e9 for t in os.listdir (f"/proc/{s.process.pid}/task")}

class Bystander:
  # Another client: one whose connection is closed for a newer one asks again, and the time goes on.
  def __init__ (self, s): self.s, self.took, self.work, self.cut = s, [], [], 0
  def look (self):
    start, work = time.time (), used (self.s)
    while True:
      try:
        assert self.s.ask ("GET", "/healthz", timeout=20).status == 200
        break
      except (OSError, http.client.HTTPException) as e:
        assert not isinstance (e, TimeoutError), "nobody answers"
        self.cut += 1
    self.took.append (time.time () - start)
    self.work.append (max (n - work.get (t, n) for t, n in used (self.s).items ()))
    time.sleep (0.01)
  def figures (self):
    p99 = lambda all: sorted (all)[-(-len (all) * 99 // 100) - 1]
    return statistics.median (self.took), p99 (self.took), max (self.took), p99 (self.work), self.cut

def files (s): return len (os.listdir (f"/proc/{s.process.pid}/fd"))

if __name__ == "__main__":
  work = scratch ()
  may_open (4096)
  ferry ("zoo", "-q", *SMALL, "-o", "a.json")
  s = Server (work, "--workers", "1", "-q")
  trace = s.upload ("a.json")
  large = f"/v1/traces/{trace}/content"
  long = s.ask ("POST", "/v1/schedules", {"trace": trace, "budget_ppm": 700000, "limit_ticks": 10**12}).json ()
  calm = files (s)
  figures = []

  calm_b, end = Bystander (s), time.time () + SECONDS
  while time.time () < end or len (calm_b.took) < 100: calm_b.look ()
  figures.append (("nobody else", False, *calm_b.figures ()))

  for kind in KINDS:
    for many in (False, True):
      @claim (f"{CONNECTIONS} connections, {kind}, from {'many addresses' if many else 'one'}: another client is answered")
      def _ ():
        began, left = multiprocessing.Event (), multiprocessing.Event ()
        p = multiprocessing.Process (target=flood, args=(s.port, opening (kind, large, long["links"]["events"]), many, time.time () + 2 * SECONDS + CONNECTIONS / 2000, began, left))
        p.start ()
        b, end = Bystander (s), time.time () + SECONDS
        while not began.is_set () or time.time () < end or len (b.took) < 20: b.look ()
        left.set ()
        p.terminate ()
        p.join ()
        figures.append ((kind, many, *b.figures ()))
        assert figures[-1][3] < MOST_S and figures[-1][5] < BUSIEST_S, figures[-1]

  @claim ("all is as before afterwards")
  def _ ():
    end = time.time () + 60
    while files (s) > calm + 8 and time.time () < end: time.sleep (0.1)
    assert files (s) <= calm + 8, (calm, files (s))
    assert s.ask ("DELETE", long["links"]["self"]).status == 202
    assert s.job ("schedules", {"trace": trace, "budget_ppm": 900000, "limit_ticks": 1000})["state"] == "done"

  @claim ("SIGTERM amid a flood ends it in order, within seconds")
  def _ ():
    began, left = multiprocessing.Event (), multiprocessing.Event ()
    p = multiprocessing.Process (target=flood, args=(s.port, opening ("half a head", large, ""), False, time.time () + 30, began, left))
    p.start ()
    began.wait (30)
    start = time.time ()
    try: assert s.stop () == 0
    finally:
      left.set ()
      p.terminate ()
      p.join ()
    assert time.time () - start < 20

  for kind, many, *took in figures:
    print (f"{kind}, {'many' if many else 'one'}: median {took[0] * 1e3:.1f}, p99 {took[1] * 1e3:.1f}, most {took[2] * 1e3:.1f} ms, of the busiest thread {took[3] * 1e3:.1f} ms, of {CONNECTIONS} connections; {took[4]} times cut off")
  finish ()
