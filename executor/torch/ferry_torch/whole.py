# SPDX-License-Identifier: GPL-3.0-or-later
"""What an optimizer compiles within its step is one op: torch compiles nothing while a mode sees each op."""
import contextlib
import functools

import torch

from .modules import Replaced


@contextlib.contextmanager
def compiled_as_one(recorder, name):
    """In it a compiled function is an op of that name, which reads and writes all that it is given."""
    real = torch.compile

    def compiled(function=None, **how):
        if function is None:  # of a decorator
            return functools.partial(compiled, **how)
        return functools.partial(recorder.whole, name, real(function, **how))

    replaced = Replaced(torch, "compile", compiled)
    try:
        yield
    finally:
        replaced.undo()
