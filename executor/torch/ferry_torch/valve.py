# SPDX-License-Identifier: GPL-3.0-or-later
"""When must what is on its way to the host be gone?

A plan counts on copies out to end in time. On a card they may be later, and what they read is held until
then. So before the ops behind a hook need more than is left, they wait for those copies.
"""
import bisect
import itertools

from .card import most_of, used_of


def needs_of(tensors, ops):
    """What each op takes when it begins: its workspace, and what is first written there."""
    met, needs = set(), []
    for op in ops:
        made = [i for i in op["writes"] if i not in met and not tensors[i]["persistent"]
                and tensors[i].get("born_before") is None]
        needs.append(op.get("workspace_bytes", 0) + sum(tensors[i]["bytes"] for i in made))
        met.update(op["writes"], op["reads"])
    return needs


class Valve:
    """The allocator is asked rarely, since its answer is a long list: from one on, no more can have been taken than what
    the ops need and what came back."""
    HOLES = 32  # one part in so many that nothing fits in

    def __init__(self, plan, device):
        self.device, self.most = device, most_of(device, None)
        self.needs = needs_of(plan.tensors, plan.ops)
        self.before = list(itertools.accumulate(self.needs, initial=0))  # of all ops before each
        self.at, self.left = len(self.needs), 0  # where the allocator was asked, and what it left; it is asked at once
        self.hooks = sorted({at for kind in ("pack", "unpack") for at, _ in plan.events(kind)})

    def next_need(self, position):
        """The most that one of the ops up to the next hook takes."""
        at = bisect.bisect_right(self.hooks, position)
        end = self.hooks[at] if at < len(self.hooks) else len(self.needs) - 1
        return max(self.needs[position:end + 1], default=0)

    def took(self, size):
        """Counts bytes that came back."""
        self.left -= size

    def is_tight(self, position):
        """Only where somebody counts."""
        if self.most is None:
            return False
        need = self.next_need(position)
        if position < self.at or self.before[position] - self.before[self.at] + need > self.left:
            self.at, self.left = position, self.most - self.most // self.HOLES - used_of(self.device)
            return need > self.left
        return False
