# SPDX-License-Identifier: GPL-3.0-or-later
"""The three plain formats (ferry-text/1, interval CSV, the JSON of simulators): made files whose true uses are
known, and a second reading of each, written from docs/import.md and trace/import/rules.md alone.  A reading is (ops, tensors, peak):
ops as (name, ns, gap, phase), tensors as (bytes, reads, writes, pinned, first, last)."""
import json
import random
import re
from fractions import Fraction

from read import peak_of, text_of

SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 1000, "MB": 10**6, "GB": 10**9}
TIMES = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}
PHASES = ["forward", "backward", "update", "other"]


def quantity(word, units):
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]+)", word).groups()
    return int(Fraction(number) * units[unit])


def finish(ops, rows, workspace=None):
    """Rows: {bytes, reads, writes, pinned, lasting, born, dies}."""
    n, tensors = len(ops), []
    for t in rows:
        used = t["reads"] + t["writes"] + [k for k in (t.get("born"), t.get("dies")) if k is not None]
        first, last = (0, n - 1) if t.get("lasting") else (min(used), max(used)) if used else (0, -1)
        tensors.append((t["bytes"], tuple(t["reads"]), tuple(t["writes"]), t.get("pinned", False), first, last))
    return ops, tensors, peak_of(n, tensors, workspace or [0] * n)


# ---- ferry-text/1 ----

def read_plain(path):
    keys = ("reads", "writes", "side", "gap", "workspace", "parts")
    of, rows, ops, workspace = {}, [], [], []
    for line in text_of(path).decode().split("\n")[1:]:
        words = line.split("#")[0].split()
        if not words or words[0] in ("name", "batch"):
            continue
        if words[0] == "tensor":
            flags = words[3:]
            of[words[1]] = {"bytes": quantity(words[2], SIZES), "reads": [], "writes": [], "pinned": "pinned" in flags,
                            "lasting": bool({"persistent", "parameter", "optimizer"} & set(flags))}
            rows.append(of[words[1]])
        elif words[0] == "free":
            for name in words[1:]:
                of[name]["dies"] = len(ops) - 1
        else:
            at, op, gap, room, list_of = 4, len(ops), 0, 0, None
            while at < len(words):
                if words[at] in keys[:3]:
                    list_of = words[at]
                elif words[at] in keys[3:]:
                    if words[at] == "gap":
                        gap = quantity(words[at + 1], TIMES)
                    elif words[at] == "workspace":
                        room = quantity(words[at + 1], SIZES)
                    at += 1
                    list_of = None
                else:
                    t = of[words[at]]
                    key = "reads" if list_of == "reads" else "writes"
                    if key == "reads" and not t["writes"] and not t["lasting"]:
                        t["born"] = 0
                    if op not in t[key]:
                        t[key].append(op)
                at += 1
            ops.append((words[1], quantity(words[3], TIMES), gap, words[2]))
            workspace.append(room)
    return finish(ops, rows, workspace)


# ---- interval CSV ----

def read_intervals(path):
    head, *lines = [l.split(",") for l in text_of(path).decode().replace("\r", "").split("\n") if l.strip()]
    column = {{"begin": "lower", "end": "upper"}.get(h.strip(), h.strip()): i for i, h in enumerate(head)}
    lives = [tuple(int(l[column[c]]) for c in ("lower", "upper", "size")) for l in lines]
    times = sorted({l[0] for l in lives})
    rows = []
    for lower, upper, size in lives:
        held = [k for k, at in enumerate(times) if lower <= at < upper]
        rows.append({"bytes": size, "writes": [held[0]], "reads": [held[-1]] if len(held) > 1 else []})
    return finish([("t=%d" % at, 0, 0, "other") for at in times], rows)


# ---- kernels and tensors ----

def phase_of(name):
    for phase, words in (("forward", ("Forward", "forward")), ("backward", ("Backward", "backward")),
                         ("update", ("Optimizer", "Apply", "Update"))):
        if any(w in name for w in words):
            return phase
    return "other"


def read_kernels(path):
    file = json.loads(text_of(path).decode(), parse_float=Fraction)
    ops = [(k.get("name", ""), int(Fraction(k["us"]) * 1000), 0, phase_of(k.get("name", ""))) for k in file["kernels"]]
    of = {t["id"]: {"bytes": t["bytes"], "reads": [], "writes": [], "lasting": bool(t.get("global"))}
          for t in file["tensors"]}
    for op, k in enumerate(file["kernels"]):
        for x in dict.fromkeys(k.get("in", [])):
            if not of[x]["reads"] and not of[x]["writes"] and not of[x]["lasting"]:
                of[x]["born"] = 0
            of[x]["reads"].append(op)
        for x in dict.fromkeys(k.get("out", [])):
            of[x]["writes"].append(op)
    return finish(ops, [of[x] for x in sorted(of)])


# ---- made ones ----

