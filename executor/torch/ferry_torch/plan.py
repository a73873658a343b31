# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan's walk (trace/walk/format.md), read for this executor: which storage leaves and comes back where."""
import glob
import os

from . import tool
from . import trace as traces
from .again import Entry
from .errors import Refused
from .storages import storage_of


class Move:
    """One stay of one tensor on the host."""

    __slots__ = ("tensor", "out_after", "in_before", "trigger", "clean", "offset", "outs", "frees",
                 "behind_copy", "first", "last", "keeps")

    def __init__(self, tensor, row, steps, copies, offset):
        self.tensor, self.offset = tensor, offset
        self.out_after, self.in_before = steps.behind(row["out_after"]) - 1, steps.before(row["in_before"])
        self.clean = row["clean"]
        self.behind_copy = steps.is_copy(row["out_after"])
        self.outs = copies.outs  # how many copies out have been made with this one; None: it is clean
        self.frees = copies.frees  # how many must be over before it comes back
        self.trigger = copies.trigger  # the position at which its copy in may start
        self.first = self.last = True  # of those of the tensor
        self.keeps = self.clean  # does the host's copy serve once more?


class Copies:
    """Of one move: what the walk says of its copies out and in."""

    def __init__(self, walk, row, out, back, steps):
        self.outs = None if out is None else out["position"] + 1
        own = None if out is None else (out["position"], int(row["in_before"] <= row["out_after"]))
        others = [(w["position"], w["steps_ago"]) for w in back["waits"] if w["queue"] == "out"]
        if own in others:
            others.remove(own)
        self.frees = max((walk.count(*w) for w in others), default=None)
        self.trigger = steps.before(back["behind"]["op"] + 1)


class Walk:
    """The items of each queue, by the index of their op or move."""

    def __init__(self, walk):
        self.items = {queue: {row["index"]: row for row in walk["items"] if row["queue"] == queue}
                      for queue in ("op", "out", "in")}
        self.json = walk

    def count(self, position, steps_ago):
        """Copies out that have ended, counted from the first of this step."""
        return position + 1 - steps_ago * len(self.items["out"])

    def op_waits(self):
        """Ops, and how many copies out each waits for."""
        return [(k, self.count(w["position"], w["steps_ago"])) for k, row in self.items["op"].items()
                for w in row["waits"] if w["queue"] == "out"]


class Steps:
    """The ops of the plan's own step, in which some run again: what each is in the trace's."""

    def __init__(self, n_ops, walk):
        self.rows = [(walk["remakes"][op["remake"]]["before"], True) if "remake" in op else (op["of"], False)
                     for op in walk["ops"]]  # op of the trace, of a copy the one that it stands before; is it a copy
        self.n_ops = n_ops

    def __len__(self):
        return len(self.rows)

    def is_copy(self, op):
        return self.rows[op][1]

    def before(self, op):
        """The position before it: copies have that of the op that asks for them."""
        return self.rows[op][0] if op < len(self.rows) else self.n_ops

    def behind(self, op):
        at, copy = self.rows[op]
        return at if copy else at + 1


def inputs_of(trace):
    """The signature of the batch that was recorded."""
    return tuple((row["type"], tuple(row["shape"])) for row in (trace.get("source") or {}).get("inputs") or ())


