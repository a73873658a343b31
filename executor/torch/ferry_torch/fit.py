# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole story in one call: record a step, ask `ferry solve`, follow the plan from then on.

    with ferry_torch.fit(model, optimizer, budget="10GiB") as run:
        for batch in loader:
            step(batch)
"""
import contextlib
import json
import os
import shutil
import sys
import tempfile

import torch

from . import tool
from . import trace as traces
from .follow import follow
from .modules import Replaced
from .record import Recording, device_of
from .report import bytes_text, time_text
from .timing import now
from .updates import Wrapped
from .writer import finish

LEAVE_STEPS = 2  # the first makes the optimizer's state, the second is timed, the third recorded


def this_card(device):
    """A device file of the GPU that is here; on a CPU, of a card with as much memory as the plan may
    ask for, so that a program can be tried without one."""
    if device.type != "cuda":
        return {"format": "ferry-device/1", "name": "cpu", "memory_bytes": 1 << 40,
                "granule_bytes": 512, "host_bytes": 1 << 40,
                "link": {"d2h_bytes_per_s": 8 * 10**9, "h2d_bytes_per_s": 8 * 10**9}}
    seen = torch.cuda.get_device_properties(device)
    rate = link_rate(device)
    return {"format": "ferry-device/1", "name": seen.name, "memory_bytes": seen.total_memory,
            "granule_bytes": 512, "host_bytes": host_bytes(),
            "link": {"d2h_bytes_per_s": rate, "h2d_bytes_per_s": rate, "copy_ns": 10000}}


def link_rate(device, size=64 << 20):
    """Bytes a second from pinned memory, the best of three copies."""
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(size, dtype=torch.uint8, device=device)
    best = 1e9
    for _ in range(3):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        target.copy_(host, non_blocking=True)
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end))
    return int(size / best * 1000)


def host_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4


class Fit:
    """Counts the optimizer's steps: one as it is, one timed, one recorded, then the plan."""

    def __init__(self, model, optimizer, budget, card, folder, say, options=()):
        self.model, self.optimizer = model, optimizer
        self.budget = f"{budget}B" if isinstance(budget, int) else budget
        self.card, self.folder, self.say, self.options = card, folder, say, options
        self.steps, self.stack, self.run, self.recording = 0, contextlib.ExitStack(), None, None
        self.place, self.began, self.step_ns = device_of(model), None, None

    @property
    def report(self):
        return None if self.run is None else self.run.report

    def path(self, name):
        return os.path.join(self.folder, name)

    def watch(self):
        """From now on each call of the model passes here. What is begun in it wraps the model's
        forward again, and is in place for this very call."""
        self.inner, self.inside = self.model.forward, False

        def forward(*arguments, **options):
            if self.inside:
                return self.inner(*arguments, **options)
            self.before_forward(arguments)
            self.inside = True
            try:
                return self.model.forward(*arguments, **options)
            finally:
                self.inside = False
        return Replaced(self.model, "forward", forward)

    def before_forward(self, inputs):
        """A step begins with the first forward pass behind an optimizer's step."""
        if self.steps == LEAVE_STEPS and self.recording is None:
            self.recording = Recording(self.model, self.optimizer, None, step_ns=self.step_ns)
            self.stack.enter_context(self.recording.run())
            self.stack.callback(self.counted().undo)
            self.recording.on_root(inputs)
        elif self.steps == LEAVE_STEPS + 1 and self.run is None:
            self.plan()
            how = follow(self.path("plan.json"), self.model, self.optimizer)
            self.run = self.stack.enter_context(how)
            self.stack.callback(self.counted().undo)
            if self.run.follower is not None:
                self.run.follower.enter_root(inputs)

    def counted(self):
        """The optimizer's step as it is now, with a look at where we are behind it."""
        inner = self.optimizer.step

        def step(*arguments, **options):
            result = inner(*arguments, **options)
            self.after_step()
            return result
        return Wrapped(self.optimizer, step)

    def after_step(self):
        self.steps += 1
        if self.steps < LEAVE_STEPS:
            self.began = now(self.place)
        elif self.steps == LEAVE_STEPS:
            self.step_ns = now(self.place) - self.began
        if self.recording is not None and self.run is None and self.steps == LEAVE_STEPS + 1:
            self.recording.name_gradients()
            self.stack.close()
            traces.store(finish(self.recording, type(self.model).__name__), self.path("step.json"))

    def plan(self):
        """Asks ferry, and says what it expects."""
        if isinstance(self.card, dict):
            with open(self.path("card.json"), "w") as file:
                json.dump(self.card, file)
            self.card = self.path("card.json")
        said = json.loads(tool.ferry("solve", self.path("step.json"), "-d", self.card, "--for",
                                     "torch", "--budget", self.budget, "-o", self.path("plan.json"),
                                     "--json", *self.options, accept=(0, 4)))
        expected = said["predicted"]
        self.say(f"ferry: a step takes {time_text(expected['step_ns'])} in "
                 f"{bytes_text(expected['peak_bytes'])}, {time_text(expected['baseline_ns'])} without "
                 f"a limit; {bytes_text(expected['host_peak_bytes'])} of the host's memory")


def say_on_stderr(text):
    print(text, file=sys.stderr)


@contextlib.contextmanager
def fit(model, optimizer, budget, device=None, say=say_on_stderr, server=None, recompute="off"):
    """Trains within `budget` ("10GiB", an int of bytes, or "60%" of what a step takes). The first step runs as it is,
    the second is timed, the third recorded, all others follow the plan; at the end it says what it expected and what
    it saw. `device` is a card's name or file; without it, the one that is here. `server`, or the variable
    FERRY_SERVER, is the address of a `ferry serve` that plans instead of this machine. `recompute` may
    be "auto" or "cheap": then some tensors are made again instead of carried."""
    folder = tempfile.mkdtemp(prefix="ferry-")
    server = server or os.environ.get("FERRY_SERVER")
    options = ["--recompute", recompute, *(["--server", server] if server else [])]
    run = Fit(model, optimizer, budget, device or this_card(device_of(model)), folder, say, options)
    watched = run.watch()
    step = run.counted()
    try:
        yield run
    finally:
        run.stack.close()
        watched.undo()
        step.undo()
        shutil.rmtree(folder, ignore_errors=True)
        if run.report is not None:
            say(run.report.text())

