# SPDX-License-Identifier: GPL-3.0-or-later
"""Which updates run in one call of the optimizer.

A trace has an op for each parameter's update, and a plan may have copies between two of them. One call for
each takes more of the host's time than a whole step of a small network. So those that follow one another go
in one call: as long as the plan has nothing to do between them, and the temporaries of all have room where
the plan leaves it.
"""
import bisect
import itertools

from .valve import needs_of


def spans_of(plan):
    """Tensor, first and last position at which it may be there, by the trace alone."""
    end = len(plan.ops) - 1
    for i, row in enumerate(plan.tensors):
        uses = plan.uses.get(i)
        if row["persistent"]:
            yield i, 0, end
        elif uses:
            yield (i, uses[0] if row["born_before"] is None else row["born_before"],
                   uses[-1] if row["dies_after"] is None else row["dies_after"])


class Waits:
    """By position: the ops and copies in that wait for a number of copies out."""

    def __init__(self, plan):
        found = [*plan.waits.items(), *((m.trigger, m.frees) for m in plan.moves if m.frees is not None)]
        self.at, outs = zip(*sorted(found)) if found else ((), ())
        self.most = list(itertools.accumulate(outs, max))
        self.end = len(plan.ops)

    def gone(self, move):
        """The position from which the plan counts on the move's room."""
        if move.outs is None:
            return move.out_after + 1
        first = max(bisect.bisect_right(self.at, move.out_after), bisect.bisect_left(self.most, move.outs))
        return self.at[first] if first < len(self.at) else self.end


def away_of(plan):
    """Tensor, first and last position at which its bytes are on the host alone."""
    end, waits = len(plan.ops) - 1, Waits(plan)
    for move in plan.moves:
        if move.trigger > move.out_after:
            yield move.tensor, waits.gone(move), move.trigger - 1
        else:  # over the end of the step
            yield move.tensor, waits.gone(move), end
            yield move.tensor, 0, move.trigger - 1


def rooms_of(plan, needs):
    """What the plan leaves free at each position, beside what the op there takes itself."""
    change = [0] * (len(plan.ops) + 1)
    for sign, spans in ((1, spans_of(plan)), (-1, away_of(plan))):
        for i, first, last in spans:
            if first <= last:
                change[first] += sign * plan.tensors[i]["bytes"]
                change[last + 1] -= sign * plan.tensors[i]["bytes"]
    rooms, held = [], 0
    for at, op in enumerate(plan.ops):
        held += change[at]
        own = needs[at] - op.get("workspace_bytes", 0)  # what it makes counts as held there
        rooms.append(plan.budget - held + own)
    return rooms


class Pieces:
    """`moments`: the positions at which something is due that cannot wait for the end of a call, in order.

    What comes in is there before the call. What leaves behind one of its updates leaves behind the call: its bytes
    need room up to there. So that copies run beside updates, no call waits with more than a part of all that leaves."""
    PARTS = 8

    def __init__(self, plan, at_of, moments=()):
        self.at_of, self.moments = at_of, moments
        self.needs = needs_of(plan.tensors, plan.ops)
        self.rooms = rooms_of(plan, self.needs)
        first = min(at_of.values(), default=len(plan.ops))
        self.leaves = sorted((m.out_after, m.trigger, plan.tensors[m.tensor]["bytes"]) for m in plan.moves
                             if plan.tensors[m.tensor]["persistent"] and m.out_after >= first)
        self.most = sum(size for *_, size in self.leaves) // self.PARTS
        self.known, self.parted = None, []

    def is_still(self, before, at):
        """Nothing is due behind the one update and up to the other."""
        return bisect.bisect_right(self.moments, before) == bisect.bisect_right(self.moments, at)

    def waiting(self, first, at):
        """Bytes that cannot leave during one call of these updates; None where the call would need some again."""
        found = self.leaves[bisect.bisect_left(self.leaves, (first,)):bisect.bisect_left(self.leaves, (at,))]
        if any(out < trigger <= at for out, trigger, _ in found):
            return None
        return sum(size for *_, size in found)

    def fit(self, first, before, at, taken, room):
        """Does the update at `at` go with those from `first` to `before`?"""
        if at is None or before is None or not self.is_still(before, at):
            return False
        waiting = self.waiting(first, at)
        return waiting is not None and waiting <= self.most and taken + self.needs[at] + waiting <= min(room, self.rooms[at])

    def ends(self, updates):
        """The number behind each call's last update."""
        first = before = of_group = None
        taken = room = 0
        for n, (group, p) in enumerate(updates):
            at = self.at_of.get(id(p))
            if n and not (group is of_group and self.fit(first, before, at, taken, room)):
                yield n
                first = None
            if first is None:
                first, of_group, taken, room = at, group, 0, 0 if at is None else self.rooms[at]
            if at is not None:
                taken, room = taken + self.needs[at], min(room, self.rooms[at])
            before = at
        if updates:
            yield len(updates)

    def of(self, updates):
        """The parameters of each call, behind their group."""
        updates = list(updates)
        asked = [(id(group), id(p)) for group, p in updates]
        if asked != self.known:
            self.known, self.parted = asked, list(self.ends(updates))
        first = 0
        for end in self.parted:
            yield updates[first][0], [p for _, p in updates[first:end]]
            first = end
