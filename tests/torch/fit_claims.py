# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole story in one call."""
import torch

import ferry_torch
from common import Job, same
from nets import NETS, OPTIMIZERS


def test_fit_records_plans_and_follows(folder):
    for net, (make, batches) in NETS.items():
        plain, fitted = (Job(make, OPTIMIZERS["adam"], batches) for _ in range(2))
        said = []
        for n in range(8):
            plain.step(n)
        with ferry_torch.fit(fitted.model, fitted.optimizer, "85%", say=said.append) as run:
            for n in range(8):
                fitted.step(n)
        assert same(plain.result(), fitted.result()), net
        assert len(said) == 2 and "a step takes" in said[0] and "predicted" in said[1], said
        assert run.report.steps == 5 and run.report.unmatched == 0, run.report.text()
        # The times are real, so the plan may move optimizer state alone, and no pack.
        assert run.report.out_bytes > 0 and run.report.in_bytes > 0, f"{net}: nothing moved"
        assert "step" not in fitted.optimizer.__dict__ and "forward" not in fitted.model.__dict__


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
            for n in range(6):
                job.step(n)
                scheduler.step()
        if fits:
            with ferry_torch.fit(job.model, job.optimizer, "85%", say=lambda text: None):
                train()
        else:
            train()
        rates.append(scheduler.get_last_lr())
    assert rates[0] == rates[1] and same(jobs[0].result(), jobs[1].result())


def test_a_budget_that_cannot_be_kept_is_said(folder):
    make, batches = NETS["cnn"]
    job = Job(make, OPTIMIZERS["adam"], batches)
    try:
        with ferry_torch.fit(job.model, job.optimizer, "10KiB", say=lambda text: None):
            for n in range(4):
                job.step(n)
    except ferry_torch.Refused as error:
        assert "smallest budget" in str(error), error
        return
    raise AssertionError("10 KiB were enough")
