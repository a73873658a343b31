# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens in a step, op by op: the mode below autograd that every op passes."""
import contextlib

import torch
from torch.nested._internal.nested_tensor import NestedTensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from . import again
from .calls import DETACH, FUNCTIONS, beside, detached, group_of
from .storages import Form, Watched, inner_tensors, overlap, storage_of, tensors_in

ANY = torch.ops.aten.add_.Tensor  # what is not seen is priced as elementwise
NORMS = ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit",
         "_batch_norm_with_update")


class Entry:
    """A storage as the trace knows it."""

    def __init__(self, index, name, size, kind, fallen):
        self.index, self.name, self.bytes, self.kind = index, name, size, kind
        self.fallen = fallen  # where it is put when autograd gives up what it keeps of it
        self.bare = False  # was it saved where no module ran?
        self.before = False  # was it saved before the model was called?
        self.apart = False  # nobody but autograd has it, so nobody looks
        self.persistent = kind in ("parameter", "optimizer")
        self.born = None  # op that it was there before; else its first use
        self.first = self.last = None
        self.held = []  # weak references: the storage itself, then copies that stand for it
        self.let_go = None  # the op from which on only autograd holds it
        self.died = None
        self.over = None  # a gradient whose update has run: the op from which on it is of no use
        self.split = False
        self.changes = 0  # writes in place
        self.saved = []  # what autograd keeps of it, by weak reference
        self.scratch = False  # born and gone within one update


class Op:
    """One op of the trace, or all of an update."""

    def __init__(self, name, phase):
        self.name, self.phase = name, phase
        self.spans, self.reads, self.writes, self.side = [], {}, {}, set()
        self.scratch_now = self.scratch_most = 0
        self.lasting = 0  # bytes that were scratch at first, and are state
        self.taken = []  # of each call: what it took, scratch with its results, its results
        self.notes = {"pack": [], "unpack": []}
        self.again = None  # of an op that can run again: storages of its arguments, of its results
        self.collective = None  # kind, group and bytes, of one


class Aside:
    """In it a recorder looks away."""

    def __init__(self, recorder):
        self.recorder = recorder

    def __enter__(self):
        self.recorder.quiet += 1

    def __exit__(self, *why):
        self.recorder.quiet -= 1


