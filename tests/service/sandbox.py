# SPDX-License-Identifier: GPL-3.0-or-later
# A worker may read its job and connect to nobody, whoever starts it.
import re
from common import *

work = scratch ()
ferry ("zoo", "-q", *SMALL, "-o", "other.json")
os.mkdir ("job")
shutil.copy ("other.json", "kept.json")
os.symlink (f"{work}/kept.json", "job/linked.json")
shutil.copy ("other.json", "job/own.json")
z = Pretended ({"*": (200, {"jobs": []})})

ROOT = os.geteuid () == 0
WHO = ("65534", "65534") if ROOT else ("0", "0")
if ROOT: # as the daemon does for its worker
  os.chmod (work, 0o711)
  shutil.copy ("kept.json", "job/copied.json")
  for it in ("job", "job/own.json", "job/copied.json"): os.chown (it, 65534, 65534)

class Worker:
  # As the daemon starts one that waits for its job, and as it sends one: the folder, files for the answer and the log, and words.
  def __init__ (self, who=WHO):
    self.orders, theirs = socket.socketpair (socket.AF_UNIX, socket.SOCK_SEQPACKET)
    self.process = subprocess.Popen ([FERRY, "worker", "wait", "0", str (os.getpid ()), *who], stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    theirs.close ()
  def send (self, *command):
    words = os.memfd_create ("words")
    os.write (words, b"".join (w.encode () + b"\0" for w in ("60", "00-0-0-01", *command)))
    files = [os.open ("job", os.O_RDONLY), *(os.open (f"job/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for name in ("answer", "log")), words]
    try: socket.send_fds (self.orders, [b"f"], files)
    finally:
      for it in files: os.close (it)
  def status (self): return dict (l.split (":\t", 1) for l in open (f"/proc/{self.process.pid}/status").read ().splitlines () if ":\t" in l)
  def wait (self):
    status, self.orders = self.process.wait (PATIENCE), self.orders.close ()
    return subprocess.CompletedProcess ([], status, open ("job/answer").read (), open ("job/log").read ())

def worker (*command, who=WHO):
  w = Worker (who)
  w.send (*command)
  return w.wait ()

landlock = subprocess.run (["python3", "-c", "import ctypes; exit (ctypes.CDLL (None).syscall (444, None, 0, 1) < 1)"]).returncode == 0

@claim ("a worker reads its job's files, and those that its folder links to")
def _ ():
  for it in ("own.json", "./copied.json" if ROOT else "./linked.json"):
    p = worker ("info", it)
    assert p.returncode == 0, (it, p.stderr)

if landlock:
  @claim ("a planted reader of another's trace fails, and so does a writer")
  def _ ():
    assert worker ("info", f"{work}/other.json").returncode == 3
    assert worker ("zoo", "-q", *SMALL, "-o", f"{work}/planted.json").returncode != 0 and not os.path.exists ("planted.json")

@claim ("a planted connect fails")
def _ ():
  assert ferry ("jobs", "--server", z.url, status=None).returncode == 0
  p = worker ("jobs", "--server", z.url)
  assert p.returncode == 69, (p.returncode, p.stderr)

@claim ("it has no privileges to give, and gets none")
def _ ():
  os.mkfifo ("job/slow")
  w, end = Worker (), time.time () + 20
  waits = w.status ()
  while ROOT and waits["Uid"].split () != ["65534"] * 4:
    assert time.time () < end
    waits = w.status ()
  w.send ("info", "slow") # which waits for who writes
  while True:
    status = w.status ()
    if status["Seccomp"] == "2": break
    assert time.time () < end
    time.sleep (0.05)
  w.process.kill ()
  w.wait ()
  os.unlink ("job/slow")
  assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
  assert all (int (status[k], 16) == 0 for k in ("CapEff", "CapPrm", "CapInh", "CapAmb")), status
  if ROOT: assert status["Uid"].split () == ["65534"] * 4 and status["Groups"].strip () == "", status

if ROOT:
  @claim ("no worker is root, and a daemon of root says who they are")
  def _ ():
    p = Worker (("0", "0")).process
    assert p.wait (PATIENCE) != 0 and "not run as root" in p.stderr.read ()
    for name in ("root", "nobody-at-all"): assert "--worker-user" in ferry ("serve", "--state", "state", "--worker-user", name, status=2).stderr

@claim ("the unit for systemd allows every system call that a worker needs, and that locks it in")
def _ ():
  if not shutil.which ("systemd-analyze"): return
  root = os.environ["srcdir"]
  unit = re.search (r"(?m)^SystemCallFilter=(.*)$", open (root + "/contrib/systemd/ferry.service").read ())[1].split ()
  source = open (root + "/base/sandbox.c").read ()
  needs = {*re.findall (r"SYS_(landlock_\w+|capset)", source), *re.findall (r"CALL \((\w+)\),", source)} - {"ptrace"} # of sanitizers alone
  allowed = set ()
  while unit:
    name = unit.pop ()
    if name[0] != "@": allowed.add (name)
    else:
      said = subprocess.run (["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True).stdout
      unit += [w for line in said.splitlines ()[1:] if (w := line.strip ()) and w[0] != "#"]
  assert len (needs) > 50 and needs <= allowed, needs - allowed

@claim ("what a worker puts in an answer's place is a file, or nothing")
def _ ():
  s = Server (work, "--workers", "1", "-q")
  trace = s.upload ("other.json")
  job = s.ask ("POST", "/v1/schedules", {"trace": trace, "budget_ppm": 700000, "limit_ticks": 10**12, "time_limit_s": 3}).json ()
  end = time.time () + 20
  folder = f"state/work/{job['id']}.1"
  while not os.path.exists (f"{folder}/result.json"): assert time.time () < end
  open ("secret", "w").write ("{\"secret\": 1}")
  for name in ("picture.svg", "verified.json", "chrome.json"): os.symlink (f"{work}/secret", f"{folder}/{name}")
  done = s.ask ("GET", job["links"]["self"], headers={"Prefer": "wait=30"}).json ()
  assert "secret" not in json.dumps (done), done
  for name in ("picture", "chrome"): assert b"secret" not in s.ask ("GET", f"{job['links']['self']}/files/{name}").body
  assert s.stop () == 0
finish ()
