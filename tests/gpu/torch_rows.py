# SPDX-License-Identifier: GPL-3.0-or-later
"""One network under less and less memory, by several means: torch_rows.py NET RESULT [--tiny].

Each way runs with the same limit enforced by torch's own fraction. A way that runs out of memory, or cannot
be tried, says why and has no time. The sum over the parameters after the steps tells which ways train the
same bits. With --tiny a tiny network runs on the CPU, where nothing is enforced: that tries this script.
--shares, --seconds and --ways say at which parts of its peak, in percent, how long a plan may take, and
which ways, with a ";" between. When --minutes are over, the rows that are left say so.
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
from torch._functorch import config
from ferry_torch import tool
from ferry_torch.card import this_card, to_plan
from ferry_torch.modules import device_of
from torch_nets import NETS, thin

SHARES, EVERY = (90, 80, 70, 60), (1, 2, 4)
WARM = {"captured": 8, "compiled": 2}  # steps before those that count: some are learned from, some are compiled
OUT_OF_MEMORY = getattr(torch.cuda, "OutOfMemoryError", MemoryError)


class Place:
    """A GPU with its clock and its limit, or the CPU without."""

    def __init__(self, tiny):
        self.tiny, self.steps = tiny, 5 if tiny else 9
        self.device = torch.device("cpu") if tiny else torch.device("cuda", 0)

    @property
    def name(self):
        return "cpu" if self.tiny else torch.cuda.get_device_name(0)

    def timed(self, run, warm=0):
        """Median step in ns, peaks in bytes, and a sum that tells parameters apart."""
        spans = []
        for _ in range(warm):
            run.step()
        if not self.tiny:
            torch.cuda.reset_peak_memory_stats()
        for _ in range(self.steps):
            started = self.now()
            run.step()
            spans.append(self.now() - started)
        total = sum(p.double().sum().item() for p in run.model.parameters())
        return {"step_ns": int(statistics.median(spans)), "sum": total, "peak_bytes": self.peak(), **self.held()}

    def now(self):
        if not self.tiny:
            torch.cuda.synchronize()
        return time.perf_counter_ns()

    def peak(self):
        return None if self.tiny else torch.cuda.max_memory_allocated()

    def held(self):
        """What torch's allocators hold: of the card, and pinned on the host beside ferry's own block."""
        if self.tiny:
            return {}
        pinned = getattr(torch.cuda, "host_memory_stats", dict)()
        return {"reserved_bytes": torch.cuda.max_memory_reserved(), "pinned_bytes": pinned.get("allocated_bytes.peak", 0)}

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


def adam_for(place, kind, parameters, rate, capturable, **more):
    """One whose step a graph may hold, if that is asked for; on a CPU there is none, and a momentum does."""
    if capturable and place.tiny:
        return torch.optim.SGD(parameters, rate, momentum=0.9)
    return kind(parameters, rate, capturable=capturable, **more)


class Run:
    """A model from a fixed start, its optimizer, and a batch that stays."""

    def __init__(self, net, place, pieces=1, every=0, capturable=False):
        torch.manual_seed(1)
        make, batch = NETS[net][place.tiny]
        self.model, self.pieces = make().to(place.device), pieces
        if every:
            thin(self.model, every)
        self.call, self.take = self.model, lambda step, *batch: step(*batch)
        self.optimizer = adam_for(place, torch.optim.Adam, self.model.parameters(), 1e-4, capturable)
        self.x, self.y = batch(place.device)
        if len(self.x) < pieces:
            raise ferry_torch.Refused(f"a batch of {len(self.x)} has no {pieces} parts")

    def step(self):
        torch.manual_seed(2)
        self.take(self.whole, self.x, self.y)

    def whole(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        for x, y in zip(x.chunk(self.pieces), y.chunk(self.pieces)):
            (F.cross_entropy(self.call(x), y) / self.pieces).backward()
        self.optimizer.step()

    def weights_bytes(self):
        return sum(p.numel() * p.element_size() for p in self.model.parameters())


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
                seen = place.timed(run, WARM.get(way, 0))
            report = getattr(how, "report", None)
            if report is not None:
                row["report"] = {name: [predicted, seen] for name, predicted, seen in report.rows()}
            row.update(seen)
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


def why_not_captured(said):
    return next((line for line in said if "not captured" in line), "no step was captured")


class Again:
    """Stands in for a CUDA graph on a CPU."""

    def record(self, function):
        self.function = function

    def replay(self):
        return self.function()


def captured(folder, budget, place):
    """As `fit`, and the step becomes one graph."""
    @contextlib.contextmanager
    def around(run):
        said = []
        with ferry_torch.fit(run.model, run.optimizer, budget, os.path.join(folder, "card.json"), said.append,
                             capture=Again() if place.tiny else True) as how:
            run.take = how.step
            yield how
            if not how.report.replayed:
                raise ferry_torch.Refused(why_not_captured(said))
    return around


class Foreseen:
    """What the backend predicts of its graph, with what it does not plan, as a report."""

    def __init__(self, planner, said, beside):
        self.planner, self.said, self.beside, self.report = planner, said, beside, self

    def rows(self):
        if len(self.planner.reports) != 1:
            raise ferry_torch.Refused("; ".join(self.said))
        found = self.planner.reports[0]
        return [("peak_bytes", found["peak_bytes"] + self.beside, None),
                *((name, found[name], None) for name in ("step_ns", "d2h_bytes", "host_peak_bytes"))]


def compiled(budget, place):
    """The budget is of what the graph makes and reads; Adam's state, two of each weight, lies beside it."""
    @contextlib.contextmanager
    def around(run):
        torch._dynamo.reset()
        said, beside = [], 2 * run.weights_bytes()
        if budget <= beside:
            raise ferry_torch.Refused("the optimizer's state alone takes more")
        how = ferry_torch.backend(budget - beside, inner="eager" if place.tiny else "inductor", say=said.append)
        run.call = torch.compile(run.model, backend=how, dynamic=False)
        yield Foreseen(how.planner, said, beside)
    return around


