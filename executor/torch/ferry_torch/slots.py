# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes that are on the device at one time and on the host at another."""
import torch

from .storages import Form, Weak, row_of, storage_of


class Content:
    """What autograd saved of one storage. The copy out is enqueued when it is packed, never later:
    what the program writes there afterwards is not what was saved. Without an offset there is no
    copy: it will be dropped, and made again. Where the tensor is all of the storage, it goes and comes in its own form,
    by one op each."""

    __slots__ = ("weak", "size", "device", "form", "whole", "raw", "source", "room", "signal", "arena", "lanes",
                 "dropped", "version", "awaited", "__weakref__")

    def __init__(self, tensor, arena, offset):
        storage = storage_of(tensor)
        self.weak, self.size, self.device = Weak(storage), storage.nbytes(), tensor.device
        self.arena, self.lanes, self.dropped = arena, arena.lanes, False
        self.form = Form(tensor)  # of its first pack
        self.whole = self.form if self.form.is_all(tensor, self.size) else None
        self.raw = self.room = self.signal = None
        self.awaited = True  # is whoever computes behind the copy to `raw`?
        if offset is None:
            self.source, self.version = tensor.detach(), tensor._version  # of bytes that are the program's
        else:
            self.source, self.version = storage, None
            self.copy_out(tensor, offset)

    def copy_out(self, tensor, offset):
        self.room = self.arena.take(offset, self.size)
        source = row_of(storage_of(tensor)) if self.whole is None else tensor
        self.signal = self.lanes.out(source, self.room.shaped(self.whole), self.room.signals)

    def leave(self, offset, clean):
        """Once more, after it was back. The length of the copy, if there is one."""
        if self.raw is None:
            return 0
        copied = 0 if clean and self.room is not None and self.room.needed else self.size
        if copied:
            if self.room is not None:
                self.room.leave(self.signal)
            self.copy_out(self.raw, offset)
        self.source, self.raw = self.raw, None
        return copied

    def drop(self):
        """Its bytes are given up."""
        if self.signal is not None:
            self.signal.wait()
        if self.room is not None:
            self.room.leave(self.signal)
        self.source = self.raw = self.room = self.signal = None
        self.dropped = self.awaited = True

    def put(self, raw):
        """It has been made again."""
        self.raw, self.dropped, self.version, self.whole = raw, False, None, None

    def changed(self):
        """Were bytes changed that are still the program's?"""
        held = self.raw if self.source is None else self.source
        return self.version is not None and held is not None and held._version != self.version

    def release(self, wait):
        """Lets the source go once the copy is over; with `wait` the ops behind this wait for it.
        True when nothing is left to do."""
        if self.source is None or self.room is None:
            return True
        if not (wait or self.signal.over()):
            return False
        if wait:
            self.signal.wait()
        self.source = None
        return True

    def bring(self, last=True):
        """Starts the copy back, unless the bytes are on the device. True if it did. The host keeps
        its own until the last time."""
        if self.raw is not None or self.dropped:
            return False
        copied = self.source is None
        if copied:
            self.raw = self.empty()
            self.signal, self.awaited = self.lanes.back(self.room.shaped(self.whole), self.raw, [self.signal]), False
        else:
            self.raw, self.source = self.held(), None
        if last and self.room is not None:
            self.room.leave(self.signal)
        return copied

    def empty(self):
        if self.whole is None:
            return torch.empty(self.size, dtype=torch.uint8, device=self.device)
        return torch.empty_strided(self.whole.size, self.whole.stride, dtype=self.whole.dtype, device=self.device)

    def held(self):
        """What is on the device, as a tensor. Of what leaves the storage alone is held: the tensor itself may have the
        very op behind it that saves it."""
        held = self.raw if self.source is None else self.source
        if isinstance(held, torch.UntypedStorage):
            held = row_of(held)
            return held if self.whole is None else self.whole.of(held)
        return held

    def use(self):
        if self.signal is not None:
            self.signal.wait()
        self.awaited = True
        return self.raw

    def __del__(self):
        if not getattr(self, "awaited", True):
            held = self.held()
            if held is not None:
                self.lanes.dies(held)
        room = getattr(self, "room", None)
        if room is not None and room.needed:
            room.leave(self.signal)


class Standing:
    """A storage that lives from step to step: its bytes go and come, it stays the same object."""

    dropped = False

    def __init__(self, index, tensor, arena):
        self.index, self.tensor, self.arena, self.lanes = index, tensor, arena, arena.lanes
        self.storage = storage_of(tensor)
        self.size, self.bytes = self.storage.nbytes(), row_of(self.storage)
        self.room = self.offset = self.version = self.signal = None
        self.leaving = self.away = False
        self.until = 0  # the op of the trace up to which it stays, whatever the plan says

    def is_out(self):
        """Are its bytes gone, or about to be?"""
        return self.away or self.leaving

    def changed(self):
        """The host's copy is old. Not every op that writes in place counts it: torch._foreach_lerp_ on a GPU
        does not."""
        self.version = None

    def leave(self, offset, clean):
        """Starts the copy out, unless the host has these bytes. Its length."""
        if self.away or self.leaving:
            return 0
        self.leaving, copied = True, 0
        if self.room is None or self.offset != offset or self.version != self.tensor._version:
            if self.room is not None:
                self.room.leave(self.signal)
            self.room, self.offset = self.arena.take(offset, self.size), offset
            self.signal = self.lanes.out(self.bytes, self.room.bytes, self.room.signals)
            self.version, copied = self.tensor._version, self.size
        return copied

    def release(self, wait):
        if not self.leaving:
            return True
        if not (wait or self.signal.over()):
            return False
        self.signal.wait()
        self.leaving, self.away = False, True  # first: an interrupt in between may cost a copy, not the bytes
        self.storage.resize_(0)
        return True

    def bring(self, last=True):
        if self.leaving:
            self.leaving = False
            return False
        if not self.away:
            return False
        self.storage.resize_(self.size)
        self.signal = self.lanes.back(self.room.bytes, self.bytes, [self.signal])
        self.room.signals = [self.signal]
        self.away = False
        return True

    def give_up_copy(self):
        """The plan has the host's place for others from here on."""
        if self.room is not None and not self.is_out():
            self.room.leave(self.signal)
            self.room = self.version = None

    def use(self):
        if self.signal is not None:
            self.signal.wait()
