# SPDX-License-Identifier: GPL-3.0-or-later
"""One of several processes that train together on the CPU: rank.py RANK COUNT FOLDER KIND... Says a line of JSON for each kind."""
import json
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../executor/torch")]

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import ferry_torch
from common import Job, budget_of, card, even_times, ferry, same
from ferry_torch import trace as traces
from ferry_torch.storages import local_of
from nets import OPTIMIZERS, Cnn, Transformer, letters, pictures

STEPS = 20


class Replica(Job):
    def __init__(self):
        super().__init__(Cnn, OPTIMIZERS["adam"], pictures(20, 10))
        self.model = DistributedDataParallel(self.model)

    def step(self, number):
        super().step(number * dist.get_world_size() + dist.get_rank())


class Viewed(Replica):
    """Gradients lie in what is sent."""

    def __init__(self):
        super().__init__()
        self.model = DistributedDataParallel(self.model.module, gradient_as_bucket_view=True)


class Shard(Replica):
    def __init__(self):
        Job.__init__(self, lambda: Transformer(width=64), OPTIMIZERS["adam"], letters(24))
        for block in self.model.blocks:
            fully_shard(block)
        fully_shard(self.model)
        self.optimizer = OPTIMIZERS["adam"](self.model.parameters())

    def result(self):
        return self.losses, [local_of(t).clone() for t in self.model.state_dict().values()]


def compare(make, folder, share):
    """Plain, by a plan of this process alone, and by fit."""
    plain, spare, job, fitted = make(), make(), make(), make()
    for n in range(STEPS):
        plain.step(n)
    trace, plan = os.path.join(folder, "step.json"), os.path.join(folder, "plan.json")
    spare.step(0)
    with ferry_torch.record(trace, spare.model, spare.optimizer):
        spare.step(1)
    even_times(folder, 20000)
    budget = budget_of(trace, card(folder), share)
    ferry("solve", trace, "-d", card(folder), "--for", "torch", "--budget", f"{budget}B", "-o", plan)
    job.step(0)
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        for n in range(1, STEPS):
            job.step(n)
    with ferry_torch.fit(fitted.model, fitted.optimizer, "95%", say=lambda text: None) as fit:
        for n in range(STEPS):
            fitted.step(n)
    seen = {op["name"].split(".")[-1] for op in traces.tensors_and_ops(traces.load(trace))[1]}
    return {"kind": make.__name__, "same": same(plain.result(), job.result()) and same(plain.result(), fitted.result()),
            "followed": run.report.followed, "out": run.report.out_bytes, "steps": [run.report.steps, fit.report.steps],
            "unmatched": [r.unmatched + r.other for r in (run.report, fit.report)], "text": run.report.text(),
            "met": [[op.get("collective"), op.get("group"), op.get("group_bytes")] for op in traces.tensors_and_ops(traces.load(trace))[1] if op.get("collective")],
            "collectives": sorted(name for name in seen if "all" in name and "reduce" in name or "gather" in name
                                  or "scatter" in name)}


def refusal(make, folder):
    job = make()
    job.step(0)
    try:
        with ferry_torch.record(os.path.join(folder, "step.json"), job.model, job.optimizer, order="updates"):
            job.step(1)
    except ferry_torch.Refused as error:
        return {"kind": "updates", "said": str(error)}
    return {"kind": "updates", "said": ""}


KINDS = {"Replica": lambda own: compare(Replica, own, 0.2), "Viewed": lambda own: compare(Viewed, own, 0.2),
         "Shard": lambda own: compare(Shard, own, 0.3), "updates": lambda own: refusal(Replica, own)}


def main(rank, count, folder, *kinds):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
    own = os.path.join(folder, str(rank))
    os.mkdir(own)
    for kind in kinds:
        print(json.dumps(KINDS[kind](own)), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