def by_share(budget, peak, place):
    """torch's own means: a share of what activations take, so that the budget comes of it as near as that can be said."""
    @contextlib.contextmanager
    def around(run):
        torch._dynamo.reset()
        standing = 4 * run.weights_bytes()  # with gradients, and Adam's state
        share = min(1.0, max(0.0, (budget - standing) / max(1, peak - standing)))
        with config.patch(activation_memory_budget=share):
            run.call = torch.compile(run.model, backend="aot_eager_decomp_partition" if place.tiny else "inductor", dynamic=False)
            yield None
    return around


def ways_at(net, folder, place, budget, peak, seconds):
    """Every way at one budget: its name and how a row of it is made."""
    def fresh(**how):
        return lambda: Run(net, place, **how)

    def offload(run):
        return torch.autograd.graph.save_on_cpu(pin_memory=not place.tiny)
    limit = ("--seconds", str(seconds))
    yield "ferry", fresh(), planned(folder, budget, *limit), learning
    yield "ferry, some made again", fresh(), planned(folder, budget, "--recompute", "auto", *limit), learning
    yield "compiled", fresh(), compiled(budget, place), learning
    yield "captured", fresh(capturable=True), captured(folder, budget, place), learning
    yield "fit", fresh(), fitted(folder, budget), learning
    yield "checkpoint every 1", fresh(every=1), free_of_all, None
    yield "save_on_cpu", fresh(), offload, None
    yield "activation_memory_budget", fresh(), by_share(budget, peak, place), learning
    yield "half batch", fresh(pieces=2), free_of_all, None
    yield "greedy-largest", fresh(), planned(folder, budget, "-p", "greedy-largest"), learning
    for every in EVERY[1:]:
        yield f"checkpoint every {every}", fresh(every=every), free_of_all, None


def peak_of(folder, free):
    """What the allocator saw; on a CPU, what the recorded step needs."""
    if free["peak_bytes"] is not None:
        return free["peak_bytes"]
    return json.loads(tool.ferry("info", os.path.join(folder, "step.json"), "-d", os.path.join(folder, "card.json"),
                                 "--json"))["needs"]["bytes"]


def table(net, tiny=False, shares=SHARES, seconds=15, wanted=None, minutes=None, keep=lambda made: None):
    """`keep` has what is there after each row: a machine that is lent may be taken back."""
    until = None if minutes is None else time.monotonic() + 60 * minutes
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
        for way, make, around, first in ways_at(net, folder, place, budget, peak, seconds):
            if wanted is None or way in wanted:
                late = until is not None and time.monotonic() > until
                made["rows"].append({"way": way, "share": share, "budget_bytes": budget, "failed": "no time was left"} if late
                                    else attempt(way, share, budget, place, make, around, first))
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
    options.add_argument("--minutes", type=float)
    asked = options.parse_args()

    def keep(made):
        with open(asked.result, "w") as file:
            json.dump(made, file, indent=1)
        print(asked.net, made["rows"][-1], flush=True)
    table(asked.net, asked.tiny, asked.shares, asked.seconds, asked.ways, asked.minutes, keep)


if __name__ == "__main__":
    main()
