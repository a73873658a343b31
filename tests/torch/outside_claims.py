# SPDX-License-Identifier: GPL-3.0-or-later
"""What a program reads between two steps is there, though the plan has it on the host."""
import contextlib
import copy
import json
import os

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import ferry_torch
from common import Job, budget_of, card, even_times, ferry, same, solve
from ferry_torch import trace as traces
from ferry_torch.modules import Instead
from ferry_torch.storages import storage_of
from nets import OPTIMIZERS, Cnn, pictures
from trap_claims import refused


def wide():
    """Weights and their state are most of it, so that they have to leave."""
    return Cnn(40)


def away(folder):
    """A job, another one like it, and a plan by which weights or state are on the host between steps."""
    jobs = [Job(wide, OPTIMIZERS["adam"], pictures(20, 10, batch=2)) for _ in range(2)]
    for job in jobs:
        job.step(0)
    path, plan = os.path.join(folder, "step.json"), os.path.join(folder, "plan.json")
    with ferry_torch.record(path, jobs[0].model, jobs[0].optimizer):
        jobs[0].step(1)
    jobs[1].step(1)
    trace = traces.load(path)
    for op in trace["ops"]:
        op["ns"] = 100000
    traces.store(trace, path)
    ferry("solve", path, "-d", card(folder), "--for", "torch", "-o", plan, "--gap", "50%",
          "--budget", f"{budget_of(path, card(folder), 0.05)}B")
    return jobs, plan


def planned(folder, jobs, share):
    """By the second step of the first one, which the other has made too."""
    with ferry_torch.record(os.path.join(folder, "step.json"), jobs[0].model, jobs[0].optimizer):
        jobs[0].step(1)
    even_times(folder)
    plan = solve(folder, share)
    jobs[1].step(1)
    return plan


def gone(run):
    return [slot for slot in run.follower.standing.values() if storage_of(slot.tensor).nbytes() == 0]


def test_something_is_away_between_steps(folder):
    (job, _), plan = away(folder)
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        job.step(2), job.step(3)
        assert gone(run), "nothing is away: the other claims here say nothing"


def test_an_op_on_what_is_away_brings_it_back(folder):
    (job, plain), plan = away(folder)
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        for n in range(2, 6):
            job.step(n), plain.step(n)
            assert gone(run)
            for j in (job, plain):
                j.losses.append(sum(p.double().sum().item() for p in j.model.parameters()))
                j.losses.append(sum(s["exp_avg"].double().sum().item() for s in j.optimizer.state.values()))
            for p, q in zip(job.model.parameters(), plain.model.parameters()):
                with torch.no_grad():  # a program of its own, as an average of weights
                    p.mul_(0.999), q.mul_(0.999)
    assert same(job.result(), plain.result())


