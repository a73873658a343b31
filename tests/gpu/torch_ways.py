# SPDX-License-Identifier: GPL-3.0-or-later
"""What people do today to train in less memory, for pytorch.py: a step by each way."""

WAYS = ("plain", "save_on_cpu", "checkpoint", "half")


def blocks_of(model):
    """What checkpointing calculates again, each by itself: blocks, or stretches between poolings."""
    from torch import nn
    blocks = [m for m in model.modules() if type(m).__name__ == "Block"]
    if blocks:
        return blocks
    units = [m for m in model.modules() if isinstance(m, nn.Sequential) and m is not model
             and any(isinstance(c, nn.Sequential) for c in m)]
    if units:
        return units
    return [m for m in model.children() if isinstance(m, nn.LSTM)]


def stretches(model):
    """A flat row of layers as a row of stretches that end with a pooling."""
    from torch import nn
    out = [[]]
    for layer in model:
        out[-1].append(layer)
        if isinstance(layer, nn.MaxPool2d):
            out.append([])
    return nn.Sequential(*(nn.Sequential(*part) for part in out if part))


def checkpointed(model):
    """The same parameters, and blocks that are calculated again when their gradients are."""
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    def again(block):
        forward = block.forward
        block.forward = lambda *x: checkpoint(forward, *x, use_reentrant=False)

    blocks = blocks_of(model)
    if isinstance(model, nn.Sequential) and not blocks:
        model = stretches(model)
        blocks = list(model)
    for block in blocks:
        again(block)
    return model


def lossy_step(model, data, target, way):
    """Forward and backward; the loss."""
    import contextlib
    import torch
    def measure(out, target):  # a row each: over more dimensions PyTorch has no deterministic way
        return torch.nn.functional.cross_entropy(out.movedim(1, -1).flatten(0, -2), target.flatten())
    away = torch.autograd.graph.save_on_cpu(pin_memory=data.is_cuda) if way == "save_on_cpu" \
        else contextlib.nullcontext()
    if way == "half":
        total = 0
        for x, y in zip(data.chunk(2), target.chunk(2)):
            loss = measure(model(x).float(), y) / 2
            loss.backward()
            total += loss.detach()
        return total
    with away:
        loss = measure(model(data).float(), target)
    loss.backward()
    return loss
