# SPDX-License-Identifier: GPL-3.0-or-later
"""One network on a GPU under less and less memory, by several means: torch_rows.py NET RESULT.

Each way runs with the same limit enforced by torch's own fraction. A way that runs out of memory has no
time. Parameters after the steps are compared with those of the run without a limit.
"""
import contextlib
import json
import os
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../torch"), os.path.join(HERE, "../../executor/torch")]

import torch
import torch.nn.functional as F
from torch import nn

import ferry_torch
from ferry_torch import tool
from ferry_torch.fit import this_card
from ferry_torch.follow import Run as Followed
from known_nets import Resnet50
from nets import Block, Unet

STEPS, SHARES = 8, (90, 80, 70, 60)


class Gpt(nn.Module):
    """A stack of blocks on one long text."""

    def __init__(self, width=1024, depth=8):
        super().__init__()
        self.embed = nn.Embedding(1024, width)
        self.blocks = nn.ModuleList(Block(width, width // 64, flash=True) for _ in range(depth))
        self.out, self.every = nn.Linear(width, 1024), 0

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint
        x = self.embed(x)
        for i, block in enumerate(self.blocks):
            again = self.every and i % self.every == 0
            x = checkpoint(block, x, use_reentrant=False) if again else block(x)
        return self.out(x).transpose(1, 2)


def pictures(batch, size, classes, each):
    labels = (batch, size, size) if each else (batch,)
    return (torch.randn(batch, 3, size, size, device="cuda"),
            torch.randint(0, classes, labels, device="cuda"))


def text(length):
    return tuple(torch.randint(0, 1024, (1, length), device="cuda") for _ in range(2))


NETS = {"resnet50": (Resnet50, lambda: pictures(128, 224, 1000, False)),
        "gpt-4k": (Gpt, lambda: text(4096)), "gpt-32k": (Gpt, lambda: text(32768)),
        "unet": (lambda: Unet(64), lambda: pictures(32, 256, 2, True))}


class Run:
    """A model from a fixed start, its optimizer, and a batch that stays."""

    def __init__(self, net, pieces=1, every=0):
        torch.manual_seed(1)
        make, batch = NETS[net]
        self.model, self.pieces = make().cuda(), pieces
        if every:
            self.model.every = every
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-4)
        self.x, self.y = batch()

    def step(self):
        torch.manual_seed(2)
        self.optimizer.zero_grad(set_to_none=True)
        for x, y in zip(self.x.chunk(self.pieces), self.y.chunk(self.pieces)):
            (F.cross_entropy(self.model(x), y) / self.pieces).backward()
        self.optimizer.step()


def timed(run):
    """Median step in ns, peak in bytes, and a sum that tells parameters apart."""
    torch.cuda.reset_peak_memory_stats()
    spans = []
    for _ in range(STEPS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run.step()
        end.record()
        end.synchronize()
        spans.append(start.elapsed_time(end))
    total = sum(p.double().sum().item() for p in run.model.parameters())
    return {"step_ns": int(statistics.median(spans) * 1e6), "sum": total,
            "peak_bytes": torch.cuda.max_memory_allocated()}


@contextlib.contextmanager
def limit(bytes_):
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(1.0, bytes_ / total))
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def attempt(way, budget, make, around=lambda run: contextlib.nullcontext()):
    row = {"way": way, "budget_bytes": budget}
    try:
        with limit(budget):
            run = make()
            run.step()
            with around(run) as how:
                row.update(timed(run))
            if isinstance(how, Followed):
                row["report"] = {name: [predicted, seen] for name, predicted, seen in how.report.rows()}
    except torch.cuda.OutOfMemoryError:
        row["failed"] = "out of memory"
    except ferry_torch.Refused as why:
        row["failed"] = str(why)
    torch.cuda.empty_cache()
    return row


def planned(folder, budget, *options):
    plan = os.path.join(folder, "plan.json")
    tool.ferry("solve", os.path.join(folder, "step.json"), "-d", os.path.join(folder, "card.json"),
               "--for", "torch", "--budget", budget, "-o", plan, *options, accept=(0, 1, 4))
    return lambda run: ferry_torch.follow(plan, run.model, run.optimizer, enforce=False)


def ways(net, folder, budget):
    """Every row at one budget."""
    def fresh(**how):
        return lambda: Run(net, **how)
    offload = lambda run: torch.autograd.graph.save_on_cpu(pin_memory=True)
    for name, options in (("ferry", ("--seconds", "60")),
                          ("ferry, some made again", ("--recompute", "auto", "--seconds", "60")),
                          ("greedy-largest", ("-p", "greedy-largest"))):
        try:
            yield attempt(name, budget, fresh(), planned(folder, budget, *options))
        except ferry_torch.Refused as why:
            yield {"way": name, "budget_bytes": budget, "failed": str(why)}
    yield attempt("save_on_cpu", budget, fresh(), offload)
    if net == "resnet50" or net == "unet":
        yield attempt("half batch", budget, fresh(pieces=2))
    else:
        for every in (1, 2, 4):
            yield attempt(f"checkpoint every {every}", budget, fresh(every=every))


def main(net, result):
    folder = tempfile.mkdtemp(prefix="ferry-")
    with open(os.path.join(folder, "card.json"), "w") as file:
        json.dump(this_card(torch.device("cuda", 0)), file)
    run = Run(net)
    run.step()
    free = timed(run)
    with ferry_torch.record(os.path.join(folder, "step.json"), run.model, run.optimizer):
        run.step()
    del run
    rows = [{"way": "no limit", **free}]
    for share in SHARES:
        rows += ways(net, folder, free["peak_bytes"] * share // 100)
    gpu = torch.cuda.get_device_name(0)
    with open(result, "w") as file:
        json.dump({"net": net, "gpu": gpu, "torch": torch.__version__, "rows": rows}, file, indent=1)
    for row in rows:
        print(net, row)


if __name__ == "__main__":
    main(*sys.argv[1:])
