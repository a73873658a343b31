# SPDX-License-Identifier: GPL-3.0-or-later
# contrib/slurm on a real Slurm: jobs become shards by ferry's advice, two share one card, each finds its
# plan; an advisor that is frozen delays nobody by more than its limit. slurm.py FOLDER-OF-THE-CLUSTER
import re, statistics, threading
from common import *

cluster = sys.argv[1]
etc = cluster + "/etc"
work = scratch ()
os.chmod (work, 0o755)
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
s = Server (work, "--workers", "2", "--worker-memory", "2GiB")
s.upload ("a.json", query="?fingerprint=alex.64")
curve = s.job ("curves", {"trace": s.upload ("a.json"), "points": 6, "limit_ticks": 1000})["result"]
slower = [p["predicted"]["step_ns"] / curve["baseline_ns"] for p in curve["points"] if p["predicted"]["step_ns"] > curve["baseline_ns"]]
percent = int (min (slower) * 100) - 99 # who waits for so long needs less than who does not wait
advice = s.ask ("GET", f"/v1/advice?fingerprint=alex.64&max_slowdown_ppm={percent * 10000}").json ()
shard = -(-advice["card_bytes"] // 40)
pinned = -(-advice["pinned_host_bytes"] // (1 << 20))

def site (**changes):
  values = dict (server=s.url, shard_bytes=shard, card_bytes=80 * shard, slowdown_ppm=percent * 10000, silence_s=2)
  values.update (changes)
  text = open (os.path.join (os.environ["srcdir"], "contrib/slurm/site.lua")).read ()
  for name, value in values.items ():
    word = "true" if value is True else f'"{value}"' if isinstance (value, str) else str (value)
    text, n = re.subn (rf"(?m)^  {name} = [^-\n]*?,", f"  {name} = {word},", text)
    assert n == 1, name
  open (etc + "/site.lua", "w").write (text)
  time.sleep (1.1) # Slurm reads its script again when that is newer than the last reading, in seconds
  os.utime (etc + "/job_submit.lua")

def run (*command, status=0):
  p = subprocess.run (command, capture_output=True, text=True, timeout=PATIENCE)
  assert status is None or p.returncode == status, (command, p.returncode, p.stdout, p.stderr)
  return p

def sbatch (*options, script="true", status=0):
  return run ("sbatch", "-o", work + "/out.%j", "--open-mode=truncate", *options, "--wrap", script, status=status)

def number (p): return re.search (r"batch job (\d+)", p.stdout)[1]
def shown (job): return dict (f.split ("=", 1) for f in run ("scontrol", "show", "job", "-o", job).stdout.split () if "=" in f)

def ended (*jobs):
  end = time.time () + PATIENCE
  while any (shown (j)["JobState"] not in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT") for j in jobs):
    assert time.time () < end, [shown (j) for j in jobs]
    time.sleep (0.1)
  for j in jobs: assert shown (j)["JobState"] == "COMPLETED", (shown (j), open (f"{work}/out.{j}").read ())

site ()
conf = open (etc + "/ferry.conf").read ()
conf = re.sub ("(?m)^FERRY_SERVER=.*", f"FERRY_SERVER={s.url}\nFERRY={FERRY}", conf)
conf = re.sub ("(?m)^FERRY_SLOWDOWN=.*", f"FERRY_SLOWDOWN={percent}%", conf)
conf = re.sub ("(?m)^FERRY_CARD=.*", f"FERRY_CARD={80 * shard}B", conf)
open (etc + "/ferry.conf", "w").write (re.sub ("(?m)^FERRY_PLANS=[^ ]*", f"FERRY_PLANS={cluster}/plans", conf))

@claim ("two jobs share one card's shards by ferry's advice, at the same time, each with its plan")
def _ ():
  meet = f"""env > env.$SLURM_JOB_ID; cp "$FERRY_PLAN" plan.$SLURM_JOB_ID
  for i in $(seq 300); do [ $(ls env.* | wc -l) = 2 ] && exit 0; sleep 0.1; done; exit 1"""
  jobs = []
  for i in range (2):
    p = sbatch ("--gres=gpu:fake:1", "--comment=ferry:alex.64", "--mem=100", "--chdir", work, script=meet)
    assert f"40 of a card's 80 shards, and {pinned} MB" in p.stderr, p.stderr
    jobs.append (number (p))
  for j in jobs: assert shown (j)["TresPerNode"] == "gres:shard:40" and shown (j)["MinMemoryNode"] == f"{100 + pinned}M", shown (j)
  ended (*jobs)
  env = [dict (l.split ("=", 1) for l in open (f"env.{j}").read ().split ("\n") if "=" in l) for j in jobs]
  assert env[0]["CUDA_VISIBLE_DEVICES"] == env[1]["CUDA_VISIBLE_DEVICES"] == "0"
  assert env[0]["SLURM_SHARDS_ON_NODE"] == env[1]["SLURM_SHARDS_ON_NODE"] == "40"
  for j, e in zip (jobs, env):
    assert e["FERRY_PLAN"] == f"{cluster}/plans/{j}/plan.json"
    ferry ("check", "a.json", f"plan.{j}")
    assert json.load (open (f"plan.{j}"))["budget_bytes"] <= 40 * shard
  end = time.time () + PATIENCE
  while os.listdir (cluster + "/plans"): assert time.time () < end, "a plan outlives its job"

@claim ("a slowdown in the comment stands over the site's, in the shards and in the plan")
def _ ():
  site (slowdown_ppm=1)
  assert "40 of a card's 80 shards" not in sbatch ("-H", "--gres=gpu:1", "--comment=ferry:alex.64").stderr
  comment = re.search ("--comment=(.*)", ferry ("advise", "alex.64", "-s", f"{percent}%", "--server", s.url).stdout)[0]
  job = number (sbatch ("--gres=gpu:1", comment, "--chdir", work, script='cp "$FERRY_PLAN" plan.mine'))
  assert shown (job)["TresPerNode"] == "gres:shard:40", shown (job)
  ended (job)
  assert json.load (open ("plan.mine"))["budget_bytes"] == advice["memory_bytes"]
  site ()

@claim ("the word may stand among others, and in another field, which is the site's choice")
def _ ():
  def asked (*options): return shown (number (sbatch ("-H", "--gres=gpu:fake:1", *options)))["TresPerNode"]
  assert asked ("--comment=night run, ferry:alex.64; x") == "gres:shard:40"
  site (field="wckey")
  assert asked ("--wckey=ferry:alex.64") == "gres:shard:40" and asked ("--comment=ferry:alex.64") == "gres:gpu:fake:1"
  site ()

@claim ("jobs that are no business of ferry's stay as they are")
def _ ():
  for options in (["--gres=gpu:fake:1"], ["--gres=gpu:fake:1", "--comment=ferry:$(touch x)"], ["--gres=gpu:fake:1", "--comment=xferry:alex.64"],
                  *(["--gres=gpu:fake:1", "--comment=ferry:alex.64" + it] for it in ("@", "@x", "@05", "@1@1", "@1$", "@10000000000")),
                  ["--comment=ferry:alex.64"]):
    p = sbatch ("-H", *options)
    assert "ferry" not in p.stderr, p.stderr
    assert shown (number (p)).get ("TresPerNode", "") == ("gres:gpu:fake:1" if "--gres=gpu:fake:1" in options else "")
  p = sbatch ("-H", "--gres=gpu:fake:1", "--comment=ferry:nobody")
  assert "nothing is known of nobody" in p.stderr and shown (number (p))["TresPerNode"] == "gres:gpu:fake:1"

@claim ("more shards than a card has are cut down; too large a job keeps its card, or is refused with the reason")
def _ ():
  p = sbatch ("-H", "--gres=shard:90", "--comment=ferry:alex.64")
  assert "a card has 80 shards; 90 were asked for" in p.stderr and shown (number (p))["TresPerNode"] == "gres:shard:80"
  site (card_bytes=30 * shard)
  p = sbatch ("-H", "--gres=gpu:1", "--comment=ferry:alex.64")
  assert "needs" in p.stderr and "keeps its card" in p.stderr and shown (number (p))["TresPerNode"] == "gres:gpu:1", p.stderr
  site (card_bytes=30 * shard, refuse=True)
  assert re.search ("needs .* at a slowdown of", sbatch ("-H", "--gres=gpu:1", "--comment=ferry:alex.64", status=1).stderr)
  site ()

@claim ("a job with all cards of a node is advised for ranks of the site's host: the memory of all, their number, the slowdown")
def _ ():
  host = "workstation-2x5090"
  s.job ("what-if", {"trace": s.upload ("a.json"), "host": host, "ranks": [1, 2], "memory": ["100%", "80%"], "swap_only": True, "limit_ticks": 200})
  a = s.ask ("GET", f"/v1/advice?fingerprint=alex.64&host={host}&ranks=2&max_slowdown_ppm=9000000").json ()
  mib = -(-a["pinned_host_bytes"] // (1 << 20))
  assert a["ranks"] == 2 and mib > 0 and a["slowdown"] > 0, a
  site (host=host, slowdown_ppm=9000000)
  p = sbatch ("--gres=gpu:2", "--ntasks=2", "--ntasks-per-node=2", "--mem=100", "--comment=ferry:alex.64", "--chdir", work, script='echo "$CUDA_VISIBLE_DEVICES $SLURM_MEM_PER_NODE" >cards')
  says = f"2 whole cards, and {mib} MB of pinned host memory for 2 ranks on {host}; a step takes {100 * a['slowdown']:.1f} % longer"
  assert says in p.stderr, p.stderr
  job = shown (number (p))
  assert job["TresPerNode"] == "gres:gpu:2" and job["MinMemoryNode"] == f"{100 + mib}M", job
  ended (number (p))
  assert open ("cards").read () == f"0,1 {100 + mib}\n", open ("cards").read ()
  site ()

@claim ("cli_filter makes the same change in the user's own process")
def _ ():
  for it in ("cli_filter.lua", "ferry.lua", "site.lua", "gres.conf"): shutil.copy (f"{etc}/{it}", cluster + "/user")
  open (cluster + "/user/slurm.conf", "w").write (open (etc + "/slurm.conf").read () + "CliFilterPlugins=lua\n")
  p = run ("env", f"SLURM_CONF={cluster}/user/slurm.conf", "sbatch", "-H", "--gres=gpu:fake:1", "--mem=1G", "--comment=ferry:alex.64", "--wrap", "true")
  job = shown (number (p))
  assert "sbatch: lua: ferry: 40 of a card's 80 shards" in p.stderr, p.stderr
  assert job["TresPerNode"] == "gres:shard:40" and job["MinMemoryNode"] == f"{1024 + pinned}M" and "AdminComment" not in job, job

@claim ("an advisor that is frozen delays nobody by more than its limit, and the jobs stay as they are")
def _ ():
  def timed (*options):
    start = time.time ()
    p = sbatch ("-H", "--gres=gpu:fake:1", *options)
    return time.time () - start, p
  sbatch ("-H", "--gres=gpu:fake:1", "--comment=ferry:alex.64")
  usual = statistics.median (timed ()[0] for _ in range (5))
  s.process.send_signal (signal.SIGSTOP)
  try:
    seen, lock = [], threading.Lock ()
    def user (k):
      t, p = timed ("--comment=ferry:frozen" + str (k)) if k % 2 else timed ()
      with lock: seen.append ((t - usual, p))
    users = [threading.Thread (target=user, args=(k,)) for k in range (6)]
    for u in users: u.start ()
    for u in users: u.join ()
    known = sbatch ("-H", "--gres=gpu:fake:1", "--comment=ferry:alex.64")
  finally:
    s.process.send_signal (signal.SIGCONT)
  for t, p in seen: assert t < 0.15 + 0.35 and shown (number (p))["TresPerNode"] == "gres:gpu:fake:1", seen
  assert sum ("does not answer" in p.stderr for t, p in seen) == 3
  assert shown (number (known))["TresPerNode"] == "gres:shard:40", "what was known is forgotten"
  print (f"sbatch takes {usual * 1000:.0f} ms; with a frozen advisor, up to {max (t for t, p in seen) * 1000:.0f} ms more")

@claim ("a job starts without a plan where the advisor is away")
def _ ():
  s.process.send_signal (signal.SIGSTOP)
  try:
    open (etc + "/ferry.conf", "a").write ("FERRY_PATIENCE=1\n")
    job = number (sbatch ("--gres=shard:1", "--comment=ferry:alex.64", script='test -z "$FERRY_PLAN"'))
    ended (job)
  finally:
    s.process.send_signal (signal.SIGCONT)

@claim ("a grid of what-ifs as a job array: each cell is what the command says")
def _ ():
  script = os.path.join (os.environ["srcdir"], "contrib/slurm/what_if.sbatch")
  p = run ("env", f"FERRY={FERRY}", f"FERRY_SERVER={s.url}", "sbatch", "-o", work + "/out.%A_%a", "--array=0-3", script,
           "a.json", "60% 80%", "12000000000 25000000000", work + "/grid")
  end = time.time () + PATIENCE
  while not all (os.path.exists (f"grid/{i}.json") for i in range (4)):
    assert time.time () < end, [open (f).read () for f in os.listdir (".") if f.startswith ("out.")]
    time.sleep (0.1)
  rows = [json.load (open (f"grid/{i}.json"))["result"]["rows"] for i in range (4)]
  assert [r[0]["link_bytes_per_s"] for r in rows] == [12000000000] * 2 + [25000000000] * 2
  assert rows[0][0]["budget_bytes"] == rows[2][0]["budget_bytes"] < rows[1][0]["budget_bytes"] == rows[3][0]["budget_bytes"]
  for i, cell in (0, "60% 12GB/s"), (3, "80% 25GB/s"):
    budget, link = cell.split ()
    assert rows[i] == json.loads (ferry ("whatif", "a.json", "--budget", budget, "--link", link, "--json", status=None).stdout)["rows"], rows[i]

run ("scancel", "--state=PENDING", "-u", "root", status=None)
claim ("the daemon ends in order") (lambda: None if s.stop () == 0 else 1 / 0)
finish ()
