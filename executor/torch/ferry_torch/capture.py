# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole followed step as one CUDA graph, so that the host does nothing in it.

    with ferry_torch.fit(model, optimizer, "10GiB", capture=True) as run:
        for batch in loader:
            loss = run.step(step, *batch)

Where that cannot be, one line says why, and the steps go on as they are.
"""
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import updates
from .calls import FUNCTIONS
from .modules import signature
from .storages import tensors_in

WARM = 2  # followed steps before one is captured
ASKS = ("_local_scalar_dense", "nonzero", "masked_select", "unique")  # their results decide what the host does


class CudaGraph:
    """A recorder: `record` runs nothing, `replay` runs all of it and gives what the function gave."""

    def record(self, function):
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = function()

    def replay(self):
        self.graph.replay()
        return self.out


class Reads(TorchDispatchMode):
    """Notes the ops by which the host reads what the device has."""

    def __init__(self, device):
        super().__init__()
        self.device, self.found = device, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = FUNCTIONS[func].name
        leaves = self.device.type != "cpu" and any(t.device.type == "cpu" for t in tensors_in([out], [])) \
            and any(t.device.type != "cpu" for t in tensors_in([args], []))
        if name in ASKS or leaves:
            self.found.append(name)
        return out


def settings_of(optimizer):
    """Numbers that a graph keeps as they are."""
    return [{key: value for key, value in group.items() if key != "params" and not isinstance(value, torch.Tensor)}
            for one in updates.each(optimizer) for group in one.param_groups]


class Captured:
    """Steps of one `fit`: some as they are, one that is watched, one recorded, all others replayed."""

    def __init__(self, fit, recorder, say):
        self.fit, self.recorder, self.say = fit, recorder, say
        self.calls, self.watched, self.ready, self.over = 0, False, False, False
        self.inputs = self.signature = self.settings = None

    def give_up(self, why):
        self.over, self.ready = True, False
        self.say(f"ferry: the step is not captured: {why}")

    def lacks(self, inputs):
        """Why it cannot be captured, before anything is tried."""
        follower, report = self.fit.run.follower, self.fit.report
        if follower is not None and follower.standing:
            return "the plan moves weights or optimizer state, whose addresses a graph would keep"
        if report.unmatched or report.other:
            return "its steps are not all the plan's"
        for one in updates.each(self.fit.optimizer):
            if any(group.get("capturable") is False for group in one.param_groups):
                return f"{type(one).__name__} counts its steps on the host; make it with capturable=True"
        if not all(isinstance(x, torch.Tensor) for x in inputs):
            return "run.step takes tensors alone behind the function"
        return ""

    def step(self, function, inputs):
        self.calls += 1
        if self.ready:
            return self.replay(function, inputs)
        if self.over or self.fit.report is None or self.fit.report.steps < WARM:
            return function(*inputs)
        if not self.watched:
            return self.watch(function, inputs)
        return self.record(function, inputs)

    def watch(self, function, inputs):
        self.watched = True
        if self.lacks(inputs):
            self.give_up(self.lacks(inputs))
            return function(*inputs)
        with Reads(self.fit.place) as reads:
            out = function(*inputs)
        if reads.found:
            self.give_up(f"the host reads a value in it, by {reads.found[0]}; return it, and read it behind the step")
        return out

    def record(self, function, inputs):
        self.inputs = [x.clone() for x in inputs]
        self.signature, self.settings = signature(inputs), settings_of(self.fit.optimizer)
        try:
            self.recorder.record(lambda: function(*self.inputs))
        except RuntimeError as why:
            self.give_up(str(why).splitlines()[0])
            return function(*inputs)
        self.ready = True
        return self.replay(function, inputs)

    def replay(self, function, inputs):
        if settings_of(self.fit.optimizer) != self.settings:
            self.give_up("a setting of the optimizer has changed, which a graph keeps; give it as a tensor")
        if not self.ready or signature(inputs) != self.signature:
            return function(*inputs)
        for mine, given in zip(self.inputs, inputs):
            mine.copy_(given)
        self.fit.report.replayed += 1
        return self.recorder.replay()

    def end(self):
        if not self.calls:
            self.give_up("capture=True is for steps that are given to run.step(step, ...)")


def captured(fit, capture, say):
    """Of `fit`'s option: True, or a recorder with the two methods of CudaGraph."""
    if capture is not True:
        return Captured(fit, capture, say)
    made = Captured(fit, CudaGraph(), say)
    if fit.place.type != "cuda":
        made.calls = 1
        made.give_up("a CUDA graph needs a GPU")
    return made
