# SPDX-License-Identifier: GPL-3.0-or-later
"""A step before there is a plan, in less memory than it would take by itself.

    with ferry_torch.spilled(model):
        step()

What autograd saves goes to the host at once, and comes back when it is asked for. Nobody computes
meanwhile: it is for the few steps that say what a plan has to know.
"""
import contextlib
import weakref

import torch

from .card import most_of, used_of
from .held import Held
from .modules import device_of
from .storages import Form, Watched, as_bytes, is_plain, storage_of
from .timing import now


class Room:
    """The bytes of saved tensors that may still stay on the device; `sent` counts the others, and `ns` the
    time of their copies."""

    def __init__(self, left=0):
        self.left, self.sent, self.ns = left, 0, 0

    def has(self, size):
        return size <= self.left

    def stay(self, size):
        """A token that takes the room until it is freed; None without room."""
        if self.has(size):
            return Stay(self, size)
        self.sent += size
        return None

    @contextlib.contextmanager
    def copying(self, device):
        """Nothing runs beside a copy: so the step without it is the step less its time."""
        started = now(device)
        yield
        self.ns += now(device) - started


class Beside(Room):
    """What does not belong to a plan may be there as long as most of the rest of the memory is free: nobody
    knows what the step will need."""

    FULL = 3, 5

    def __init__(self, device, budget):
        super().__init__()
        self.device, self.most = device, most_of(device, budget)

    def has(self, size):
        part, of = self.FULL
        return self.most is None or (used_of(self.device) + size) * of <= self.most * part


class Stay:
    def __init__(self, room, size):
        self.room, self.size = room, size
        room.left -= size

    def __del__(self):
        self.room.left += self.size


class Stayed(Held):
    """Where there is room nothing is copied."""

    __slots__ = ("stay",)

    def __init__(self, tensor, stay):
        super().__init__(tensor)
        self.stay = stay


class Aboard:
    """A copy of a storage that is on the device."""

    __slots__ = ("raw", "stay", "__weakref__")

    def __init__(self, raw, stay):
        self.raw, self.stay = raw, stay

    def back(self):
        return self.raw


class Ashore:
    """One that is on the host. Whoever is given `arrived` hears of each that comes back."""

    __slots__ = ("host", "device", "room", "again", "arrived", "__weakref__")

    def __init__(self, row, room, arrived=lambda raw: None):
        self.device, self.room, self.again, self.arrived = row.device, room, None, arrived
        with room.copying(self.device):
            self.host = row.to("cpu", copy=True)

    def back(self):
        """One copy for all who ask while somebody has it."""
        raw = self.again() if self.again is not None else None
        if raw is None:
            with self.room.copying(self.device):
                raw = self.host.to(self.device, copy=True)
            self.again = weakref.ref(raw)
            self.arrived(raw)
        return raw


class Stretch(Form):
    """A tensor in no more bytes than it spans, aligned as it was: a kernel may be chosen by that."""

    __slots__ = ("begin", "end")
    ALIGNED = 512

    def __init__(self, tensor):
        super().__init__(tensor)
        each = tensor.element_size()
        last = self.offset + sum((n - 1) * step for n, step in zip(self.size, self.stride))
        self.begin, self.end = self.offset * each // self.ALIGNED * self.ALIGNED, (last + 1) * each
        self.offset -= self.begin // each


class Sent:
    """A saved tensor whose bytes are on the host."""

    __slots__ = ("content", "form")

    def __init__(self, content, form):
        self.content, self.form = content, form

    def back(self):
        with torch.no_grad():
            return self.form.of(self.content.back())


class Spill:
    """The hooks of one step."""

    def __init__(self, model, room):
        self.device, self.room, self.known = device_of(model), room, Watched()
        for lasting in (*model.parameters(), *model.buffers()):
            if is_plain(lasting):
                self.known.add(storage_of(lasting), None)

    def pack(self, tensor):
        storage = storage_of(tensor) if tensor.device == self.device and is_plain(tensor) else None
        if storage is None or tensor.dim() == 0 or tensor.numel() == 0 or tensor.is_meta:
            return Held(tensor)
        if storage._cdata not in self.known.rows:
            self.known.add(storage, {})
        contents = self.known.find(storage)
        if contents is None:
            return Held(tensor)  # it lasts
        form = Stretch(tensor)
        # Two views may count their changes apart, so that only one stretch is known to be the same.
        key = form.begin, form.end, tensor._version
        content = contents[key]() if key in contents else None
        if content is None:
            content = self.room.stay(storage.nbytes()) or Ashore(as_bytes(tensor)[form.begin:form.end], self.room)
            contents[key] = weakref.ref(content)
        return Stayed(tensor, content) if isinstance(content, Stay) else Sent(content, form)

    def unpack(self, saved):
        if isinstance(saved, Held):
            saved.look()
            return saved.tensor
        return saved.back()


@contextlib.contextmanager
def spilled(model, room=None):
    """In it what autograd saves of a step is on the host, but for what `room` lets stay."""
    hooks = Spill(model, room or Room())
    with torch.autograd.graph.saved_tensors_hooks(hooks.pack, hooks.unpack):
        yield hooks.room