class Step:
    """Ops in a row with what each reads and writes; a tensor is used by nothing behind its free."""

    def __init__(self, seed):
        r = self.random = random.Random(seed)
        n, m = r.randint(2, 30), r.randint(1, 20)
        self.bytes = [r.choice([r.randint(1, 1 << 16), r.randint(1, 1 << 20) * 4096]) for _ in range(m)]
        self.lasting = [r.random() < 0.3 for _ in range(m)]
        self.phases = [PHASES[min(3, 4 * k // n)] for k in range(n)]
        self.ns = [r.choice([0, r.randint(1, 999), 1000 * r.randint(1, 10**4)]) for _ in range(n)]
        self.reads, self.writes = [[] for _ in range(n)], [[] for _ in range(n)]
        for x in range(m):
            for op in r.sample(range(n), r.randint(0, min(n, 4))):
                r.choice([self.reads, self.writes, self.reads])[op].append(x)
                if r.random() < 0.2 and x not in self.writes[op]:
                    self.writes[op].append(x)

    def uses(self, x):
        return {op for op in range(len(self.ns)) if x in self.reads[op] or x in self.writes[op]}


def size_text(r, n):
    fits = [u for u in ("B", "KiB", "MiB") if n % SIZES[u] == 0]
    unit = r.choice(fits)
    return "%d%s" % (n // SIZES[unit], unit)


def time_text(r, ns):
    if ns % 1000 or r.random() < 0.3:
        return r.choice(["%dns" % ns, "%d.%03dus" % divmod(ns, 1000)])
    return "%dus" % (ns // 1000)


def plain(step):
    r, out = step.random, ["ferry-text/1", "# made", "name made", "batch 4"]
    for x, n in enumerate(step.bytes):
        kind = r.choice(["parameter", "optimizer", "temporary persistent"]) if step.lasting[x] else \
            r.choice(["", "temporary", "activation", "input", "gradient"])
        out.append("tensor t%d  %s %s%s" % (x, size_text(r, n), kind, " pinned" if r.random() < 0.1 else ""))
    for op, ns in enumerate(step.ns):
        side = [x for x in step.writes[op] if r.random() < 0.2]
        words = ["op o%d %s %s" % (op, step.phases[op], time_text(r, ns))]
        lists = [("reads", step.reads[op]), ("writes", [x for x in step.writes[op] if x not in side]), ("side", side)]
        r.shuffle(lists)
        words += [key + "".join(" t%d" % x for x in row) for key, row in lists if row]
        if r.random() < 0.3:
            words.append("gap " + time_text(r, r.randint(0, 10**6)))
        if r.random() < 0.3:
            words.append("workspace " + size_text(r, r.randint(0, 1 << 20)))
        out.append(" ".join(words) + ("  # " + r.choice(["reads t0", "so"]) if r.random() < 0.2 else ""))
        gone = [x for x in range(len(step.bytes)) if not step.lasting[x] and max(step.uses(x), default=-1) == op]
        gone = ["t%d" % x for x in gone if r.random() < 0.5]
        out += ["free " + " ".join(gone)] if gone else []
    return "\n".join(out) + "\n"


def intervals(step):
    r = step.random
    head = r.sample([r.choice(["lower", "begin"]), r.choice(["upper", "end"]), "id", "size", "note"], 5)
    out = [",".join(head)]
    for x, n in enumerate(step.bytes):
        lower = r.randint(-50, 50)
        row = {"id": "b%d" % x, "lower": lower, "begin": lower, "size": n, "note": r.choice(["", "x y"])}
        row["upper"] = row["end"] = lower + r.randint(1, 40)
        out.append(r.choice([",", " , "]).join(str(row[h]) for h in head))
    return r.choice(["\n", "\r\n"]).join(out) + r.choice(["", "\n"])


def kernels(step):
    r, names = step.random, ("Conv2d_Forward", "MatMul_Backward", "Adam_Optimizer", "Copy")
    ids = r.sample(range(3 * len(step.bytes)), len(step.bytes))  # with gaps, in any order
    rows = [{"id": ids[x], "bytes": n, "global": r.choice([1, True]) if step.lasting[x] else r.choice([0, False])}
            for x, n in enumerate(step.bytes)]
    made = []
    for op, ns in enumerate(step.ns):
        row = {"id": op, "name": names[PHASES.index(step.phases[op])], "us": ns / 1000}
        keys = [("in", step.reads), ("out", step.writes)]
        r.shuffle(keys)
        row.update((key, [ids[x] for x in lists[op]] + [ids[x] for x in lists[op][:1] if r.random() < 0.2])
                   for key, lists in keys)
        made.append(row)
    parts = [("kernels", made), ("tensors", r.sample(rows, len(rows)))]
    r.shuffle(parts)
    return json.dumps(dict(parts)), {ids[x]: x for x in range(len(ids))}
