# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole story in one call: record a step, ask `ferry solve`, follow the plan from then on.

    with ferry_torch.fit(model, optimizer, budget="10GiB") as run:
        for batch in loader:
            step(batch)
"""
import base64
import contextlib
import gzip
import json
import os
import sys
import tempfile

import torch

from . import tool, updates
from . import trace as traces
from .capture import captured
from .card import bytes_of, left_beside, require_budget, require_options, this_card, to_plan, too_small
from .errors import Refused
from .follow import followed
from .modules import (IN_BACKWARD, Called, alone, device_of, in_backward, is_early_stop, one_of, refuse_compiled, refuse_script,
                      roots_of, signature, this_thread)
from .record import Recording
from .report import bytes_text, time_text
from .spill import Room, Spill
from .timing import now
from .writer import finish

ALL = 1 << 62  # bytes
LEAVE_STEPS = 2  # the first makes the optimizer's state, the second is timed, the third recorded
PASSES = 100  # the first ones of a step, whose inputs are compared
PATIENCE = 10  # so many steps may say nothing before that is said


class Fit:
    """Counts the optimizer's steps: one that takes the least memory, one timed, one recorded, then the plan."""

    def __init__(self, model, optimizer, budget, card, folder, say, options=(), method="forward"):
        self.model, self.optimizer, self.method = model, optimizer, method
        self.budget, self.most = to_plan(device_of(model), budget), bytes_of(budget)
        self.card, self.folder, self.say, self.options = card, folder, say, options
        self.room, self.packer, self.hooks = Room(), None, contextlib.ExitStack()
        self.steps, self.stack, self.run, self.recording = 0, contextlib.ExitStack(), None, None
        self.place, self.began, self.step_ns = device_of(model), None, None
        self.ran = self.spoiled = False  # in this step: was the model called, was anything raised
        self.inputs, self.met = (), []  # signatures of all passes of this step; of each step that was whole
        self.missed, self.why = 0, ""  # steps that were not learned from, and what the last one lacked
        self.captured = None
        self.kept, self.named = {}, list(model.named_parameters())
        self.round, self.inside = updates.Round(optimizer), False  # inside: of a call of the model

    @property
    def report(self):
        return None if self.run is None else self.run.report

    def path(self, name):
        return os.path.join(self.folder, name)

    def watch(self, model):
        """From now on each call of the model passes here. What is begun in it wraps the model's
        forward again, and is in place for this very call."""
        inner, check = getattr(model, self.method), this_thread()

        def forward(*arguments, **options):
            if torch.is_grad_enabled():
                check()
            begun = not self.inside and torch.is_grad_enabled() and self.before_forward([arguments, options])
            how, outer, self.inside = getattr(model, self.method) if begun else inner, self.inside, True
            try:
                return how(*arguments, **options)
            except BaseException as why:
                self.spoiled = self.spoiled or not is_early_stop(why)
                raise
            finally:
                self.inside = outer
        return Called(model, self.method, forward)

    def before_forward(self, inputs):
        """A step begins with the first forward pass behind an optimizer's step. Does one begin that is recorded?"""
        if self.steps > LEAVE_STEPS or in_backward():  # by checkpointing: what is entered there is left again by torch
            return False
        self.ran, self.inputs = True, (*self.inputs, signature(inputs))[:PASSES]
        if self.steps != LEAVE_STEPS or self.recording is not None:
            return False
        self.recording = Recording(self.model, self.optimizer, None, step_ns=self.step_ns, room=self.room,
                                   method=self.method, named=self.named)
        self.packer = self.recording
        self.stack.enter_context(self.recording.run(hooks=False))
        self.count(self.stack)
        return True

    def learn(self):
        """Hooks are entered between two steps: inside a forward pass the program may have hooks of its own around it, and
        whoever leaves first takes off the others'."""
        self.hooks.close()
        if self.steps == LEAVE_STEPS or self.steps < LEAVE_STEPS and self.room is not None:
            self.packer = Spill(self.model, self.room or Room(ALL))
            self.hooks.enter_context(torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack))

    def pack(self, tensor):
        return self.packer, self.packer.pack(tensor)

    def unpack(self, packed):
        packer, saved = packed
        return packer.unpack(saved)

    def count(self, stack):
        """Each optimizer's step as it is now, with a look at where we are behind it."""
        inner = {id(one): one.step for one in updates.each(self.optimizer)}

        def step(optimizer, closure=None):
            if in_backward():  # hooks that are entered or left there are as before behind it
                raise Refused(IN_BACKWARD)
            before = self.recording
            loss = updates.run_closure(optimizer, closure)
            if self.recording is not before:  # it began in the closure
                optimizer.step()
                return loss
            if before is None and updates.in_pieces(optimizer):
                updates.step_in_pieces(optimizer)
            else:
                inner[id(optimizer)]()
            if self.round.is_over(optimizer):
                self.after_step()
            return loss
        updates.wrap(self.optimizer, step, stack)

    def after_step(self):
        if self.steps > LEAVE_STEPS:
            return
        self.why = self.lacks()
        learned = not self.why
        self.ran, self.spoiled, self.inputs = False, False, ()
        if self.recording is not None:
            self.end_recording(learned)
        elif learned and self.steps == 0:
            self.room = self.room_left()
        elif learned:
            self.step_ns = now(self.place) - self.began - (self.room.ns if self.room is not None else 0)
        self.steps += learned
        self.missed += not learned
        if self.missed == PATIENCE:
            self.say_missed()
        if self.room is not None:
            self.room.sent = self.room.ns = 0
        self.learn()
        if self.steps > LEAVE_STEPS:
            self.follow()
        self.began = now(self.place)

    def follow(self, plans=True):
        if plans:
            self.plan()
        self.run = self.stack.enter_context(followed(self.path("plan.json"), self.model, self.optimizer,
                                                     method=self.method))
        self.run.report.say = self.say
        self.kept = {**KEPT, "budget": self.budget, **packed(self.folder)}

    def lacks(self):
        """Why the step is none to learn from, if it is not."""
        if not self.ran:
            return ("the model was not called with gradients: ferry sees `model(...)`, not its parts or other methods, nor "
                    "calls in the way back, as reentrant checkpointing of all of it makes them")
        if self.spoiled:
            return "the model raised something"
        if not any(p.grad is not None for p in updates.parameters_of(self.optimizer)):
            return "no weight of the optimizer had a gradient"
        return "" if self.is_usual() else "its passes had other inputs than those before"

    def is_usual(self):
        """A short batch, as the last one, or a pass more, as where one failed, is not worth a plan, unless the next
        one is new as well."""
        usual = self.steps < LEAVE_STEPS or self.inputs in self.met or len(self.met) > LEAVE_STEPS
        self.met.append(self.inputs)
        return usual

    def end_recording(self, learned):
        if learned:
            self.recording.name_gradients()
        self.stack.close()
        if learned:
            found = finish(self.recording, type(self.model).__name__)
            if self.captured is not None and not self.captured.over:
                found["ops"][0]["compute"]["leave"] = []  # a graph keeps the addresses of weights and state
            traces.store(found, self.path("step.json"))
        else:
            self.recording = None

    def step(self, function, *inputs):
        """`function(*inputs)`, a whole step; with capture=True as one CUDA graph, once it is known."""
        return function(*inputs) if self.captured is None else self.captured.step(function, inputs)

    def end(self):
        if self.captured is not None:
            self.captured.end()
        self.stack.close()
        self.hooks.close()

    def _repr_html_(self):
        """In a notebook: the plan's picture, and what was seen."""
        if not self.kept:
            return "<p>no plan yet"
        with tempfile.TemporaryDirectory(prefix="ferry-") as folder:
            unpack_into(folder, self.kept)
            return tool.picture(*(os.path.join(folder, name) for name in FILES.values())) + self.report._repr_html_()

    # ---- kept from run to run ----

    def state_dict(self):
        """What was learned, for a checkpoint: the trace and the plan. Nothing before there is a plan."""
        return self.kept

    def load_state_dict(self, state):
        """What another run has learned of the same step. The optimizer must have its state by now."""
        if not state:
            return
        if not isinstance(state, dict) or any(state.get(key) != value for key, value in KEPT.items()):
            raise Refused("this is not what the state_dict of a fit gave")
        if self.run is not None or self.ran or self.missed or self.steps:
            raise Refused("load_state_dict comes before the first step of a fit")
        unpack_into(self.folder, state)
        self.hooks.close()
        self.steps = LEAVE_STEPS + 1
        self.follow(state["budget"] != self.budget)

    def say_missed(self):
        self.say(f"ferry: no plan yet, as {self.missed} steps were not learned from; in the last one {self.why}")

    def say_report(self, whole=True):
        """Is the block whole, or did it raise?"""
        if self.run is None and 0 < self.missed < PATIENCE:
            self.say_missed()
        if self.run is None and not self.missed and whole:
            self.say(f"ferry: no plan yet, as the optimizer took {self.steps} steps; {LEAVE_STEPS + 1} are learned from")
        if self.report is not None and self.report.steps:
            self.say(self.report.text())

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
        said = tool.answer("solve", self.path("step.json"), "-d", self.card, "--for", "torch", "--budget", self.budget,
                           "-o", self.path("plan.json"), "--json", *self.options, accept=(0, 1, 4))
        if not said["fits"]:
            raise Refused(f"ferry solve: {too_small(self.place, said)}")
        expected = said["predicted"]
        self.say(f"ferry: a step takes {time_text(expected['step_ns'])} in "
                 f"{bytes_text(expected['peak_bytes'])}, {time_text(expected['baseline_ns'])} without "
                 f"a limit; {bytes_text(expected['host_peak_bytes'])} of the host's memory")


