# SPDX-License-Identifier: GPL-3.0-or-later
"""The optimizer's step, whole and in pieces, and what goes on around it."""
import functools
import sys
import types
import unittest.mock

import torch
from torch.utils import checkpoint

import ferry_torch
from common import Job, card, even_times, ferry, plan_for, same, solve
from ferry_torch import early, updates
from ferry_torch.pieces import Pieces
from fit_claims import both
from nets import NETS, OPTIMIZERS, Cnn, pictures


def many(params):
    return torch.optim.Adam(params, 1e-3, foreach=True)


def recorded_names(folder, job):
    from ferry_torch import trace as traces
    path = folder + "/step.json"
    with ferry_torch.record(path, job.model, job.optimizer):
        job.step(1)
    return [op["name"] for op in traces.load(path)["ops"] if op["phase"] == "update"]


def calls_seen(calls):
    """Each call of the optimizer leaves the number of its parameters."""
    plain = updates.step_of
    return unittest.mock.patch.object(updates, "step_of", lambda o, g, *p: (calls.append(len(p)), plain(o, g, *p)))


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
    with calls_seen(calls), ferry_torch.follow(plan, planned.model, planned.optimizer):
        for n in range(1, 6):
            planned.step(n)
    assert same(plain.result(), planned.result())
    assert 5 < len(calls) and sum(calls) == 5 * len(list(planned.model.parameters())), calls


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
    calls = []
    with calls_seen(calls), ferry_torch.follow(plan, planned.model, planned.optimizer) as run:
        for n in range(2, 5):
            planned.step(n), plain.step(n)
    assert run.follower is None and same(plain.result(), planned.result())
    assert calls == 3 * [len(list(planned.model.parameters()))], "the plan leaves room for all at once"
    assert "step" not in planned.optimizer.__dict__


def update_of(reads, writes=(), scratch=0):
    return {"phase": "update", "reads": list(reads), "writes": list(writes), "workspace_bytes": scratch}


def stays(size, persistent=False):
    return {"bytes": size, "persistent": persistent, "born_before": None, "dies_after": None}


def a_plan(budget, moves=(), waits=()):
    """Four updates: a gradient of 100 bytes each, 10 of scratch; 400 bytes of weights, 200 of what an op before made."""
    tensors = [stays(400, True), stays(200), *(stays(100) for _ in range(4))]
    ops = [update_of([0], [1, 2, 3, 4, 5]), update_of([1]), *(update_of([0, k], [0], 10) for k in range(2, 6))]
    uses = {t: [k for k, op in enumerate(ops) if t in op["reads"] + op["writes"]] for t in range(6)}
    return types.SimpleNamespace(tensors=tensors, ops=ops, uses=uses, moves=list(moves), waits=dict(waits), budget=budget)


def called(plan, moments=(), groups=(0, 0, 0, 0)):
    parameters = [object() for _ in range(4)]
    pieces = Pieces(plan, {id(p): 2 + k for k, p in enumerate(parameters)}, moments)
    kinds = [{"lr": n} for n in range(2)]
    return [len(found) for _, found in pieces.of((kinds[g], p) for g, p in zip(groups, parameters))]


def test_updates_go_together_as_far_as_there_is_room(folder):
    assert called(a_plan(840)) == [4]  # 800 are held at the first, and 100 less at each after it
    assert called(a_plan(839)) == [3, 1]
    assert called(a_plan(815)) == [1, 3]
    assert called(a_plan(500)) == [1, 1, 1, 1], "what the plan has no room for at all goes alone"
    assert called(a_plan(840), [4]) == [2, 2] and called(a_plan(840), [3, 4]) == [1, 1, 2]
    assert called(a_plan(840), [1, 2, 6]) == [4], "what is due before the first or behind the last parts nobody"
    assert called(a_plan(840), groups=(0, 0, 1, 1)) == [2, 2]


def test_what_is_away_leaves_room_once_its_copy_is_over(folder):
    def gone(first, last, outs, frees=None):
        return types.SimpleNamespace(tensor=0, out_after=first, trigger=last, outs=outs, frees=frees)
    assert called(a_plan(440, [gone(1, 6, None)])) == [4], "no copy, no wait"
    assert called(a_plan(440, [gone(1, 6, 1)])) == [1, 1, 1, 1], "nothing waits for the copy"
    assert called(a_plan(440, [gone(1, 6, 1)], {2: 1})) == [4]
    assert called(a_plan(440, [gone(1, 6, 1)], {4: 1})) == [1, 1, 2]
    assert called(a_plan(440, [gone(1, 5, 1)], {2: 1})) == [3, 1], "it is back at the last"
    assert called(a_plan(440, [gone(4, 2, None)])) == [1, 1, 1, 1] and called(a_plan(440, [gone(4, 4, None)])) == [2, 1, 1]


def test_what_leaves_behind_an_update_waits_for_its_call_where_there_is_room(folder):
    def parts(budget, back=0):
        tensors = [stays(10, True) for _ in range(16)]
        ops = [update_of([k], [k]) for k in range(16)]
        moves = [types.SimpleNamespace(tensor=k, out_after=k, trigger=back and min(k + back, 16), outs=None, frees=None) for k in range(16)]
        plan = types.SimpleNamespace(tensors=tensors, ops=ops, uses={k: [k] for k in range(16)}, moves=moves, waits={},
                                     budget=budget)
        parameters = [object() for _ in range(16)]
        pieces = Pieces(plan, {id(p): k for k, p in enumerate(parameters)})
        group = {"lr": 1}
        return [len(found) for _, found in pieces.of((group, p) for p in parameters)]
    assert parts(1000) == [3, 3, 3, 3, 3, 1], "an eighth of all may wait"
    assert parts(169)[0] == 1 and parts(170)[0] == 2 and parts(180)[0] == 3, "160 are held at the first, and 10 less at each"
    assert parts(1000, 1) == 16 * [1], "what comes back in between cannot wait"
    assert parts(1000, 2) == 8 * [2]


def test_the_default_on_a_gpu_is_known(folder):
    on_gpu = types.SimpleNamespace(is_cuda=True)
    groups = [{"params": [on_gpu], "foreach": None}]
    optimizer = types.SimpleNamespace(param_groups=groups)
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
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: seen.append("before"))
    optimizer.register_step_post_hook(lambda opt, args, kwargs: seen.append("after"))
    with ferry_torch.follow(plan, job.model, optimizer):
        job.step(1), job.step(2)
    assert seen == ["before", "after"] * 2, seen
    with ferry_torch.record(folder + "/again.json", job.model, optimizer):
        job.step(3)
    assert seen == ["before", "after"] * 3, seen
    job.step(4)
    assert seen == ["before", "after"] * 4, seen


def test_a_hook_that_changes_the_call_is_refused(folder):
    make, batches = NETS["cnn"]
    job = Job(make, OPTIMIZERS["adam"], batches)
    job.step(0)
    plan = plan_for(folder, job)
    job.optimizer.register_step_pre_hook(lambda opt, args, kwargs: (args, kwargs))
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


class StopsEarly(Job):
    """Checkpointing stops by raising, once all is calculated again that is asked for."""

    def step(self, number):
        model = self.model
        self.model = functools.partial(checkpoint.checkpoint, model, use_reentrant=False)
        try:
            super().step(number)
        finally:
            self.model = model


def test_an_early_stop_of_checkpointing_spoils_no_step(folder):
    report = both(lambda: StopsEarly(Cnn, OPTIMIZERS["adam"], pictures(20, 10)), 6, "98%").report
    assert report.steps == 3 and report.other == report.unmatched == 0, report.text()
