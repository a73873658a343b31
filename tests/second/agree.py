# SPDX-License-Identifier: GPL-3.0-or-later
"""Two readings of the same files agree, and no plan takes a tensor away while an op that may use it
runs: `agree.py FERRY WORK COUNT [REAL]`.  COUNT steps are made in each format; their true uses are
known.  REAL is a folder of recorded profiles."""
import collections
import glob
import json
import os
import subprocess
import sys

import compare
import made
import plain
import read

ferry, work, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
real = sys.argv[4] if len(sys.argv) > 4 else None
failures, tally = [], collections.Counter()


def run(*args):
    return subprocess.run([ferry, *args], capture_output=True, text=True)


def column(table, key, n, default):
    values = table.get(key, [default] * n)
    return [default if v is None else v for v in values]


def rows(table, key, n):
    lists = table.get(key)
    if lists is None:
        return [[] for _ in range(n)]
    at, index = lists["offset"], lists["index"]
    return [index[at[i]:at[i + 1]] for i in range(n)]


def load(path):
    """A packed trace as lists of the same form as those of read.py."""
    t = json.load(open(path))
    o, x = t["ops"], t["tensors"]
    n, m = len(o["name"]), len(x["bytes"]) if x else 0
    ops = list(zip(o["name"], column(o, "ns", n, 0), column(o, "gap_ns", n, 0), column(o, "phase", n, "other")))
    reads, writes = rows(o, "reads", n), rows(o, "writes", n)
    by_read, by_write = [[] for _ in range(m)], [[] for _ in range(m)]
    for op in range(n):
        for i in reads[op]:
            by_read[i].append(op)
        for i in writes[op]:
            by_write[i].append(op)
    kinds = column(x, "kind", m, "temporary") if m else []
    lasting = column(x, "persistent", m, None) if m else []
    lasting = [k in ("parameter", "optimizer") if p is None else p for k, p in zip(kinds, lasting)]
    born, dies = column(x, "born_before", m, -1), column(x, "dies_after", m, -1)
    pinned = column(x, "pinned", m, False) if m else []
    tensors = []
    for i in range(m):
        used = by_read[i] + by_write[i] + [k for k in (born[i], dies[i]) if k >= 0]
        first, last = (0, n - 1) if lasting[i] else (min(used), max(used)) if used else (0, -1)
        tensors.append((x["bytes"][i], tuple(by_read[i]), tuple(by_write[i]), bool(pinned[i]), first, last))
    return t, ops, tensors


def fail(what):
    failures.append(what)
    print("does not hold:", what)


def agree(name, files, reading):
    out = os.path.join(work, "trace")
    if os.path.exists(out):
        os.unlink(out)
    answer = run("import", *files, "-o", out, "--json")
    if answer.returncode not in (0, 1) or not os.path.exists(out):
        fail("%s is read: %s" % (name, answer.stderr.strip()))
        return None
    report = json.loads(answer.stdout)
    trace, ops, tensors = load(out)
    mine_ops, mine, peak = reading
    named = any(o[0] for o in mine_ops)  # of a snapshot, ops are only places
    if [o if named else o[1:] for o in ops] != [o if named else o[1:] for o in mine_ops]:
        differ = [(a, b) for a, b in zip(ops, mine_ops) if a != b][:2]
        fail("%s: the same ops (%d and %d): %s" % (name, len(ops), len(mine_ops), differ))
    a, b = collections.Counter(tensors), collections.Counter(mine)
    if a != b:
        fail("%s: the same tensors and uses: %s only here, %s only there" %
             (name, list((a - b))[:2], list((b - a))[:2]))
    if mine and report["peak_bytes"] != peak:
        fail("%s: the same peak, %d and %d" % (name, report["peak_bytes"], peak))
    tally["files"] += 1
    tally["uses"] += sum(len(t[1]) + len(t[2]) for t in tensors)
    return trace, tensors, report, column(trace["tensors"] or {}, "name", len(tensors), "")


def true_tensors(net):
    """What the trace's tensors have to cover: (bytes, birth or None, ops that use it)."""
    uses = net.true_uses()
    return [(t, min(uses[t.id]) if t.made_by else None, uses[t.id]) for t in net.tensors if uses[t.id]]