KEPT = {"format": "ferry-run/1"}


def packed(folder):
    """The trace and the plan, as texts that any checkpoint takes."""
    found = {}
    for name in ("trace", "plan"):
        with open(os.path.join(folder, FILES[name]), "rb") as file:
            found[name] = base64.b64encode(gzip.compress(file.read(), mtime=0)).decode()
    return found


def unpack_into(folder, state):
    for name in ("trace", "plan"):
        with open(os.path.join(folder, FILES[name]), "wb") as file:
            file.write(gzip.decompress(base64.b64decode(state[name])))


FILES = {"trace": "step.json", "plan": "plan.json"}


def require_own(model, optimizer):
    for one in updates.each(optimizer):
        if not hasattr(one, "param_groups"):
            raise Refused(f"the optimizer is one of torch.optim, or a list of them, and not of type {type(one).__name__}; "
                          "the model comes first, then the optimizer, then the budget")
    own = {id(p) for p in model.parameters()}
    if not updates.each(optimizer) or own and not all(any(id(p) in own for p in updates.parameters_of(one))
                                                      for one in updates.each(optimizer)):
        raise Refused("fit counts the steps of the optimizer that updates the model's weights, so give the one that does; "
                      "`record` needs none")


def say_on_stderr(text):
    print(text, file=sys.stderr)


