# SPDX-License-Identifier: GPL-3.0-or-later
"""What a mode below autograd has to know of the calls that it sees."""
import contextlib

import torch
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import _get_current_dispatch_mode, _pop_mode, _push_mode

SILENT = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted",
          "_local_scalar_dense", "set_", "resize_")

DETACH = torch.ops.aten.detach.default
NUMBERS = (bool, int, float, complex)


def detached(func, args, kwargs):
    """Autograd's own view of what it kept, also where that is a number."""
    out = args[0]
    if isinstance(out, NUMBERS):
        return number(out)
    out = (beside if out.dim() == 0 and type(out) is torch.Tensor else plainly)(func, args, kwargs)
    return number(out) if isinstance(out, NUMBERS) else out


def plainly(func, args, kwargs):
    return func(*args, **kwargs)


def number(value):
    """A Python number that autograd kept: below it stands as the number itself."""
    kind = torch.get_default_dtype() if isinstance(value, float) else None
    return torch.scalar_tensor(value, dtype=kind or torch.tensor(value).dtype)


def beside(func, args, kwargs):
    """Past every mode: the profiler's marks are no ops, and numbers no fake tensors."""
    with no_dispatch():
        return func(*args, **kwargs)


@contextlib.contextmanager
def bared(mode):
    """All modes above it are off meanwhile."""
    above, top = [], _get_current_dispatch_mode()
    try:
        while top is not None and top is not mode:
            above.append(_pop_mode())
            top = _get_current_dispatch_mode()
        yield top
    finally:
        for other in reversed(above):
            _push_mode(other)


def enter_below(mode):
    """The program may have modes of its own on, and end them before this one: each end takes off the topmost."""
    if _get_current_dispatch_mode() is None:
        mode.__enter__()
        return
    with bared(mode):
        mode.__enter__()


def leave_below(mode):
    if _get_current_dispatch_mode() is mode:
        mode.__exit__(None, None, None)
        return
    with bared(mode) as top:
        if top is mode:
            mode.__exit__(None, None, None)


SEEDED = ("nondeterministic_seeded", "nondeterministic_bitwise")
# Random ones that bear no mark, sums whose order is not fixed on a GPU, kernels with a state of their own.
UNSTEADY = ("bernoulli", "dropout", "rand", "normal_", "uniform", "exponential", "multinomial", "poisson",
            "rnn", "lstm", "gru", "scatter_add", "scatter_reduce", "index_add", "index_put", "put_",
            "cumsum", "histc", "bincount", "embedding_bag", "ctc_loss", "backward")


COLLECTIVES = {"reducescatter": "reduce_scatter", "allgather": "all_gather", "allreduce": "all_reduce", "alltoall": "all_to_all",
               "broadcast": "broadcast", "send": "send", "recv": "recv"}


def collective_of(name):
    """Of a collective, as a trace says it; None: it is none that a trace knows."""
    plain = name.replace("_", "")
    return next((kind for word, kind in COLLECTIVES.items() if word in plain), None)


def group_of(args):
    """The name of the process group among a collective's arguments: an object, or the last text."""
    for value in reversed(args):
        if isinstance(value, str):
            return value
        if isinstance(value, torch.ScriptObject) and value._type().name() == "ProcessGroup":
            return torch.distributed.ProcessGroup.unbox(value).group_name
    return None


class Known:
    """What is looked up once of a function."""

    __slots__ = ("name", "silent", "marks", "changed", "steady", "collective", "meets")

    def __init__(self, func):
        schema = func._schema
        self.name = schema.name.split("::")[-1]
        self.silent = self.name in SILENT
        self.marks = func.namespace == "profiler"
        self.changed = [(i, a.name) for i, a in enumerate(schema.arguments)
                        if a.alias_info is not None and a.alias_info.is_write]
        self.collective = func.namespace in ("c10d", "_c10d_functional")
        if func.namespace == "c10d" and self.name.endswith("_"):  # its schema does not say what it writes: its first one
            self.changed = [(0, schema.arguments[0].name)]
        self.meets = collective_of(self.name) if self.collective else None
        self.steady = not self.collective and self.is_steady(func, schema)

    def is_steady(self, func, schema):
        """Does it make the same from the same?"""
        tags = {str(tag).split(".")[-1] for tag in getattr(func, "tags", ())}
        random = any("Generator" in str(a.type) for a in schema.arguments)
        return not (random or tags.intersection(SEEDED)
                    or any(word in self.name for word in UNSTEADY))


class Functions(dict):
    """Known, by function."""

    def __missing__(self, func):
        found = self[func] = Known(func)
        return found


FUNCTIONS = Functions()
