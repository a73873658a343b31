# SPDX-License-Identifier: GPL-3.0-or-later
"""One network under less and less memory, by several means: torch_rows.py NET RESULT [--tiny].

Each way runs with the same limit enforced by torch's own fraction. A way that runs out of memory, or cannot
be tried, says why and has no time. The sum over the parameters after the steps tells which ways train the
same bits. With --tiny a tiny network runs on the CPU, where nothing is enforced: that tries this script.
--shares, --seconds and --ways say at which parts of its peak, in percent, how long a plan may take, and
which ways, with a ";" between.
"""
import argparse
import contextlib
import gc
import json
import os
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../torch"), os.path.join(HERE, "../../executor/torch")]

import torch
import torch.nn.functional as F

import ferry_torch
from ferry_torch import tool
from ferry_torch.card import this_card, to_plan
from ferry_torch.modules import device_of
from torch_nets import NETS, thin

SHARES, EVERY = (90, 80, 70, 60), (1, 2, 4)
OUT_OF_MEMORY = getattr(torch.cuda, "OutOfMemoryError", MemoryError)


class Place:
    """A GPU with its clock and its limit, or the CPU without."""

    def __init__(self, tiny):
        self.tiny, self.steps = tiny, 5 if tiny else 9
        self.device = torch.device("cpu") if tiny else torch.device("cuda", 0)

    @property
    def name(self):
        return "cpu" if self.tiny else torch.cuda.get_device_name(0)

    def timed(self, run):
        """Median step in ns, peak in bytes, and a sum that tells parameters apart."""
        spans = []
        if not self.tiny:
            torch.cuda.reset_peak_memory_stats()
        for _ in range(self.steps):
            started = self.now()
            run.step()
            spans.append(self.now() - started)
        total = sum(p.double().sum().item() for p in run.model.parameters())
        return {"step_ns": int(statistics.median(spans)), "sum": total, "peak_bytes": self.peak()}

    def now(self):
        if not self.tiny:
            torch.cuda.synchronize()
        return time.perf_counter_ns()

    def peak(self):
        return None if self.tiny else torch.cuda.max_memory_allocated()

    @contextlib.contextmanager
    def limit(self, bytes_):
        if self.tiny:
            yield
            return
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(min(1.0, bytes_ / total))
        try:
            yield
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)


class Run:
    """A model from a fixed start, its optimizer, and a batch that stays."""

    def __init__(self, net, place, pieces=1, every=0):
        torch.manual_seed(1)
        make, batch = NETS[net][place.tiny]
        self.model, self.pieces = make().to(place.device), pieces
        if every:
            thin(self.model, every)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-4)
        self.x, self.y = batch(place.device)
        if len(self.x) < pieces:
            raise ferry_torch.Refused(f"a batch of {len(self.x)} has no {pieces} parts")

    def step(self):
        torch.manual_seed(2)
        self.optimizer.zero_grad(set_to_none=True)
        for x, y in zip(self.x.chunk(self.pieces), self.y.chunk(self.pieces)):
            (F.cross_entropy(self.model(x), y) / self.pieces).backward()
        self.optimizer.step()


def free_of_all(run):
    return contextlib.nullcontext()


def attempt(way, share, budget, place, make, around, first):
    """One row. The first step, which makes the optimizer's state, is not timed; a plan needs that state."""
    row = {"way": way, "share": share, "budget_bytes": budget}
    try:
        with place.limit(budget):
            run = make()
            with (first or around)(run):
                run.step()
            with around(run) as how:
                row.update(place.timed(run))
            report = getattr(how, "report", None)
            if report is not None:
                row["report"] = {name: [predicted, seen] for name, predicted, seen in report.rows()}
    except OUT_OF_MEMORY as why:
        row["failed"] = "out of memory: " + str(why).splitlines()[0]
    except ferry_torch.Refused as why:
        row["failed"] = str(why)
    run = how = None
    gc.collect()
    return row