class Seen(TorchDispatchMode):
    """Names of the ops in it, as a program counts them."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func._schema.name)
        return func(*args, **(kwargs or {}))


def test_a_mode_of_the_programs_own_is_left_as_it_was_entered(folder):
    """Around the first step that is followed, and around a later one."""
    (job, plain), plan = away(folder)
    seen, counts = Seen(), []
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        for n in range(2, 6):
            with seen if n < 5 else contextlib.nullcontext():
                job.step(n)
            assert gone(run)
            counts.append([seen.names.count("aten::convolution_backward"), len(seen.names)])
            sum(p.norm().item() for p in job.model.parameters())
            assert len(seen.names) == counts[-1][1], "it sees what is behind its block"
            plain.step(n)
    assert [c[0] for c in counts] == [3, 6, 9, 9], counts
    assert same(job.result(), plain.result())


def test_fit_learns_from_a_step_with_a_mode_around_its_forward_pass(folder):
    seen = Seen()

    class Watched(Job):
        def step(self, number):
            torch.manual_seed(number)
            x, y = self.batches(number)
            self.optimizer.zero_grad()
            with seen:
                out = self.model(x)
            count = len(seen.names)
            loss = self.loss(out, y)
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.item())
            assert len(seen.names) == count, "it sees what is behind its block"
    job, plain = (kind(wide, OPTIMIZERS["adam"], pictures(20, 10, batch=2)) for kind in (Watched, Job))
    with ferry_torch.fit(job.model, job.optimizer, "80%", say=lambda text: None) as run:
        for n in range(6):
            job.step(n), plain.step(n)
    assert same(job.result(), plain.result())
    names = [op.name for op in run.recording.recorder.ops]
    assert sum(name.endswith("convolution_backward") for name in names) == 3, names


def test_what_is_saved_is_whole(folder):
    (job, plain), plan = away(folder)
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        job.step(2), plain.step(2)
        assert gone(run)
        kept = copy.deepcopy(job.model.state_dict())
        torch.save({"model": job.model.state_dict(), "optimizer": job.optimizer.state_dict()}, folder + "/saved")
        job.step(3), plain.step(3)
    saved = torch.load(folder + "/saved")
    fresh = Job(wide, OPTIMIZERS["adam"], pictures(20, 10, batch=2))
    fresh.model.load_state_dict(saved["model"])
    fresh.optimizer.load_state_dict(saved["optimizer"])
    assert all(torch.equal(a, b) for a, b in zip(kept.values(), saved["model"].values()))
    fresh.step(3)
    assert all(map(torch.equal, fresh.model.state_dict().values(), plain.model.state_dict().values()))
    assert "state_dict" not in job.model.__dict__ and "state_dict" not in job.optimizer.__dict__


def test_steps_of_another_model_between_are_let_through(folder):
    (job, plain), plan = away(folder)
    other = Job(wide, OPTIMIZERS["momentum"], pictures(20, 10, batch=2))
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        for n in range(2, 5):
            job.step(n), plain.step(n), other.step(n)
    assert same(job.result(), plain.result()) and run.report.unmatched == 0, run.report.text()


def test_numbers_that_autograd_keeps_between_steps(folder):
    (job, _), plan = away(folder)
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        job.step(2)
        assert gone(run)
        x = torch.ones(3, requires_grad=True)
        ((x * 2.5) ** 3.0).sum().backward()
    assert x.grad.tolist() == [46.875] * 3


def test_what_a_step_looks_at_stays(folder):
    """Within a step no op is looked at: what is away there is not there."""
    class Looks(Job):
        def step(self, number):
            seen = [state["exp_avg"] for state in self.optimizer.state.values()][-2:-1] + [self.model.out.weight]
            step = self.optimizer.step
            self.optimizer.step = lambda: (self.losses.extend(t.norm().item() for t in seen), step())
            super().step(number)
            self.optimizer.step = step
    job = Looks(wide, OPTIMIZERS["adam"], pictures(20, 10, batch=2))
    job.step(0)
    path = os.path.join(folder, "step.json")
    with ferry_torch.record(path, job.model, job.optimizer):
        job.step(1)
    trace = traces.load(path)
    names = [trace["tensors"][i]["name"] for i in trace["ops"][0]["compute"]["leave"]]
    assert {"conv3.weight.exp_avg_sq", "conv3.weight"} <= set(names), names
    assert not {"out.weight.exp_avg", "out.weight"} & set(names), names


def test_a_copy_of_the_model_is_another_model(folder):
    """Else it computes with the weights of the one that it was made from, and copies all that watches that one."""
    (job, _), plan = away(folder)
    x = pictures(20, 10, batch=2)(9)[0]

    def train():
        for n in range(2, 6):
            job.step(n)
            yield
    for around in (ferry_torch.follow(plan, job.model, job.optimizer),
                   ferry_torch.fit(job.model, job.optimizer, "100%", say=lambda text: None)):
        with around:
            for _ in train():
                twin = copy.deepcopy(job.model).eval()
                for p in twin.parameters():
                    p.data.zero_()
                assert not twin(x).any() and not twin.state_dict()["out.bias"].any()
                refused(lambda: torch.save(job.model, folder + "/whole"), "state_dict")
        assert not twin(x).any() and not twin._forward_pre_hooks
        torch.save(twin, folder + "/whole")


class Experts(nn.Module):
    """Layers of one size, with nothing between them that autograd keeps."""

    def __init__(self):
        super().__init__()
        self.layers, self.out = nn.ModuleList(nn.Linear(64, 64) for _ in range(6)), nn.Linear(64, 10)
        self.order = range(6)

    def forward(self, x):
        return self.out(torch.tanh(sum(self.layers[i](x) for i in self.order)))


def test_a_layer_that_runs_once_more_has_its_weights(folder):
    def batches(number):
        return torch.randn(4, 64), torch.arange(4)  # of the step's own seed
    jobs = [Job(Experts, OPTIMIZERS["sgd"], batches) for _ in range(2)]
    for job in jobs:
        job.step(0)
    plan = planned(folder, jobs, 0.05)
    with ferry_torch.follow(plan, jobs[0].model, jobs[0].optimizer) as run:
        for n in range(2, 8):
            for job in jobs:
                job.model.order = range(6) if n < 5 else (0, 0, 1, 0, 2, 1)
                job.step(n)
    assert same(jobs[0].result(), jobs[1].result()) and run.report.out_bytes > 0, run.report.text()


class Teacher(nn.Module):
    """A weight that no gradient reaches is used twice, with much between."""

    def __init__(self):
        super().__init__()
        self.teacher, self.first = nn.Linear(256, 256, bias=False), nn.Linear(4, 256)
        self.teacher.requires_grad_(False)

    def forward(self, x):
        y = self.teacher(self.first(x)).repeat(8, 1)
        for _ in range(5):
            y = torch.sin(y)
        return self.teacher(torch.tanh(y.view(8, -1, 256).mean(0)))


def test_what_is_changed_while_nothing_is_away_leaves_anew(folder):
    """Nobody counts what is written by way of `.data`."""
    def batches(number):
        return torch.randn(32, 4), torch.arange(32)
    jobs = [Job(Teacher, OPTIMIZERS["sgd"], batches) for _ in range(2)]
    for job in jobs:
        job.optimizer = torch.optim.SGD(job.model.first.parameters(), 0.1)
        job.step(0)
    plan = planned(folder, jobs, 0.1)
    with ferry_torch.follow(plan, jobs[0].model, jobs[0].optimizer) as run:
        for n in range(2, 8):
            for job in jobs:
                job.step(n)
                job.model.teacher.weight.data.mul_(0.9)
    moved = {run.follower.plan.tensors[m.tensor]["name"] for m in run.follower.plan.moves}
    assert same(jobs[0].result(), jobs[1].result()) and "teacher.weight" in moved, moved


def test_weights_may_be_looked_at_before_the_optimizers_step(folder):
    (job, plain), plan = away(folder)
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        for n in range(2, 8):
            for j in (job, plain):
                torch.manual_seed(n)
                x, y = j.batches(n)
                j.optimizer.zero_grad()
                j.loss(j.model(x), y).backward()
                if j is job:
                    assert gone(run)
                if n > 4:
                    j.losses.append(sum(p.norm().item() for p in j.model.parameters()))
                j.optimizer.step()
    assert same(job.result(), plain.result()) and not isinstance(torch.autograd.backward, Instead)


def test_a_weight_that_is_saved_behind_its_op_may_be_away_then(folder):
    """As by a function of the program's own: it is the plan's all the same."""
    (job, _), plan = away(folder)
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        job.step(2)
        assert gone(run) and all(run.follower.fits(storage_of(slot.tensor), slot, slot.index) for slot in gone(run))


def here(weight):
    """It has its bytes now."""
    assert storage_of(weight).nbytes() == weight.numel() * weight.element_size(), "a weight is away where it is used"
    return weight


class Layer(nn.Module):
    """Uses a weight before it calls another module, and one behind that."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (nn.Parameter(torch.randn(48, 48) / 7) for _ in range(2))
        self.act = nn.GELU()

    def forward(self, x):
        return x + self.act(x @ here(self.first)) @ here(self.second)


