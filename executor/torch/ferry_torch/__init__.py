# SPDX-License-Identifier: GPL-3.0-or-later
"""PyTorch and ferry: record a training step, follow a plan."""
from . import floor, integrations
from .batches import max_batch
from .errors import Refused
from .fit import fit
from .follow import follow
from .record import record
from .spill import spilled
from .timing import timed

__all__ = ["Refused", "backend", "fit", "follow", "integrations", "max_batch", "record", "spilled", "timed"]


def backend(*arguments, **options):
    """For `torch.compile(model, backend=...)`; what that needs of torch is loaded only here."""
    from .compiled import backend as made
    return made(*arguments, **options)
