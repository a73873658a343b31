# SPDX-License-Identifier: GPL-3.0-or-later
"""The ladder of a single GPU that torchtune publishes (its README, "Optimization flags"), rung by rung, and ferry beside
each: torch_ladder.py RESULT FERRY [--tiny] [--minutes M] [--rungs N].

Llama-3.2-3B with random weights, bf16, a batch of 2 texts of 4,096 tokens, AdamW; each rung keeps those before it. At the
peak of each rung the plain program runs again: by ferry_torch eager, compiled, captured, and unchanged under `ferry run`.
Each row is a process of its own, so what one holds no other has. It has tokens a second, bytes that were allocated,
reserved and pinned, and what was predicted beside what was seen; or it says why it has not. RESULT is written after each.
With --tiny a tiny model runs on the CPU, where nothing is enforced, and `ferry run` has nothing to do.
"""
import argparse
import contextlib
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../torch"), os.path.join(HERE, "../../executor/torch")]

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import ferry_torch
from torch_rows import OUT_OF_MEMORY, Again, Foreseen, Place, adam_for, why_not_captured

RUNGS = ("plain", "compile", "chunked loss", "checkpointing", "optimizer in backward", "activation offload")
WAYS = ("eager", "compiled", "captured", "run")
SHAPE = {"width": 3072, "depth": 28, "heads": 24, "groups": 8, "inner": 8192, "letters": 128256, "batch": 2, "length": 4096}
TINY = {"width": 32, "depth": 2, "heads": 4, "groups": 2, "inner": 64, "letters": 96, "batch": 2, "length": 32}
CHUNKS, WARM, LONGEST_S = 8, 8, 150  # in the first steps ferry learns, compilers compile, graphs are recorded


