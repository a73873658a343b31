# SPDX-License-Identifier: GPL-3.0-or-later
"""Ops that run once more, so that what they made need not be kept.

While the model runs forward a mode counts the ops as the recorder did, and notes those that a plan
will run again: the function, and for each tensor among its arguments which of the trace it is and how
it lies. Ops run below autograd then as they did the first time, with the same kernels.
"""
import contextlib
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .calls import DETACH, FUNCTIONS, beside, detached
from .errors import Refused
from .storages import Form, Weak, as_bytes, storage_of, tensors_in


def can_run(known, args, kwargs, before, changed):
    """May this op run once more? `before` says for each of its tensors what the trace knows of it,
    `changed` what it writes in place, with "on the side"."""
    if not known.steady or drops_some(known, args, kwargs):
        return False
    if any(not side and (e.persistent or e.born is not None) for e, side in changed):
        return False
    given = tensors_in([args, kwargs], [])
    return all(t.dim() == 0 or e is not None and not (t.is_quantized or t.is_conj() or t.is_neg())
               for t, e in zip(given, before))


def drops_some(known, args, kwargs):
    """Attention with a share of its weights left out at random."""
    return "attention" in known.name and (
        kwargs.get("dropout_p", 0) > 0 or any(type(a) is float and a > 0 for a in args))


def swapped(thing, act):
    """Nested lists with `act` done to each tensor, in the order of `tensors_in`."""
    if isinstance(thing, torch.Tensor):
        return act(thing)
    if type(thing) in (list, tuple):
        return [swapped(x, act) for x in thing]
    if isinstance(thing, dict):
        return {key: swapped(x, act) for key, x in thing.items()}
    return thing


class Lying:
    """An argument that is a tensor of the trace: its number, and how it lies there."""

    __slots__ = ("index", "form")

    def __init__(self, index, tensor):
        self.index, self.form = index, Form(tensor)


def filled(thing, bytes_of):
    """Arguments in the bytes of now. No closure: one that calls itself would hold them for longer."""
    if isinstance(thing, Lying):
        return thing.form.of(bytes_of(thing.index))
    if isinstance(thing, list):
        return [filled(x, bytes_of) for x in thing]
    return {k: filled(x, bytes_of) for k, x in thing.items()} if isinstance(thing, dict) else thing


class Call:
    """One op as it was called. A tensor of one number is kept as it is; of a statistic that only the
    first run may change, a copy."""

    def __init__(self, func, args, kwargs, op):
        self.func, self.made = func, op["compute"]["out"]
        numbers = iter(op["compute"]["in"])

        def note(tensor):
            index = next(numbers)
            if index in op["side"]:
                return tensor.detach().clone()
            return tensor if index < 0 or tensor.dim() == 0 else Lying(index, tensor)
        self.args, self.kwargs = swapped(list(args), note), swapped(kwargs, note)

    def run(self, bytes_of):
        """Its results by their numbers, as rows of bytes."""
        out = self.func(*filled(self.args, bytes_of), **filled(self.kwargs, bytes_of))
        return {i: as_bytes(t) for i, t in zip(self.made, tensors_in([out], [])) if i >= 0}


class Entry:
    """Ops that a plan runs again before another, and whose place their results take."""

    def __init__(self, number, row, ops):
        self.number, self.before = number, row["before"]
        self.ops, self.replaces = row["ops"], row.get("replaces") or []
        self.needs, made = set(), set()  # needs: from outside
        for k in self.ops:
            note, side = ops[k]["compute"] or {}, ops[k]["side"]
            if "out" not in note:
                raise Refused(f"the plan runs {ops[k]['name']} again, which would not make the same; "
                              "`ferry solve --for torch` does not")
            self.needs.update(i for i in note["in"] if i >= 0 and i not in made and i not in side)
            made.update(i for i in ops[k]["writes"] if i not in side)
        self.made = made


@contextlib.contextmanager
def as_below(device):
    """As ops ran the first time: below autograd, and behind all that autocast did."""
    with torch.autocast(device.type, enabled=False), torch.set_grad_enabled(True), torch._C._AutoDispatchBelowAutograd():
        yield


class Held:
    """A tensor that no hook of autograd keeps. It must not change until it is asked for, as far as
    that can be seen: what autograd itself counts is shared with the program's own object only."""

    __slots__ = ("raw", "weak", "version")

    def __init__(self, tensor):
        self.raw, self.weak, self.version = as_bytes(tensor), weakref.ref(tensor), tensor._version

    def changed(self):
        tensor = self.weak()
        return tensor is not None and tensor._version != self.version


