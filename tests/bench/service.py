# SPDX-License-Identifier: GPL-3.0-or-later
# A cached GET of `ferry serve` beside nginx serving the same bytes, by turns, and its tail while 100
# streams of events and an upload of 40 MB go on. service.py [SECONDS]; a table, then JSON. Requests a second say little
# where others use the processors; the time of a processor that a request takes says more.
import os, re, statistics, sys, threading
sys.path.insert (0, os.path.join (os.path.dirname (__file__), "../service"))
from common import *

seconds = sys.argv[1] if len (sys.argv) > 1 else "2"
nginx, wrk = shutil.which ("nginx") or shutil.which ("/usr/sbin/nginx"), shutil.which ("wrk")
if not nginx or not wrk:
  print ("service: nginx or wrk is not here: skipped")
  sys.exit (77)
work = scratch ()
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
s = Server (work, "--workers", "1", "-q")
trace = s.upload ("a.json")
job = s.job ("schedules", {"trace": trace, "budget_ppm": 900000, "limit_ticks": 1000})
path = job["links"]["result"]
result = s.ask ("GET", path).body
os.chmod (work, 0o755)
os.makedirs ("www")
open ("www/result", "wb").write (result)
free = socket.create_server (("127.0.0.1", 0))
port = free.getsockname ()[1]
free.close ()
open ("nginx.conf", "w").write (f"""daemon off; pid {work}/nginx.pid; error_log {work}/nginx.log; worker_processes auto;
events {{ worker_connections 1024; }}
http {{ access_log off; default_type application/json; open_file_cache max=10; keepalive_requests 1000000000;
  client_body_temp_path {work}/t1; proxy_temp_path {work}/t2; fastcgi_temp_path {work}/t3; uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
  server {{ listen 127.0.0.1:{port}; root {work}/www; }} }}
""")
web = subprocess.Popen ([nginx, "-c", work + "/nginx.conf", "-e", work + "/nginx.log"])
end = time.time () + 20
while True:
  try:
    socket.create_connection (("127.0.0.1", port)).close ()
    break
  except OSError: assert time.time () < end, open ("nginx.log").read ()
  time.sleep (0.05)

def used_ns (process):
  # Of a processor, by it and its children that live: nginx has its work done by those.
  children = [int (w) for t in os.listdir (f"/proc/{process.pid}/task") for w in open (f"/proc/{process.pid}/task/{t}/children").read ().split ()]
  return sum (int (open (f"/proc/{pid}/task/{t}/schedstat").read ().split ()[0]) for pid in (process.pid, *children) for t in os.listdir (f"/proc/{pid}/task"))

def load (url, process, threads="2", connections="64"):
  before = used_ns (process)
  out = subprocess.run ([wrk, "-t" + threads, "-c" + connections, "-d" + seconds + "s", "--latency", url], capture_output=True, text=True, check=True).stdout
  assert "Non-2xx" not in out, out
  value, unit = re.search (r"99%\s+([\d.]+)(us|ms|s)", out).groups ()
  us = (used_ns (process) - before) / 1e3 / int (re.search (r"(\d+) requests in", out)[1])
  return float (re.search (r"Requests/sec:\s+([\d.]+)", out)[1]), float (value) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit], us

turns = [(load (s.url + path, s.process), load (f"http://127.0.0.1:{port}/result", web)) for _ in range (5)]
ours, theirs = (statistics.median (t[k][0] for t in turns) for k in (0, 1))
ratio = statistics.median (t[0][0] / t[1][0] for t in turns)
us = [statistics.median (t[k][2] for t in turns) for k in (0, 1)]
dearer = statistics.median (t[0][2] / t[1][2] for t in turns)

# Streams of a job that goes on, and uploads, one behind the other, all the while.
slow = s.ask ("POST", "/v1/schedules", {"trace": trace, "budget_ppm": 700000, "limit_ticks": 1000000000000, "time_limit_s": 600}).json ()
streams = []
for _ in range (100):
  c = http.client.HTTPConnection ("127.0.0.1", s.port)
  c.request ("GET", slow["links"]["events"])
  streams.append (c)
# Its worker is held: what a solve takes from the processors is not the daemon's.
end = time.time () + 20
while s.ask ("GET", slow["links"]["self"]).json ()["state"] != "running": assert time.time () < end
workers = [int (w) for t in os.listdir (f"/proc/{s.process.pid}/task") for w in open (f"/proc/{s.process.pid}/task/{t}/children").read ().split ()]
for w in workers: os.kill (w, signal.SIGSTOP)
stop = False
def upload ():
  body = os.urandom (40 << 20)
  while not stop: s.ask ("POST", "/v1/traces", body)
uploader = threading.Thread (target=upload)
uploader.start ()
time.sleep (0.3)
quiet = load (s.url + path, s.process, "1", "1")
stop = True
uploader.join ()
for c in streams: c.close ()
for w in workers: os.kill (w, signal.SIGCONT)
s.ask ("DELETE", slow["links"]["self"])
web.terminate ()
web.wait ()
s.stop ()
print (f"{'':34}{'requests/s':>12}{'p99, ms':>10}{'us of a processor':>20}")
print (f"{'ferry serve, a cached result':34}{ours:12.0f}{statistics.median (t[0][1] for t in turns):10.2f}{us[0]:20.2f}")
print (f"{'nginx, the same bytes as a file':34}{theirs:12.0f}{statistics.median (t[1][1] for t in turns):10.2f}{us[1]:20.2f}")
print (f"{'one client, 100 streams, an upload':34}{quiet[0]:12.0f}{quiet[1]:10.2f}")
print (f"ferry / nginx, median of five turns: {ratio:.2f}, of processor time {dearer:.2f}; {len (result)} bytes an answer")
print (json.dumps ({"bytes": len (result), "ferry_per_s": round (ours), "nginx_per_s": round (theirs), "ratio": round (ratio, 3), "processor_ratio": round (dearer, 3), "processor_us": round (us[0], 2), "p99_busy_ms": round (quiet[1], 3)}, sort_keys=True))
