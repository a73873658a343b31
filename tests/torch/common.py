# SPDX-License-Identifier: GPL-3.0-or-later
"""Training with and without a plan, and what is compared."""
import gc
import json
import os
import subprocess

import torch
import torch.nn.functional as F

import ferry_torch
from ferry_torch import trace as traces

HERE = os.path.dirname(os.path.abspath(__file__))
FERRY = os.environ["FERRY"]
CARD = {"format": "ferry-device/1", "name": "small", "memory_bytes": 1 << 33, "granule_bytes": 512,
        "link": {"d2h_bytes_per_s": 12 * 10**9, "h2d_bytes_per_s": 12 * 10**9, "copy_ns": 1000},
        "host_bytes": 1 << 36}


class Job:
    """A model, its optimizer, and a step of both."""

    def __init__(self, net, optimizer, batches, loss=F.cross_entropy):
        torch.manual_seed(1)
        self.model = net()
        self.optimizer = optimizer(self.model.parameters())
        self.batches, self.loss, self.losses = batches, loss, []

    def step(self, number):
        torch.manual_seed(number)
        x, y = self.batches(number)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())

    def result(self):
        return self.losses, [t.clone() for t in self.model.state_dict().values()]


def same(a, b):
    return a[0] == b[0] and len(a[1]) == len(b[1]) and all(map(torch.equal, a[1], b[1]))


def card(folder, rate=12 * 10**9):
    path = os.path.join(folder, "card.json")
    link = {**CARD["link"], "d2h_bytes_per_s": rate, "h2d_bytes_per_s": rate}
    with open(path, "w") as file:
        json.dump({**CARD, "link": link}, file)
    return path


def even_times(folder, ns=1000):
    """Every op of the trace there takes as long: the plan then depends on no clock."""
    path = os.path.join(folder, "step.json")
    trace = traces.load(path)
    for op in trace["ops"]:
        op["ns"] = ns
    traces.store(trace, path)


def ferry(*arguments, accept=(0, 4)):
    done = subprocess.run([FERRY, *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE)
    assert done.returncode in accept, done.stderr
    return done.stdout


def budget_of(trace, device, share, *more):
    """So much of the way from the least that any plan needs to what the step takes without one, but no less than a plan was found
    for: where nothing may be swapped, the room that kernels take on this machine may leave little to save."""
    answer = json.loads(ferry("solve", trace, "-d", device, "--for", "torch", "--budget", "1KiB", "--json", *more, accept=(1,)))
    most, least = json.loads(ferry("info", trace, "--json"))["peak_bytes"], answer["floor_bytes"]
    return max(int(least + share * max(0, most - least)), answer["found_bytes"] if "only" in more else 0)


def solve(folder, share, *more, rate=12 * 10**9):
    """A plan for the trace that was recorded there."""
    trace, plan, device = (os.path.join(folder, n) for n in ("step.json", "plan.json", "card.json"))
    card(folder, rate)
    ferry("solve", trace, "-d", device, "--for", "torch", "--budget",
          f"{budget_of(trace, device, share, *more)}B", "--gap", "5%", "--limit", "20000", "-o", plan, *more)
    return plan


def plan_for(folder, job, share=0.2, step=1):
    """Records one step of the job and plans it."""
    with ferry_torch.record(os.path.join(folder, "step.json"), job.model, job.optimizer):
        job.step(step)
    return solve(folder, share)


def moves(plan):
    with open(plan) as file:
        return json.load(file)["moves"]


def both(folder, make, share=0.2, steps=20):
    """Results of so many steps without a plan and with one; the report of the second run."""
    plain, planned, spare = make(), make(), make()
    spare.step(0)
    plan = plan_for(folder, spare, share)
    for n in range(steps):
        plain.step(n)
    planned.step(0)
    with ferry_torch.follow(plan, planned.model, planned.optimizer) as run:
        for n in range(1, steps):
            planned.step(n)
    return plain.result(), planned.result(), run.report


MARK = 7907  # bytes of the tensors that mark a stretch


class Allocator:
    """What the CPU's allocator has given out, by its own events. It knows nothing of what was there
    before it began to look, so it has to look from the start."""

    def __enter__(self):
        gc.collect()
        self.profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                              profile_memory=True)
        self.profile.__enter__()
        return self

    def __exit__(self, *why):
        self.profile.__exit__(None, None, None)

    def step(self, what):
        """The step that counts."""
        torch.empty(MARK, dtype=torch.uint8)
        what()
        torch.empty(MARK, dtype=torch.uint8)

    def most(self):
        """The peak of that step, with all that was there when it began."""
        events = [e for e in self.profile.profiler.kineto_results.events() if e.name() == "[memory]"]
        events.sort(key=lambda e: e.start_ns())
        now = most = marks = 0
        for event in events:
            now += event.nbytes()
            marks += event.nbytes() == MARK
            if marks == 1 and abs(event.nbytes()) != MARK:
                most = max(most, now)
        return most


def resident(job):
    """Bytes of parameters, gradients, buffers and optimizer state that are on the device now."""
    tensors = list(job.model.parameters()) + list(job.model.buffers())
    tensors += [p.grad for p in job.model.parameters() if p.grad is not None]
    for state in job.optimizer.state.values():
        tensors += [value for value in state.values() if isinstance(value, torch.Tensor)]
    return sum({t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors}.values())
