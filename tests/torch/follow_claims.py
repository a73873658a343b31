# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan changes nothing but where bytes lie: same losses, same parameters, bit for bit."""
import contextlib
import os
import types
import unittest.mock

import torch
import torch.nn.functional as F

import ferry_torch
from common import Allocator, Job, both, even_times, plan_for, resident, same, solve
from ferry_torch import trace as traces
from ferry_torch.valve import Valve
from ferry_torch.watch import told_by
from nets import NETS, OPTIMIZERS, Cnn, Transformer, letters, pictures


def check(folder, make, **how):
    plain, planned, report = both(folder, make, **how)
    assert same(plain, planned), "losses or parameters differ"
    assert report.unmatched == 0 and report.other == 0, report.text()
    return report


def matrix(net):
    def claim(folder):
        for name, optimizer in OPTIMIZERS.items():
            make, batches = NETS[net]
            report = check(folder, lambda: Job(make, optimizer, batches))
            assert report.out_bytes > 0 and report.in_bytes > 0, f"{name}: nothing moved"
    return claim


test_cnn_with_four_optimizers = matrix("cnn")
test_lstm_with_four_optimizers = matrix("lstm")
test_transformer_with_four_optimizers = matrix("transformer")
test_unet_with_four_optimizers = matrix("unet")


def peaks(folder, make, optimizer, batches, with_plan=True, share=None):
    """Of the plan, and of the allocator's events without the host's part."""
    spare = Job(make, optimizer, batches)
    spare.step(0)
    plan = plan_for(folder, spare)
    if share is not None:  # a plan that depends on no clock
        even_times(folder, 100000)
        plan = solve(folder, share)
    spare, host, predicted = None, 0, 0
    with Allocator() as allocator:
        job = Job(make, optimizer, batches)
        job.step(0)
        how = ferry_torch.follow(plan, job.model, job.optimizer)
        with how if with_plan else contextlib.nullcontext() as run:
            job.step(2)
            job.step(3)
            allocator.step(lambda: job.step(4))
            if with_plan:
                host = run.follower.arena.size + run.follower.arena.extra
                predicted = run.report.predicted["peak_bytes"]
    return predicted, allocator.most() - host


def test_copies_that_end_late_are_waited_for_where_memory_is_short(folder):
    """Each copy seems to run until somebody waits for it: only then its source may go."""
    make, batches = NETS["cnn"]
    seen = []
    with unittest.mock.patch("ferry_torch.lanes.Done.over", lambda signal: False):
        for used in (0, 2):
            with unittest.mock.patch("ferry_torch.valve.most_of", lambda *asked: 1), \
                    unittest.mock.patch("ferry_torch.valve.Valve.next_need", lambda *asked: 0), \
                    unittest.mock.patch("ferry_torch.valve.used_of", lambda device: used):
                predicted, most = peaks(folder, make, OPTIMIZERS["adam"], batches, share=0.5)
                seen.append(most / predicted)
    assert seen[1] <= 1.0 < seen[0], seen


def test_the_allocator_is_asked_only_where_it_may_matter(folder):
    """As often as what the ops need could have filled what was left."""
    ops = [{"reads": [], "writes": [k], "workspace_bytes": 10, "compute": {"pack": [k]}} for k in range(8)]
    plan = types.SimpleNamespace(ops=ops, tensors=[{"bytes": 90, "persistent": False, "born_before": None}] * 8,
                                 events=lambda kind: [(k, k) for k in range(8)])
    asked = []
    with unittest.mock.patch("ferry_torch.valve.most_of", lambda *_: 640), \
            unittest.mock.patch("ferry_torch.valve.used_of", lambda _: asked.append(1) or used):
        used, valve = 120, Valve(plan, torch.device("cpu"))  # 640 - 20 - 120 = 500 are left
        assert [valve.is_tight(k) for k in range(5)] == [False] * 5 and len(asked) == 1
        assert not valve.is_tight(5) and len(asked) == 2, "five ops may have taken it all"
        valve.took(450)
        assert not valve.is_tight(5) and len(asked) == 3, "so may what came back"
        used = 540
        assert not valve.is_tight(6) and len(asked) == 3 and valve.is_tight(0) and len(asked) == 4, "another step"
        assert valve.is_tight(1) and len(asked) == 5, "where it is tight it is asked each time"