def turned(x, angles):
    """Rotary positions."""
    a, b = x.chunk(2, -1)
    sin, cos = angles.sin().to(x.dtype), angles.cos().to(x.dtype)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Block(nn.Module):
    def __init__(self, width, heads, groups, inner):
        super().__init__()
        self.heads, self.groups, self.each = heads, groups, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width, 1e-5), nn.RMSNorm(width, 1e-5)
        self.q, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, groups * self.each, bias=False) for _ in range(2))
        self.gate, self.up, self.down = (nn.Linear(*size, bias=False) for size in ((width, inner), (width, inner), (inner, width)))

    def split(self, x, heads):
        return x.unflatten(-1, (heads, self.each)).transpose(1, 2)

    def forward(self, x, angles):
        n = self.norm1(x)
        q, k = turned(self.split(self.q(n), self.heads), angles), turned(self.split(self.k(n), self.groups), angles)
        k, v = (t.repeat_interleave(self.heads // self.groups, 1) for t in (k, self.split(self.v(n), self.groups)))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        n = self.norm2(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


class Llama(nn.Module):
    """Gives the loss, over the text in that number of chunks."""

    def __init__(self, width, depth, heads, groups, inner, letters, chunks=1, **batch):
        super().__init__()
        self.embed, self.norm = nn.Embedding(letters, width), nn.RMSNorm(width, 1e-5)
        self.blocks = nn.ModuleList(Block(width, heads, groups, inner) for _ in range(depth))
        self.chunks, self.each = chunks, width // heads

    def forward(self, x, y):
        rates = 5e5 ** -(torch.arange(0, self.each, 2, device=x.device) / self.each)
        angles = torch.arange(x.shape[1], device=x.device)[:, None] * rates
        h = self.embed(x)
        for block in self.blocks:
            h = block(h, angles)
        parts = zip(self.norm(h).chunk(self.chunks, 1), y.chunk(self.chunks, 1))
        return sum(self.loss(a, b) for a, b in parts) / y.numel()

    def loss(self, h, y):
        logits = F.linear(h, self.embed.weight).float()  # the embedding's weight: it is tied
        return F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum")


class Training:
    """The program, with that number of rungs of the ladder taken."""

    def __init__(self, place, rungs=1, capturable=False):
        torch.manual_seed(1)
        torch._dynamo.reset()
        shape, taken = TINY if place.tiny else SHAPE, RUNGS[:rungs]
        with place.device:
            self.model = Llama(**shape, chunks=CHUNKS if "chunked loss" in taken else 1).to(torch.bfloat16)
            text = torch.randint(0, shape["letters"], (shape["batch"], shape["length"] + 1))
        self.x, self.y = text[:, :-1].contiguous(), text[:, 1:].contiguous()
        self.call, self.take = self.model, lambda step, *batch: step(*batch)
        self.away = contextlib.nullcontext
        if "checkpointing" in taken:
            self.checkpoint()
        if "activation offload" in taken:
            self.away = lambda: torch.autograd.graph.save_on_cpu(pin_memory=not place.tiny)
        if "compile" in taken:
            self.call = torch.compile(self.model, backend="aot_eager" if place.tiny else "inductor", dynamic=False)
        self.place, self.capturable = place, capturable
        self.optimizers = self.each_alone() if "optimizer in backward" in taken else [self.adam(self.model.parameters())]

    def adam(self, parameters):
        return adam_for(self.place, torch.optim.AdamW, parameters, 2e-5, self.capturable, fused=True)

    def checkpoint(self):
        for block in self.model.blocks:
            def again(*given, inner=block.forward):
                return checkpoint(inner, *given, use_reentrant=False)
            block.forward = again

    def each_alone(self):
        """Each weight has an optimizer of its own, which takes its step when the gradient is there."""
        def hooked(p, optimizer):
            def step(_):
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            p.register_post_accumulate_grad_hook(step)
        for p in self.model.parameters():
            hooked(p, self.adam([p]))
        return []

    def step(self):
        self.take(self.whole, self.x, self.y)

    def whole(self, x, y):
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        with self.away():
            loss = self.call(x, y)
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()


def state_bytes(training):
    """What AdamW keeps: two of each weight."""
    return sum(2 * p.numel() * p.element_size() for p in training.model.parameters())


@contextlib.contextmanager
def by_ferry(way, training, budget, place):
    """Steps of the plain program in it keep the budget; what was predicted."""
    said, tiny = [], place.tiny
    if way == "compiled":
        beside = state_bytes(training)
        if budget <= beside:
            raise ferry_torch.Refused("the optimizer's state alone takes more")
        how = ferry_torch.backend(budget - beside, inner="eager" if tiny else "inductor", say=said.append)
        training.call = torch.compile(training.model, backend=how, dynamic=False)
        with place.limit(budget):
            yield Foreseen(how.planner, said, beside)
        return
    options = {"capture": Again() if tiny else True} if way == "captured" else {}
    with ferry_torch.fit(training.model, training.optimizers[0], budget, say=said.append, recompute="auto", **options) as run:
        training.take = run.step
        yield run
        if options and not run.report.replayed:
            raise ferry_torch.Refused(why_not_captured(said))


def timed(training, place):
    seen = place.timed(training, WARM)
    return {**seen, "tokens_per_s": round(training.x.numel() * 1e9 / seen["step_ns"], 1)}


def measured(name, budget, place):
    """A rung, by its name, or a way of ferry in that budget."""
    if name in RUNGS:
        return timed(Training(place, RUNGS.index(name) + 1), place)
    if name == "run":
        if place.tiny:
            raise ferry_torch.Refused("a program on a CPU asks nothing of CUDA")
        return timed(Training(place), place)
    training = Training(place, capturable=name == "captured")
    with by_ferry(name, training, budget, place) as how:
        row = timed(training, place)
        row["report"] = {key: [predicted, seen] for key, predicted, seen in how.report.rows()}
    return row


def attempt(name, budget, place):
    try:
        return measured(name, budget, place)
    except OUT_OF_MEMORY as why:
        return {"failed": "out of memory: " + str(why).splitlines()[0]}
    except ferry_torch.Refused as why:
        return {"failed": str(why)}


def apart(name, budget, ferry, seconds):
    """The row of a process of its own; under `ferry run` for that way."""
    with tempfile.TemporaryDirectory() as folder:
        result, report = os.path.join(folder, "row.json"), os.path.join(folder, "report.json")
        memory = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"} if name == "run" else {}  # ferry plans single tensors
        under = [ferry, "run", "-q", "--wait", "--budget", f"{budget}B", "--report", report, "--"] if name == "run" else []
        try:
            done = subprocess.run([*under, sys.executable, os.path.abspath(__file__), result, ferry, "--row", name,
                                   "--budget", str(budget)], capture_output=True, text=True, timeout=seconds,
                                  env={**os.environ, **memory})
        except subprocess.TimeoutExpired:
            return {"failed": f"not done in {seconds:.0f} s"}
        if not os.path.exists(result):
            return {"failed": (done.stderr.strip().splitlines() or ["it said nothing"])[-1]}
        row = read(result)
        if os.path.exists(report):
            row["report"] = read(report)
        return row


def read(path):
    with open(path) as file:
        return json.load(file)


def ladder(place, ferry, rungs=len(RUNGS), minutes=None, keep=lambda made: None):
    """Rungs first, since their peaks are the budgets; then ferry at each, the least memory last."""
    until = time.monotonic() + 60 * (minutes or 1 << 20)
    made = {"shape": TINY if place.tiny else SHAPE, "gpu": place.name, "torch": torch.__version__,
            "date": datetime.date.today().isoformat(), "rows": []}

    def add(rung, way, budget, name):
        left = min(LONGEST_S, until - time.monotonic())
        row = {"failed": "no time was left"} if left <= 0 else \
            attempt(name, budget, place) if place.tiny else apart(name, budget, ferry, left)
        made["rows"].append({"rung": rung, "way": way, "budget_bytes": budget, **row})
        keep(made)
        return made["rows"][-1]
    found = [(rung, add(rung, "by hand", None, rung)) for rung in RUNGS[:rungs]]
    for rung, row in found:
        peak = row.get("peak_bytes") or (place.tiny and TINY_BUDGET)
        for way in WAYS if peak else ():
            add(rung, way, peak, way)
    return made


TINY_BUDGET = 420 << 10  # where nobody counts


def main():
    options = argparse.ArgumentParser()
    options.add_argument("result")
    options.add_argument("ferry")
    options.add_argument("--tiny", action="store_true")
    options.add_argument("--minutes", type=float)
    options.add_argument("--rungs", type=int, default=len(RUNGS))
    options.add_argument("--row")
    options.add_argument("--budget", type=lambda text: None if text == "None" else int(text))
    asked = options.parse_args()
    os.environ["FERRY"] = asked.ferry

    def keep(made):
        with open(asked.result, "w") as file:
            json.dump(made, file, indent=1)
        if "rows" in made:
            print(made["rows"][-1], flush=True)
    place = Place(asked.tiny)
    if asked.row:
        keep(attempt(asked.row, asked.budget, place))
    else:
        ladder(place, asked.ferry, asked.rungs, asked.minutes, keep)


if __name__ == "__main__":
    main()
