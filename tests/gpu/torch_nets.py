# SPDX-License-Identifier: GPL-3.0-or-later
"""The networks of torch_rows.py, each with its batch: at the size of a card, or tiny on a CPU."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from known_nets import Bottleneck, Resnet50
from nets import Block


class Gpt(nn.Module):
    """A stack of blocks on long texts."""

    def __init__(self, width=1024, depth=8, flash=True, letters=1024):
        super().__init__()
        self.embed = nn.Embedding(letters, width)
        self.blocks = nn.Sequential(*(Block(width, max(1, width // 64), flash=flash) for _ in range(depth)))
        self.out = nn.Linear(width, letters)

    def forward(self, x):
        return self.out(self.blocks(self.embed(x))).transpose(1, 2)


class Twice(nn.Sequential):
    def __init__(self, inner, outer):
        super().__init__(nn.Conv2d(inner, outer, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(outer, outer, 3, padding=1), nn.ReLU())


class Unet(nn.Module):
    """So many levels down and up again, joined at each."""

    def __init__(self, width=64, levels=4):
        super().__init__()
        sizes = [width << i for i in range(levels + 1)]
        self.down = nn.ModuleList(Twice(a, b) for a, b in zip([3] + sizes, sizes))
        self.wider = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(sizes, sizes[1:]))
        self.join = nn.ModuleList(Twice(2 * a, a) for a in sizes[:-1])
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        left = []
        for block in self.down[:-1]:
            left.append(block(x))
            x = F.max_pool2d(left[-1], 2)
        x = self.down[-1](x)
        for wider, join, a in reversed(list(zip(self.wider, self.join, left))):
            x = join(torch.cat([wider(x), a], 1))
        return self.out(x)


BLOCKS = (Bottleneck, Block, Twice)  # what activation checkpointing makes again


def thin(model, every):
    """Every so-many-th block is made again on the way back."""
    found = [m for m in model.modules() if isinstance(m, BLOCKS)]
    for block in found[::every]:
        def again(*args, inner=block.forward):
            return checkpoint(inner, *args, use_reentrant=False)
        block.forward = again
    return model


def pictures(batch, size, classes, each, device):
    labels = (batch, size, size) if each else (batch,)
    return (torch.randn(batch, 3, size, size, device=device),
            torch.randint(0, classes, labels, device=device))


def texts(batch, length, device):
    return tuple(torch.randint(0, 1024, (batch, length), device=device) for _ in range(2))


# A network and its batch; the second of each is tiny.
NETS = {"resnet50": ((Resnet50, lambda d: pictures(128, 224, 1000, False, d)),
                     (Resnet50, lambda d: pictures(4, 32, 1000, False, d))),
        "gpt-350m": ((lambda: Gpt(depth=24, letters=24576), lambda d: texts(16, 1024, d)),
                     (lambda: Gpt(64, 4, False), lambda d: texts(2, 32, d))),
        "gpt-4k": ((Gpt, lambda d: texts(4, 4096, d)), (lambda: Gpt(64, 3, False), lambda d: texts(2, 64, d))),
        "gpt-32k": ((Gpt, lambda d: texts(1, 32768, d)), (lambda: Gpt(64, 3, False), lambda d: texts(1, 128, d))),
        "unet": ((Unet, lambda d: pictures(32, 256, 2, True, d)),
                 (lambda: Unet(8, 2), lambda d: pictures(4, 32, 2, True, d)))}
