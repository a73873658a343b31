# SPDX-License-Identifier: GPL-3.0-or-later
"""What training programs do beside a model and an optimizer: over 20 steps each learns the same bits within a budget."""
import json
import os

import torch
import torch.nn.functional as F
from torch import nn

import ferry_torch
from common import Job, budget_of, card, even_times, ferry, same
from ferry_torch import plan as plans
from home_claims import needs
from nets import OPTIMIZERS, Cnn, Transformer, letters, pictures
from trap_claims import refused

STEPS = 20


def planned(folder, make, share=0.3, ns=20000):
    """A plan for the job's second step whose ops all take as long, so that no clock decides what moves."""
    job, trace, plan = make(), os.path.join(folder, "step.json"), os.path.join(folder, "plan.json")
    job.step(0)
    with ferry_torch.record(trace, job.model, job.optimizer):
        job.step(1)
    even_times(folder, ns)
    budget = budget_of(trace, card(folder), share)
    ferry("solve", trace, "-d", card(folder), "--for", "torch", "--budget", f"{budget}B", "-o", plan)
    return plan


def followed(folder, make, share=0.3, steps=STEPS):
    """Trained plain, by a plan, and by `fit`: the same. The report of the second."""
    plan = planned(folder, make, share)
    plain, job, fitted = make(), make(), make()
    for n in range(steps):
        plain.step(n)
    job.step(0)
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        for n in range(1, steps):
            job.step(n)
    with ferry_torch.fit(fitted.model, fitted.optimizer, "99%", say=lambda text: None) as fit:
        for n in range(steps):
            fitted.step(n)
    assert same(plain.result(), job.result()), "other bits by the plan"
    assert same(plain.result(), fitted.result()), "other bits by fit"
    for report in (run.report, fit.report):
        assert report.unmatched == report.other == 0, report.text()
    assert run.report.out_bytes > 0 and run.report.steps == steps - 1 and fit.report.steps == steps - 3, run.report.text()
    return run.report


class Scaled(Job):
    """Half precision with a scaled loss, clipped, added up over two passes."""

    def __init__(self):
        super().__init__(Cnn, OPTIMIZERS["adam"], pictures(20, 10))
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=6)

    def step(self, number):
        torch.manual_seed(number)
        self.optimizer.zero_grad(set_to_none=True)
        for part in range(2):
            x, y = self.batches(2 * number + part)
            with torch.autocast("cpu", torch.bfloat16):
                loss = F.cross_entropy(self.model(x), y) / 2
            self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.losses.append(loss.item())


def test_scaled_clipped_and_added_up(folder):
    assert followed(folder, Scaled).followed > 0


class Averaged(Job):
    """Keeps a moving average of its weights, and validates with it."""

    def __init__(self):
        super().__init__(Cnn, OPTIMIZERS["momentum"], pictures(20, 10))
        self.average = torch.optim.swa_utils.AveragedModel(
            self.model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True)

    def step(self, number):
        super().step(number)
        self.average.update_parameters(self.model)
        with torch.no_grad():
            self.losses.append(self.average(self.batches(99)[0]).sum().item())


def test_a_moving_average_of_the_weights(folder):
    assert followed(folder, Averaged).followed > 0


class Maker(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 3 * 20 * 20), nn.Tanh())

    def forward(self, x):
        return self.body(x).view(-1, 3, 20, 20)


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3), nn.LeakyReLU(0.2), nn.Conv2d(16, 16, 3), nn.LeakyReLU(0.2),
                                  nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 1))

    def forward(self, x):
        return self.body(x)


class Adversaries(Job):
    """Two models, each with an optimizer of its own, that learn in turn."""
    more = 1  # steps of the judge for one of the maker

    def __init__(self):
        torch.manual_seed(1)
        self.model, self.losses = [Maker(), Judge()], []
        self.optimizer = [torch.optim.Adam(m.parameters(), 1e-3, betas=(0.5, 0.9)) for m in self.model]

    def step(self, number):
        (maker, judge), (of_maker, of_judge) = self.model, self.optimizer
        torch.manual_seed(number)
        for _ in range(self.more):
            of_judge.zero_grad(set_to_none=True)
            real, false = pictures(20, 10)(number)[0], maker(torch.randn(8, 16)).detach()
            loss = F.softplus(-judge(real)).mean() + F.softplus(judge(false)).mean()
            loss.backward()
            of_judge.step()
        of_maker.zero_grad(set_to_none=True)
        wanted = F.softplus(-judge(maker(torch.randn(8, 16)))).mean()
        wanted.backward()
        of_maker.step()
        self.losses += [loss.item(), wanted.item()]

    def result(self):
        return self.losses, [t.clone() for model in self.model for t in model.state_dict().values()]


class Unequal(Adversaries):
    more = 3


def test_two_models_and_two_optimizers(folder):
    for make in (Adversaries, Unequal):
        for share in (0.5, 0.2):
            followed(folder, make, share)
    job = Adversaries()
    refused(lambda: ferry_torch.fit(job.model, [job.optimizer[0], torch.optim.SGD([torch.zeros(1)], 1)], "1GiB").__enter__(),
            "updates the model's weights")
    refused(lambda: ferry_torch.record(folder + "/s.json", job.model, job.optimizer, order="updates").__enter__().run(),
            "one optimizer")


