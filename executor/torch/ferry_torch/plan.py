# SPDX-License-Identifier: GPL-3.0-or-later
"""A ferry plan, read for this executor: which storage leaves and comes back where."""
import glob
import os

from . import trace as traces
from .errors import Refused

MOVE = {"unit": None, "part": 0, "of": 1, "out_after": None, "in_before": None, "in_ops": None,
        "in_outs": None, "clean": False, "host_offset": 0}


class Move:
    """One stay of one tensor on the host."""

    __slots__ = ("tensor", "out_after", "in_before", "trigger", "clean", "offset", "outs", "frees")

    def __init__(self, tensor, row, trigger, offset):
        self.tensor, self.trigger, self.offset = tensor, trigger, offset
        self.out_after, self.in_before, self.clean = row["out_after"], row["in_before"], row["clean"]
        self.outs = None  # how many copies out have been made with this one
        self.frees = row["in_outs"]  # how many must be over before it comes back

    @property
    def wraps(self):
        return self.in_before <= self.out_after


def inputs_of(trace):
    """The signature of the batch, which the recorder wrote into the trace's detail."""
    found = []
    for part in ((trace.get("source") or {}).get("detail") or "").split("; "):
        if part.startswith("input "):
            _, dtype, shape = part.split(" ")
            sizes = () if shape == "scalar" else tuple(int(n) for n in shape.split("x"))
            found.append((dtype, sizes))
    return tuple(found)


class Plan:
    """Moves and waits in positions of the trace: position p is before op p."""

    def __init__(self, plan, trace):
        self.tensors, self.ops = traces.tensors_and_ops(trace)
        self.inputs = inputs_of(trace)
        self.json = plan
        self.predicted = plan.get("predicted") or {}
        self.budget = plan["budget_bytes"]
        self.refuse_rewrites()
        self.moves, self.host_bytes = [], 0
        self.read_moves()
        self.waits = {row["op"]: row["outs"] for row in traces.rows(plan.get("op_waits") or [],
                                                                    ("op", "outs"))}

    def refuse_rewrites(self):
        if self.json.get("sections"):
            raise Refused("the plan cuts ops into sections, which PyTorch cannot do; "
                          "`ferry solve --for torch` makes one without")
        if self.json.get("recompute"):
            raise Refused("the plan makes tensors again, which is not followed yet; "
                          "`ferry solve --recompute off` makes one without")

    def read_moves(self):
        rows = [traces.filled(row, MOVE) for row in traces.rows(self.json.get("moves") or [], MOVE)]
        groups = self.json.get("groups") or []
        for row in rows:
            if row["of"] > 1:
                raise Refused(f"the plan moves {self.name(row['unit'])} in {row['of']} parts, and "
                              "PyTorch only whole storages; `ferry solve --for torch` does so")
        triggers = self.triggers(rows)
        outs = {m: i + 1 for i, m in enumerate(self.json.get("out_order") or [])}
        for number, row in enumerate(rows):
            offset = row["host_offset"]
            unit = row["unit"]
            for t in [unit] if unit < len(self.tensors) else groups[unit - len(self.tensors)]:
                move = Move(t, row, triggers[number], offset)
                move.outs = outs.get(number)
                offset += -(-self.tensors[t]["bytes"] // 512) * 512
                self.moves.append(move)
                self.host_bytes = max(self.host_bytes, offset)

    def name(self, unit):
        return self.tensors[unit]["name"] if unit < len(self.tensors) else "a group"

    def triggers(self, rows):
        """The position at which each copy in may start, never before that of the one before it in
        the queue. Positions below 0 count from the end of the step before."""
        outs = self.json.get("out_order") or []
        found, last = {}, -(1 << 62)
        for m in self.json.get("in_order") or []:
            row = rows[m]
            wraps = row["in_before"] <= row["out_after"]
            at = row["out_after"] + 1 - (len(self.ops) if wraps else 0)
            if row["in_ops"] is not None:
                at = max(at, row["in_ops"])
            if row["in_outs"] is not None:
                at = max(at, self.out_position(rows, outs, row["in_outs"]))
            last = max(last, at)
            found[m] = last if last > 0 else max(0, len(self.ops) + last)
        return found

    def out_position(self, rows, outs, count):
        """Behind how many ops so many copies out of the step have begun."""
        step, number = divmod(count - 1, len(outs))
        return rows[outs[number]]["out_after"] + 1 + step * len(self.ops)

    def events(self, kind):
        """Position and tensor of each pack or unpack, in order."""
        return [(at, t) for at, op in enumerate(self.ops) for t in (op["compute"] or {}).get(kind, [])]

    def contents(self):
        """For each pack, how many ops have written its tensor before."""
        writers, found = {}, []
        for at, op in enumerate(self.ops):
            for t in (op["compute"] or {}).get("pack", []):
                found.append(len(writers.get(t, [])))
            for t in op["writes"]:
                writers.setdefault(t, []).append(at)
        return found

    def let_go(self):
        """For each tensor the op after which only autograd holds it."""
        return {t: at for at, op in enumerate(self.ops) for t in (op["compute"] or {}).get("free", [])}

    def moves_updates(self):
        return (self.ops[0]["compute"] or {}).get("order") == "updates"

    def may_leave(self):
        return set((self.ops[0]["compute"] or {}).get("leave", []))


def check(plan):
    """Every move must be one that this executor can make."""
    free, leave = plan.let_go(), plan.may_leave()
    first_back = {}
    for at, t in plan.events("unpack"):
        first_back.setdefault(t, at)
    for move in plan.moves:
        row = plan.tensors[move.tensor]
        if row["persistent"]:
            if move.tensor not in leave:
                raise Refused(f"the plan moves {row['name']}, which is used where nothing can bring "
                              "it back in time; `ferry solve --for torch` leaves it on the device")
        elif move.tensor not in first_back or move.out_after < free.get(move.tensor, 1 << 62) \
                or first_back[move.tensor] < move.in_before:
            raise Refused(f"the plan moves {row['name']} while the program holds it, after op "
                          f"{move.out_after}; `ferry solve --for torch` does not")


def find_trace(plan, path):
    """The trace that the plan is for: a file beside it with the plan's digest."""
    folder = os.path.dirname(os.path.abspath(path))
    for name in sorted(glob.glob(os.path.join(folder, "*.json*"))):
        if os.path.abspath(name) == os.path.abspath(path) or name.endswith(".zst"):
            continue
        try:
            found = traces.load(name)
        except ValueError:
            continue
        if isinstance(found, dict) and found.get("format") == "ferry-trace/1" \
                and traces.digest(found) == plan["trace"]:
            return found
    raise Refused(f"no trace beside {path} is the one that it plans; say follow (..., trace=FILE)")


def load(path, trace=None):
    plan = traces.load(path)
    if plan.get("format") != "ferry-plan/1":
        raise Refused(f"{path} is not a plan of ferry")
    found = find_trace(plan, path) if trace is None else traces.load(trace)
    if traces.digest(found) != plan["trace"]:
        raise Refused(f"{path} is a plan for another trace than {trace}; solve it for this one")
    read = Plan(plan, found)
    if any(op["compute"] is None or op["compute"].get("kind") != "torch" for op in read.ops):
        raise Refused(f"the trace of {path} was not recorded by ferry_torch, "
                      "which notes where tensors are saved; record it again")
    check(read)
    return read
