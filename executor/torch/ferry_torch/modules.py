# SPDX-License-Identifier: GPL-3.0-or-later
"""Which module is running: its path, and the parameters that it owns itself."""
import contextlib
import copy
import functools
import threading
import types

from .errors import Refused


def device_of(model):
    for p in model.parameters():
        return p.device
    raise Refused("the model has no parameters")


class Stack:
    """Hooks on every module that keep a stack of those that run. `undo` takes them off."""

    def __init__(self, model):
        self.names = [""]
        self.modules = []
        self.handles = []
        for name, module in model.named_modules():
            self.watch(name, module)

    def watch(self, name, module):
        def enter(module, inputs):
            self.names.append(name)
            self.modules.append(module)

        def leave(module, inputs, output):
            if self.modules and self.modules[-1] is module:
                self.names.pop()
                self.modules.pop()

        self.handles.append(module.register_forward_pre_hook(enter))
        self.handles.append(module.register_forward_hook(leave))

    @property
    def name(self):
        return self.names[-1]

    def owns(self, parameter):
        """Does the innermost running module have this parameter as its own?"""
        if not self.modules:
            return False
        return any(p is parameter for p in self.modules[-1]._parameters.values())

    def undo(self):
        for handle in self.handles:
            handle.remove()


WATCHED = threading.local()


@contextlib.contextmanager
def alone():
    """Hooks of saved tensors see those of every model, so one is watched at a time."""
    if getattr(WATCHED, "model", False):
        raise Refused("a model is being fitted, followed or recorded already, and ferry can watch one at a time: "
                      "choose the larger one")
    WATCHED.model = True
    try:
        yield
    finally:
        WATCHED.model = False


def signature(inputs):
    """Types and sizes of all tensors that a model was called with."""
    from .storages import tensors_in
    return tuple((str(t.dtype), tuple(t.shape)) for t in tensors_in(inputs, []))


class Instead:
    """Stands for a method of one object. A copy of the object has its own method: else a copy of a model would
    compute with the weights of the one that it was made from."""

    def __init__(self, owner, name, act, before):
        functools.update_wrapper(self, getattr(owner, name))
        self.owner, self.name, self.act, self.before = owner, name, act, before

    def __call__(self, *arguments, **options):
        return self.act(*arguments, **options)

    def __deepcopy__(self, memo):
        if self.before is not None:
            return copy.deepcopy(self.before, memo)
        owner = memo.get(id(self.owner), self.owner)
        return types.MethodType(getattr(type(owner), self.name), owner)

    def __reduce_ex__(self, protocol):
        raise Refused("a model that ferry watches cannot be saved whole; save its state_dict, or save it behind the block")


class Replaced:
    """A method of this one object, replaced for a while."""

    def __init__(self, owner, name, method):
        self.owner, self.name, self.before = owner, name, owner.__dict__.get(name)
        setattr(owner, name, method)

    def undo(self):
        if self.before is None:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.before)


class Called(Replaced):
    """A method of this one object behind `act`, which is given its arguments, for a while."""

    def __init__(self, owner, name, act):
        super().__init__(owner, name, Instead(owner, name, act, owner.__dict__.get(name)))


class Inside(Called):
    """`model.forward` of this one object inside `around(inputs)`, for a while. (No hook is given inputs by name before
    torch 2.)"""

    def __init__(self, model, around):
        inner = model.forward

        def forward(*arguments, **options):
            with around([arguments, options]):
                return inner(*arguments, **options)
        super().__init__(model, "forward", forward)
