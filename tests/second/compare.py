# SPDX-License-Identifier: GPL-3.0-or-later
"""Two traces of one step: `compare.py TRACE TRUTH`.  Ops are matched by their names in order, tensors by
their bytes and the op that makes them.  Says how many uses of the truth the trace misses, which must be
none, and how many it adds; a pinned tensor is there whenever it lives."""
import collections
import difflib
import json
import sys


def column(table, key, n, default):
    return [default if v is None else v for v in table.get(key, [default] * n)]


def rows(table, key, n):
    lists = table.get(key) or {"index": [], "offset": [0] * (n + 1)}
    return [lists["index"][lists["offset"][i]:lists["offset"][i + 1]] for i in range(n)]


def load(path):
    """Names of ops, and tensors as (bytes, pinned, ops that use it, first op that writes it)."""
    t = json.load(open(path))
    names = t["ops"]["name"]
    n, m = len(names), len(t["tensors"]["bytes"])
    uses, made = [set() for _ in range(m)], [None] * m
    for key in ("reads", "writes"):
        for op, row in enumerate(rows(t["ops"], key, n)):
            for x in row:
                uses[x].add(op)
                if key == "writes" and made[x] is None:
                    made[x] = op
    return names, list(zip(t["tensors"]["bytes"], column(t["tensors"], "pinned", m, False), uses, made))


def compare(trace, truth):
    names, tensors = trace
    true_names, true_tensors = truth
    of = {}
    for a, b, size in difflib.SequenceMatcher(None, true_names, names, autojunk=False).get_matching_blocks():
        of.update({a + i: b + i for i in range(size)})
    free = collections.defaultdict(list)
    for x in tensors:
        free[(x[0], x[3])].append(x)
    missed = added = unmatched = 0
    for size, _, uses, made in true_tensors:
        found = free[(size, of.get(made))]
        if not found:
            unmatched += 1
            continue
        mine = found.pop(0)
        want = {of[op] for op in uses if op in of}
        missed += 0 if mine[1] else len(want - mine[2])
        added += len(mine[2] - want)
    return {"ops": len(of), "missed": missed, "added": added, "unmatched": unmatched}


if __name__ == "__main__":
    result = compare(load(sys.argv[1]), load(sys.argv[2]))
    print("%(ops)d ops matched, %(unmatched)d tensors not; uses missed %(missed)d, added %(added)d" % result)
    sys.exit(1 if result["missed"] else 0)