class Recorder(TorchDispatchMode):
    """Ops, storages, and who reads and writes what."""

    def __init__(self, device, clock, memory, batch_of):
        super().__init__()
        self.device, self.clock, self.memory, self.batch_of = device, clock, memory, batch_of
        self.entries, self.ops, self.live, self.fallen = [], [], [], []
        self.watched = Watched()
        self.place, self.phase = (lambda: ""), "forward"
        self.quiet, self.group = 0, None
        self.inside = 0  # calls of the model that run: only there does a follower count ops
        self.waiting = {"pack": [], "unpack": []}
        self.unseen = {}
        self.on_use = None
        self.unreal = False  # nothing is calculated: meta or fake tensors
        self.aside = Aside(self)

    def unwatched(self):
        """What is done in it is no op of the program. Fake tensors are nothing without the modes."""
        return self.aside if self.unreal else no_dispatch()

    @contextlib.contextmanager
    def inside_model(self):
        """A follower counts no ops of a pass that nobody can walk back."""
        counted = torch.is_grad_enabled()
        self.inside += counted
        try:
            yield
        finally:
            self.inside -= counted

    # ---- storages ----

    def entry_of(self, tensor, make=True):
        """The entry of the tensor's storage; None where it is not on the device."""
        if tensor.device.type != self.device.type:
            return None
        storage = storage_of(tensor)
        if storage is None:
            self.miss("tensors that are not strided")
            return None
        known = self.watched.find(storage)
        if known is None and make:
            known = self.meet(tensor, storage, "input")
            known.born = 0
        return known

    def meet(self, tensor, storage, kind, name=None):
        entry = Entry(len(self.entries), name or "", storage.nbytes(), kind, self.fallen)
        entry.held.append(self.watched.add(storage, entry))
        entry.split = self.is_split(tensor)
        self.entries.append(entry)
        if not entry.persistent:
            self.live.append(entry)
        return entry

    def is_split(self, tensor):
        batch = self.batch_of()
        sizes = tensor.shape
        return batch > 1 and len(sizes) > 0 and (sizes[0] % batch == 0 or batch in sizes[1:2])

    def know(self, tensor, kind, name):
        """A storage that is there before the step."""
        storage = storage_of(tensor) if tensor.device.type == self.device.type else None
        if storage is None or storage.nbytes() == 0:
            return None
        found = self.watched.find(storage)
        if found is None:
            found = self.meet(tensor, storage, kind, name)
            found.persistent, found.split = True, False
            if found in self.live:
                self.live.remove(found)
        return found

    def know_for_now(self, tensor, kind, name):
        """A storage that is there before the step, and may be gone before its end."""
        entry = self.know(tensor, kind, name)
        if entry is not None and entry.kind == kind and entry not in self.live:
            entry.persistent, entry.born = False, 0
            self.live.append(entry)

    def stand_in(self, entry, tensor):
        """From here on the tensor's storage is one more of this entry."""
        entry.held.append(self.watched.add(storage_of(tensor), entry))

    def look_for_dead(self):
        """Storages that nobody holds any more, since the last op."""
        now, alive = len(self.ops), []
        if self.fallen:
            self.live += [entry for entry in dict.fromkeys(self.fallen) if entry.apart]
            for entry in self.fallen:
                entry.apart = False
            self.fallen.clear()
        for entry in self.live:
            held = entry.held
            if entry.let_go is None:
                if not held[0].expired():
                    alive.append(entry)
                    continue
                entry.let_go = now
            if any(weak() is not None for weak in entry.saved):
                entry.apart = True  # autograd has it: it says itself when that is over
            # the last copy is the last to go, but for what is looked at again behind it
            elif not held[-1].expired() or not all(weak.expired() for weak in held):
                alive.append(entry)
            else:
                self.bury(entry, now)
        self.live = alive

    def bury(self, entry, now):
        entry.died = now
        if entry.scratch and self.group is not None:
            self.group.scratch_now -= entry.bytes
        for weak in entry.held:
            self.watched.forget(weak)
        entry.held = []

    def miss(self, what):
        self.unseen[what] = self.unseen.get(what, 0) + 1

    # ---- ops ----

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if NestedTensor in types:
            return NotImplemented  # it comes back as ops on what the rows lie in
        kwargs = kwargs or {}
        if func is DETACH:
            return detached(func, args, kwargs)
        if self.quiet:
            return func(*args, **kwargs)
        if FUNCTIONS[func].marks:
            return beside(func, args, kwargs)
        self.look_for_dead()
        given = tensors_in([args, kwargs], [])
        before = [self.entry_of(t) for t in given]
        taken = self.memory.before()
        started = self.clock.start()
        out = func(*args, **kwargs)
        span = self.clock.stop(started, (func, args, out))
        self.note(func, args, kwargs, before, out, (span, self.memory.after(taken)))
        return out

    def note(self, func, args, kwargs, before, out, span):
        """Adds the op, unless it makes nothing and changes nothing: a view."""
        known = FUNCTIONS[func]
        name = known.name
        written = self.written(known, args, kwargs)
        changed = [(e, side) for e, side in ((self.entry_of(t), side) for t, side in written) if e is not None]
        made = self.made_entries(out)
        if known.silent or not (changed or made):
            return
        op = self.group or self.open_op(name)
        self.touch(op, before, [e for e, _ in changed], [t for t, _ in written])
        if self.group is None:
            op.side |= {e.index for e, side in changed if side}
        for entry in made:
            self.make(op, entry, name)
        if known.meets and self.group is None:
            wrote = {e.index: e.bytes for e in [e for e, _ in changed] + made}
            gave = sum({e.index: e.bytes for e in before if e is not None and e.index not in wrote}.values())
            op.collective = known.meets, group_of([*args, *kwargs.values()]), max(gave, sum(wrote.values()))
        if self.inside and self.phase == "forward" and self.group is None \
                and again.can_run(known, args, kwargs, before, changed):
            op.again = before, [self.entry_of(t, make=False) for t in tensors_in([out], [])]
        op.scratch_most = max(op.scratch_most, op.scratch_now)
        op.spans.append(span[0])
        op.taken.append((span[1], op.scratch_now, sum(e.bytes for e in made)))

    def touch(self, op, read, written, tensors):
        """These it reads, and those it writes in place, where these tensors lie."""
        for entry in read:
            if entry is not None:
                self.use(op, entry, op.reads)
        for entry in written:
            self.change(entry, tensors)
            self.use(op, entry, op.writes)

    def change(self, entry, tensors):
        """These are written in place: what autograd keeps of their very bytes is stale. An argument that
        is read only may lie in the same storage."""
        entry.changes += 1
        kept = [weak() for weak in entry.saved]
        entry.saved = [weak for weak, what in zip(entry.saved, kept) if what is not None]
        kept = [what for what in kept if what is not None and what.copy is not None and not what.stale]
        if not kept:
            return
        with no_dispatch():
            written = [Form(t) for t in tensors if self.entry_of(t, make=False) is entry]
            for what in kept:
                what.stale = any(overlap(what.form, form, entry.bytes) for form in written)

    def written(self, known, args, kwargs):
        """The tensors that it writes of its arguments, each with "on the side"."""
        found = []
        for at, key in known.changed:
            value = args[at] if at < len(args) else kwargs.get(key)
            found += [(t, False) for t in tensors_in([value], [])]
        if known.name in NORMS and len(args) > 5 and args[5]:
            found = [(t, True) for t in tensors_in(args[3:5], [])]
        return found

    def made_entries(self, out):
        """Entries of results in storages that were not there before."""
        made = []
        for tensor in tensors_in([out], []):
            if tensor.device.type != self.device.type:
                continue
            storage = storage_of(tensor)
            if storage is None or storage.nbytes() == 0 or self.watched.find(storage) is not None:
                continue
            kind = "activation" if self.phase == "forward" else "temporary"
            made.append(self.meet(tensor, storage, kind))
        return made

    def open_op(self, name):
        place = self.place()
        op = Op(f"{place}.{name}" if place else name, self.phase)
        self.add(op)
        return op

    def add(self, op):
        for what, events in self.waiting.items():
            op.notes[what] = events
        self.waiting = {"pack": [], "unpack": []}
        self.ops.append(op)

    def use(self, op, entry, where):
        where[entry.index] = True
        now = len(self.ops) - 1
        if entry.first is None:
            entry.first = now
        entry.last = now
        if self.on_use is not None:
            self.on_use(entry, op)

    def make(self, op, entry, name):
        if self.group is not None:
            entry.scratch = True
            op.scratch_now += entry.bytes
            return
        if not entry.name:
            entry.name = op.name
        self.use(op, entry, op.writes)

    # ---- one op of what is not seen ----

    def whole(self, name, function, *args, **kwargs):
        """The call of a function that runs below no mode, as one that is compiled."""
        given = inner_tensors([args, kwargs])
        entries = {e.index: e for e in map(self.entry_of, given) if e is not None}.values()
        self.look_for_dead()
        taken, started = self.memory.before(), self.clock.start()
        with _disable_current_modes():
            out = function(*args, **kwargs)
        span = self.clock.stop(started, (ANY, given, given[:1]))
        op = self.open_op(name)
        self.touch(op, entries, entries, given)
        for entry in self.made_entries(out):
            self.make(op, entry, name)
        op.spans.append(span)
        op.taken.append((self.memory.after(taken), 0, 0))
        return out

    # ---- one update as one op ----

    def begin_update(self, name):
        self.look_for_dead()
        self.group = Op(name, "update")
        self.add(self.group)

    def end_update(self):
        self.look_for_dead()
        self.group = None