def planned(folder, budget, *options):
    """Follows a plan for the recorded step. It is made when the row runs: none may fit."""
    def around(run):
        plan = os.path.join(folder, "plan.json")
        tool.ferry("solve", os.path.join(folder, "step.json"), "-d", os.path.join(folder, "card.json"),
                   "--for", "torch", "--budget", to_plan(device_of(run.model), budget), "-o", plan, *options, accept=(0, 4))
        return ferry_torch.follow(plan, run.model, run.optimizer, enforce=False)
    return around


def learning(run):
    """The step before there is a plan."""
    return ferry_torch.spilled(run.model)


def fitted(folder, budget):
    """All in one call: of what is timed the first three steps say what a step needs."""
    def around(run):
        return ferry_torch.fit(run.model, run.optimizer, budget, os.path.join(folder, "card.json"), lambda text: None)
    return around


def ways_at(net, folder, place, budget, seconds):
    """Every way at one budget: its name and how a row of it is made."""
    def fresh(**how):
        return lambda: Run(net, place, **how)

    def offload(run):
        return torch.autograd.graph.save_on_cpu(pin_memory=not place.tiny)
    limit = ("--seconds", str(seconds))
    yield "ferry", fresh(), planned(folder, budget, *limit), learning
    yield "ferry, some made again", fresh(), planned(folder, budget, "--recompute", "auto", *limit), learning
    yield "greedy-largest", fresh(), planned(folder, budget, "-p", "greedy-largest"), learning
    yield "fit", fresh(), fitted(folder, budget), learning
    yield "save_on_cpu", fresh(), offload, None
    yield "half batch", fresh(pieces=2), free_of_all, None
    for every in EVERY:
        yield f"checkpoint every {every}", fresh(every=every), free_of_all, None


def peak_of(folder, free):
    """What the allocator saw; on a CPU, what the recorded step needs."""
    if free["peak_bytes"] is not None:
        return free["peak_bytes"]
    return json.loads(tool.ferry("info", os.path.join(folder, "step.json"), "-d", os.path.join(folder, "card.json"),
                                 "--json"))["needs"]["bytes"]


def table(net, tiny=False, shares=SHARES, seconds=15, wanted=None, keep=lambda made: None):
    """`keep` has what is there after each row: a machine that is lent may be taken back."""
    place, folder = Place(tiny), tempfile.mkdtemp(prefix="ferry-")
    with open(os.path.join(folder, "card.json"), "w") as file:
        json.dump(this_card(place.device), file)
    run = Run(net, place)
    run.step()
    free = place.timed(run)
    with ferry_torch.record(os.path.join(folder, "step.json"), run.model, run.optimizer,
                            step_ns=free["step_ns"]):
        run.step()
    del run
    peak = peak_of(folder, free)
    made = {"net": net, "gpu": place.name, "torch": torch.__version__, "peak_bytes": peak,
            "rows": [{"way": "no limit", **free}]}
    keep(made)
    for share in shares:
        budget = peak * share // 100
        for way, make, around, first in ways_at(net, folder, place, budget, seconds):
            if wanted is None or way in wanted:
                made["rows"].append(attempt(way, share, budget, place, make, around, first))
                keep(made)
    return made


def main():
    options = argparse.ArgumentParser()
    options.add_argument("net", choices=NETS)
    options.add_argument("result")
    options.add_argument("--tiny", action="store_true")
    options.add_argument("--shares", type=lambda text: [int(share) for share in text.split(",")], default=SHARES)
    options.add_argument("--seconds", type=int, default=15)
    options.add_argument("--ways", type=lambda text: text.split(";"))
    asked = options.parse_args()

    def keep(made):
        with open(asked.result, "w") as file:
            json.dump(made, file, indent=1)
        print(asked.net, made["rows"][-1], flush=True)
    table(asked.net, asked.tiny, asked.shares, asked.seconds, asked.ways, keep)


if __name__ == "__main__":
    main()
