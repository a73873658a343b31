# SPDX-License-Identifier: GPL-3.0-or-later
"""What recording and an empty plan cost: medians of the CPU time of paired steps. overhead.py [PAIRS]

Behind them: how long the recorded trace says a step takes, over what a step takes that nobody records; with the
clock alone, and with `step_ns`, which takes the recorder's own share from the times."""
import os
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../executor/torch")]


def timed(step):
    started = time.process_time()
    step()
    return time.process_time() - started


def ratio(pairs, job, around):
    """The median of a step inside over one outside, each pair one behind the other."""
    found = []
    for n in range(pairs):
        plain = timed(lambda: job.step(1)) if n % 2 else None
        with around():
            inside = timed(lambda: job.step(1))
        found.append(inside / (plain or timed(lambda: job.step(1))))
    return statistics.median(found)


def said(pairs, job, trace, known):
    """The trace's time over a plain step's."""
    import ferry_torch
    from ferry_torch import trace as traces
    found = []
    for _ in range(pairs):
        plain = ferry_torch.timed(lambda: job.step(1))
        with ferry_torch.record(trace, job.model, job.optimizer, step_ns=plain if known else None):
            job.step(1)
        found.append(sum(op["ns"] for op in traces.load(trace)["ops"]) / ferry_torch.timed(lambda: job.step(1)))
    return statistics.median(found)


def bare_mode():
    """A mode that does nothing: less than this no recorder in Python can cost."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Bare(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))
    return Bare


def main(pairs):
    import torch
    import ferry_torch
    from common import Job, card, ferry
    from nets import NETS, OPTIMIZERS
    torch.set_num_threads(1)
    print(f"{'net':12} {'bare mode':>9} {'recorded':>9} {'empty plan':>11} {'clock':>7} {'step_ns':>8}"
          f"   medians of {pairs} pairs")
    for net, (make, batches) in NETS.items():
        folder = tempfile.mkdtemp(prefix="ferry-torch-")
        trace, plan = (os.path.join(folder, n) for n in ("step.json", "plan.json"))
        job = Job(make, OPTIMIZERS["adam"], batches)

        job.step(0)
        bare = ratio(pairs, job, bare_mode())
        slower = ratio(pairs, job, lambda: ferry_torch.record(trace, job.model, job.optimizer))
        ferry("solve", trace, "-d", card(folder), "--for", "torch", "-o", plan)
        empty = ratio(pairs, job, lambda: ferry_torch.follow(plan, job.model, job.optimizer))
        clock, less = (said(pairs, job, trace, known) for known in (False, True))
        print(f"{net:12} {bare:8.2f}x {slower:8.2f}x {100 * empty - 100:+10.1f}% {clock:6.2f}x {less:7.2f}x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 21)
