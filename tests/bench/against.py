# SPDX-License-Identifier: GPL-3.0-or-later
# Random cells planned by this build and by another: gaps to the better bound of the two, and CPU seconds.
# against.py FERRY OTHER_FERRY SEED COUNT. A cell is a network of the zoo, a batch, a type, an optimizer, a device and a
# budget; every other one may drop tensors. Both plan the trace that OTHER_FERRY makes.
import json, os, random, resource, statistics, subprocess, sys, tempfile

ours, other, seed, count = sys.argv[1], sys.argv[2], int (sys.argv[3]), int (sys.argv[4])
CARDS = "v100 a100-40 h100-sxm h200 rtx4090 p100 titanx-pascal gh200".split ()
NETWORKS = "alexnet vgg16 vgg19 resnet34 resnet50 resnet101 densenet121 unet3d bert-base gpt2 vit-b lstm seq2seq".split ()
MOST_SECONDS = 300
dice = random.Random (seed)

def call (*words):
  before = resource.getrusage (resource.RUSAGE_CHILDREN)
  r = subprocess.run (words, capture_output=True, text=True, timeout=MOST_SECONDS)
  after = resource.getrusage (resource.RUSAGE_CHILDREN)
  return r, after.ru_utime - before.ru_utime

def solve (ferry, trace, card, budget, words):
  try:
    r, cpu = call (ferry, "solve", trace, "-d", card, "-b", str (budget) + "B", "--json", "-o", os.devnull, *words)
    plan = json.loads (r.stdout)
    return plan["predicted"]["step_ns"], plan["certificate"]["lower_bound_ns"], cpu
  except (subprocess.TimeoutExpired, ValueError, KeyError): return None

def draw (folder):
  card, network = dice.choice (CARDS), dice.choice (NETWORKS)
  words = ["--batch", str (2 ** dice.randrange (9)), "--dtype", dice.choice (["fp32", "bf16", "tf32"]),
           "--optimizer", dice.choice (["sgd", "momentum", "adam"]), "-d", card]
  part, drops = dice.randrange (45, 91), dice.random () < 0.5
  trace = os.path.join (folder, "net.json")
  if call (other, "zoo", network, *words, "-q", "-o", trace)[0].returncode: return None
  r, _ = call (ours, "info", trace, "-d", card, "--json")
  needs = json.loads (r.stdout)["needs"]["bytes"]
  return trace, card, needs * part // 100, drops, f"{network} {' '.join (words[1::2])} {part} %{', drops' if drops else ''}"

rows = []
with tempfile.TemporaryDirectory () as folder:
  while len (rows) < count:
    if (cell := draw (folder)) is None: continue
    trace, card, budget, drops, name = cell
    allowed = ["--recompute", "auto"] if drops else []
    was = solve (other, trace, card, budget, allowed)
    now = solve (ours, trace, card, budget, [*allowed, "--sections", "off", "--order", "as-is"] if drops else ["--swap-only"])
    if was is None and now is None: continue
    bound = max (x[1] for x in (was, now) if x)
    gaps = [100 * x[0] / bound - 100 if x else None for x in (was, now)]
    rows.append ((name, gaps, [x[2] if x else MOST_SECONDS for x in (was, now)]))
    print (json.dumps (dict (cell=name, gap_before=gaps[0], gap_now=gaps[1], cpu_before=rows[-1][2][0], cpu_now=rows[-1][2][1])), flush=True)

both = [r for r in rows if None not in r[1]]
tenth = lambda values: sorted (values)[len (values) * 9 // 10]
for k, which in enumerate (("before", "now")):
  gaps = [r[1][k] for r in both]
  print (f"{which:6}  {sum (r[1][k] is not None for r in rows)} plans; of the {len (both)} that both have: median {statistics.median (gaps):.3f} %, "
         f"worst tenth {tenth (gaps):.3f} %, mean {statistics.mean (gaps):.3f} %, {sum (r[2][k] for r in both):.0f} s")
