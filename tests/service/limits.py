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

@claim ("a probe without a Host is answered, ready or not")
def _ ():
  for path in (b"/healthz", b"/readyz"): assert raw (b"GET " + path + b" HTTP/1.1\r\nConnection: close\r\n\r\n") == [b"200"]

@claim ("no answer's type is guessed")
def _ ():
  for path in ("/v1/version", "/v1/traces", "/nowhere", "/metrics", "/"):
    assert s.ask ("GET", path).headers["X-Content-Type-Options"] == "nosniff", path

@claim ("a store of a later version is refused")
def _ ():
  assert s.stop () == 0
  with sqlite3.connect ("state/store.sqlite") as db: db.execute ("update version set number = 1000")
  assert "newer" in ferry ("serve", "--state", "state", "--listen", "127.0.0.1:0", status=3).stderr
  with sqlite3.connect ("state/store.sqlite") as db: db.execute ("update version set number = 1")

@claim ("a service without room is not ready")
def _ ():
  full = Server (work, "--disk-quota", "1KiB", "-q")
  assert full.ask ("GET", "/healthz").status == 200
  problem (full.ask ("GET", "/readyz"), 503)
  assert full.stop () == 0
finish ()