def covers(name, net, tensors, size, named, names=None, called=None, frees=True):
    """Each true tensor has one in the trace whose uses, or stay, hold all of its true uses.  `named`:
    those that the format shows at all; `called`: how the trace names one, where it does; without
    `frees` a format shows no life behind the last mention, and nothing is moved there."""
    free = list(range(len(tensors)))
    of, missed, added = {}, 0, 0
    for t, birth, uses in true_tensors(net):
        if not named(t):
            continue
        fits = [i for i in free if tensors[i][0] == size(t) and
                ((names[i].split(".")[0] == called(t)) if names else
                 birth is None or not tensors[i][2] or min(tensors[i][2]) == birth)]
        best = None
        for i in fits:
            held = set(range(tensors[i][4], tensors[i][5] + 1)) if tensors[i][3] else set(tensors[i][1] + tensors[i][2])
            seen = uses if frees else {u for u in uses if u <= tensors[i][5]}
            if seen <= held:
                best = i
                break
        if best is None:
            missed += 1
            fail("%s: tensor %d of %d bytes, used by %s, is covered by none of %s" %
                 (name, t.id, t.bytes, sorted(uses), [tensors[i][1:] for i in fits][:3]))
            continue
        free.remove(best)
        of[best] = uses if frees else {u for u in uses if u <= tensors[best][5]}
        if not tensors[best][3]:
            added += len(set(tensors[best][1] + tensors[best][2]) - uses)
    tally["uses added"] += added
    tally["uses missed"] += missed
    return of


def oracle(name, trace, tensors, of):
    """A plan in as little memory as there is one: its moves are away from true uses."""
    source, plan_path = os.path.join(work, "trace"), os.path.join(work, "plan")
    if trace["source"]["confidence"].startswith("not plannable"):
        return
    common = ("--device", "h200", "--reserve", "0")
    floor = json.loads(run("solve", source, *common, "--budget", "1B", "--swap-only", "--json").stdout or "{}").get("floor_bytes")
    if floor is None:
        return
    if os.path.exists(plan_path):
        os.unlink(plan_path)
    solved = run("solve", source, *common, "--budget", "%dB" % floor, "--swap-only", "--limit", "20000", "-o", plan_path)
    if solved.returncode not in (0, 4) or not os.path.exists(plan_path):
        tally["no plan at the floor"] += 1
        return
    plan = json.load(open(plan_path))
    n_ops = len(trace["ops"]["name"])
    last = [l for l in solved.stdout.splitlines() if l][-1]
    if trace["source"]["confidence"] != "exact" and not last.startswith("the trace is "):
        fail("%s: the last line of solve says that the trace is not exact: %s" % (name, last))
    if run("check", source, plan_path).returncode != 0:
        fail("%s: the plan is legal" % name)
    for move in plan["moves"]:
        unit = move["unit"]
        parts = [unit] if unit < len(tensors) else plan["groups"][unit - len(tensors)]
        a, b = move["out_after"], move["in_before"]
        away = set(range(a + 1, b)) if b > a else set(range(a + 1, n_ops)) | set(range(b))
        tally["moves"] += 1
        for x in parts:
            if away & of.get(x, set()):
                fail("%s: tensor %d is away while ops %s use it" % (name, x, sorted(away & of[x])))


def write(name, data):
    path = os.path.join(work, name)
    with open(path, "wb") as out:
        out.write(data if isinstance(data, bytes) else data.encode())
    return path


