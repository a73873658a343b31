# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole story in one call."""
import contextlib
import os
import threading
import unittest.mock

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import ferry_torch
from again_claims import Validates
from common import Job, same
from nets import NETS, OPTIMIZERS, Cnn, pictures
from trap_claims import refused


def test_fit_records_plans_and_follows(folder):
    for net, (make, batches) in NETS.items():
        plain, fitted = (Job(make, OPTIMIZERS["adam"], batches) for _ in range(2))
        said = []
        for n in range(20):
            plain.step(n)
        with ferry_torch.fit(fitted.model, fitted.optimizer, "85%", say=said.append) as run:
            for n in range(20):
                fitted.step(n)
        assert same(plain.result(), fitted.result()), net
        assert len(said) == 2 and "a step takes" in said[0] and "predicted" in said[1], said
        assert run.report.steps == 17 and run.report.unmatched == 0, run.report.text()
        # The times are real, so the plan may move optimizer state alone, and no pack.
        assert run.report.out_bytes > 0 and run.report.in_bytes > 0, f"{net}: nothing moved"
        assert "step" not in fitted.optimizer.__dict__ and "forward" not in fitted.model.__dict__
        assert not run.inputs, "grows with each step"
        assert "<svg" in run._repr_html_() and "<th>predicted" in run._repr_html_()


def test_a_budget_may_be_an_int_of_bytes(folder):
    make, batches = NETS["cnn"]
    job = Job(make, OPTIMIZERS["adam"], batches)
    with ferry_torch.fit(job.model, job.optimizer, 1 << 30, say=lambda text: None) as run:
        for n in range(4):
            job.step(n)
    assert run.report.budget == 1 << 30, run.report.text()


def test_fit_keeps_schedulers(folder):
    make, batches = NETS["cnn"]
    jobs = [Job(make, OPTIMIZERS["momentum"], batches) for _ in range(2)]
    rates = []
    for job, fits in zip(jobs, (False, True)):
        scheduler = torch.optim.lr_scheduler.StepLR(job.optimizer, 2, 0.5)

        def train():
            for n in range(20):
                job.step(n)
                scheduler.step()
        if fits:
            with ferry_torch.fit(job.model, job.optimizer, "85%", say=lambda text: None):
                train()
        else:
            train()
        rates.append(scheduler.get_last_lr())
    assert rates[0] == rates[1] and same(jobs[0].result(), jobs[1].result())


def wide():
    """Weights are all of it, so that there is nothing to make again."""
    return nn.Sequential(nn.Flatten(), nn.Linear(1200, 100), *[nn.Linear(100, 100) for _ in range(20)])


def test_a_budget_that_cannot_be_kept_is_said(folder):
    make, batches = NETS["cnn"]
    job = Job(make, OPTIMIZERS["adam"], batches)
    try:
        with ferry_torch.fit(job.model, job.optimizer, "10KiB", say=lambda text: None):
            for n in range(4):
                job.step(n)
    except ferry_torch.Refused as error:
        assert "no plan fits" in str(error), error
    else:
        raise AssertionError("10 KiB were enough")
    refused(lambda: fitted(Job(wide, OPTIMIZERS["adam"], pictures(20, 10)), "90%", recompute="only"), "allow swapping")


def test_the_budget_to_ask_for_is_what_a_plan_for_a_gpu_is_made_of(folder):
    from ferry_torch import card
    for found in (1, 452984832, 11 * 2**20, 12 * 2**30 - 1):
        said = card.too_small(torch.device("cuda", 0), {"found_bytes": found, "why": "-"})
        planned = card.to_plan(torch.device("cuda", 0), said.rsplit(" ", 1)[1])
        assert found <= card.bytes_of(planned) < found + 2**20, (found, said, planned)
    assert card.too_small(torch.device("cpu"), {"found_bytes": 1, "why": "it is"}) == "it is"


def test_a_block_too_short_to_learn_from_says_so(folder):
    for steps in (0, 2):
        job, said = Job(Cnn, OPTIMIZERS["adam"], pictures(20, 10)), []
        with ferry_torch.fit(job.model, job.optimizer, "85%", say=said.append):
            for n in range(steps):
                job.step(n)
        assert len(said) == 1 and f"took {steps} steps" in said[0], said


class Odd(Job):
    """Some of its steps call no model, or walk no way back, or fail and are tried again."""

    def step(self, number):
        if number % 4 == 1:
            self.optimizer.zero_grad(set_to_none=True)
            self.optimizer.step()
            self.model(self.batches(number)[0])
            self.optimizer.step()
        if number in (2, 6):
            with contextlib.suppress(RuntimeError):
                self.model(self.batches(number)[0][:, :2])
        super().step(number)


