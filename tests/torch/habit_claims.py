# SPDX-License-Identifier: GPL-3.0-or-later
"""Habits of programs that are not ours: each learns the same bits within a budget, or is refused in one line."""
import functools
import json
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor

import ferry_torch
from common import Job, same
from nets import OPTIMIZERS, pictures
from trap_claims import refused
from used_claims import planned

STEPS = 12


class Tower(nn.Module):
    """Equal layers, and a wide one at the end: when that runs, the weights of all others have to be away."""

    def __init__(self, layers=6, width=64):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.wide, self.skipped = nn.Linear(width, 8 * width), None

    def forward(self, x):
        for n, layer in enumerate(self.layers):
            x = layer(x).relu() if n != self.skipped else x + x.sigmoid()
        return self.wide(x).tanh()


def rows(step):
    g = torch.Generator().manual_seed(step)
    return torch.randn(128, 64, generator=g), torch.randn(128, 512, generator=g)


class Dropped(Job):
    """Every third step does without one of its layers."""

    def __init__(self, skipped=4):
        super().__init__(Tower, lambda ps: torch.optim.SGD(ps, 1e-2), rows, F.mse_loss)
        self.skipped = skipped

    def step(self, number):
        self.model.skipped = self.skipped if number % 3 == 2 else None
        super().step(number)


def followed_as_plain(folder, make, share):
    """By a plan that gives tensors so much of the room between the least and all."""
    plain, job, plan = make(), make(), planned(folder, make, share)
    for n in range(STEPS):
        plain.step(n)
    job.step(0)
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        for n in range(1, STEPS):
            job.step(n)
    assert same(plain.result(), job.result()), "other bits"
    return run


def test_weights_that_left_are_there_though_the_step_skips_what_would_bring_them(folder):
    for skipped in range(6):
        run = followed_as_plain(folder, functools.partial(Dropped, skipped), 0.1)
        weights = [m for m in run.follower.plan.moves if m.tensor in run.follower.standing and m.trigger > m.out_after]
        assert weights, "no weight is away between its two passes"


def test_a_weight_that_may_leave_only_when_it_is_due_back_stays(folder):
    """It is put off as long as its module runs, which may be longer than the plan has it away."""
    plan, job = planned(folder, Dropped, 0.1), Dropped()
    job.step(0)
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        follower = run.follower
        move = next(m for m in follower.plan.moves if m.tensor in follower.standing and m.trigger > m.out_after)
        for reached, leaves in ((move.trigger - 1, True), (move.trigger, False)):
            follower.bring_all()
            follower.delayed, follower.reached = [move], reached
            follower.leave_delayed()
            assert follower.standing[move.tensor].is_out() is leaves, reached


class Penalised(Job):
    """The gradient's length is part of the loss, so the way back is walked back too."""

    def __init__(self):
        super().__init__(Tower, OPTIMIZERS["adam"], rows, F.mse_loss)

    def step(self, number):
        x = self.batches(number)[0].requires_grad_()
        self.optimizer.zero_grad()
        out = self.model(x).sum(1)
        slope, = torch.autograd.grad(out.sum(), x, create_graph=True)
        loss = out.mean() + ((slope.norm(dim=1) - 1) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())


def test_a_gradient_of_a_gradient(folder):
    """What the way back saves is seen by no hook of a module: weights in it stay."""
    run = followed_as_plain(folder, Penalised, 0.1)
    names = {run.follower.plan.tensors[i]["name"] for i in run.follower.standing}
    assert names and not any(name.endswith("weight") for name in names), names


def test_optimizers_of_2026(folder):
    """Each updates a parameter from its own gradient and state, so weights and state may leave."""
    def muon(params):
        return torch.optim.Muon([p for p in params if p.dim() == 2], lr=1e-3)
    for optimizer in (muon, torch.optim.Adafactor) if hasattr(torch.optim, "Muon") else (torch.optim.Adafactor,):
        run = followed_as_plain(folder, lambda: Job(Tower, optimizer, rows, F.mse_loss), 0.3)
        assert run.report.unmatched == 0 and run.follower.standing, "neither weights nor state leave"


class Compiling(torch.optim.Optimizer):
    """As 8-bit optimizers: its state consists of several tensors, and what it does with them is compiled."""

    def __init__(self, params):
        super().__init__(params, {})

    @torch.no_grad()
    def step(self):
        def update(p, grad, mean, count):
            mean.mul_(0.9).add_(grad)
            count.add_(1)
            p.add_(mean / count, alpha=-1e-2)
        for p in self.param_groups[0]["params"]:
            if not self.state[p]:
                self.state[p]["pair"] = TwoTensor(torch.zeros_like(p), torch.zeros_like(p))
            pair = self.state[p]["pair"]
            torch.compile(update, fullgraph=True, backend="eager")(p, p.grad, pair.a, pair.b)


