# SPDX-License-Identifier: GPL-3.0-or-later
"""An optimizer's step, a parameter at a time.

torch's own optimizers update each parameter from its own gradient and state. So their step may be
taken in pieces, each with the same arithmetic, and something can happen between two pieces.
"""
import contextlib

import torch

from .errors import Refused

ALONE = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adamax,
         torch.optim.NAdam, torch.optim.RAdam, torch.optim.Adagrad, torch.optim.Adadelta,
         torch.optim.RMSprop, torch.optim.ASGD, torch.optim.Rprop)


def parameters_of(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def each_alone(optimizer):
    """Is every parameter updated from nothing but its own?"""
    return type(optimizer) in ALONE


def require_alone(optimizer):
    if not each_alone(optimizer):
        raise Refused(f"{type(optimizer).__name__} is not known to update each parameter alone, "
                      "so a plan that moves weights or optimizer state cannot be followed")


@contextlib.contextmanager
def only(optimizer, group, parameter):
    """In it the optimizer has one parameter. Counters of the group are kept."""
    groups, had = optimizer.param_groups, group["params"]
    group["params"] = [parameter]
    optimizer.param_groups = [group]
    try:
        yield
    finally:
        group["params"] = had
        optimizer.param_groups = groups


def plain_step(optimizer):
    """The class's own step, behind whatever was wrapped around it: hooks belong to the whole step."""
    step = type(optimizer).step
    while getattr(step, "hooked", False) and hasattr(step, "__wrapped__"):
        step = step.__wrapped__
    step(optimizer)


def count_step(optimizer):
    """What schedulers of the learning rate look at to see that a step was taken."""
    if hasattr(optimizer, "_step_count"):
        optimizer._step_count += 1
    optimizer._opt_called = True


def step_alone(optimizer, group, parameter):
    with only(optimizer, group, parameter):
        plain_step(optimizer)


def state_of(optimizer, parameter):
    """The tensors that the optimizer keeps for it, by name."""
    found = optimizer.state.get(parameter, {})
    return {name: value for name, value in sorted(found.items()) if isinstance(value, torch.Tensor)}


class Wrapped:
    """`optimizer.step` of this one object, replaced for a while."""

    def __init__(self, optimizer, step):
        self.optimizer = optimizer
        self.before = optimizer.__dict__.get("step")

        def called(*arguments, **options):
            return step(*arguments, **options)

        # a scheduler of the learning rate looks for this mark of its own
        called._with_counter = getattr(optimizer.step, "_with_counter", False)
        optimizer.step = called

    def undo(self):
        if self.before is None:
            del self.optimizer.step
        else:
            self.optimizer.step = self.before
