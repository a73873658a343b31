# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's memory: one block of the planned size, and who lies where in it."""
import bisect


class Room:
    """A stretch of the arena, or memory of its own where the planned stretch is still needed."""

    __slots__ = ("bytes", "signals", "needed")

    def __init__(self, memory, signals):
        self.bytes, self.signals, self.needed = memory, signals, True

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

    def take(self, offset, size):
        end = offset + size
        first, last = bisect.bisect_right(self.starts, offset), bisect.bisect_left(self.starts, end)
        if first and offset < self.taken[first - 1][1]:
            first -= 1
        meets = self.taken[first:last]
        if end > self.size or any(room.needed for _, _, room in meets):
            self.extra += size
            return Room(self.lanes.extra(size), [])
        room = Room(self.memory[offset:end], [s for _, _, r in meets for s in r.signals])
        self.starts[first:last], self.taken[first:last] = [offset], [(offset, end, room)]
        return room

    def close(self):
        self.lanes.give_back(self.memory)
