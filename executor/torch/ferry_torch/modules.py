# SPDX-License-Identifier: GPL-3.0-or-later
"""Which module is running: its path, and the parameters that it owns itself."""
import contextlib
import copy
import functools
import threading
import types

import torch
from torch.utils import checkpoint

from .errors import Refused


class Together(torch.nn.ModuleList):
    """Several models whose calls make one step."""


def one_of(model):
    """`fit` and the others take a model, or a list of them."""
    for one in model if isinstance(model, (list, tuple)) else [model]:
        if not isinstance(one, torch.nn.Module):
            raise Refused(f"the model is a torch.nn.Module, or a list of them, and not of type {type(one).__name__}; "
                          "the model comes first, then the optimizer, then the budget")
    return Together(model) if isinstance(model, (list, tuple)) else model


def roots_of(model):
    """The models that the program calls."""
    return list(model) if type(model) is Together else [model]


def device_of(model):
    devices = [p.device for p in model.parameters()]
    if not devices:
        raise Refused("the model has no parameters")
    if len({d.index for d in devices if d.type == devices[0].type and d.index is not None}) > 1:
        raise Refused("the model is on several GPUs, and ferry moves the tensors of one; train it on one of them")
    return devices[0]


def refuse_compiled(model):
    for name, module in model.named_modules():
        if type(module).__name__ == "OptimizedModule" \
                or getattr(module, "_compiled_call_impl", None) is not None:
            raise Refused(f"{name or 'the model'} is compiled by torch.compile, which keeps tensors where no hook sees them; "
                          "leave it uncompiled, or compile all of the model with ferry_torch.backend")


def refuse_script(model):
    """Parts of a model may be."""
    if any(type(module).__name__ == "FullyShardedDataParallel" for module in model.modules()):
        raise Refused("the model is in a FullyShardedDataParallel, which keeps weights in flat ones that come and go; "
                      "shard it by torch.distributed.fsdp.fully_shard")
    if any(isinstance(root, torch.jit.ScriptModule) for root in roots_of(model)):
        raise Refused("the model is one of TorchScript, whose call cannot be watched; take the model that it was made "
                      "of, or a module around it")


class Stack:
    """Hooks on every module that keep a stack of those that run, and say when one begins and ends. `undo` takes them
    off."""

    def __init__(self, model, begins, ends):
        self.begins, self.ends = begins, ends
        self.names = [""]
        self.modules = []
        self.called = [False]  # has it called another one?
        self.handles = []
        for name, module in model.named_modules():
            if not isinstance(module, torch.jit.ScriptModule):  # those take no hooks
                self.watch(name, module)

    def watch(self, name, module):
        def enter(module, inputs, options):
            self.names.append(name)
            self.modules.append(module)
            self.called[-1] = True
            self.called.append(False)
            if name:  # of the model itself its caller tells
                self.begins(name, inputs, options)

        def leave(module, inputs, output):
            if name:
                self.ends(name, output)
            if self.modules and self.modules[-1] is module:
                self.names.pop()
                self.modules.pop()
                self.called.pop()

        self.handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
        self.handles.append(module.register_forward_hook(leave))

    @property
    def name(self):
        return self.names[-1]

    def has_called(self):
        """Has the innermost running module called another one by now?"""
        return self.called[-1]

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
        raise Refused("a model is being fitted, followed or recorded already, and ferry watches one block at a time: "
                      "give both models to one, as fit([a, b], [optimizer_a, optimizer_b], ...)")
    WATCHED.model = True
    try:
        yield
    finally:
        WATCHED.model = False


def in_backward():
    """Is a way back being walked? In one the engine has a number for it."""
    return torch._C._current_graph_task_id() != -1


IN_BACKWARD = ("the optimizer takes its step within the backward pass; take it behind that, and let "
               "`record(..., order=\"updates\")` move the updates")


def is_early_stop(why):
    """Checkpointing ends its recomputation by raising, once it has all tensors that it needs."""
    return in_backward() and isinstance(why, checkpoint._StopRecomputationError)


def this_thread():
    """What refuses any other one: hooks of saved tensors and modes are a thread's own."""
    here = threading.get_ident()

    def check():
        if threading.get_ident() == here:
            return
        raise Refused(IN_BACKWARD if in_backward() else
                      "the model is trained in another thread than the one that watches it, which sees nothing "
                      "there; enter ferry_torch's block in the thread that trains")
    return check


def inner_of(tensor):
    """Rows of different lengths have a size that is a symbol; what they lie in has numbers."""
    return tensor.values() if tensor.layout is torch.jagged else tensor


def signature(inputs):
    """Types and sizes of all tensors that a model was called with."""
    from .storages import tensors_in
    return tuple((str(t.dtype), tuple(inner_of(t).shape)) for t in tensors_in(inputs, []))


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


def inside_all(model, method, around, stack):
    """Every call by the program inside `around(inputs)`, until the stack takes it off."""
    for root in roots_of(model):
        stack.callback(Inside(root, method, around).undo)


class Inside(Called):
    """A method of this one object, mostly `forward`, inside `around(inputs)`, for a while."""

    def __init__(self, model, method, around):
        inner, check = getattr(model, method), this_thread()

        def forward(*arguments, **options):
            if torch.is_grad_enabled():
                check()
            with around([arguments, options]):
                return inner(*arguments, **options)
        super().__init__(model, method, forward)
