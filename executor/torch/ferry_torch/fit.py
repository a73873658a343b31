# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole story in one call: record a step, ask `ferry solve`, follow the plan from then on.

    with ferry_torch.fit(model, optimizer, budget="10GiB") as run:
        for batch in loader:
            step(batch)
"""
import contextlib
import functools
import json
import os
import shutil
import sys
import tempfile

from . import tool, updates
from . import trace as traces
from .card import bytes_of, left_beside, this_card, to_plan
from .follow import follow
from .modules import Called, device_of
from .record import Recording
from .report import bytes_text, time_text
from .spill import Room, spilled
from .timing import now
from .updates import Wrapped
from .writer import finish

LEAVE_STEPS = 2  # the first makes the optimizer's state, the second is timed, the third recorded


class Fit:
    """Counts the optimizer's steps: one that takes the least memory, one timed, one recorded, then the plan."""

    def __init__(self, model, optimizer, budget, card, folder, say, options=()):
        self.model, self.optimizer = model, optimizer
        self.budget, self.most = to_plan(device_of(model), budget), bytes_of(budget)
        self.card, self.folder, self.say, self.options = card, folder, say, options
        self.room, self.spilling = Room(), None
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
        return Called(self.model, "forward", forward)

    def before_forward(self, inputs):
        """A step begins with the first forward pass behind an optimizer's step."""
        if self.steps < LEAVE_STEPS and self.room is not None and self.spilling is None:
            self.spilling = contextlib.ExitStack()
            self.spilling.enter_context(spilled(self.model, self.room))
        elif self.steps == LEAVE_STEPS and self.recording is None:
            self.recording = Recording(self.model, self.optimizer, None, step_ns=self.step_ns, room=self.room)
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
        if self.recording is None and updates.in_pieces(self.optimizer):
            inner = functools.partial(updates.step_in_pieces, self.optimizer)

        def step(*arguments, **options):
            result = inner(*arguments, **options)
            self.after_step()
            return result
        return Wrapped(self.optimizer, step)

    def after_step(self):
        self.steps += 1
        if self.spilling is not None:
            self.spilling.close()
            self.spilling = None
        if self.steps < LEAVE_STEPS:
            self.room = self.room_left()
            self.began = now(self.place)
        elif self.steps == LEAVE_STEPS:
            self.step_ns = now(self.place) - self.began - (self.room.ns if self.room is not None else 0)
        if self.recording is not None and self.run is None and self.steps == LEAVE_STEPS + 1:
            self.recording.name_gradients()
            self.stack.close()
            traces.store(finish(self.recording, type(self.model).__name__), self.path("step.json"))

    def room_left(self):
        """What a step may keep on the device beside what the first one took there; None if that is all."""
        left = left_beside(self.place, self.most)
        return None if left is None or left >= self.room.sent else Room(left)

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
    """Trains within `budget` ("10GiB", an int of bytes, or "60%" of what a step takes). Of the first step
    all that autograd saves is on the host; the second is timed, the third recorded, with as much of that on the device
    as there is room for; all others follow the plan; at the end it says what it expected and what
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
        if run.spilling is not None:
            run.spilling.close()
        run.stack.close()
        watched.undo()
        step.undo()
        shutil.rmtree(folder, ignore_errors=True)
        if run.report is not None:
            say(run.report.text())

