# SPDX-License-Identifier: GPL-3.0-or-later
"""Peak and recomputed work of compiled steps, by ferry's backend and by torch's own means, at the same peaks.

    python tests/torch/budgets.py [NETWORK...] [--json FILE]

torch's activation_memory_budget is a share, and its peak is what comes of it; so it goes first, and ferry is given the
peak that it reached. Every peak is what the CPU's allocator gave out in the third step, beside what was there. Work is
what ops of both passes move and multiply, less those of the joint graph: `again` in bytes, and in flops. No inner compiler
fuses anything, so each op counts by itself.
"""
import argparse
import json
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../executor/torch"), os.path.join(HERE, "../gpu")]

import torch  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch._dynamo.backends.debugging import boxed_nop  # noqa: E402
from torch._functorch import config, partitioners  # noqa: E402
from torch._inductor import lowering  # noqa: E402, F401: its decompositions need it, and do not ask for it
from torch._inductor.decomposition import select_decomp_table  # noqa: E402

import lean  # noqa: E402
import nets  # noqa: E402
from common import Allocator, Job  # noqa: E402
from ferry_torch import compiled  # noqa: E402
from ferry_torch.clock import flops  # noqa: E402
from ferry_torch.joint import is_view, value  # noqa: E402
from ferry_torch.storages import tensors_in  # noqa: E402

SHARES = (0.9, 0.7, 0.5, 0.3, 0.1)
NETS = {"cnn": (nets.Cnn, nets.pictures(20, 10, 16)),
        "bottlenecks": (lambda: Bottlenecks(), nets.pictures(32, 10, 8)),
        "gpt": (lambda: nets.Transformer(width=32, blocks=2), nets.letters(64, 8)),
        "unet": (lambda: nets.Unet(12), nets.pictures(32, 2, 8, each=True))}
BLOCKS = (lean.Bottleneck, nets.Block)  # what checkpointing makes again


class Bottlenecks(nets.nn.Sequential):
    """Some blocks of ResNet-50."""

    def __init__(self):
        super().__init__(nets.nn.Conv2d(3, 16, 3, 1, 1), lean.Bottleneck(16, 8, 1), lean.Bottleneck(32, 8, 1),
                         lean.Bottleneck(32, 16, 2), nets.nn.AdaptiveAvgPool2d(1), nets.nn.Flatten(), nets.nn.Linear(64, 10))


class Counted:
    """A partition function, with what the ops of its graphs move and multiply, and which of them are random."""

    def __init__(self, inner):
        self.inner, self.bytes, self.flops, self.random = inner, 0, 0, 0

    def __call__(self, module, inputs, **more):
        self.add(module, -1)
        both = self.inner(module, inputs, **more)
        for part in both:
            self.add(part, 1)
        return both

    def add(self, module, sign):
        for node in module.graph.nodes:
            if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload) or is_view(node) \
                    or node.target.namespace == "ferry":
                continue
            made = node.meta.get("val")
            args = torch.fx.node.map_arg(node.args, lambda n: value(n))
            moved = tensors_in([args, made if isinstance(made, (list, tuple)) else [made]], [])
            self.bytes += sign * sum(t.numel() * t.element_size() for t in moved)
            self.flops += sign * flops(node.target._schema.name.split("::")[-1], args, made)
            self.random += sign * (torch.Tag.nondeterministic_seeded in node.target.tags)


def checkpointed(model):
    """Every block is made again."""
    for block in [m for m in model.modules() if isinstance(m, BLOCKS)]:
        def again(*given, inner=block.forward):
            return torch.utils.checkpoint.checkpoint(inner, *given, use_reentrant=False)
        block.forward = again
    return model


def decompositions():
    """As inductor is given them, but for one by which an op becomes a product and a sum that only a compiler makes at once."""
    return {op: how for op, how in select_decomp_table().items() if op.name() != "aten::_softmax_backward_data"}