def test_an_optimizer_that_compiles_its_updates(folder):
    run = followed_as_plain(folder, lambda: Job(Tower, Compiling, rows, F.mse_loss), 0.5)
    assert run.report.unmatched == run.report.other == 0 and run.report.out_bytes, run.report.text()
    with open(os.path.join(folder, "step.json")) as file:
        trace = json.load(file)
    state = {t["name"] for t in trace["tensors"] if t["kind"] == "optimizer"}
    assert len(state) == 28 and "layers.0.weight.pair.a" in state, state
    ops = [op for op in trace["ops"] if "compiling" in op["name"]]
    assert len(ops) == 14 and all(len(op["writes"]) == 4 for op in ops), ops[:1]


class Ragged(Job):
    """Rows of different lengths in one nested tensor."""

    def __init__(self):
        super().__init__(Tower, OPTIMIZERS["adam"], None)

    def step(self, number):
        torch.manual_seed(number)
        x = torch.nested.nested_tensor([torch.randn(n, 64) for n in (60, 40, 28)], layout=torch.jagged)
        self.optimizer.zero_grad()
        loss = self.model(x).values().square().mean()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())


def test_nested_tensors(folder):
    run = followed_as_plain(folder, Ragged, 0.3)
    assert run.report.unmatched == run.report.other == 0 and run.report.out_bytes, run.report.text()
    with open(os.path.join(folder, "step.json")) as file:
        trace = json.load(file)
    assert trace["source"]["inputs"] == [{"type": "torch.float32", "shape": [128, 64]}], trace["source"]
    made = [t["bytes"] for t in trace["tensors"] if t["kind"] == "activation"]
    assert made.count(128 * 64 * 4) >= 6 and made.count(128 * 512 * 4) >= 1, "ops on nested tensors are not seen"


def test_an_optimizer_that_steps_within_the_way_back(folder):
    """By `record` and `follow`; `fit` changes hooks behind a step, and they would come back with the way back's end."""
    def stepping():
        job = Job(Tower, lambda ps: [torch.optim.Adam([p]) for p in ps], rows, F.mse_loss)
        own = dict(zip(job.model.parameters(), job.optimizer))

        def update(p):
            own[p].step()
            own[p].zero_grad()
        for p in own:
            p.register_post_accumulate_grad_hook(update)

        def step(number):
            x, y = rows(number)
            loss = job.loss(job.model(x), y)
            loss.backward()
            job.losses.append(loss.item())
        job.step = step
        return job
    followed_as_plain(folder, stepping, 0.5)
    job = stepping()
    with ferry_torch.fit(job.model, job.optimizer, "80%", say=lambda text: None):
        refused(lambda: job.step(0), "within the backward pass")
    assert torch._C._autograd._top_saved_tensors_default_hooks(True) is None


def test_where_no_step_is_the_plans_that_is_said_once(folder):
    said, job = [], Job(Tower, OPTIMIZERS["adam"], rows, F.mse_loss)
    with ferry_torch.fit(job.model, job.optimizer, "80%", say=said.append):
        for n in range(4):
            job.step(n)
        job.batches = lambda step: [t[:step + 64] for t in rows(step)]
        for n in range(24):
            job.step(n)
    assert sum("pad batches to one size" in line for line in said) == 1, said


def test_a_compiled_part_is_named_with_what_to_do(folder):
    job = Job(Tower, OPTIMIZERS["adam"], rows, F.mse_loss)
    job.model.layers[1].compile(backend="eager")
    refused(lambda: ferry_torch.fit(job.model, job.optimizer, "80%").__enter__(), "layers.1 is compiled")


class Mixed(nn.Module):
    """A norm whose statistics have another type than torch's fake tensors say."""

    def __init__(self):
        super().__init__()
        self.convs, self.norms = (nn.ModuleList(make() for _ in range(4)) for make in
                                  (lambda: nn.Conv2d(12, 12, 3, padding=1), lambda: nn.GroupNorm(4, 12)))
        self.first, self.out = nn.Conv2d(3, 12, 3), nn.Linear(12, 10)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            x = self.first(x)
            for conv, norm in zip(self.convs, self.norms):
                x = x + F.silu(norm(conv(x)))
            return self.out(x.mean((2, 3)))


def test_a_backend_gives_tensors_back_in_the_type_that_they_had(folder):
    found = []
    for budget in ("100%", "80%", "70%"):
        torch._dynamo.reset()
        job, said = Job(Mixed, OPTIMIZERS["adam"], pictures(20, 10)), []
        plain = job.model
        job.model = torch.compile(plain, dynamic=False,
                                  backend=ferry_torch.backend(budget, inner="eager", recompute="off", say=said.append))
        for n in range(3):
            job.step(n)
        job.model = plain
        found.append(job.result())
        assert not any("without a budget" in line for line in said), said
    assert same(found[0], found[1]) and same(found[0], found[2])
