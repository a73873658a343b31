# SPDX-License-Identifier: GPL-3.0-or-later
"""What ops of a graph take while they run, beside what they make: those of kernels that have a workspace are run once."""
import torch
from torch.utils._mode_utils import no_dispatch

from . import memory as memories
from .storages import tensors_in

WITH_WORKSPACE = ("convolution", "_scaled_dot_product", "_flash_attention", "_efficient_attention")


def real(thing):
    """Zeros that lie as a fake tensor does."""
    if isinstance(thing, torch.Tensor):
        return torch.empty_strided(thing.size(), thing.stride(), dtype=thing.dtype, device=thing.device).zero_()
    if isinstance(thing, (list, tuple)):
        return type(thing)(map(real, thing))
    return {key: real(x) for key, x in thing.items()} if isinstance(thing, dict) else thing


def looks(thing):
    """A value that is equal for things that look alike."""
    if isinstance(thing, torch.Tensor):
        return tuple(thing.size()), thing.stride(), thing.dtype
    return tuple(map(looks, thing)) if isinstance(thing, (list, tuple)) else repr(thing)


def ran(function, args, kwargs, memory):
    """Twice: the first time a library may look for its best kernel. Number of the second, and what it made."""
    args, kwargs = real(args), real(kwargs)
    function(*args, **kwargs)
    taken = memory.before()
    made = function(*args, **kwargs)
    span = memory.after(taken)
    return span, sum(t.untyped_storage().nbytes() for t in tensors_in([made], []))


KNOWN = {}  # by function, arguments and device


def workspaces(calls, device, modelled):
    """Of each call of a function by its key, as a dictionary; a call is function, arguments, and those by name."""
    calls = {key: call for key, call in calls.items()
             if getattr(call[0], "_schema", None) and call[0]._schema.name.split("::")[-1].startswith(WITH_WORKSPACE)}
    if modelled or not calls:
        return {}
    kinds = {key: (function, looks(args), looks(list(kwargs.items())), device) for key, (function, args, kwargs) in calls.items()}
    new = {kind: calls[key] for key, kind in kinds.items() if kind not in KNOWN}
    memory = memories.choose(device, modelled)
    if new and type(memory) is not memories.NoMemory:
        learn(new, device, memory)
    return {key: KNOWN[kind] for key, kind in kinds.items() if kind in KNOWN}


def learn(calls, device, memory):
    found, devices = {}, [device] if device.type == "cuda" else []
    with no_dispatch(), torch.no_grad(), torch.random.fork_rng(devices), memory:
        for kind, call in calls.items():
            try:
                found[kind] = ran(*call, memory)
            except torch.cuda.OutOfMemoryError:  # no room to try it in
                continue
    KNOWN.update((kind, max(0, memory.peak(span) - made)) for kind, (span, made) in found.items())
