# SPDX-License-Identifier: GPL-3.0-or-later
"""A captured step, with a recorder that stands in for a CUDA graph: what it was given is run again at each replay."""
import torch

import ferry_torch
from common import Job, same
from nets import OPTIMIZERS, Unet, pictures


class Tape:
    """Runs nothing while it records, as a graph does."""

    def __init__(self, fails=False):
        self.fails, self.recorded, self.replayed = fails, 0, 0

    def record(self, function):
        self.recorded += 1
        if self.fails:
            raise RuntimeError("operation not permitted when stream is capturing\nand more")
        self.function = function

    def replay(self):
        self.replayed += 1
        return self.function()


class Whole(Job):
    """A step is a function of its batch."""

    def run(self, number, step):
        torch.manual_seed(number)
        self.losses.append(step(self.whole, *self.batches(number)).item())

    def whole(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def make(optimizer="sgd", kind=Whole):
    return kind(Unet, OPTIMIZERS[optimizer], pictures(16, 2, each=True))


def compared(job, plain, tape, steps=20, change=lambda n, job: None):
    said = []
    for n in range(steps):
        change(n, plain)
        plain.run(n, lambda step, *batch: step(*batch))
    with ferry_torch.fit(job.model, job.optimizer, "90%", say=said.append, capture=tape) as run:
        for n in range(steps):
            change(n, job)
            job.run(n, run.step)
    assert same(plain.result(), job.result()), said
    return run, [line for line in said if "not captured" in line]


def test_a_captured_step_learns_the_same(folder):
    tape = Tape()
    run, said = compared(make(), make(), tape)
    assert not said and tape.recorded == 1 and tape.replayed == 20 - 3 - 2 - 1 == run.report.replayed, (said, vars(tape))
    assert "replayed" in run.report.text() and run.report.followed > 0 and run.report.out_bytes > 0, run.report.text()


def whynot(wanted, job, plain, tape=None, **how):
    tape = tape or Tape()
    _, said = compared(job, plain, tape, **how)
    assert len(said) == 1 and wanted in said[0], said


class Asks(Whole):
    def whole(self, x, y):
        loss = super().whole(x, y)
        return torch.tensor(loss.item())


def test_a_step_of_which_nothing_moves_is_captured_too(folder):
    tape, job, plain = Tape(), make(), make()
    with ferry_torch.fit(job.model, job.optimizer, "100%", say=[].append, capture=tape) as run:
        for n in range(10):
            plain.run(n, lambda step, *batch: step(*batch))
            job.run(n, run.step)
    assert same(plain.result(), job.result()) and tape.recorded == 1 and run.report.replayed == tape.replayed > 2


def test_what_cannot_be_captured_is_said_and_goes_on(folder):
    whynot("reads a value", make(kind=Asks), make(kind=Asks))
    whynot("capturable=True", make("adam"), make("adam"))
    whynot("not permitted", make(), make(), Tape(fails=True))
    whynot("needs a GPU", make(), make(), True)

    def slower(n, job):
        job.optimizer.param_groups[0]["lr"] = 0.05 if n < 12 else 0.01
    whynot("setting of the optimizer", make(), make(), change=slower)
    job, said = make(), []
    with ferry_torch.fit(job.model, job.optimizer, "90%", say=said.append, capture=Tape()):
        job.run(0, lambda step, *batch: step(*batch))
    assert "run.step" in said[0], said


def test_another_batch_runs_beside_the_graph(folder):
    def batches(number):
        x, y = pictures(16, 2, each=True)(number)
        return (x[:3], y[:3]) if number == 15 else (x, y)
    tape, jobs = Tape(), [Whole(Unet, OPTIMIZERS["sgd"], batches) for _ in range(2)]
    run, said = compared(*jobs, tape)
    assert not said and tape.replayed == 13, (said, vars(tape))