class Book:
    """What one step has noted. What autograd keeps of the step holds it: it may have to be made."""

    def __init__(self, plan):
        self.plan, self.entries = plan, plan.entries
        self.calls, self.held, self.contents, self.dropped = {}, {}, {}, {}
        self.storages = {}  # by number, those that ops were seen with
        self.wanted, self.over = {}, set()
        for entry in self.entries:
            for i in entry.needs:
                self.wanted[i] = self.wanted.get(i, 0) + 1

    def note(self, at, func, args, kwargs, out, follower):
        """Op `at` has run: the plan runs it again, unless it was given other tensors than the trace's."""
        op = self.plan.ops[at]
        given, made = tensors_in([args, kwargs], []), tensors_in([out], [])
        if len(given) != len(op["compute"]["in"]) or not all(
                self.is_storage_of(i, t, follower)
                for i, t in zip((*op["compute"]["in"], *op["compute"]["out"]), given + made) if i >= 0):
            return
        self.calls[at] = Call(func, args, kwargs, op)
        for tensor, i in zip(given, op["compute"]["in"]):
            if i >= 0 and self.wanted.get(i) and i not in self.plan.comes:
                self.held.setdefault(i, {})[at] = Held(tensor)  # of each op: between two a program may change it

    def is_storage_of(self, index, tensor, follower):
        """A step may call the same ops with other tensors: then what one is given is not what another has made."""
        storage = storage_of(tensor)
        if storage is None or follower.known.find(storage) is not follower.standing.get(index):
            return False
        if index not in self.storages:
            self.storages[index] = Weak(storage)
        return self.storages[index].key == storage._cdata

    def has_seen(self, index, content):
        return index in self.storages and self.storages[index].key == content.weak.key

    def keep(self, index, content):
        """Autograd has saved it; it may leave, or be dropped."""
        if self.wanted.get(index):
            self.contents[index] = content

    def can_drop(self, index, content):
        """Is all there to make it again?"""
        entry = self.plan.maker[index]
        if entry.number in self.over or not all(k in self.calls for k in entry.ops) \
                or not self.has_seen(index, content) or not all(
                    i in self.held or i in self.contents and self.has_seen(i, self.contents[i]) for i in entry.needs):
            return False
        self.dropped[index] = weakref.ref(content)
        return True

    def maker_of(self, content):
        return next(self.plan.maker[i] for i, held in self.dropped.items() if held() is content)

    def run(self, entry, follower):
        """Makes what was dropped and the entry replaces, unless nobody has it any more."""
        if entry.number in self.over:
            return
        self.over.add(entry.number)
        found = [(i, self.dropped[i]()) for i in entry.replaces if i in self.dropped]
        lacking = [(i, content) for i, content in found if content is not None and content.dropped]
        if lacking:
            follower.valve.took(sum(follower.valve.needs[k] for k in entry.ops))
            made = self.made_by(entry, follower)
            for i, content in lacking:
                content.put(made[i])
            follower.report.made_again(len(entry.ops), sum(content.size for _, content in lacking))
        for i in entry.needs:
            self.wanted[i] -= 1
            if self.wanted[i] == 0:
                self.held.pop(i, None)
                self.contents.pop(i, None)

    def made_by(self, entry, follower):
        made = {}
        with as_below(follower.device):
            for k in entry.ops:
                made.update(self.calls[k].run(lambda index, at=k: made[index] if index in made
                                              else self.outside(index, at, follower)))
        return made

    def outside(self, index, at, follower):
        """What op `at` was given."""
        if index in self.contents:
            return follower.ensure(self.contents[index], self)
        slot = follower.standing.get(index)
        if slot is not None:
            follower.ensure(slot)
        held = self.held[index][at]
        if held.changed():
            raise RuntimeError(f"{self.plan.tensors[index]['name']}, from which the plan makes others "
                               "again, has been modified by an inplace operation")
        return held.raw


class Counter(TorchDispatchMode):
    """Counts ops as the recorder did, from where the model was called in the recorded step."""

    def __init__(self, follower, wanted):
        super().__init__()
        self.follower, self.wanted, self.at, self.quiet = follower, wanted, None, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is DETACH:
            return detached(func, args, kwargs)
        if FUNCTIONS[func].marks:
            return beside(func, args, kwargs)
        out = func(*args, **kwargs)
        if self.at is not None and not self.quiet:
            self.count(FUNCTIONS[func], func, args, kwargs, out)
        return out

    def count(self, known, func, args, kwargs, out):
        given = tensors_in([args, kwargs], [])
        if known.silent or not (self.changes(known, args, kwargs) or self.makes(out, given)):
            return
        ops = self.follower.plan.ops
        if self.at >= len(ops) or ops[self.at]["name"].rsplit(".", 1)[-1] != known.name:
            self.at = None
            self.follower.lose()
            return
        if self.at in self.wanted:
            self.follower.book.note(self.at, func, args, kwargs, out, self.follower)
        self.at += 1
        self.follower.reach(self.at)

    def changes(self, known, args, kwargs):
        values = [args[i] if i < len(args) else kwargs.get(key) for i, key in known.changed]
        return any(t.device.type == self.follower.device.type for t in tensors_in(values, []))

    def makes(self, out, given):
        """Is any result in a storage of its own, and on the device?"""
        before = {storage._cdata for storage in map(storage_of, given) if storage is not None}
        for tensor in tensors_in([out], []):
            storage = storage_of(tensor) if tensor.device.type == self.follower.device.type else None
            if storage is not None and storage._cdata not in before and storage.nbytes() > 0:
                return True
        return False
