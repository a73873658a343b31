# SPDX-License-Identifier: GPL-3.0-or-later
"""What torch 2 does otherwise than 1.13, with fakes where this torch is the older one."""
import collections
import sys
import types
import unittest.mock

import torch

import ferry_torch
from common import Job, card, even_times, ferry, plan_for, same, solve
from ferry_torch import early, updates
from nets import NETS, OPTIMIZERS


def many(params):
    return torch.optim.Adam(params, 1e-3, foreach=True)


def recorded_names(folder, job):
    from ferry_torch import trace as traces
    path = folder + "/step.json"
    with ferry_torch.record(path, job.model, job.optimizer):
        job.step(1)
    return [op["name"] for op in traces.load(path)["ops"] if op["phase"] == "update"]


def test_an_optimizer_that_takes_all_at_once_is_taken_apart(folder):
    make, batches = NETS["cnn"]
    plain, planned, spare = (Job(make, many, batches) for _ in range(3))
    spare.step(0)
    assert len(recorded_names(folder, spare)) == len(list(spare.model.parameters()))
    plan = plan_for(folder, spare)
    planned.step(0)
    for n in range(6):
        plain.step(n)
    calls = []
    alone = updates.step_alone
    with unittest.mock.patch.object(updates, "step_alone", lambda *a: (calls.append(1), alone(*a))):
        with ferry_torch.follow(plan, planned.model, planned.optimizer):
            for n in range(1, 6):
                planned.step(n)
    assert same(plain.result(), planned.result())
    assert len(calls) == 5 * len(list(planned.model.parameters())), len(calls)


def uncounted(optimizer):
    """The step of SGD with momentum, by ops that count no change, as some that take many at once."""
    for group in optimizer.param_groups:
        for p in group["params"]:
            momentum = optimizer.state[p]["momentum_buffer"]
            momentum.data.mul_(group["momentum"]).add_(p.grad)
            p.data.add_(momentum, alpha=-group["lr"])


def test_what_an_update_wrote_leaves_though_nobody_counted_it(folder):
    make, batches = NETS["cnn"]
    plain, planned, spare = (Job(make, OPTIMIZERS["momentum"], batches) for _ in range(3))
    spare.step(0)
    plan_for(folder, spare)
    even_times(folder)  # a plan that depends on no clock
    plan = solve(folder, 0.05)
    for n in range(6):
        plain.step(n)
    planned.step(0)
    with unittest.mock.patch("ferry_torch.updates.plain_step", uncounted), \
            ferry_torch.follow(plan, planned.model, planned.optimizer) as run:
        for n in range(1, 6):
            planned.step(n)
    assert same(plain.result(), planned.result())
    assert any(slot.room is not None for slot in run.follower.standing.values()), "no weight left"


def test_so_it_is_where_the_plan_moves_nothing(folder):
    make, batches = NETS["cnn"]
    plain, planned = (Job(make, many, batches) for _ in range(2))
    planned.step(0)
    trace, plan = folder + "/step.json", folder + "/plan.json"
    with ferry_torch.record(trace, planned.model, planned.optimizer):
        planned.step(1)
    ferry("solve", trace, "-d", card(folder), "--for", "torch", "-o", plan)
    plain.step(0), plain.step(1)
    calls, alone = [], updates.step_alone
    with unittest.mock.patch.object(updates, "step_alone", lambda *a: (calls.append(1), alone(*a))):
        with ferry_torch.follow(plan, planned.model, planned.optimizer) as run:
            for n in range(2, 5):
                planned.step(n), plain.step(n)
    assert run.follower is None and calls and same(plain.result(), planned.result())
    assert "step" not in planned.optimizer.__dict__


def test_the_default_of_torch_2_on_a_gpu_is_known(folder):
    on_gpu = types.SimpleNamespace(is_cuda=True)
    groups = [{"params": [on_gpu], "foreach": None}]
    optimizer = types.SimpleNamespace(param_groups=groups)
    with unittest.mock.patch.object(updates.optimizers, "_default_to_fused_or_foreach", None, create=True):
        assert updates.many_at_once(optimizer)
        for known in ({"foreach": False}, {"foreach": None, "fused": True}):
            groups[0] = {"params": [on_gpu], **known}
            assert not updates.many_at_once(optimizer), known
        groups[0] = {"params": [types.SimpleNamespace(is_cuda=False)], "foreach": None}
        assert not updates.many_at_once(optimizer)