class Fails(Job):
    """A loss of its third step fails, and the batch is left out."""

    def step(self, number):
        if number == 2:
            with contextlib.suppress(ValueError):
                self.loss(self.model(self.batches(9)[0]), self.batches(9)[1][:3])
        super().step(number)


class Twice(Job):
    """Adds up the gradients of two passes."""

    def step(self, number):
        loss = self.loss(self.model(self.batches(number)[0]), self.batches(number)[1])
        loss.backward()
        super().step(number)


def both(make, steps, budget="85%", **how):
    plain, fitted = make(), make()
    for n in range(steps):
        plain.step(n)
    with ferry_torch.fit(fitted.model, fitted.optimizer, budget, say=lambda text: None, **how) as run:
        for n in range(steps):
            fitted.step(n)
    assert same(plain.result(), fitted.result())
    return run


def test_passes_without_gradients_are_not_learned_from(folder):
    run = both(lambda: Validates(Cnn, OPTIMIZERS["adam"], pictures(20, 10)), 20)
    report, began = run.report, run.recording.roots
    assert began == [0] and report.steps == 17 and report.other == report.unmatched == 0, report.text()


def test_steps_that_are_not_whole_are_not_learned_from(folder):
    report = both(lambda: Odd(Cnn, OPTIMIZERS["adam"], pictures(20, 10)), 5).report
    assert report.steps == 1 and report.followed + report.kept > 0 and report.unmatched == 0, report.text()
    both(lambda: Odd(Cnn, OPTIMIZERS["adam"], pictures(20, 10)), 9)


def test_a_pass_whose_loss_failed_is_not_recorded(folder):
    report = both(lambda: Fails(Cnn, OPTIMIZERS["adam"], pictures(20, 10)), 6).report
    assert report.steps == 2 and report.unmatched == 0, report.text()


def test_steps_that_say_nothing_are_told_of(folder):
    class Parts(Job):
        def step(self, number):
            self.whole, self.model = self.model, lambda x: self.whole.forward.__wrapped__(x)
            super().step(number)
            self.model = self.whole
    for steps in (2, 12):
        job, said = Parts(lambda: Cnn(4), OPTIMIZERS["sgd"], pictures(20, 10, batch=1)), []
        with ferry_torch.fit(job.model, job.optimizer, "85%", say=said.append):
            for n in range(steps):
                job.step(n)
        assert len(said) == 1 and f"{min(steps, 10)} steps" in said[0] and "was not called" in said[0], said


class Closed(Job):
    """The optimizer calls the model and the way back."""

    def step(self, number):
        x, y = self.batches(number)

        def closure():
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss(self.model(x), y)
            loss.backward()
            return loss
        torch.manual_seed(number)
        self.losses.append(self.optimizer.step(closure).item())


def test_a_step_with_a_closure_is_followed(folder):
    report = both(lambda: Closed(Cnn, OPTIMIZERS["adam"], pictures(20, 10)), 20).report
    assert report.steps == 17 and report.out_bytes > 0 and report.unmatched == 0, report.text()


def test_a_closure_that_may_be_called_again_is_refused_before_it_is_called(folder):
    job, ran = Job(Cnn, torch.optim.LBFGS, pictures(20, 10)), []
    with ferry_torch.fit(job.model, job.optimizer, "85%", say=lambda text: None):
        refused(lambda: job.optimizer.step(lambda: ran.append(1)), "closure")
        refused(lambda: job.optimizer.step(closure=lambda: ran.append(1)), "closure")
    assert not ran


def test_a_short_batch_is_not_recorded_where_others_come(folder):
    def batches(short):
        def make(number):
            x, y = pictures(20, 10)(number)
            return (x[:3 + number % 2], y[:3 + number % 2]) if number in short else (x, y)
        return make
    report = both(lambda: Job(Cnn, OPTIMIZERS["adam"], batches([2])), 6).report
    assert report.steps == 2 and report.other == 0, report.text()
    report = both(lambda: Job(Cnn, OPTIMIZERS["adam"], batches([2, 3])), 6).report
    assert report.steps == report.other == 2, report.text()


class Whole(Job):
    """All of the model is checkpointed: hooks of the program's own are around its pass."""
    reentrant = False

    def step(self, number):
        model = self.model
        self.model = lambda x: checkpoint(model, x.requires_grad_(), use_reentrant=self.reentrant)
        try:
            super().step(number)
        finally:
            self.model = model
        w = torch.ones(8, requires_grad=True)  # and a loss that is no part of a step
        (w * w).sum().backward()


