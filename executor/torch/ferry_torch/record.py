# SPDX-License-Identifier: GPL-3.0-or-later
"""Records one training step as a ferry trace.

    with ferry_torch.record("step.json", model, optimizer):
        step()

Every op below autograd is seen once, with the storages it reads and writes. What autograd keeps for
the way back is kept as a copy while the step is recorded: so the trace knows from when on nobody but
autograd held the original.
"""
import contextlib
import weakref

import torch

from . import clock as clocks
from . import memory as memories
from . import trace as traces
from . import updates
from .calls import enter_below, leave_below
from .early import Early
from .errors import Refused
from .modules import Stack, Together, alone, device_of, inside_all, one_of, refuse_script, signature
from .recorder import Recorder
from .spill import Aboard, Ashore
from .storages import Form, as_bytes, is_plain, storage_of, tensors_in
from .whole import compiled_as_one


class Kept:
    """A saved tensor: the copy of its storage, and how it lies there."""

    __slots__ = ("entry", "copy", "form", "place", "stale", "number", "bare", "__weakref__")

    def __init__(self, entry, copy, form, place, number, bare):
        self.entry, self.copy, self.form, self.place, self.number = entry, copy, form, place, number
        self.bare = bare  # was it saved where no module ran? A follower has no hook there
        self.stale = False
        entry.saved.append(weakref.ref(self))

    def __del__(self):
        self.entry.fallen.append(self.entry)


class CallSeen:
    """One call of a module: its first and its last pack and op, what it was given and what it gave."""

    def __init__(self, name, first, begins, inputs):
        self.name, self.first, self.begins, self.inputs = name, first, begins, inputs
        self.end = self.ends = self.output = None
        self.leaf = False  # it calls no other one