def test_a_bring_for_which_there_is_no_room_is_late(folder):
    """A copy back that the plan wants and the card has no room for comes when it is asked for."""
    from ferry_torch import follower, slots
    make, batches = NETS["cnn"]
    real, calls = slots.Content.bring, []

    def bring(content, last=True):
        calls.append(1)
        if len(calls) % 3 == 0:
            raise follower.OUT_OF_MEMORY("no room")
        return real(content, last)
    with unittest.mock.patch("ferry_torch.slots.Content.bring", bring):
        plain, planned, report = both(folder, lambda: Job(make, OPTIMIZERS["adam"], batches), steps=20)
    assert same(plain, planned) and report.late > 0 and report.unmatched == 0, report.text()


def test_the_device_has_what_was_predicted(folder):
    for net, (make, batches) in NETS.items():
        predicted, seen = peaks(folder, make, OPTIMIZERS["adam"], batches)
        assert seen <= 1.1 * predicted, f"{net}: {seen} seen, {predicted} predicted"


def test_optimizer_state_and_weights_leave_between_steps(folder):
    job = Job(lambda: Cnn(4), OPTIMIZERS["adam"], pictures(20, 10, batch=1))
    job.step(0)
    before = resident(job)
    plan = plan_for(folder, job)
    kept = [(p, p.data_ptr()) for p in job.model.parameters()]
    view = job.model.out.weight.view(-1)
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        job.step(2)
        job.step(3)
        assert resident(job) < before, "nothing has left"
        assert run.follower.standing, "the plan moves no weight and no state"
    assert resident(job) == before
    assert view.data_ptr() == job.model.out.weight.data_ptr()
    assert torch.equal(view, job.model.out.weight.view(-1)) and kept[0][0] is next(job.model.parameters())


def test_what_left_is_really_gone(folder):
    """The source is freed when its copy is out: less is there at the peak than without a plan."""
    make, batches = NETS["unet"]
    _, without = peaks(folder, make, OPTIMIZERS["sgd"], batches, with_plan=False)
    _, seen = peaks(folder, make, OPTIMIZERS["sgd"], batches)
    assert seen < 0.85 * without, f"{seen} with the plan, {without} without"


def test_views_and_in_place_ops(folder):
    class Net(Cnn):
        def forward(self, x):
            x = self.conv1(x)
            x = F.relu(self.bn1(x), inplace=True)
            y = x.view(x.shape[0], -1).narrow(1, 0, 1200)
            x = x.mul(0.5).add_(1)
            x = torch.tanh(self.conv2(x)[:, :, ::2])
            return self.out(y) + x.sum((1, 2, 3)).unsqueeze(1)
    check(folder, lambda: Job(Net, OPTIMIZERS["momentum"], pictures(20, 10)))


def test_autocast(folder):
    class Net(Cnn):
        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return super().forward(x).float()
    check(folder, lambda: Job(Net, OPTIMIZERS["adamw"], pictures(20, 10)), steps=20)


def test_gradient_accumulation(folder):
    class Twice(Job):
        def step(self, number):
            self.optimizer.zero_grad(set_to_none=True)
            for half in (0, 1):
                torch.manual_seed(2 * number + half)
                x, y = self.batches(2 * number + half)
                loss = self.loss(self.model(x), y) / 2
                loss.backward()
                self.losses.append(loss.item())
            self.optimizer.step()
    check(folder, lambda: Twice(Cnn, OPTIMIZERS["adam"], pictures(20, 10, batch=4)), steps=20)