@contextlib.contextmanager
def fit(model, optimizer, budget, device=None, say=say_on_stderr, server=None, recompute="off", method="forward", capture=False):
    """Trains within `budget` ("10GiB", an int of bytes, or "60%" of what a step takes). Of the first step
    all that autograd saves is on the host; the second is timed, the third recorded, with as much of that on the device
    as there is room for; all others follow the plan; at the end it says what it expected and what
    it saw. Several models and optimizers are lists; a step is over when each optimizer has taken one. `device` is a card's name or file; without it, the one that is here. `server`, or the variable
    FERRY_SERVER, is the address of a `ferry serve` that plans instead of this machine. `recompute` may
    be "auto" or "cheap": then some tensors are made again instead of carried. `method` names what of the model the
    program calls, if it is not the model itself. With `capture` the steps that `run.step` is given become one CUDA graph."""
    require_budget(budget)
    model = one_of(model)
    require_own(model, optimizer)
    refuse_compiled(model)
    refuse_script(model)
    tool.path()
    require_options(device, recompute)
    server = server or os.environ.get("FERRY_SERVER")
    options = ["--recompute", recompute, *(["--server", server] if server else [])]
    with contextlib.ExitStack() as stack:
        stack.enter_context(alone())
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ferry-"))
        run = Fit(model, optimizer, budget, device or this_card(device_of(model)), folder, say, options, method)
        run.captured = captured(run, capture, say) if capture else None
        stack.push(lambda kind, *why: run.say_report(kind is None))
        run.count(stack)
        for root in roots_of(model):
            stack.callback(run.watch(root).undo)
        stack.callback(run.end)
        run.learn()
        yield run
