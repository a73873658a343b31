# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that run once more, so that what they made need not be kept.

A trace lets those ops run again that are all of a module's call. Behind such a call it is noted what it was
given: which tensor of the trace, and how it lies. It runs below autograd then as its ops did the first time, with
the same kernels.
"""
import weakref

import torch

from .errors import Refused
from .storages import Form, Weak, storage_of, tensors_in


BATCH_NORM = torch.nn.modules.batchnorm._BatchNorm.forward


def can_run(known, args, kwargs, before, changed):
    """May this op run once more? `before` says for each of its tensors what the trace knows of it,
    `changed` what it writes in place, with "on the side"."""
    if not known.steady:
        return False
    if any(not side and (e.persistent or e.born is not None) for e, side in changed):
        return False
    given = tensors_in([args, kwargs], [])
    return all(t.dim() == 0 or e is not None and not (t.is_quantized or t.is_conj() or t.is_neg())
               for t, e in zip(given, before))


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

    __slots__ = ("index", "form", "grad")

    def __init__(self, index, tensor):
        self.index, self.form, self.grad = index, Form(tensor), tensor.requires_grad

    def of(self, raw):
        """Whether a gradient is needed can decide which kernel torch chooses."""
        return self.form.of(raw).detach().requires_grad_(self.grad)


def filled(thing, bytes_of):
    """Arguments in the bytes of now. No closure: one that calls itself would hold them for longer."""
    kind = type(thing)
    if kind is Lying:
        return thing.of(bytes_of(thing.index))
    if kind is list:
        return [filled(x, bytes_of) for x in thing]
    return {k: filled(x, bytes_of) for k, x in thing.items()} if kind is dict else thing


def aside(module):
    """Its buffers for a second run, which must not change them. A batch norm that trains calculates from the batch alone,
    and makes the same without statistics."""
    if type(module).forward is BATCH_NORM and module.training:
        return dict.fromkeys(module._buffers)
    return {key: t if t is None else t.clone() for key, t in module._buffers.items()}


class ModuleCall:
    """One call of a module, that it may run once more. What it owns must not have changed by then, but for
    statistics that only the first run may change: the second has copies of them."""

    def __init__(self, module, forward, call, args, kwargs):
        self.module, self.forward, self.call = module, forward, call
        self.given = []  # index and tensor, while it is noted
        if len(args) == 1 and not kwargs and isinstance(args[0], torch.Tensor):  # as of most modules
            self.args, self.kwargs = [self.note(call.inputs[0] if call.inputs else -1, args[0])], {}
        else:
            numbers = iter(call.inputs)

            def note(tensor):
                return self.note(next(numbers, -1), tensor)
            self.args, self.kwargs = swapped(list(args), note), swapped(kwargs, note)
        self.owned = [(p, p._version) for p in module._parameters.values() if p is not None]

    def note(self, index, tensor):
        self.given.append((index, tensor))
        return tensor if index < 0 or tensor.dim() == 0 else Lying(index, tensor)

    def run(self, bytes_of, follower):
        """Its result."""
        for p, version in self.owned:
            if follower.standing:
                follower.bring_whole(p)
            if p._version != version:
                raise RuntimeError(f"a weight of {self.call.module or 'the model'}, which the plan runs again, has been "
                                   "modified by an inplace operation")
        out = self.result(bytes_of)
        made = out if isinstance(out, torch.Tensor) else tensors_in([out], [])[0]
        return made.detach() if made.requires_grad else made

    def result(self, bytes_of):
        """With its buffers as they are now."""
        mine = self.module._buffers
        if not mine:
            return self.forward(*filled(self.args, bytes_of), **filled(self.kwargs, bytes_of))
        buffers = dict(mine)
        mine.update(aside(self.module))
        try:
            return self.forward(*filled(self.args, bytes_of), **filled(self.kwargs, bytes_of))
        finally:
            mine.update(buffers)


class Entry:
    """Ops that a plan runs again before another, and whose place their results take."""

    def __init__(self, number, row, ops, tensors):
        self.number, self.before = number, row["before"]
        self.ops, self.replaces = row["ops"], row.get("replaces") or []
        self.needs, made = set(), set()  # needs: from outside
        self.gives = {}  # by op: the largest of what it makes, which its module gives back
        for k in self.ops:
            note, side = ops[k]["compute"] or {}, ops[k]["side"]
            if "out" not in note:
                raise Refused(f"the plan runs {ops[k]['name']} again, which would not make the same; "
                              "`ferry solve --for torch` does not")
            self.needs.update(i for i in note["in"] if i >= 0 and i not in made and i not in side)
            made.update(i for i in ops[k]["writes"] if i not in side)
            self.gives[k] = max((i for i in note["out"] if i >= 0), key=lambda i: tensors[i]["bytes"])
        self.made, self.every = made, frozenset(self.ops)
        self.given = [i for i in self.needs if not tensors[i]["persistent"]]  # the others are the modules' own


class Below:
    """As ops ran the first time: below autograd, and behind all that autocast did. A context of few calls."""

    def __init__(self, device):
        kind = device.type
        self.cast = torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else None

    def __enter__(self):
        if self.cast is not None:
            self.cast.__enter__()
        self.before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(True)
        self.guard = torch._C._AutoDispatchBelowAutograd()
        self.guard.__enter__()

    def __exit__(self, *why):
        self.guard.__exit__(*why)
        torch._C._set_grad_enabled(self.before)
        if self.cast is not None:
            self.cast.__exit__(*why)


class Held:
    """A tensor that no hook of autograd keeps. It must not change until it is used, as far as
    that can be seen: what autograd itself counts is shared with the program's own object only."""

    __slots__ = ("raw", "weak", "version")

    def __init__(self, tensor):
        self.raw, self.weak, self.version = tensor.detach(), weakref.ref(tensor), tensor._version

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
        self.news = False  # anything that a drop may have waited for
        for entry in self.entries:
            for i in entry.needs:
                self.wanted[i] = self.wanted.get(i, 0) + 1

    def note(self, at, call, out, follower):
        """The module with op `at` has run: the plan runs it again, unless it was given other tensors than the trace's."""
        made = self.plan.ops[at]["compute"]["out"]
        result = [out] if isinstance(out, torch.Tensor) else tensors_in([out], [])
        if len(result) != 1 or len(call.given) != len(call.call.inputs):
            return
        for i in made:
            if i >= 0 and self.is_storage_of(i, result[0], follower):
                break
        else:
            return
        for i, tensor in call.given:
            if i >= 0 and not self.is_storage_of(i, tensor, follower):
                return
        self.calls[at], self.news = call, True
        for i, tensor in call.given:
            if i >= 0 and self.wanted.get(i) and i not in self.plan.comes:
                self.held.setdefault(i, {})[at] = Held(tensor)  # of each op: between two a program may change it
        call.given = None

    def is_storage_of(self, index, tensor, follower):
        """A step may call the same ops with other tensors: then what one is given is not what another has made."""
        storage = storage_of(tensor)
        if storage is None or follower.standing and follower.known.find(storage) is not follower.standing.get(index):
            return False
        weak = self.storages.get(index)
        if weak is None:
            self.storages[index] = Weak(storage)
            return True
        return weak.key == storage._cdata

    def has_seen(self, index, content):
        return index in self.storages and self.storages[index].key == content.weak.key

    def keep(self, index, content):
        """Autograd has saved it; it may leave, or be dropped."""
        self.news = True
        if self.wanted.get(index):
            self.contents[index] = content

    def can_drop(self, index, content):
        """Is all there to make it again?"""
        entry = self.plan.maker[index]
        if entry.number in self.over or not self.calls.keys() >= entry.every or not self.has_seen(index, content):
            return False
        for i in entry.given:
            if i not in self.held and not (i in self.contents and self.has_seen(i, self.contents[i])):
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
        with Below(follower.device):
            for k in entry.ops:
                made[entry.gives[k]] = self.calls[k].run(lambda index, at=k: made[index] if index in made
                                                         else self.outside(index, at, follower), follower)
        return made

    def outside(self, index, at, follower):
        """What op `at` was given."""
        if index in self.contents:
            return follower.ensure(self.contents[index], self)
        held = self.held[index][at]
        if held.changed():
            raise RuntimeError(f"{self.plan.tensors[index]['name']}, from which the plan makes others "
                               "again, has been modified by an inplace operation")
        return held.raw