@needs("peft")
def test_low_rank_adapters_move_frozen_weights_without_a_copy_out(folder):
    """Frozen weights do not change: the host has their bytes from the first step on."""
    import peft

    def adapted():
        torch.manual_seed(7)
        config = peft.LoraConfig(target_modules=["up", "down"], r=4, init_lora_weights=False)
        return peft.get_peft_model(Transformer(width=64), config)

    def make():
        return Job(adapted, lambda ps: torch.optim.AdamW([p for p in ps if p.requires_grad], 1e-3), letters(24))
    report = followed(folder, make, 0.1)
    frozen = {name for name, p in make().model.named_parameters() if not p.requires_grad}
    plan = plans.load(os.path.join(folder, "plan.json"))
    moved = [move for move in plan.moves if plan.tensors[move.tensor]["name"] in frozen]
    assert moved and all(move.clean for move in moved), moved
    assert report.out_bytes < report.in_bytes / 1.5, report.text()


class Signed(torch.optim.Optimizer):
    """An optimizer that torch does not ship, with a state of its own."""

    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                mean = self.state[p].setdefault("mean", torch.zeros_like(p))
                mean.lerp_(p.grad, 0.1)
                p.sub_(mean.sign(), alpha=group["lr"])


def test_an_optimizer_of_somebody_else(folder):
    """Its state is found, and stays; activations leave as ever."""
    followed(folder, lambda: Job(Cnn, Signed, pictures(20, 10)), 0.5)
    with open(os.path.join(folder, "step.json")) as file:
        kinds = [t["kind"] for t in json.load(file)["tensors"] if t["name"].endswith(".mean")]
    assert kinds and set(kinds) == {"optimizer"}, kinds


class Quantised(torch.optim.Optimizer):
    """Momentum in 8 bits: blocks of a row of bytes, each with a scale of its own."""
    block = 32

    def __init__(self, params, lr=1e-2, beta=0.9):
        super().__init__(params, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state, size = self.state[p], -(-p.numel() // self.block) * self.block
                if not state:
                    state["mean"] = torch.full((size,), 128, dtype=torch.uint8)
                    state["scale"] = torch.zeros(size // self.block, 1)
                mean = (state["mean"].view(-1, self.block).float() - 128) * state["scale"]
                gradient = F.pad(p.grad.flatten(), (0, size - p.numel())).view(-1, self.block)
                mean.mul_(group["beta"]).add_(gradient)
                state["scale"].copy_(mean.abs().amax(1, keepdim=True) / 127)
                state["mean"].copy_((mean / state["scale"].clamp(min=1e-12)).round().add(128).flatten())
                p.sub_(mean.flatten()[:p.numel()].view_as(p), alpha=group["lr"])


def test_state_in_eight_bits_and_several_groups(folder):
    """Bytes and scales are found as the optimizer's, and left alone: what a step of its own does in between, no plan can see."""
    def optimizer(params):
        params = list(params)
        return Quantised([{"params": [p for p in params if p.dim() > 1]}, {"params": [p for p in params if p.dim() == 1], "lr": 1e-3}])
    for share in (0.5, 0.1):
        followed(folder, lambda: Job(Cnn, optimizer, pictures(20, 10)), share)
    plan = plans.load(os.path.join(folder, "plan.json"))
    rows = {t["name"]: t for t in plan.tensors if t["name"].endswith((".mean", ".scale"))}
    weights = {name: p for name, p in Cnn().named_parameters()}
    assert len(rows) == 2 * len(weights) and {row["kind"] for row in rows.values()} == {"optimizer"}, rows
    assert plan.moves and not any(plan.tensors[move.tensor]["kind"] == "optimizer" for move in plan.moves), plan.moves
    for name, p in weights.items():
        blocks = -(-p.numel() // Quantised.block)
        assert rows[name + ".mean"]["bytes"] == blocks * Quantised.block and rows[name + ".scale"]["bytes"] == 4 * blocks, rows


def test_what_was_learned_is_kept_in_a_checkpoint(folder):
    """A run that goes on from a checkpoint learns nothing anew: each of its steps is the plan's."""
    plain, first, second = (Job(Cnn, OPTIMIZERS["adam"], pictures(20, 10)) for _ in range(3))
    path = os.path.join(folder, "checkpoint.pt")
    for n in range(STEPS):
        plain.step(n)
    with ferry_torch.fit(first.model, first.optimizer, "90%", say=lambda text: None) as run:
        assert not run.state_dict()
        for n in range(8):
            first.step(n)
        torch.save({"model": first.model.state_dict(), "optimizer": first.optimizer.state_dict(), "ferry": run.state_dict()}, path)
    kept = torch.load(path, weights_only=True)
    second.model.load_state_dict(kept["model"])
    second.optimizer.load_state_dict(kept["optimizer"])
    second.losses += first.losses
    with ferry_torch.fit(second.model, second.optimizer, "90%", say=lambda text: None) as run:
        run.load_state_dict(kept["ferry"])
        for n in range(8, STEPS):
            second.step(n)
        refused(lambda: run.load_state_dict(kept["ferry"]), "before the first step")
    assert same(plain.result(), second.result())
    assert run.report.steps == STEPS - 8 and run.report.unmatched == 0 and run.report.out_bytes > 0, run.report.text()
    with ferry_torch.fit(second.model, second.optimizer, "1GiB", say=lambda text: None) as run:
        run.load_state_dict(kept["ferry"])
        assert run.report.budget == 1 << 30, "the plan was for another budget"
    other = Job(lambda: Cnn(8), OPTIMIZERS["adam"], pictures(20, 10))
    with ferry_torch.fit(other.model, other.optimizer, "90%", say=lambda text: None) as run:
        refused(lambda: run.load_state_dict({"model": 1}), "not what the state_dict")
        refused(lambda: run.load_state_dict(kept["ferry"]), "another model")