class Skipping(nn.Module):
    """Some layers are left out of a step, and its packs are those of others: their sizes do not say it."""

    def __init__(self):
        super().__init__()
        self.layers, self.order = nn.ModuleList(Layer() for _ in range(6)), range(6)
        self.scale, self.out = nn.Parameter(torch.ones(48)), nn.Linear(48, 10)

    def forward(self, x):
        for i in self.order:
            x = self.layers[i](x)
        return self.out(x + here(self.scale))


class Skips(Job):
    ORDERS = (range(6), range(6), (3, 4, 5), (0, 1, 5), range(6), (5,), (2, 2, 2, 5), (5, 4, 3, 2, 1, 0), range(1, 6), ())

    def step(self, number):
        self.model.order = self.ORDERS[number % len(self.ORDERS)]
        super().step(number)


class Frozen(Job):
    """Weights that learn in some steps only: without a gradient of theirs less is saved."""

    def step(self, number):
        for i, layer in enumerate(self.model.layers):
            layer.requires_grad_(i > 2 if number < 3 else (i + number) % 3 > 0)
        super().step(number)


def rows_of_numbers(number):
    generator = torch.Generator().manual_seed(number)
    return torch.randn(16, 48, generator=generator), torch.randint(0, 10, (16,), generator=generator)


