# SPDX-License-Identifier: GPL-3.0-or-later
# Clients that are slow, that hang up, that send odd things: each is answered or cut off as
# docs/service.md says, and others do not notice.
import re, threading
from common import *

work = scratch ()
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
s = Server (work, "--workers", "1", "-q")
trace = s.upload ("a.json")
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"

def connect ():
  c = socket.create_connection (("127.0.0.1", s.port), PATIENCE)
  c.setsockopt (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
  return c

def rest (c):
  out = b""
  try:
    while data := c.recv (65536): out += data
  except ConnectionResetError: pass
  return out

def files (): return len (os.listdir (f"/proc/{s.process.pid}/fd"))
calm = files ()

# A byte of the head, or of the body, each half second: never idle, never done.
cut = {}
def drip (name, first, byte):
  c = connect ()
  start = time.time ()
  try:
    c.sendall (first)
    while time.time () < start + 60:
      c.sendall (byte)
      c.settimeout (0.5)
      try:
        if not c.recv (1): break
      except TimeoutError: pass
  except (BrokenPipeError, ConnectionResetError): pass
  cut[name] = time.time () - start
  c.close ()

drips = [threading.Thread (target=drip, args=(name, first, byte)) for name, first, byte in (
  ("head", HEAD + b"X-Long: ", b"x"),
  ("body", b"POST /v1/schedules HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n", b" "),
  ("upload", b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n", b" "))]
silent = [connect () for _ in range (100)]
for d in drips: d.start ()

@claim ("a client that has closed its half is taken for gone: it gets a whole answer or none, at once")
def _ ():
  for _ in range (5):
    c = connect ()
    c.sendall (HEAD + b"\r\n")
    c.shutdown (socket.SHUT_WR)
    start, got = time.time (), rest (c)
    assert not got or (got.startswith (b"HTTP/1.1 200") and got.endswith (b"alive\n")), got
    assert time.time () - start < 5
    c.close ()
  for part in (b"", b"GE", HEAD, b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc"):
    c = connect ()
    c.sendall (part)
    c.shutdown (socket.SHUT_WR)
    assert b" 200 " not in rest (c)
    c.close ()

@claim ("who goes away in the middle of an upload leaves no file open behind")
def _ ():
  before = files ()
  for _ in range (50):
    c = connect ()
    c.sendall (b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx")
    c.close ()
  time.sleep (4) # a slow one is cut off behind ten
  assert files () <= before + 4, (before, files ())

@claim ("a waiting client that leaves is let go")
def _ ():
  c = connect ()
  body = json.dumps ({"trace": trace, "budget_ppm": 700000, "limit_ticks": 1000000000000, "time_limit_s": 60}).encode ()
  c.sendall (b"POST /v1/schedules HTTP/1.1\r\nHost: localhost\r\nPrefer: wait=1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len (body) + body)
  got = rest (c)
  assert b"HTTP/1.1 202" in got, got
  deaf = [connect () for _ in range (20)] # streams that nobody reads
  job = s.ask ("POST", "/v1/schedules", body, {"Content-Type": "application/json"}).json ()
  for d in deaf: d.sendall (f"GET {job['links']['events']} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode ())
  time.sleep (0.2)
  for d in deaf: d.close ()
  assert s.ask ("DELETE", job["links"]["self"]).status in (202, 204)

@claim ("requests in one piece are answered in their order, on one connection; so are cached ones")
def _ ():
  c = connect ()
  c.sendall (HEAD + b"\r\n" + b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n" + HEAD + b"Connection: close\r\n\r\n")
  assert re.findall (rb"HTTP/1.1 (\d+)", rest (c)) == [b"200", b"404", b"200"]
  done = s.job ("schedules", {"trace": trace, "budget_ppm": 900000, "limit_ticks": 1000})
  k = http.client.HTTPConnection ("127.0.0.1", s.port)
  for i in range (4):
    k.request ("GET", done["links"]["result"])
    assert k.getresponse ().read () and k.sock, "the connection of a cached answer is closed"
    first = first if i else k.sock
    assert k.sock is first
  k.close ()

@claim ("a target that names its host is that path, where Host names it too")
def _ ():
  for target, host, status in (("http://localhost/healthz", "localhost", 200), ("HTTP://LocalHost/v1/traces?limit=1", "localhost", 200), ("http://localhost", "localhost", 200),
                               ("http://localhost:1/healthz", "localhost", 400), ("http://example.org/healthz", "localhost", 400), ("http://example.org/v1/traces", "example.org", 421),
                               ("http:///healthz", "localhost", 400), ("http://localhost/nowhere", "localhost", 404)):
    c = connect ()
    c.sendall (f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode ())
    got = rest (c)
    assert got.startswith (b"HTTP/1.1 %d " % status), (target, got[:200])

@claim ("odd JSON is a 400 or a 422 at once")
def _ ():
  for body in (b"[" * 100000, b'{"trace":' * 5000, b'{"a":1,"a":2}', b'{"trace":1e999}', b'{"trace":"\xff"}', b'{"budget_bytes":' + b"9" * 5000 + b"}", b"\0" * 100):
    assert s.ask ("POST", "/v1/schedules", body, {"Content-Type": "application/json"}, timeout=20).status in (400, 422), body[:20]

@claim ("more bytes than were announced, or fewer, or none of a length, are nobody else's loss")
def _ ():
  for head, body in ((b"Content-Length: 2", b"{}GARBAGE"), (b"Content-Length: -1", b"{}"), (b"Content-Length: 99999999999999999999", b"{}"), (b"Transfer-Encoding: chunked", b"zz\r\n{}\r\n0\r\n\r\n")):
    c = connect ()
    c.sendall (b"POST /v1/schedules HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + head + b"\r\n\r\n" + body)
    c.shutdown (socket.SHUT_WR)
    assert b" 200 " not in rest (c).split (b"\r\n")[0]
    c.close ()

@claim ("a body that ends in two ways is a 400, and the connection goes; one where none is expected is a 413, cached or not")
def _ ():
  for ends, body in ((b"Content-Length: 2\r\nContent-Length: 9", b"{}"), (b"Content-Length: 9\r\nTransfer-Encoding: chunked", b"2\r\n{}\r\n0\r\n\r\n")):
    c = connect ()
    c.sendall (b"POST /v1/schedules HTTP/1.1\r\nHost: localhost\r\n" + ends + b"\r\n\r\n" + body + HEAD + b"\r\n")
    assert re.findall (rb"HTTP/1.1 (\d+)", rest (c)) == [b"400"]
    c.close ()
  path = s.job ("schedules", {"trace": trace, "budget_ppm": 900000, "limit_ticks": 1000})["links"]["result"]
  assert [s.ask ("GET", path, body).status for body in (None, None, b"{}", None)] == [200, 200, 413, 200]

@claim ("a head that a proxy could read otherwise is a 400 at once, and the connection goes")
def _ ():
  post = b"POST /v1/schedules HTTP/1.1\r\nHost: localhost\r\n"
  for head in (post + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", post + b"Transfer-Encoding: identity\r\n\r\n{}",
               post + b"Content-Length : 2\r\nContent-Length: 2\r\n\r\n{}", post + b"Host: example.org\r\nContent-Length: 2\r\n\r\n{}",
               b"GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n", b"GET /healthz HTTP/1.1\r\nHost: x@localhost\r\n\r\n",
               HEAD + b"A: b\rC: d\r\n\r\n", HEAD + b"A:\rC: d\r\n\r\n", HEAD + b"A: b\r\r\n\r\n", HEAD + b"A: b\r\r\n", HEAD + b"A\r: b\r\n\r\n", b"GET /healthz HTTP/1.1\rHost: localhost\r\n\r\n"):
    c = connect ()
    start = time.time ()
    c.sendall (head + HEAD + b"\r\n")
    assert re.findall (rb"HTTP/1.1 (\d+)", rest (c)) == [b"400"] and time.time () - start < 5, head
    c.close ()

@claim ("a head whose lines end as they should is taken, with fields that are empty or end in blanks")
def _ ():
  for more in (b"", b"A:\r\n", b"A: \r\nB: b \r\n", b"Cookie: a=b; c=d\r\n", b"A: b\r\nA: c\r\n"):
    c = connect ()
    c.sendall (2 * (HEAD + more + b"\r\n") + HEAD + more + b"Connection: close\r\n\r\n")
    assert re.findall (rb"HTTP/1.1 (\d+)", rest (c)) == 3 * [b"200"], more
    c.close ()

@claim ("for a client that reads nothing few answers are made")
def _ ():
  path = f"/v1/traces/{trace}/content"
  size = len (s.ask ("GET", path).body)
  def answered ():
    found = re.search (r'ferry_http_requests_total\{[^}]*route="/v1/traces/\{id\}/content"[^}]*\} (\d+)', s.ask ("GET", "/metrics").body.decode ())
    return int (found[1]) if found else 0
  before, asks = answered (), (2 << 20) // size
  c = socket.socket ()
  c.setsockopt (socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
  c.connect (("127.0.0.1", s.port))
  c.sendall (f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode () * asks)
  last = -1
  while (now := answered () - before) != last or not now:
    last = now
    time.sleep (0.3)
  assert now * size < 1 << 20, (now, asks, size)
  c.close ()

@claim ("a body whose chunks end in LF alone is a 400, or nothing is read behind it")
def _ ():
  c = connect ()
  c.sendall (b"POST /v1/schedules HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n" + HEAD + b"\r\n")
  assert re.findall (rb"HTTP/1.1 (\d+)", rest (c)) in ([b"400"], [b"422"])
  c.close ()

@claim ("others are answered while slow ones hold on, and these are cut off")
def _ ():
  slowest = 0
  while any (d.is_alive () for d in drips):
    start = time.time ()
    assert s.ask ("GET", "/v1/version").status == 200
    slowest = max (slowest, time.time () - start)
    time.sleep (0.05)
  for d in drips: d.join ()
  assert all (8 < t < 40 for t in cut.values ()) and slowest < 2, (cut, slowest)
  for c in silent: assert rest (c) == b"" # they too are cut off
  end = time.time () + PATIENCE
  while files () > calm + 4: assert time.time () < end, (files (), calm)

@claim ("the daemon lives, and ends in order")
def _ ():
  ready = s.ask ("GET", "/readyz")
  assert ready.status == 200, (ready.status, ready.body)
  status = s.stop ()
  assert status == 0, status

@claim ("one that is stopped amid requests ends in order too")
def _ ():
  for i in range (6):
    busy = Server (tempfile.mkdtemp (dir=work), "--workers", "1")
    def ask_on ():
      c = http.client.HTTPConnection ("127.0.0.1", busy.port, timeout=PATIENCE)
      try:
        while True:
          c.request ("GET", "/v1/traces?limit=3")
          c.getresponse ().read ()
      except (OSError, http.client.HTTPException): pass
    askers = [threading.Thread (target=ask_on) for _ in range (8)]
    for a in askers: a.start ()
    time.sleep (0.2)
    status = busy.stop ()
    for a in askers: a.join ()
    assert status == 0, status

finish ()