class Recording:
    """One step, while it runs."""

    def __init__(self, model, optimizer, device, order=None, step_ns=None, room=None, method="forward", named=None):
        if order not in (None, "updates"):
            raise Refused(f"order is \"updates\" or nothing, not {order!r}")
        refuse_script(model)
        self.model, self.optimizer, self.order, self.early = model, optimizer, order, None
        self.method = method  # of the model, whose calls a step is made of
        # inside of a call weights may stand in others' places, as those that fully_shard has gathered
        self.named = named or list(model.named_parameters())
        if step_ns is not None and device is not None:
            raise Refused("the times are a card's: what a step takes here says nothing of them")
        self.step_ns, self.room = step_ns, room
        self.device = device_of(model)
        self.signature, self.batch = None, 1
        self.copies, self.guarded, self.loose, self.late = {}, set(), set(), set()
        self.back_place = ""
        self.fresh, self.fresh_at = set(), 0  # what autograd has asked for last, and how many ops were over then
        self.packs, self.unpacked = 0, []  # packs since the model was called; of each unpack, its pack
        self.calls, self.open = [], []  # of modules, in the order in which they began; those that run
        self.roots = []  # how many ops were over when the model was called
        self.clock = clocks.choose(self.device, device)
        fake = next((p for p in model.parameters() if type(p).__name__ == "FakeTensor"), None)
        self.memory = memories.choose(self.device, fake is not None or device is not None)
        self.recorder = Recorder(self.device, self.clock, self.memory, lambda: self.batch)
        self.recorder.unreal = fake is not None or self.device.type == "meta"
        self.recorder.place, self.recorder.on_use = self.place, self.on_use
        self.parameters = {}
        self.steps = 0  # of one optimizer; several may take a different number each

    # ---- around the step ----

    def run(self, hooks=True):
        """Enters everything that watches; what comes back leaves it again. Without `hooks` somebody else hands on what
        is packed."""
        stack = contextlib.ExitStack()
        self.know_all()
        self.stack = Stack(self.model, self.begin_call, self.end_call)
        stack.callback(self.stack.undo)
        inside_all(self.model, self.method, self.around_root, stack)
        updates.wrap(self.optimizer, self.step, stack)
        if self.order:
            if len(updates.each(self.optimizer)) != 1:
                raise Refused("order=\"updates\" moves the updates of one optimizer; record without it")
            self.early = Early(self.optimizer, self.update_early)
            stack.callback(self.early.undo)
        if hooks:
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack))
        stack.enter_context(self.memory)
        if hooks:
            stack.enter_context(self.recorder)
        else:  # it is the program that is amid something
            enter_below(self.recorder)
            stack.callback(leave_below, self.recorder)
        return stack

    def know_all(self):
        know = self.recorder.know
        for name, p in self.named:
            entry = know(p, "parameter", name)
            if entry is not None:
                self.parameters[entry.index] = p
            if p.grad is not None:
                self.recorder.know_for_now(p.grad, "gradient", name + ".grad")
        for name, buffer in self.model.named_buffers():
            know(buffer, "temporary", name)
        for name, p in self.updated():
            for key, value in updates.state_of(self.optimizer, p).items():
                know(value, "optimizer", f"{name}.{key}")

    def updated(self):
        """Every parameter of the optimizer, with a name."""
        names = {id(p): name for name, p in self.named}
        return [(names.get(id(p), f"parameter{i}"), p) for i, p in enumerate(updates.parameters_of(self.optimizer))]

    # ---- what the hooks say ----

    @contextlib.contextmanager
    def around_root(self, inputs):
        self.on_root(inputs)
        told = type(self.model) is not Together  # of several models each has a name
        if told:
            self.begin_call("", inputs[0], inputs[1])
        with self.recorder.inside_model():
            yield
        if told:
            self.end_call("", [])

    def on_root(self, inputs):
        self.recorder.phase = "forward"
        if self.early is not None:
            self.early.require_old()
        if not torch.is_grad_enabled():
            return
        self.roots.append(len(self.recorder.ops))
        if self.signature is None:
            self.signature = signature(inputs)
            sizes = [shape for _, shape in self.signature if shape]
            self.batch = sizes[0][0] if sizes else 1

    def place(self):
        return self.back_place if self.recorder.phase == "backward" else self.stack.name

    def on_use(self, entry, op):
        """A weight may leave if each module that uses it on the way there owns it, and autograd asks for it on the way
        back, through a hook that a follower has too: other readers would find nothing there."""
        if entry.over is not None and op.phase != "update":
            raise Refused(f"{op.name} looks at a gradient behind its update, as clipping by norm does: "
                          "updates cannot be moved; record without order=\"updates\"")
        if entry.kind == "optimizer" and op.phase != "update":
            self.loose.add(entry.index)  # nothing brings it back there
        if entry.index in self.parameters and self.recorder.phase != "update" \
                and not (self.recorder.phase == "backward" and entry.index in self.fresh):
            owned = self.stack.owns(self.parameters[entry.index])
            (self.guarded if owned else self.loose).add(entry.index)
            if owned and self.stack.has_called():
                self.late.add(entry.index)

    def pack(self, tensor):
        r = self.recorder
        if tensor.device.type != self.device.type or tensor.dim() == 0:
            return tensor  # a Python number would come out of `detach` as one
        entry = r.entry_of(tensor)
        if entry is None:
            return tensor
        begun = bool(self.roots)  # a follower looks from the first call of the model on
        entry.before |= not begun
        bare = not self.open
        entry.bare |= bare
        number, self.packs = (self.packs if begun else -1), self.packs + begun
        r.waiting["pack"].append((entry.index, begun))
        if entry.persistent or entry.born is not None or not can_copy(tensor):
            kept = Kept(entry, None, tensor.data, self.stack.name, number, bare)
            if self.early is not None:
                self.early.keep(storage_of(tensor)._cdata, kept)
            return kept
        return Kept(entry, self.copy_of(tensor, entry), Form(tensor), self.stack.name, number, bare)

    def copy_of(self, tensor, entry):
        """One copy of each content of a storage."""
        r = self.recorder
        key = (entry.index, entry.changes)
        held = self.copies.get(key)
        copy = held() if held is not None else None
        if copy is None:
            with torch.no_grad(), r.unwatched():
                copy = self.copied(as_bytes(tensor), entry)
            self.copies[key] = weakref.ref(copy)
        return copy

    def copied(self, row, entry):
        """On the device as far as there is room; the others wait on the host until they are used."""
        def arrived(raw):
            self.recorder.stand_in(entry, raw)
        stay = self.room is None or self.room.stay(entry.bytes)
        if stay is None:
            return Ashore(row, self.room, arrived)
        raw = row.clone()
        arrived(raw)
        return Aboard(raw, stay)

    def unpack(self, kept):
        if not isinstance(kept, Kept):
            return kept
        r = self.recorder
        if self.early is not None:
            self.early.look()
        r.phase, self.back_place = "backward", kept.place
        if self.fresh_at != len(r.ops):
            self.fresh, self.fresh_at = set(), len(r.ops)
        if not kept.bare:
            self.fresh.add(kept.entry.index)
        begun = kept.number >= 0
        r.waiting["unpack"].append((kept.entry.index, begun))
        if begun:
            self.unpacked.append(kept.number)
        if kept.copy is None:
            return kept.form
        if kept.stale:
            raise RuntimeError("one of the variables needed for gradient computation has been "
                               f"modified by an inplace operation: {kept.entry.name}")
        with torch.no_grad(), r.unwatched():
            return kept.form.of(kept.copy.back())

    # ---- calls of modules ----

    def begin_call(self, name, inputs, options):
        if not torch.is_grad_enabled():
            return
        call = CallSeen(name, self.packs, len(self.recorder.ops), self.entries_of([inputs, options]))
        self.calls.append(call)
        self.open.append(call)

    def end_call(self, name, output):
        """Those that it had called and that raised something have no end."""
        if all(call.name != name for call in self.open):
            return
        while self.open[-1].name != name:
            self.open.pop()
        call = self.open.pop()
        call.end, call.ends, call.output = self.packs, len(self.recorder.ops), self.entries_of([output])
        call.leaf = self.calls[-1] is call

    def entries_of(self, things):
        return [None if t.dim() == 0 else self.recorder.entry_of(t, make=False) for t in tensors_in(things, [])]

    # ---- the optimizer ----

    def step(self, optimizer, closure=None):
        loss = updates.run_closure(optimizer, closure)
        r, before = self.recorder, self.recorder.phase
        r.phase, self.back_place = "update", ""
        with updates.Hooks(optimizer):
            if self.early is not None:
                self.early.end()
                for p in updates.parameters_of(optimizer):
                    p.grad = None
            elif not updates.each_alone(optimizer):
                with compiled_as_one(r, f"update.{type(optimizer).__name__.lower()}"):
                    updates.plain_step(optimizer)
            else:
                self.step_each(optimizer)
        r.phase = before if before == "other" else "other"
        self.steps += len(updates.each(self.optimizer)) == 1
        return loss

    def step_each(self, optimizer):
        for group, p in updates.with_gradients(optimizer):
            self.update(optimizer, group, p)

    def update(self, optimizer, group, p):
        """One op: the update of one parameter."""
        name = next(name for name, q in self.updated() if q is p)
        self.recorder.begin_update(f"{name}.{type(optimizer).__name__.lower()}")
        updates.step_of(optimizer, group, p)
        self.know_state(name, p)
        self.recorder.end_update()

    def update_early(self, group, p):
        """In the middle of the way back. The gradient is over, though nobody is told before the
        step: a read meanwhile is noticed."""
        r = self.recorder
        before, r.phase = r.phase, "update"
        self.update(self.early.optimizer, group, p)
        r.phase = before
        entry = r.entry_of(p.grad, make=False)
        if entry is not None:
            entry.kind, entry.split, entry.over = "gradient", False, len(r.ops)

    def know_state(self, name, p):
        """State that this very step has made."""
        r = self.recorder
        for key, value in updates.state_of(self.optimizer, p).items():
            entry = r.entry_of(value, make=False)
            if entry is None or entry.persistent:
                continue
            entry.kind, entry.name, entry.persistent = "optimizer", f"{name}.{key}", True
            entry.split = entry.scratch = False
            r.group.scratch_now -= entry.bytes
            r.group.lasting += entry.bytes
            r.use(r.group, entry, r.group.writes)

    def name_gradients(self):
        for name, p in self.updated() or self.named:
            entry = None if p.grad is None else self.recorder.entry_of(p.grad, make=False)
            if entry is not None:
                entry.kind, entry.name, entry.split = "gradient", name + ".grad", False
                entry.persistent = entry.born is not None


def can_copy(tensor):
    return is_plain(tensor) or type(tensor).__name__ == "FakeTensor"


@contextlib.contextmanager
def record(path, model, optimizer=None, device=None, name=None, order=None, step_ns=None):
    """Writes the trace of the one step in it to `path`; .gz packs it. With device="h200" times are
    those of that card's roofline. With order="updates" each update runs as soon as its gradient is
    final, and so it does under a plan for this trace. With
    step_ns=timed(step), what a step takes that nobody records, the recorder's own share is taken from the times. Yields an object that has `summary` once the step is over."""
    from .writer import finish
    traces.require_room(path)
    recording = Recording(one_of(model), optimizer, device, order, step_ns)
    with alone(), recording.run():
        yield recording
        if recording.early is not None:
            recording.early.require_stepped()
        if recording.steps > 1:
            raise Refused(f"the optimizer took {recording.steps} steps in the block, and a trace is of one; record one step")
        with torch.no_grad():
            recording.name_gradients()
    recording.trace = finish(recording, name or type(model).__name__)
    traces.store(recording.trace, path)
