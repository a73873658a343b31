# SPDX-License-Identifier: GPL-3.0-or-later
"""Which modules a plan has to be followed in, and what is done around each.

A trace has a row for each call of a module: the tensors that autograd saved in it, by their numbers in the step, and
the ops that ran in it. So hooks of saved tensors are on in those calls alone in which something is saved that leaves,
or that tells when something else is due; all others run as they do without ferry.
"""
import functools

import torch

from .again import ModuleCall
from .modules import Instead, Replaced

PUSH = torch._C._autograd._push_saved_tensors_default_hooks
POP = torch._C._autograd._pop_saved_tensors_default_hooks
TOP = functools.partial(torch._C._autograd._top_saved_tensors_default_hooks, True)


class Call:
    """One call of one module in a step: packs [first, end), ops [begins, ends), the trace's numbers of its inputs."""

    __slots__ = ("module", "first", "end", "begins", "ends", "inputs", "hooked", "makes")

    def __init__(self, row):
        self.module, self.first, self.end, self.begins, self.ends, self.inputs = row
        self.hooked, self.makes = False, ()  # are its packs looked at; ops of it that run again

    def span(self):
        return self.end - self.first


def weights_away(plan, packs, unpacks):
    """Packs of weights that leave before autograd asks for them. The step may skip what would tell that it is time to
    bring them back, as one with layers dropped at random."""
    leaves = {}
    for move in plan.moves:
        leaves.setdefault(move.tensor, []).append(move.out_after)
    return {n for (at, t), n in zip(unpacks, plan.unpacked) if n >= 0 and any(packs[n][0] <= out < at for out in leaves.get(t, ()))}


def told_by(plan, moments):
    """The packs that are looked at: what leaves, and of each moment the first pack, or else unpack, from there on."""
    packs, unpacks = plan.events("pack"), plan.events("unpack")
    wanted = {n for n, (_, t) in enumerate(packs) if t in plan.comes} | weights_away(plan, packs, unpacks)
    inside = {n for row in plan.calls for n in range(row[1], row[2])}  # what a loss saves is seen by no hook
    events = [(at, n) for n, (at, _) in enumerate(packs)] + [(at, n) for (at, _), n in zip(unpacks, plan.unpacked)]
    events = [(at, n) for at, n in events if n in inside]
    events.sort(key=lambda event: event[0])  # before one op they keep their order
    at = 0
    for moment in sorted(set(moments)):
        while at < len(events) and events[at][0] < moment:
            at += 1
        if at < len(events):
            wanted.add(events[at][1])
    return wanted


def innermost(calls, holds):
    """The call with the fewest packs of those that hold it."""
    return min((c for c in calls if holds(c)), key=lambda c: (c.ends - c.begins, c.span()), default=None)


def choose(plan, wanted):
    """Calls with what is done in each; none hooked lies in another one that is."""
    calls = [Call(row) for row in plan.calls]
    for n in sorted(wanted):
        call = innermost(calls, lambda c: c.first <= n < c.end)
        if call is not None:
            call.hooked = True
    for call in calls:
        if call.hooked and any(c is not call and c.hooked and c.first <= call.first and call.end <= c.end
                               and (c.span() > call.span() or c.ends - c.begins > call.ends - call.begins) for c in calls):
            call.hooked = False
    for k in sorted({k for e in plan.entries for k in e.ops}):
        call = innermost(calls, lambda c: c.begins <= k < c.ends)
        call.makes = (*call.makes, k)
    return calls


class Around(Instead):
    """Stands for the `forward` of one module. Its calls in a step are counted, as the recorder counted them."""

    def __init__(self, follower, module, method, calls, slots):
        super().__init__(module, method, None, module.__dict__.get(method))
        self.follower, self.module, self.calls, self.slots = follower, module, calls, slots
        self.inner, self.step, self.count = getattr(module, method), -1, 0

    def __call__(self, *arguments, **options):
        if not self.slots:
            return self.run(arguments, options)
        self.follower.enter_module(self.module, self.slots)
        try:
            return self.run(arguments, options)
        finally:
            self.follower.leave_module(self.module)

    def run(self, arguments, options):
        """With what the trace's row of this call asks for, if there is one."""
        follower = self.follower
        if follower.ended or not torch.is_grad_enabled():
            return self.inner(*arguments, **options)
        if self.step != follower.number:
            self.step, self.count = follower.number, 0
        at, self.count = self.count, self.count + 1
        call = self.calls[at] if at < len(self.calls) and not follower.lost else None
        if call is None:
            return self.inner(*arguments, **options)
        out = self.hooked(call, arguments, options) if call.hooked else self.inner(*arguments, **options)
        if call.makes and not follower.lost:
            follower.note_call(call, ModuleCall(self.module, self.inner, call, arguments, options), out)
        return out

    def hooked(self, call, arguments, options):
        follower = self.follower
        if follower.everywhere:
            return self.inner(*arguments, **options)
        if TOP() is not None:  # the program's own: what is saved here is no longer ours
            follower.lose()
            return self.inner(*arguments, **options)
        follower.pack_at = call.first
        PUSH(follower.pack, follower.unpack)
        try:
            out = self.inner(*arguments, **options)
        finally:
            POP()
        if follower.pack_at != call.end and not follower.lost:
            follower.lose()
        return out


def around_all(follower, model, method, stack):
    """Everything that is to be done around modules, and around this method of the model; the stack takes it off again."""
    calls = {}
    for call in follower.calls:
        calls.setdefault(call.module, []).append(call if call.hooked or call.makes else None)
    for name, module in model.named_modules():
        slots = follower.owned_by(module)
        rows = calls.get(name, [])
        if slots or any(row is not None for row in rows):
            called = "forward" if name else method
            stack.callback(Replaced(module, called, Around(follower, module, called, rows, slots)).undo)
