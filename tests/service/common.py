# SPDX-License-Identifier: GPL-3.0-or-later
# What the scripts here share: a daemon of their own on a free port, requests, and claims.
import http.client, http.server, json, os, shutil, signal, socket, subprocess, sys, tempfile, threading, time, traceback

FERRY = os.path.join (os.environ["builddir"], "ferry")
PATIENCE = 120 # seconds for anything that must end
CLAIM_SECONDS = 24 * 3600 if os.environ.get ("FERRY_SOAK") else 1200

def too_long (*_): raise TimeoutError (f"a claim takes more than {CLAIM_SECONDS} s")
signal.signal (signal.SIGALRM, too_long)

passed, failed = 0, 0

def claim (text):
  # Runs the function at once: it holds unless it raises.
  def run (f):
    global passed, failed
    signal.alarm (CLAIM_SECONDS)
    try:
      f ()
      passed += 1
    except Exception:
      failed += 1
      print (f"does not hold: {text}")
      traceback.print_exc (file=sys.stdout)
    finally:
      signal.alarm (0)
  return run

def finish ():
  print (f"{passed} passed, {failed} failed")
  sys.exit (failed > 0)

class Reply:
  def __init__ (self, status, headers, body):
    self.status, self.headers, self.body = status, headers, body
  def json (self):
    return json.loads (self.body)

class Server:
  def __init__ (self, folder, *options, store=None):
    self.folder, self.options, self.process = folder, list (options), None
    if store: self.options += ["--store", store]
    self.start ()

  def start (self):
    self.log = open (os.path.join (self.folder, "log"), "a")
    self.process = subprocess.Popen (
      [FERRY, "serve", "--state", os.path.join (self.folder, "state"), "--listen", "127.0.0.1:0", *self.options],
      stdout=subprocess.PIPE, stderr=self.log, text=True)
    line = self.process.stdout.readline ()
    assert "listens on" in line, f"no address: {line!r} {open (os.path.join (self.folder, 'log')).read ()[-400:]}"
    self.url = line.split ()[-1]
    self.port = int (self.url.rsplit (":", 1)[1])

  def stop (self, how=signal.SIGTERM):
    self.process.send_signal (how)
    status = self.process.wait (PATIENCE)
    self.process.stdout.close ()
    self.log.close ()
    return status

  def ask (self, method, path, body=None, headers={}, token=None, timeout=PATIENCE):
    c = http.client.HTTPConnection ("127.0.0.1", self.port, timeout=timeout)
    headers = dict (headers)
    if isinstance (body, (dict, list)):
      body = json.dumps (body)
      headers.setdefault ("Content-Type", "application/json")
    if token: headers["Authorization"] = f"Bearer {token}"
    try:
      c.request (method, path, body, headers)
    except (BrokenPipeError, ConnectionResetError):
      if not c.sock: raise # nobody took the call
      # else it was answered before all was sent
    r = c.getresponse ()
    out = Reply (r.status, r.headers, r.read ())
    c.close ()
    return out

  def upload (self, path, token=None, query=""):
    r = self.ask ("POST", "/v1/traces" + query, open (path, "rb").read (), token=token)
    assert r.status in (200, 201), (r.status, r.body)
    return r.json ()["trace"]

  def job (self, kind, body, token=None):
    r = self.ask ("POST", f"/v1/{kind}", body, {"Prefer": "wait=30"}, token)
    end = time.time () + PATIENCE
    while r.status == 202 or (r.status == 200 and r.json ()["state"] in ("queued", "running")):
      assert time.time () < end, "a job takes too long"
      r = self.ask ("GET", f"/v1/{kind}/{r.json ()['id']}", None, {"Prefer": "wait=30"}, token)
    assert r.status == 200, (r.status, r.body)
    return r.json ()

def ferry (*arguments, status=0, **more):
  p = subprocess.run ([FERRY, *arguments], capture_output=True, text=True, timeout=PATIENCE, **more)
  if status is not None:
    assert p.returncode == status, (arguments, p.returncode, p.stdout[-500:], p.stderr[-500:])
  return p

SMALL = "alexnet --batch 64 --image 64 --width-divisor 2 --classes 100 --device v100".split ()

class Pretended:
  # Answers paths as it was told, by status, body and headers, for what a daemon is hard to bring to.
  def __init__ (self, answers):
    class Handler (http.server.BaseHTTPRequestHandler):
      def do_GET (self):
        status, body, headers = (*answers.get (self.path, answers.get ("*", (404, {"detail": "there is nothing"}))), {})[:3]
        self.send_response (status)
        for name, value in {"Content-Type": "application/json", **headers}.items (): self.send_header (name, value)
        self.end_headers ()
        self.wfile.write (json.dumps (body).encode ())
      def do_POST (self):
        self.rfile.read (int (self.headers["Content-Length"]))
        self.do_GET ()
      def log_message (self, *_): pass
    self.server = http.server.HTTPServer (("127.0.0.1", 0), Handler)
    self.url = f"http://127.0.0.1:{self.server.server_port}"
    threading.Thread (target=self.server.serve_forever, daemon=True).start ()

def scratch ():
  folder = tempfile.mkdtemp ()
  import atexit
  atexit.register (shutil.rmtree, folder, ignore_errors=True)
  os.chdir (folder)
  return folder

def problem (r, status, name=None):
  assert r.status == status, (r.status, r.body)
  assert r.headers["Content-Type"] == "application/problem+json", r.headers["Content-Type"]
  p = r.json ()
  assert p["status"] == status and p["title"] and p["request_id"], p
  if name: assert p["type"] == f"/problems/{name}", p
  return p
