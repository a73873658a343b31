# SPDX-License-Identifier: GPL-3.0-or-later
"""What a program does with weights and optimizer state between two steps, when some of it is away.

An op on a storage whose bytes are gone reads what is not there. So from the end of a step to the next call
of the model, and from the end of a way back to the optimizer's step, every op passes here, and what it asks
for is brought back first. What is written into a file takes bytes past all ops; so all comes back before a
state_dict is made, and a tensor before it is pickled or copied deeply: it may be of a state_dict of before.
"""
import functools
import threading

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .calls import DETACH, detached, enter_below, leave_below
from .modules import Called, in_backward
from .storages import storage_of, tensors_in


class Outside(TorchDispatchMode):
    """Entered by `begin`, where anything is away or the host's copy is a copy still; left by `end`, both
    perhaps amid a mode of the program's own."""

    def __init__(self, follower):
        super().__init__()
        self.follower, self.entered = follower, False

    @classmethod
    def _should_skip_dynamo(cls):
        """torch.compile skips frames under a mode as it is; to say so again takes longer than what this does."""
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        for thing in args:
            if isinstance(thing, torch.Tensor):
                self.meet(thing)
            elif isinstance(thing, (list, tuple)):
                self.meet_all(thing)
        if kwargs:
            self.meet_all(kwargs.values())
        return detached(func, args, kwargs or {}) if func is DETACH else func(*args, **(kwargs or {}))

    def meet(self, tensor):
        storage = storage_of(tensor)
        slot = None if storage is None else self.follower.known.find(storage)
        if slot is not None:
            if slot.is_out():
                self.follower.ensure(slot)
            slot.changed()  # maybe

    def meet_all(self, things):
        for tensor in tensors_in(things, []):
            self.meet(tensor)

    def begin(self):
        if self.entered:
            return
        for slot in self.follower.standing.values():
            if slot.away or slot.leaving or slot.version is not None:
                enter_below(self)
                self.entered = True
                return

    def behind(self, inner):
        """`inner` without it, but for its end: a program may look at weights before its optimizer's step."""
        here = threading.get_ident()

        def outer(*arguments, **options):
            if threading.get_ident() != here or in_backward():
                return inner(*arguments, **options)
            self.end()
            try:
                return inner(*arguments, **options)
            finally:
                self.begin()
        return outer

    def end(self):
        if self.entered:
            self.entered = False
            leave_below(self)


class Whole:
    """Tensors that are pickled or copied deeply, behind `act(tensor)`, for a while."""
    METHODS = [(kind, name) for kind in (torch.Tensor, torch.nn.Parameter) for name in ("__reduce_ex__", "__deepcopy__")]

    def __init__(self, act):
        self.before = [(kind, name, vars(kind)[name]) for kind, name in self.METHODS]
        for kind, name, inner in self.before:
            setattr(kind, name, self.behind(inner, act))

    def behind(self, inner, act):
        @functools.wraps(inner)
        def method(tensor, *arguments):
            act(tensor)
            return inner(tensor, *arguments)
        return method

    def undo(self):
        for kind, name, inner in self.before:
            setattr(kind, name, inner)


class Before(Called):
    """A method of this one object, behind `act()`, for a while."""

    def __init__(self, owner, name, act):
        inner = getattr(owner, name)

        def method(*arguments, **options):
            act()
            return inner(*arguments, **options)
        super().__init__(owner, name, method)
