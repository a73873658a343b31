# SPDX-License-Identifier: GPL-3.0-or-later
"""Updates that are moved to where their gradient is final."""
import os

import torch
import torch.nn.functional as F
from torch import nn

import ferry_torch
from common import Job, same, solve
from ferry_torch import trace as traces
from nets import NETS, OPTIMIZERS, pictures


def recorded(folder, job, step=1):
    path = os.path.join(folder, "step.json")
    with ferry_torch.record(path, job.model, job.optimizer, order="updates"):
        job.step(step)
    return traces.load(path)


def learns_the_same(folder, job, steps):
    """One of three is recorded, one follows the plan, one has none."""
    plain, planned, spare = (job() for _ in range(3))
    spare.step(0)
    recorded(folder, spare)
    plan = solve(folder, 0.3)
    planned.step(0)
    for n in range(steps):
        plain.step(n)
    with ferry_torch.follow(plan, planned.model, planned.optimizer):
        for n in range(1, steps):
            planned.step(n)
    return same(plain.result(), planned.result())


def test_moved_updates_learn_the_same(folder):
    for net, (make, batches) in NETS.items():
        for optimizer in ("momentum", "adamw"):
            plain, planned, spare = (Job(make, OPTIMIZERS[optimizer], batches) for _ in range(3))
            spare.step(0)
            recorded(folder, spare)
            plan = solve(folder, 0.3)
            planned.step(0)
            for n in range(20):
                plain.step(n)
            with ferry_torch.follow(plan, planned.model, planned.optimizer) as run:
                for n in range(1, 20):
                    planned.step(n)
            assert same(plain.result(), planned.result()), f"{net} {optimizer}"
            assert run.report.unmatched == 0, run.report.text()


def test_updates_stand_on_the_way_back(folder):
    make, batches = NETS["cnn"]
    job = Job(make, OPTIMIZERS["adam"], batches)
    job.step(0)
    ops = recorded(folder, job)["ops"]
    phases = [op["phase"] for op in ops]
    first = phases.index("update")
    assert "backward" in phases[first:], "all updates come behind the way back"


