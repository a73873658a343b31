# SPDX-License-Identifier: GPL-3.0-or-later
"""What a followed step costs beside a plain one: Python calls, and process time, of four tiny networks.

    python tests/torch/lean.py [NETWORK...]

Calls are counted by sys.setprofile, so they are the same on every machine. Times are lower quartiles of many steps, plain
and followed by turns, one thread. On a CPU a copy is work of the same thread, and so is what runs again; `own` is the
time without both: what the executor takes of the host.
"""
import contextlib
import functools
import os
import sys
import tempfile
import time
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../executor/torch")]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import ferry_torch  # noqa: E402
from ferry_torch import again, lanes  # noqa: E402
import nets  # noqa: E402
from common import Job, even_times, solve  # noqa: E402


class Bottleneck(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        after = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after)
        self.relu, self.shortcut = nn.ReLU(inplace=True), None
        if stride > 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        aside = x if self.shortcut is None else self.shortcut(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + aside)


class ResNet50(nn.Module):
    """The blocks of ResNet-50, narrow."""

    def __init__(self, width=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        blocks, before = [], width
        for stage, count in enumerate((3, 4, 6, 3)):
            for k in range(count):
                blocks.append(Bottleneck(before, width << stage, 2 if stage and k == 0 else 1))
                before = 4 * (width << stage)
        self.blocks, self.pool, self.out = nn.Sequential(*blocks), nn.AdaptiveAvgPool2d(1), nn.Linear(before, 10)

    def forward(self, x):
        return self.out(self.pool(self.blocks(self.stem(x))).flatten(1))


NETS = {"resnet50": (ResNet50, nets.pictures(16, 10, 2)),
        "gpt": (lambda: nets.Transformer(width=32, blocks=6), nets.letters(24, 4)),
        "unet": (nets.Unet, nets.pictures(16, 2, 4, each=True)),
        "lstm": (nets.Lm, nets.letters(12))}
TURNS = 4
PLANS = {"swaps": (), "remakes": ("--recompute", "only"), "both": ("--recompute", "auto")}


def calls_of(step, number):
    """Python calls of one step."""
    count = 0

    def seen(frame, event, argument):
        nonlocal count
        count += event == "call"
    sys.setprofile(seen)
    try:
        step(number)
    finally:
        sys.setprofile(None)
    return count


def time_of(step, number):
    started = time.thread_time_ns()
    step(number)
    return time.thread_time_ns() - started


class Work:
    """In it the time is added up that copies take, and modules that run again."""

    def __init__(self):
        self.ns = 0

    def timed(self, inner):
        @functools.wraps(inner)
        def outer(*arguments, **options):
            started = time.thread_time_ns()
            try:
                return inner(*arguments, **options)
            finally:
                self.ns += time.thread_time_ns() - started
        return outer

    @contextlib.contextmanager
    def seen(self):
        noted = again.ModuleCall.__init__

        def init(call, module, forward, *more):
            noted(call, module, self.timed(forward), *more)
        patches = [mock.patch.object(lanes.CpuLanes, way, self.timed(getattr(lanes.CpuLanes, way))) for way in ("out", "back")]
        with patches[0], patches[1], mock.patch.object(again.ModuleCall, "__init__", init):
            yield

    def own(self, step, number):
        """A step's time without them."""
        self.ns = 0
        return time_of(step, number) - self.ns


def quartile(times):
    return sorted(times)[len(times) // 4]


def planned(folder, net, options, share=0.6):
    job = Job(net[0], nets.OPTIMIZERS["momentum"], net[1], F.cross_entropy)
    job.step(0)
    with ferry_torch.record(os.path.join(folder, "step.json"), job.model, job.optimizer):
        job.step(1)
    even_times(folder)
    path = solve(folder, share, *options)
    if not os.path.exists(path):
        raise ferry_torch.Refused("no such plan")
    return job, path


def compare(name, plan, share=0.8, steps=32):
    """Calls, plain and followed; times, of followed steps over plain ones with and without the work; the report."""
    with tempfile.TemporaryDirectory() as folder:
        job, path = planned(folder, NETS[name], PLANS[plan], share)
        plain = Job(NETS[name][0], nets.OPTIMIZERS["momentum"], NETS[name][1])
        for n in range(3):
            plain.step(n)
        calls, work, times, seen, own = calls_of(plain.step, 3), Work(), [], [], []
        for turn in range(TURNS):
            times += [time_of(plain.step, n) for n in range(steps // TURNS)]
            with ferry_torch.follow(path, job.model, job.optimizer) as run:
                for n in range(3):
                    job.step(2 + n)
                followed = calls_of(job.step, 5)
                if not steps:
                    return calls, followed, run.report
                seen += [time_of(job.step, n) for n in range(steps // TURNS)]
                with work.seen():
                    own += [work.own(job.step, n) for n in range(steps // TURNS)]
    base = quartile(times)
    return calls, followed, base, quartile(seen) / base, quartile(own) / base, run.report


def main(names):
    print(f"{'network':10}{'plan':10}{'calls':>8}{'followed':>10}{'plain':>9}{'time':>7}{'own':>6}   a step")
    for name in names or NETS:
        for plan in PLANS:
            try:
                calls, followed, plain, ratio, own, report = compare(name, plan)
            except (AssertionError, ferry_torch.Refused) as why:
                print(f"{name:10}{plan:10}{str(why).splitlines()[0] if str(why) else 'no such plan'}")
                continue
            print(f"{name:10}{plan:10}{calls:8}{followed:10}{plain / 1e6:6.2f} ms{ratio:7.2f}{own:6.2f}   "
                  f"{report.followed // max(1, report.steps)} packs followed, {report.out_bytes // max(1, report.steps)} B out, "
                  f"{report.bytes_again // max(1, report.steps)} B again, {report.unmatched} unmatched, {report.late} late")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1:])
