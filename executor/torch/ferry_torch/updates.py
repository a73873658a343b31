# SPDX-License-Identifier: GPL-3.0-or-later
"""An optimizer's step, a parameter at a time.

torch's own optimizers update each parameter from its own gradient and state. So their step may be
taken in pieces, each with the same arithmetic, and something can happen between two pieces.
"""
import functools
import operator
import types

import torch
import torch.optim.optimizer as optimizers

from .errors import Refused
from .modules import Replaced, this_thread
from .storages import parts_of

IS_CUDA = operator.attrgetter("is_cuda")
ALONE = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adamax,
         torch.optim.NAdam, torch.optim.RAdam, torch.optim.Adagrad, torch.optim.Adadelta,
         torch.optim.RMSprop, torch.optim.ASGD, torch.optim.Rprop, torch.optim.Adafactor,
         *([torch.optim.Muon] if hasattr(torch.optim, "Muon") else []))


def each(optimizer):
    """Of one, of several, or of none."""
    if optimizer is None:
        return ()
    return tuple(optimizer) if isinstance(optimizer, (list, tuple)) else (optimizer,)


def parameters_of(optimizer):
    return [p for one in each(optimizer) for group in one.param_groups for p in group["params"]]


def each_alone(optimizer):
    """Is every parameter updated from nothing but its own?"""
    return all(type(one) in ALONE and not any(group.get("differentiable") for group in one.param_groups)
               for one in each(optimizer))


def many_at_once(optimizer):
    """Does its step work on all parameters in one call? That holds temporaries as large as all of them,
    where a parameter at a time holds those of one. On a GPU it does so unless told not to."""
    return any(group.get("foreach") or group.get("foreach") is None and not group.get("fused")
               and any(map(IS_CUDA, group["params"])) for group in optimizer.param_groups)


def require_alone(optimizer):
    for one in each(optimizer):
        if not each_alone(one):
            raise Refused(f"{type(one).__name__} is not known to update each parameter alone, "
                          "so a plan that moves weights or optimizer state cannot be followed")


class Hooks:
    """In it the optimizer's whole step is taken, with the hooks before and after it."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    def registered(self, when):
        own = getattr(self.optimizer, f"_optimizer_step_{when}_hooks")
        return [*getattr(optimizers, f"_global_optimizer_{when}_hooks").values(), *own.values()]

    def __enter__(self):
        for hook in self.registered("pre"):
            if hook(self.optimizer, (), {}) is not None:
                raise Refused("a hook changes what the optimizer's step is called with; it cannot be followed")

    def __exit__(self, kind, *why):
        if kind is None:
            for hook in self.registered("post"):
                hook(self.optimizer, (), {})


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


def step_of(optimizer, group, *parameters):
    """As if the optimizer had no others. Counters of the group are kept."""
    groups, had = optimizer.param_groups, group["params"]
    group["params"], optimizer.param_groups = list(parameters), [group]
    try:
        plain_step(optimizer)
    finally:
        group["params"], optimizer.param_groups = had, groups


def with_gradients(optimizer):
    """What a step updates: each parameter that has a gradient, behind its group."""
    for group in list(optimizer.param_groups):
        for p in list(group["params"]):
            if p.grad is not None:
                yield group, p


def run_closure(optimizer, closure):
    """torch's optimizers call it once, before all else. Others may call it again, after they have changed weights."""
    if closure is None:
        return None
    if type(optimizer) not in ALONE:
        raise Refused(f"{type(optimizer).__name__} may call its closure more than once in a step, which ferry cannot "
                      "follow; call the model and backward before a step without a closure")
    with torch.enable_grad():
        return closure()


def in_pieces(optimizer):
    """Is a plain step to be taken a parameter at a time, as the trace has it?"""
    return each_alone(optimizer) and many_at_once(optimizer)


def each_by_itself(updates):
    for group, p in updates:
        yield group, [p]


def step_in_pieces(optimizer, closure=None, pieces=each_by_itself):
    loss = run_closure(optimizer, closure)
    with Hooks(optimizer):
        for group, parameters in pieces(with_gradients(optimizer)):
            step_of(optimizer, group, *parameters)
    count_step(optimizer)
    return loss


def positions_of(model, plan):
    """Where the plan has each parameter's update, by the parameter's id."""
    at = {}
    for position, op in enumerate(plan.ops):
        if op["phase"] == "update":
            at.setdefault(op["name"].rsplit(".", 1)[0], position)
    return {id(p): at[name] for name, p in model.named_parameters() if name in at}


def state_of(optimizer, parameter):
    """The tensors that the optimizer keeps for it, by name."""
    found = {}
    for one in each(optimizer):
        for name, value in one.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                parts = parts_of(value)
                found.update({f"{name}.{part}": inner for part, inner in parts.items()} if parts else {name: value})
    return dict(sorted(found.items()))


class Round:
    """A step is over when each optimizer has taken one."""

    def __init__(self, optimizer):
        self.most, self.stepped = len(each(optimizer)), set()

    def is_over(self, optimizer):
        """With this one's step?"""
        self.stepped.add(id(optimizer))
        if len(self.stepped) < self.most:
            return False
        self.stepped.clear()
        return True


def wrap(optimizer, step, stack):
    """Each optimizer's step is `step(optimizer, closure)`, until the stack takes it off."""
    for one in each(optimizer):
        stack.callback(Wrapped(one, functools.partial(step, one)).undo)


class Wrapped(Replaced):
    """`optimizer.step` of this one object, replaced for a while."""

    def __init__(self, optimizer, step):
        check = this_thread()

        def called(_, *arguments, **options):
            check()
            return step(*arguments, **options)

        # a scheduler of the learning rate looks for a mark of its own, and wants a method
        for mark in ("_with_counter", "_wrapped_by_lr_sched"):
            if hasattr(optimizer.step, mark):
                setattr(called, mark, getattr(optimizer.step, mark))
        super().__init__(optimizer, "step", types.MethodType(called, optimizer))
