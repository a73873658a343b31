# SPDX-License-Identifier: GPL-3.0-or-later
"""Two traces of one step: `compare.py TRACE TRUTH`.  Ops are matched by their names in order, tensors by
their bytes and the op that uses them first.  Says how many uses of the truth the trace misses, which must be
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


def pairs(true_tensors, tensors):
    """Each of the truth with one of the trace: of its size and first used by the same op, and of several that
    which misses least; else one that is at least as large and has all of its uses, as two that had one address
    after each other may be one for a reader; else the nearest of its size."""
    free = collections.defaultdict(list)
    for x in tensors:
        free[x[0]].append(x)

    def nearest(want, among):
        return min(among, key=lambda x: (len(want[1] - x[1]), len(x[1] - want[1]), x[0]), default=None)

    found, later = [], []
    for want in sorted(true_tensors, key=lambda t: sorted(t[1])):
        mine = nearest(want, [x for x in free[want[0]] if min(x[1], default=-1) == min(want[1], default=-1)])
        if mine is None or want[1] - mine[1]:
            later.append(want)
        else:
            free[want[0]].remove(mine)
            found.append((want, mine))
    for want in later:
        covering = [x for x in tensors if x[0] >= want[0] and want[1] <= x[1]]
        found.append((want, nearest(want, covering or free[want[0]])))
    return found


def compare(trace, truth):
    names, tensors = trace
    true_names, true_tensors = truth
    of = {}
    for a, b, size in difflib.SequenceMatcher(None, true_names, names, autojunk=False).get_matching_blocks():
        of.update({a + i: b + i for i in range(size)})
    missed = added = unmatched = 0
    # What was there before and goes at the first op was left by the step before.
    wanted = [(size, {of[op] for op in uses if op in of}) for size, _, uses, made in true_tensors
              if uses != {0} or made is not None]
    for want, mine in pairs(wanted, [(size, uses, pinned) for size, pinned, uses, _ in tensors]):
        if mine is None:
            unmatched += 1
            continue
        missed += 0 if mine[2] else len(want[1] - mine[1])
        added += len(mine[1] - want[1])
    return {"ops": len(of), "missed": missed, "added": added, "unmatched": unmatched}


if __name__ == "__main__":
    result = compare(load(sys.argv[1]), load(sys.argv[2]))
    print("%(ops)d ops matched, %(unmatched)d tensors not; uses missed %(missed)d, added %(added)d" % result)
    sys.exit(1 if result["missed"] else 0)
