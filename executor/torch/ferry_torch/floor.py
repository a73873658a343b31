# SPDX-License-Identifier: GPL-3.0-or-later
"""The oldest torch that will do: it is looked for before anything of it is used."""
import torch

FLOOR = (2, 6)

if tuple(int(part) for part in torch.__version__.split(".")[:2]) < FLOOR:
    raise ImportError(f"ferry_torch needs torch {'.'.join(map(str, FLOOR))} or newer, and this is {torch.__version__}")