def test_a_differentiable_optimizer_is_not_taken_apart(folder):
    model = torch.nn.Linear(2, 2)
    assert updates.each_alone(torch.optim.SGD(model.parameters(), 0.1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    optimizer.param_groups[0]["differentiable"] = True
    assert not updates.each_alone(optimizer)


def test_hooks_around_a_step_run_once_each(folder):
    make, batches = NETS["cnn"]
    job = Job(make, OPTIMIZERS["adam"], batches)
    job.step(0)
    plan = plan_for(folder, job, share=0.1)
    seen = []
    optimizer = job.optimizer
    optimizer._optimizer_step_pre_hooks = collections.OrderedDict(
        a=lambda opt, args, kwargs: seen.append("before"))
    optimizer._optimizer_step_post_hooks = collections.OrderedDict(
        a=lambda opt, args, kwargs: seen.append("after"))
    plain = hasattr(updates.optimizers, "_global_optimizer_pre_hooks")  # then torch runs them itself
    with ferry_torch.follow(plan, job.model, optimizer):
        job.step(1), job.step(2)
    assert seen == ["before", "after"] * 2, seen
    with ferry_torch.record(folder + "/again.json", job.model, optimizer):
        job.step(3)
    assert seen == ["before", "after"] * 3, seen
    job.step(4)
    assert seen == ["before", "after"] * (4 if plain else 3), seen


def test_a_hook_that_changes_the_call_is_refused(folder):
    make, batches = NETS["cnn"]
    job = Job(make, OPTIMIZERS["adam"], batches)
    job.step(0)
    plan = plan_for(folder, job)
    job.optimizer._optimizer_step_pre_hooks = {1: lambda opt, args, kwargs: (args, kwargs)}
    try:
        with ferry_torch.follow(plan, job.model, job.optimizer):
            job.step(1)
    except ferry_torch.Refused as error:
        assert "hook" in str(error), error
        return
    raise AssertionError("not refused")


def test_a_scheduler_may_be_made_while_a_plan_is_followed(folder):
    make, batches = NETS["cnn"]
    job, plain = (Job(make, OPTIMIZERS["momentum"], batches) for _ in range(2))
    job.step(0), plain.step(0)
    plan = plan_for(folder, job)
    plain.step(1)
    with ferry_torch.follow(plan, job.model, job.optimizer):
        schedules = [torch.optim.lr_scheduler.StepLR(j.optimizer, 1, 0.5) for j in (job, plain)]
        for n in range(2, 5):
            for j, schedule in zip((job, plain), schedules):
                j.step(n), schedule.step()
    assert same(job.result(), plain.result())


def test_updates_are_not_moved_where_processes_share_gradients(folder):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with unittest.mock.patch.object(early, "processes", lambda: 2):
        try:
            with ferry_torch.record(folder + "/step.json", model, optimizer, order="updates"):
                pass
        except ferry_torch.Refused as error:
            assert "several processes" in str(error), error
            return
    raise AssertionError("not refused")


def test_the_programs_own_share_of_a_gpu_comes_back(folder):
    said = []
    cuda = {"get_device_properties": lambda device: types.SimpleNamespace(total_memory=100),
            "empty_cache": lambda: None, "set_per_process_memory_fraction": lambda share, device: said.append(share)}
    device = types.SimpleNamespace(type="cuda")
    for asked, after in ((None, 1.0), (lambda device: 0.75, 0.75)):
        extra = {} if asked is None else {"get_per_process_memory_fraction": asked}
        with unittest.mock.patch.object(torch, "cuda", types.SimpleNamespace(**cuda, **extra)):
            with sys.modules["ferry_torch.follow"].enforced(device, 50):
                pass
        assert said == [0.5, after], said
        said.clear()