def test_hooks_around_a_pass_are_the_programs(folder):
    report = both(lambda: Whole(Cnn, OPTIMIZERS["adam"], pictures(20, 10)), 6, "98%").report
    assert report.steps == 3 and report.other == report.unmatched == 0, report.text()


def test_a_pass_inside_of_the_way_back_is_not_recorded(folder):
    class Reentrant(Whole):
        reentrant = True
    assert both(lambda: Reentrant(Cnn, OPTIMIZERS["adam"], pictures(20, 10)), 6).report is None


def test_a_profile_of_the_program_is_let_be(folder):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        report = both(lambda: Job(Cnn, OPTIMIZERS["adam"], pictures(20, 10)), 5).report
    assert report.steps == 2 and profile.events()


def test_each_pass_of_a_step_is_counted_once(folder):
    report = both(lambda: Twice(Cnn, OPTIMIZERS["adam"], pictures(20, 10)), 20, "95%", recompute="only").report
    assert report.bytes_again > 0 and report.unmatched == 0, report.text()


def fitted(job, budget="85%", optimizer=None, **how):
    with ferry_torch.fit(job.model, optimizer or job.optimizer, budget, say=lambda text: None, **how):
        for n in range(4):
            job.step(n)


def test_what_cannot_be_is_said_at_once(folder):
    job, other = (Job(Cnn, OPTIMIZERS["sgd"], pictures(20, 10)) for _ in range(2))
    for budget in ("-1", -1, 0.5, 1e9, None, "", "abc", "1e9", True):
        refused(lambda: fitted(job, budget), "a number of bytes")
    refused(lambda: fitted(job, optimizer=other.optimizer), "updates the model's weights")
    refused(lambda: fitted(job, optimizer=torch.optim.Adam), "one of torch.optim")
    refused(lambda: ferry_torch.fit(job.optimizer, job.model, "85%").__enter__(), "comes first")
    refused(lambda: fitted(job, recompute="yes"), "off, cheap, auto, only")
    for device in ("cuda", torch.device("cpu"), os.path.join(folder, "none.json")):
        refused(lambda: fitted(job, device=device), "`ferry devices`")
    refused(lambda: ferry_torch.follow(os.path.join(folder, "none"), job.model, job.optimizer).__enter__(), "cannot be read")
    with ferry_torch.fit(other.model, other.optimizer, "85%"):
        refused(lambda: fitted(job), "one block at a time")
    for place in ("none/step.json", "."):
        refused(lambda: ferry_torch.record(os.path.join(folder, place), job.model).__enter__(), "cannot be written")
    with open(os.path.join(folder, "plan.json"), "w") as file:
        file.write("no plan")
    refused(lambda: ferry_torch.follow(file.name, job.model, job.optimizer).__enter__(), "not JSON")
    assert not job.losses
    with unittest.mock.patch.dict(os.environ, FERRY=folder):
        refused(lambda: fitted(job), "does not run")
    assert "forward" not in job.model.__dict__ and "step" not in job.optimizer.__dict__
    fitted(job)


def test_a_step_in_another_thread_is_refused(folder):
    """Hooks and modes are a thread's own: it would be trained without them, and they be taken off by who has none."""
    job, said = Job(Cnn, OPTIMIZERS["adam"], pictures(20, 10)), []

    def elsewhere(act):
        def caught():
            try:
                act()
            except ferry_torch.Refused as error:
                said.append(str(error))
        thread = threading.Thread(target=caught)
        thread.start(), thread.join()
    with ferry_torch.fit(job.model, job.optimizer, "85%", say=lambda text: None):
        for n in range(6):
            elsewhere(lambda: job.step(n)), elsewhere(job.optimizer.step)
            assert len(said) == 2 and all("another thread" in text for text in said), said
            said.clear()
            elsewhere(lambda: torch.no_grad()(job.model)(job.batches(n)[0]))
            job.step(n)
    assert not said


def test_models_of_torchscript_are_refused_and_parts_are_not(folder):
    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.part, self.out = torch.jit.script(nn.Sequential(nn.Flatten(), nn.Linear(1200, 40))), nn.Linear(40, 10)

        def forward(self, x):
            return self.out(torch.tanh(self.part(x)))
    both(lambda: Job(Part, OPTIMIZERS["sgd"], pictures(20, 10)), 6, "1GiB")
    script = Job(lambda: torch.jit.script(nn.Sequential(nn.Flatten(), nn.Linear(1200, 10))), OPTIMIZERS["sgd"], None)
    refused(lambda: fitted(script), "TorchScript")
    refused(lambda: ferry_torch.record(folder + "/step.json", script.model).__enter__(), "TorchScript")
