# SPDX-License-Identifier: GPL-3.0-or-later
"""The same step, recorded by ferry_torch and by torch's own observer: `ferry import` misses no use."""
import os
import sys

import torch.profiler

import ferry_torch
from common import HERE, Job, ferry
from ferry_torch import trace as traces
from nets import NETS, OPTIMIZERS

sys.path.append(os.path.join(HERE, "../second"))
import compare  # noqa: E402
import observed  # noqa: E402


def job_of(net):
    make, batches = NETS[net]
    job = Job(make, OPTIMIZERS["sgd"], batches)
    job.step(0)
    return job


def observe(path, job):
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback(path)
    observer.start()
    job.step(1)
    observer.stop()
    observer.unregister_callback()


def both(folder, net):
    """The traces of both: names of ops, and tensors with their uses."""
    names = {k: os.path.join(folder, k) for k in ("step.json", "truth.json", "et.json", "kineto.json", "trace.json")}
    job = job_of(net)
    with ferry_torch.record(names["step.json"], job.model, job.optimizer):
        job.step(1)
    ops = [op["name"] for op in traces.load(names["step.json"])["ops"]]
    observe(names["et.json"], job_of(net))
    with open(names["et.json"]) as file:
        text = observed.on_a_card(file.read())
    nodes = observed.in_order(text)
    chosen = observed.launching(nodes, ops)
    assert chosen, f"{net}: an op of the recorder is no call of the observer"
    for name, content in (("et.json", text), ("kineto.json", observed.kineto(nodes, chosen))):
        with open(names[name], "w") as file:
            file.write(content)
    ferry("import", names["et.json"], names["kineto.json"], "-o", names["trace.json"])
    ferry("convert", names["step.json"], "-f", "packed", "-o", names["truth.json"])
    trace, truth = compare.load(names["trace.json"]), compare.load(names["truth.json"])
    numbers = [str(k) for k in range(len(ops))]  # the calls were chosen in order: names say it in other words
    assert len(trace[0]) == len(truth[0]) == len(ops), f"{net}: {len(trace[0])} ops, recorded {len(truth[0])}"
    return (numbers, trace[1]), (numbers, truth[1])


def test_no_use_is_missed(folder):
    """Nets without residuals: autograd adds two gradients up in place, but below a mode, as the recorder, into a third."""
    for net in ("cnn", "unet"):
        trace, truth = both(folder, net)
        got = compare.compare(trace, truth)
        if "-v" in sys.argv:
            print(net, len(truth[1]), "tensors", sum(len(t[2]) for t in truth[1]), "uses", got)
        assert got["missed"] == 0 and got["unmatched"] == 0, f"{net}: {got}"
        less = [(size, pinned, uses - {max(uses, default=-1)}, made) for size, pinned, uses, made in trace[1]]
        assert compare.compare((trace[0], less), truth)["missed"] > 0, f"{net}: a use that is gone is not seen"