def test_a_short_last_batch_is_run_without_the_plan(folder):
    def batches(step):
        x, y = pictures(20, 10)(step)
        return (x[:3], y[:3]) if step == 5 else (x, y)
    plain, planned, report = both(folder, lambda: Job(Cnn, OPTIMIZERS["adam"], batches), steps=20)
    assert same(plain, planned) and report.other == 1 and report.followed > 0


def test_what_is_before_the_model_is_no_part_of_its_plan(folder):
    """As another network's step: a follower looks from the call of the model on."""
    class Rivals(Job):
        def step(self, number):
            w = torch.linspace(-1, 1, 4096, requires_grad=True)
            y = torch.tanh(w)
            (y * y).sum().backward()
            self.losses.append(w.grad.sum().item())
            super().step(number)
    report = check(folder, lambda: Rivals(Cnn, OPTIMIZERS["adam"], pictures(20, 10)), steps=20)
    assert report.followed > 0, report.text()


class ByName(Cnn):
    """Its batch is given by name, as many programs do."""

    def __call__(self, x):
        return super().__call__(pictures=x)

    def forward(self, pictures):
        return super().forward(pictures)


def test_inputs_by_name_are_a_batch_too(folder):
    def batches(step):
        x, y = pictures(20, 10)(step)
        return (x[:3], y[:3]) if step == 5 else (x, y)
    plain, planned, report = both(folder, lambda: Job(ByName, OPTIMIZERS["adam"], batches), steps=20)
    assert same(plain, planned) and report.other == 1 and report.unmatched == 0, report.text()
    assert traces.load(folder + "/step.json")["batch"] == 8


def test_a_notebook_shows_the_plan_and_what_was_seen(folder):
    job = Job(Cnn, OPTIMIZERS["adam"], pictures(20, 10))
    job.step(0)
    with ferry_torch.follow(plan_for(folder, job), job.model, job.optimizer) as run:
        job.step(1)
        shown = run._repr_html_()
    assert shown.count("<svg") == 1 and "<th>predicted" in shown and "of 1 steps" in shown, shown


def test_shared_weights(folder):
    make = lambda: Transformer(tied=True)
    check(folder, lambda: Job(make, OPTIMIZERS["adam"], letters(24)), steps=20)


def test_checkpointing_inside(folder):
    from torch.utils.checkpoint import checkpoint
    for reentrant in (True, False):
        class Net(Transformer):
            def forward(self, x):
                x = self.embed(x)
                for block in self.blocks:
                    x = checkpoint(block, x, use_reentrant=reentrant)
                return self.out(x).transpose(1, 2)
        plain, planned, report = both(folder, lambda: Job(Net, OPTIMIZERS["adam"], letters(24)), steps=20)
        assert same(plain, planned), f"reentrant {reentrant}"


def test_double_backward(folder):
    class Twice(Job):
        def step(self, number):
            torch.manual_seed(number)
            x, y = self.batches(number)
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss(self.model(x), y)
            loss.backward(retain_graph=True)
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.item())
    plain, planned, spare = (Twice(Cnn, OPTIMIZERS["sgd"], pictures(20, 10)) for _ in range(3))
    spare.step(0)
    with ferry_torch.record(os.path.join(folder, "step.json"), spare.model, spare.optimizer):
        spare.step(1)
    even_times(folder, 20000)  # so long that weights leave between the two ways back
    plan = solve(folder, 0.2)
    planned.step(0)
    with ferry_torch.follow(plan, planned.model, planned.optimizer) as run:
        for n in range(1, 6):
            planned.step(n)
    for n in range(6):
        plain.step(n)
    assert same(plain.result(), planned.result())
    assert run.report.out_bytes > 0 and run.report.unmatched == run.report.late == 0, run.report.text()
    plan, calls = run.follower.plan, run.follower.calls
    assert told_by(plan, range(len(plan.ops))) <= {n for call in calls for n in range(call.first, call.end)}, "no hook sees a loss"