def test_a_step_that_is_not_the_plans_has_its_weights(folder):
    path, left = os.path.join(folder, "step.json"), 0
    for kind in (Skips, Frozen):
        for order in (None, "updates"):
            spare, plain, job = (kind(Skipping, OPTIMIZERS["adam"], rows_of_numbers) for _ in range(3))
            spare.step(0)
            with ferry_torch.record(path, spare.model, spare.optimizer, order=order):
                spare.step(1)
            even_times(folder)
            plan = solve(folder, 0)
            job.step(0)
            with ferry_torch.follow(plan, job.model, job.optimizer) as run:
                for n in range(1, 21):
                    job.step(n)
                    left += len(gone(run))
            for n in range(21):
                plain.step(n)
            assert same(job.result(), plain.result()) and run.report.unmatched > 0, (kind, order, run.report.text())
    assert left, "no weight has left: this says nothing"


def test_a_state_that_was_kept_is_saved_whole(folder):
    """What `state_dict` gives is the weights and the state themselves: they go on, and leave."""
    (job, plain), plan = away(folder)
    copies = []
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        kept = [(j.model.state_dict(), j.optimizer.state_dict()) for j in (job, plain)]
        for n in range(2, 4):
            job.step(n), plain.step(n)
        for i, of in enumerate(kept):
            assert gone(run) or i
            torch.save(of, f"{folder}/kept{i}")
            copies.append(copy.deepcopy(of))
        job.step(4), plain.step(4)
        assert gone(run)
        optimizers = [copy.deepcopy(j.optimizer) for j in (job, plain)]
    saved = [torch.load(f"{folder}/kept{i}") for i in range(2)]
    for mine, others in (saved, copies, [(o.state_dict(), {}) for o in optimizers]):
        assert all_equal(mine, others)
    assert torch.Tensor.__reduce_ex__.__name__ == "__reduce_ex__" and not hasattr(torch.Tensor.__reduce_ex__, "__wrapped__")


def all_equal(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(all_equal(a[key], b[key]) for key in a)
    return all(map(all_equal, a, b)) and len(a) == len(b) if isinstance(a, (list, tuple)) else a == b