def measured(net, partition, change=lambda model: model):
    """The peak of a step, and the losses of three."""
    torch._dynamo.reset()
    make, batches = NETS[net]
    counted = Counted(partition)
    with Allocator() as seen, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job = Job(lambda: change(make()), nets.OPTIMIZERS["momentum"], batches)
        plain = job.model
        how = aot_autograd(partition_fn=counted, fw_compiler=boxed_nop, bw_compiler=boxed_nop, decompositions=decompositions())
        job.model = torch.compile(plain, backend=how, dynamic=False)
        job.step(0), job.step(1)
        seen.step(lambda: job.step(2))
    return {"peak_bytes": seen.most(), "again_bytes": counted.bytes, "again_flops": counted.flops,
            "again_random": counted.random, "losses": job.losses}


def learn_workspaces(net):
    """Where a profile of ours is on, none can be made of what kernels take."""
    torch._dynamo.reset()
    job = Job(NETS[net][0], nets.OPTIMIZERS["momentum"], NETS[net][1])
    how = aot_autograd(partition_fn=compiled.Planner("100%", None, "off", lambda text: None, False), fw_compiler=boxed_nop,
                       bw_compiler=boxed_nop, decompositions=decompositions())
    job.model = torch.compile(job.model, backend=how, dynamic=False)
    job.step(0)


def by_torch(net, share, change=lambda model: model):
    with config.patch(activation_memory_budget=share):
        return measured(net, partitioners.min_cut_rematerialization_partition, change)


def by_ferry(net, budget, recompute):
    said = []
    planner, before = compiled.Planner(budget, None, recompute, said.append, False), len(compiled.HOSTS)
    row = measured(net, planner)
    row["peak_bytes"] -= sum(compiled.HOSTS[n].arena.size for n in range(before, len(compiled.HOSTS)))  # the host's
    for report in planner.reports:
        row.update(predicted_bytes=report["peak_bytes"], carried_bytes=report["d2h_bytes"])
    row["said"] = [line for line in said if "without a budget" in line]
    return row


def table(net, shares=SHARES, keep=lambda made: None):
    made = {"net": net, "torch": torch.__version__, "rows": []}

    def add(way, share, budget, row):
        made["rows"].append({"way": way, "share": share, "budget_bytes": budget, **row})
        keep(made)
        return row
    whole = add("all kept", None, None, measured(net, partitioners.default_partition))
    learn_workspaces(net)
    most = add("ferry, no limit", None, None, by_ferry(net, "100%", "off"))["predicted_bytes"]
    if any(isinstance(m, BLOCKS) for m in NETS[net][0]().modules()):
        add("checkpointing", None, None, by_torch(net, 1.0, checkpointed))
    for share in shares:
        own = add("activation_memory_budget", share, None, by_torch(net, share))
        budget = most - (whole["peak_bytes"] - own["peak_bytes"])
        for recompute in ("only", "auto"):
            add("ferry, " + {"only": "made again", "auto": "both"}[recompute], share, budget, by_ferry(net, budget, recompute))
    return made


def show(row):
    share = "" if row["share"] is None else f"{row['share']:.1f}"
    refused = row.get("said")
    tail = "  no plan" if refused else f"{row.get('carried_bytes', 0):12} carried" if "carried_bytes" in row else ""
    return f"{row['way']:26}{share:>5}{row['peak_bytes']:12}{row['again_bytes']:12}{row['again_flops']:12}{row['again_random']:4}{tail}"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("nets", nargs="*", choices=[[], *NETS])
    options.add_argument("--json")
    asked, found = options.parse_args(), []
    torch.set_num_threads(1)
    print(f"{'':26}{'share':>5}{'peak':>12}{'again':>12}{'flops':>12}{'random':>7}")
    for net in asked.nets or NETS:
        print(net)
        found.append(table(net, keep=lambda made: print(show(made["rows"][-1]), flush=True)))
        if asked.json:
            with open(asked.json, "w") as file:
                json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