class Plan:
    """Moves and waits in positions of the trace: position p is before op p."""

    def __init__(self, walk, trace):
        self.tensors, self.ops = traces.tensors_and_ops(trace)
        self.inputs, self.uses = inputs_of(trace), self.uses_of_all()
        self.walk = Walk(walk)
        self.predicted = walk.get("predicted") or {}
        self.budget = walk["budget_bytes"]
        self.files = ()  # trace and plan, where they were read from
        self.refuse_rewrites()
        self.entries = [Entry(n, row, self.ops, self.tensors) for n, row in enumerate(walk["remakes"])]
        self.steps = Steps(len(self.ops), walk)
        self.moves, self.host_bytes = [], 0
        self.read_moves()
        self.find_drops()
        self.comes = set(self.maker) | {m.tensor for m in self.moves
                                        if not self.tensors[m.tensor]["persistent"]}
        self.waits = {}
        for op, outs in self.walk.op_waits():
            at = self.steps.before(op)
            self.waits[at] = max(outs, self.waits.get(at, outs))

    def refuse_rewrites(self):
        ops = self.walk.json["ops"]
        order = [op["of"] for op in ops if "remake" not in op]
        for found, what in ((any("batch" in op for op in ops), "cuts ops into sections"),
                            (order != sorted(order), "runs ops in another order")):
            if found:
                raise Refused(f"the plan {what}, which PyTorch cannot do; "
                              "`ferry solve --for torch` makes one without")

    def find_drops(self):
        """Which entry makes a tensor again first, and the position from which on the first one is not
        needed: behind its last use before, and behind an entry that reads it there."""
        self.maker, self.drops = {}, []
        for entry in self.entries:
            for i in entry.replaces:
                self.maker.setdefault(i, entry)
        free, first_back = self.let_go(), self.first_back()
        for i, entry in self.maker.items():
            if first_back.get(i, -1) < entry.before or not self.gives(entry, i):
                continue  # it is back before, or beside what a module gives, and stays
            at = max([free.get(i, -1)] + [k for k in self.uses.get(i, []) if k < entry.before]) + 1
            readers = [e.before for e in self.entries[:entry.number] if i in e.needs]
            behind = bool(readers) and max(readers) >= at
            self.drops.append((max([at] + readers), behind, i))

    def gives(self, entry, tensor):
        """Is it as large as the largest of what its op makes, which the module gives back?"""
        for k, largest in entry.gives.items():
            if tensor in self.ops[k]["compute"]["out"]:
                return self.tensors[tensor]["bytes"] == self.tensors[largest]["bytes"]
        return True  # that is refused

    def first_back(self):
        found = {}
        for at, t in self.events("unpack"):
            found.setdefault(t, at)
        return found

    def read_moves(self):
        tensors, outs = self.walk.json["tensors"], self.walk.items["out"]
        for number, row in enumerate(self.walk.json["moves"]):
            if row["of"] > 1:
                raise Refused(f"the plan moves {self.name(row['tensors'])} in {row['of']} parts, and "
                              "PyTorch only whole storages; `ferry solve --for torch` does so")
            copies = Copies(self.walk, row, outs.get(number), self.walk.items["in"][number], self.steps)
            offset = row["host_offset"]
            for t in row["tensors"]:
                if tensors[t].get("remade"):
                    raise Refused("the plan moves what it made again, which is not followed; "
                                  "`ferry solve --for torch` makes one without")
                move = Move(t, row, self.steps, copies, offset)
                offset += -(-self.tensors[t]["bytes"] // 512) * 512
                self.host_bytes = max(self.host_bytes, offset)
                if self.is_there(t, move):
                    self.moves.append(move)
        self.number_moves()

    def is_there(self, t, move):
        """A group goes as long as one of it is needed: others of it may be over by then, or not have begun."""
        row, uses = self.tensors[t], self.uses.get(t, [-1])
        begins = -1 if row["born_before"] is not None else uses[0]
        ends = uses[-1] if row["dies_after"] is None else row["dies_after"]
        return row["persistent"] or begins < move.in_before and ends > move.out_after

    def uses_of_all(self):
        """For each tensor the ops that use it, in order."""
        found = {}
        for k, op in enumerate(self.ops):
            for t in {*op["reads"], *op["writes"]}:
                found.setdefault(t, []).append(k)
        return found

    def number_moves(self):
        """The first and the last move of each tensor in a step."""
        at, first = {}, {}
        for move in sorted(self.moves, key=lambda m: m.out_after):
            if move.tensor in at:
                at[move.tensor].last, move.first = False, False
                at[move.tensor].keeps = move.clean
            first.setdefault(move.tensor, move)
            at[move.tensor] = move
        for tensor, move in at.items():
            move.keeps = first[tensor].clean

    def name(self, tensors):
        return self.tensors[tensors[0]]["name"] if len(tensors) == 1 else "a group"

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

    def expects_again(self):
        """Bytes that a step makes again."""
        return sum(self.tensors[i]["bytes"] for _, _, i in self.drops)

    def roots(self):
        """How many ops were over each time that the model was called."""
        return (self.ops[0]["compute"] or {}).get("roots", [])

    @property
    def calls(self):
        """Of modules, in the order in which they began."""
        return (self.ops[0]["compute"] or {}).get("calls", [])

    @property
    def unpacked(self):
        """The pack that each unpack asks for."""
        return (self.ops[0]["compute"] or {}).get("unpacked", [])

    def used_late(self):
        return set((self.ops[0]["compute"] or {}).get("late", []))

    def may_leave(self):
        return set((self.ops[0]["compute"] or {}).get("leave", []))


def check(plan):
    """Every move must be one that this executor can make."""
    free, leave, first_back = plan.let_go(), plan.may_leave(), plan.first_back()
    for at, _, i in plan.drops:
        if i not in free or i not in first_back or at > plan.maker[i].before:
            raise Refused(f"the plan drops {plan.tensors[i]['name']}, which the program holds or "
                          "autograd does not; `ferry solve --for torch` does not")
    if not plan.calls and (plan.entries or plan.moves):
        raise Refused("the trace does not say where modules were called; record the step again")
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


def require_model(plan, model):
    """Weights are known by their names and sizes."""
    own = dict(model.named_parameters())
    for row in plan.tensors:
        name = row["name"]
        storage = storage_of(own[name]) if name in own else None
        if row["kind"] == "parameter" and (name not in own or storage is not None and storage.nbytes() != row["bytes"]):
            here = "this one has none of that name" if storage is None else f"here it has {storage.nbytes()}"
            raise Refused(f"the plan is for another model: its trace has a weight {name} of {row['bytes']} bytes, and {here}")


def find_trace(plan, path):
    """The trace that the plan is for: a file beside it with the plan's digest."""
    folder = os.path.dirname(os.path.abspath(path))
    for name in sorted(glob.glob(os.path.join(folder, "*.json*"))):
        if os.path.abspath(name) == os.path.abspath(path) or name.endswith(".zst"):
            continue
        try:
            found = traces.load(name)
        except Refused:
            continue
        if isinstance(found, dict) and found.get("format") == "ferry-trace/1" \
                and traces.digest(found) == plan["trace"]:
            return name
    raise Refused(f"no trace beside {path} is the one that it plans; say follow (..., trace=FILE)")


def walk_of(trace_path, path):
    return tool.answer("export", trace_path, path, "--walk", "-")


def load(path, trace=None):
    """A plan, of which ferry makes the walk, or a walk that was made before."""
    plan = traces.load(path)
    form = plan.get("format") if isinstance(plan, dict) else None
    if form not in ("ferry-plan/1", "ferry-walk/1"):
        raise Refused(f"{path} is not a plan of ferry")
    trace_path = find_trace(plan, path) if trace is None else trace
    found = traces.load(trace_path)
    if traces.digest(found) != plan["trace"]:
        raise Refused(f"{path} is a plan for another trace than {trace}; solve it for this one")
    read = Plan(plan if form == "ferry-walk/1" else walk_of(trace_path, path), found)
    if any(op["compute"] is None or op["compute"].get("kind") != "torch" for op in read.ops):
        raise Refused(f"the trace of {path} was not recorded by ferry_torch, "
                      "which notes where tensors are saved; record it again")
    check(read)
    read.files = trace_path, path
    return read