def one(seed):
    net = made.Net(seed)
    all_of, storage = (lambda t: True), (lambda t: "s%d" % (100 + t.id))
    scale = 4096 if seed % 2 else 1  # so that moves are worth their granules
    for t in net.tensors:
        t.elements *= scale
        t.bytes *= scale
        t.padded = read.padded(t.bytes)
        # The allocator hands out a large block whole, where less than 1 MiB of it would be left over.
        if t.bytes > read.SLACK:
            t.padded += 512 * net.random.choice([0, 1, 7, read.SLACK // 512])

    for shapes, addresses in ((True, True), (False, True), (True, False)):
        name = "seed %d, kineto%s%s" % (seed, "" if shapes else " without shapes", "" if addresses else " without addresses")
        path = write("made.kineto.json", made.kineto(net, seed, shapes=shapes, addresses=addresses))
        got = agree(name, [path], read.read_kineto(path))
        if got and addresses:
            alive = lambda t: t.made_by is not None and len(set(t.uses)) > 1
            of = covers(name, net, got[1], lambda t: t.padded, lambda t: alive(t) and not inside_one_op(net, t))
            oracle(name, got[0], got[1], of)
    text, ids = made.et(net)
    et, pair = write("made.et.json", text), write("made.pair.json", made.kineto(net, seed, record_ids=ids, memory=False))
    agree("seed %d, et" % seed, [et], read.read_et(et))
    got = agree("seed %d, et and kineto" % seed, [et, pair], read.read_pair(et, pair))
    if got:
        of = covers("seed %d, et and kineto" % seed, net, got[1], lambda t: t.bytes, lambda t: visible(net, t), got[3], storage, False)
        oracle("seed %d, et and kineto" % seed, got[0], got[1], of)
    for streams in ("attribute", "tid", "thread"):
        name = "seed %d, chakra by %s" % (seed, streams)
        path = write("made.chakra.et", made.chakra(net, seed, streams))
        got = agree(name, [path], read.read_chakra(path))
        if got:
            of = covers(name, net, got[1], lambda t: t.bytes, all_of, got[3], storage)
            oracle(name, got[0], got[1], of)
    path = write("made.pickle", made.snapshot(net, seed, 1 + seed % 2))
    agree("seed %d, snapshot" % seed, [path], read.read_snapshot(path))
    path = write("made.log", made.dtr(net, seed))
    got = agree("seed %d, log of calls" % seed, [path], read.read_dtr(path))
    if got:
        of = covers("seed %d, log of calls" % seed, net, got[1], lambda t: t.bytes, all_of, got[3], lambda t: "x%d" % t.id)
        oracle("seed %d, log of calls" % seed, got[0], got[1], of)


def one_plain(seed):
    step = plain.Step(seed)
    path = write("made.txt", plain.plain(step))
    got = agree("seed %d, ferry-text" % seed, [path], plain.read_plain(path))
    if got:
        oracle("seed %d, ferry-text" % seed, got[0], got[1], {x: step.uses(x) for x in range(len(step.bytes))})
    path = write("made.csv", plain.intervals(step))
    agree("seed %d, intervals" % seed, [path], plain.read_intervals(path))
    text, of = plain.kernels(step)
    path = write("made.kernels.json", text)
    got = agree("seed %d, kernels" % seed, [path], plain.read_kernels(path))
    if got:
        oracle("seed %d, kernels" % seed, got[0], got[1], {i: step.uses(of[int(n[1:])]) for i, n in enumerate(got[3])})


def inside_one_op(net, t):
    """Workspace: born and freed in one op."""
    ops = net.true_uses()[t.id]
    return len(ops) <= 1 or len({id(call) for op, (call, _) in enumerate(net.ops) if op in ops}) == 1


def visible(net, t):
    """Whether any call lists it: an execution trace knows nothing else."""
    return t.made_by is None or not made_by_opaque(net, t)


def made_by_opaque(net, t):
    call, piece = net.calls[t.made_by[0]], t.made_by[1]
    return call.opaque and piece is not call.pieces[-1] and not piece.inner and t not in call.pieces[-1].writes


def comparer():
    """compare.py sees a use that is gone, and one too many."""
    truth = (["a", "b", "c"], [(8, False, {0, 1, 2}, 0)])
    less, more = (truth[0], [(8, False, {0, 2}, 0)]), (truth[0] + ["d"], [(8, False, {0, 1, 2, 3}, 0)])
    for trace, missed, added in ((truth, 0, 0), (less, 1, 0), (more, 0, 1)):
        got = compare.compare(trace, truth)
        if (got["missed"], got["added"]) != (missed, added):
            fail("the comparer counts %d missed and %d added: %s" % (missed, added, got))


comparer()
for seed in range(count):
    one(seed)
    one_plain(seed)
if real:
    for kind, reader in (("kineto", read.read_kineto), ("et", read.read_et), ("chakra", read.read_chakra),
                         ("snapshot", read.read_snapshot)):
        for path in sorted(glob.glob(os.path.join(real, kind, "*"))):
            agree(os.path.basename(path), [path], reader(path))
    for et in sorted(glob.glob(os.path.join(real, "et_kineto", "*.et.json.gz"))):
        pair = et.replace(".et.", ".kineto.")
        if "simple_add" not in et:
            agree(os.path.basename(et), [et, pair], read.read_pair(et, pair))
print("%d made steps: %s" % (count, ", ".join("%s %d" % row for row in sorted(tally.items()))))
sys.exit(1 if failures else 0)
