# SPDX-License-Identifier: GPL-3.0-or-later
"""The largest batch of a model of one's own: a step of each batch is recorded without memory, and planned.

    def make(batch):
        model = Net()
        optimizer = torch.optim.Adam(model.parameters())
        def step():
            ...
        return model, optimizer, step
    print(ferry_torch.max_batch(make, "h200", "40GiB"))
"""
import collections
import os
import shutil
import tempfile

from torch._subclasses import FakeTensorMode

from . import tool
from .errors import Refused
from .record import record
from .report import bytes_text, time_text

Largest = collections.namedtuple("Largest", "batch step_ns baseline_ns peak_bytes above")


class Tries:
    """What is known of each batch that was looked at."""

    def __init__(self, make, card, budget, slowdown, folder, say):
        self.make, self.card, self.slowdown, self.folder, self.say = make, card, slowdown, folder, say
        self.options = ["--budget", f"{budget}B" if isinstance(budget, int) else budget] if budget else []
        self.known = {}

    def fits(self, batch):
        if batch not in self.known:
            self.known[batch] = self.ask(batch)
        return self.known[batch] is not None

    def ask(self, batch):
        """The prediction for it; None where no plan is near enough to the step without a limit."""
        trace = os.path.join(self.folder, "step.json")
        with FakeTensorMode():
            made = self.make(batch)
            if not isinstance(made, tuple) or len(made) != 3 or not callable(made[2]):
                raise Refused("make(batch) gives a model, its optimizer and a step to call, in this order")
            model, optimizer, step = made
            with record(trace, model, optimizer, device=self.card):
                step()
        said = tool.answer("solve", trace, "-d", self.card, "--for", "torch", "--json",
                           *self.options, accept=(0, 1, 4))
        found = said.get("predicted")
        near = found is not None and found["step_ns"] <= (1 + self.slowdown) * found["baseline_ns"]
        self.say(f"ferry: batch {batch} " + ("does not fit" if found is None else "is too slow" if not near else
                                             f"takes {time_text(found['step_ns'])} in {bytes_text(found['peak_bytes'])}"))
        return found if near else None


def search(tries, start, most):
    """The largest batch that is known to fit, and the smallest that is known not to. An interrupt ends the search."""
    low, high = start, None
    try:
        while high is None and low < most:
            if tries.fits(min(2 * low, most)):
                low = min(2 * low, most)
            else:
                high = min(2 * low, most)
        while high is not None and high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if tries.fits(middle) else (low, middle)
    except KeyboardInterrupt:
        tries.say("ferry: interrupted; this is the largest batch up to now")
    return low, high


def max_batch(make, card, budget=None, slowdown=0.1, start=1, most=1 << 16, say=lambda text: None):
    """The largest batch whose step is planned within `budget` on `card` (a name or a file of
    `ferry devices`) and takes up to `slowdown` more than without a limit. `make(batch)` gives a model, its
    optimizer and a step; nothing of it takes memory. `above` is a batch that is too large, or None. `say` is called
    with a line for each batch, as `print` is; an interrupt ends the search with what is known."""
    folder = tempfile.mkdtemp(prefix="ferry-")
    try:
        tries = Tries(make, card, budget, slowdown, folder, say)
        if not tries.fits(start):
            raise Refused(f"a batch of {start} does not fit; give more, or a larger slowdown")
        low, high = search(tries, start, most)
        found = tries.known[low]
        return Largest(low, found["step_ns"], found["baseline_ns"], found["peak_bytes"], high)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
