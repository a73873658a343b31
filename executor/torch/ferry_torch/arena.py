# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's memory: one block of the planned size, and who lies where in it."""
import bisect


class Room:
    """A stretch of the arena, or memory of its own where the planned stretch is still needed."""

    __slots__ = ("bytes", "signals", "needed", "forms")

    def __init__(self, memory, signals, forms=None):
        self.bytes, self.signals, self.needed = memory, signals, True
        self.forms = {} if forms is None else forms

    def shaped(self, form):
        """The bytes as a tensor that lies so; of None as a row."""
        if form is None:
            return self.bytes
        key = form.dtype, form.size, form.stride
        found = self.forms.get(key)
        if found is None:
            found = self.forms[key] = self.bytes.view(form.dtype).as_strided(form.size, form.stride)
        return found

    def leave(self, signal=None):
        """Nobody needs the bytes any more, once that copy is over."""
        self.needed = False
        if signal is not None:
            self.signals = [signal]


class Arena:
    """Hands out stretches at the plan's offsets. One that somebody still needs is not given twice:
    a graph that the program keeps alive may ask for its bytes at any later time."""

    def __init__(self, lanes, size):
        self.lanes, self.size, self.extra = lanes, size, 0
        self.memory = lanes.arena(size)
        self.starts, self.taken = [], []  # of each stretch, in order; start, end, room
        self.known = {}  # bytes and forms of each stretch

    def take(self, offset, size):
        end = offset + size
        first, last = bisect.bisect_right(self.starts, offset), bisect.bisect_left(self.starts, end)
        if first and offset < self.taken[first - 1][1]:
            first -= 1
        signals, needed = [], end > self.size
        for _, _, room in self.taken[first:last]:
            signals += room.signals
            needed = needed or room.needed
        if needed:
            self.extra += size
            return Room(self.lanes.extra(size), [])
        memory, forms = self.stretch(offset, size)
        room = Room(memory, signals, forms)
        self.starts[first:last], self.taken[first:last] = [offset], [(offset, end, room)]
        return room

    def stretch(self, offset, size):
        """Bytes of the arena, and the views made of them: a plan uses the same few in every step."""
        found = self.known.get((offset, size))
        if found is None:
            found = self.known[offset, size] = self.memory[offset:offset + size], {}
        return found

    def close(self):
        self.lanes.give_back(self.memory)