class Twice(nn.Module):
    """The weight's gradient is final before the way back asks for the old weight a last time."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 4, 3, padding=1)
        self.w = nn.Linear(20, 20)
        self.out = nn.Linear(4 * 400, 10)

    def forward(self, x):
        x = torch.tanh(self.a(x))
        x = torch.tanh(F.linear(x, self.w.weight.detach()))
        return self.out(torch.tanh(self.w(x)).flatten(1))


def test_an_update_waits_for_the_last_use_of_the_old_weight(folder):
    assert learns_the_same(folder, lambda: Job(Twice, OPTIMIZERS["momentum"], pictures(20, 10)), 6), \
        "the new weight was used in place of the old one"


def refused(folder, job, words):
    job.step(0)
    try:
        recorded(folder, job)
    except (ferry_torch.Refused, RuntimeError) as error:
        assert words in str(error), error
        return
    raise AssertionError(f"not refused: {words}")


def test_clipping_by_norm_is_refused(folder):
    class Clipped(Job):
        def step(self, number):
            x, y = self.batches(number)
            self.optimizer.zero_grad(set_to_none=True)
            self.loss(self.model(x), y).backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
    make, batches = NETS["cnn"]
    refused(folder, Clipped(make, OPTIMIZERS["sgd"], batches), "clipping")


def test_accumulation_is_refused(folder):
    class Added(Job):
        def step(self, number):
            self.optimizer.zero_grad(set_to_none=True)
            for half in range(2):
                x, y = self.batches(2 * number + half)
                self.loss(self.model(x), y).backward()
            self.optimizer.step()
    make, batches = NETS["cnn"]
    refused(folder, Added(make, OPTIMIZERS["sgd"], batches), "updates cannot be moved")


def test_a_look_at_new_weights_before_the_step_is_refused(folder):
    """Without ferry the model still has the old ones there."""
    class Validated(Job):
        validates = True

        def step(self, number):
            x, y = self.batches(number)
            self.optimizer.zero_grad(set_to_none=True)
            self.loss(self.model(x), y).backward()
            with torch.no_grad():
                self.losses.append(self.model(x).sum().item() if self.validates else 0)
            self.optimizer.step()
    make, batches = NETS["cnn"]
    refused(folder, Validated(make, OPTIMIZERS["sgd"], batches), "between a way back and its optimizer's step")
    jobs = [Validated(make, OPTIMIZERS["sgd"], batches) for _ in range(2)]
    jobs[0].validates = False
    recorded(folder, jobs[0])
    try:
        with ferry_torch.follow(solve(folder, 0.5), jobs[1].model, jobs[1].optimizer):
            jobs[1].step(1)
    except ferry_torch.Refused as error:
        assert "between a way back and its optimizer's step" in str(error), error
        return
    raise AssertionError("new weights were taken for old ones")


def test_a_way_back_that_no_step_follows_is_refused(folder):
    """As a generator's through its discriminator: gradients that the next step's zero_grad would drop."""
    class Twice(Job):
        def step(self, number):
            super().step(number)
            self.loss(self.model(self.batches(number)[0]), self.batches(number)[1]).backward()
    make, batches = NETS["cnn"]
    refused(folder, Twice(make, OPTIMIZERS["sgd"], batches), "no step of its optimizer came")


def test_a_second_step_for_one_way_back_is_refused(folder):
    """Without ferry its gradients are still there."""
    class Again(Job):
        def step(self, number):
            super().step(number)
            self.optimizer.step()
    make, batches = NETS["cnn"]
    refused(folder, Again(make, OPTIMIZERS["adam"], batches), "without a way back before it")


class Branches(nn.Module):
    """One of its two layers is used in even steps only."""

    def __init__(self):
        super().__init__()
        self.first, self.odd, self.last = nn.Linear(20, 20), nn.Linear(20, 20), nn.Linear(20, 10)
        self.calls = 0

    def forward(self, x):
        x = torch.tanh(self.first(x))
        self.calls += 1
        return self.last(torch.tanh(self.odd(x)) if self.calls % 2 else x)


class Sometimes(Job):
    """Its gradients are cleared in one of the ways that programs have."""

    def __init__(self, optimizer, clear):
        super().__init__(Branches, OPTIMIZERS[optimizer], vectors)
        self.clear = clear

    def step(self, number):
        x, y = self.batches(number)
        self.clear(self)
        loss = self.loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())


def vectors(number):
    torch.manual_seed(number)
    return torch.randn(4, 20), torch.randint(0, 10, (4,))


def set_to_none(job):
    for p in job.model.parameters():
        p.grad = None


def fill(job):
    for p in job.model.parameters():
        if p.grad is not None:
            p.grad.zero_()


def test_a_gradient_of_nothing_moves_a_weight_as_without_a_plan(folder):
    """Where gradients are zeroed, momentum goes on in a step that does not use the weight; where they are dropped,
    it does not."""
    ways = {"zeroed by the optimizer": lambda job: job.optimizer.zero_grad(set_to_none=False),
            "dropped by the optimizer": lambda job: job.optimizer.zero_grad(set_to_none=True),
            "zeroed by the model": lambda job: job.model.zero_grad(set_to_none=False),
            "dropped by hand": set_to_none, "zeroed by hand": fill}
    found = {}
    for optimizer in ("momentum", "adam"):
        for way, clear in ways.items():
            plain, planned, spare = (Sometimes(optimizer, clear) for _ in range(3))
            spare.step(0)
            spare.step(1)
            recorded(folder, spare, 2)
            plan = solve(folder, 0.3)
            for n in range(9):
                plain.step(n)
            for n in range(2):
                planned.step(n)
            with ferry_torch.follow(plan, planned.model, planned.optimizer):
                for n in range(2, 7):
                    planned.step(n)
            for n in range(7, 9):
                planned.step(n)
            assert same(plain.result(), planned.result()), f"{optimizer}, {way}"
            found[optimizer, way.split()[0]] = plain.result()
        assert not same(found[optimizer, "zeroed"], found[optimizer, "dropped"]), "the way makes no difference"


def test_gradients_that_are_never_cleared_are_refused(folder):
    clear = {"now": set_to_none}
    job = Sometimes("momentum", lambda job: clear["now"](job))
    job.step(0)
    job.step(1)
    recorded(folder, job, 2)
    with ferry_torch.follow(solve(folder, 0.3), job.model, job.optimizer):
        job.step(3)
        job.step(4)
        clear["now"] = lambda job: None
        try:
            job.step(5)
        except ferry_torch.Refused as error:
            assert "call zero_grad in each step" in str(error), error
            return
    raise AssertionError("gradients of two steps were taken for one's")


class Resumed(Job):
    """Loads its optimizer's state, slows down, and takes one more weight on."""

    def step(self, number):
        if number == 3:
            self.optimizer.load_state_dict(self.optimizer.state_dict())
            self.optimizer.param_groups[0]["lr"] *= 0.1
        if number == 5:
            scale = nn.Parameter(torch.ones(1))
            self.optimizer.add_param_group({"params": [scale]})
            self.loss = lambda output, target: F.cross_entropy(output * scale, target)
        super().step(number)


def test_updates_have_the_groups_of_now(folder):
    make, batches = NETS["cnn"]
    assert learns_the_same(folder, lambda: Resumed(make, OPTIMIZERS["adam"], batches), 8)
