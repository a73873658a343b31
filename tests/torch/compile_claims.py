# SPDX-License-Identifier: GPL-3.0-or-later
"""A compiled model within a budget learns the same bits as without one."""
import unittest.mock

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

import ferry_torch
from common import Job, same
from ferry_torch import memory
from ferry_torch.joint import written_in
from ferry_torch.lanes import CpuLanes
from ferry_torch.scratch import workspaces
from nets import NETS, OPTIMIZERS, pictures


STEPS = 20


def trained(net, budget, recompute="auto", steps=STEPS, inner="eager", of_machine=False):
    """Without the machine's own workspaces its plans are the same everywhere."""
    with unittest.mock.patch("ferry_torch.compiled.workspaces", workspaces if of_machine else lambda *how: {}):
        return trained_here(net, budget, recompute, steps, inner)


def trained_here(net, budget, recompute, steps, inner):
    torch._dynamo.reset()
    make, batches = net if isinstance(net, tuple) else NETS[net]
    job, said = Job(make, OPTIMIZERS["adam"], batches), []
    how = ferry_torch.backend(budget, inner=inner, recompute=recompute, say=said.append)
    plain = job.model
    job.model = torch.compile(plain, backend=how, dynamic=False)
    for n in range(steps):
        job.step(n)
    job.model = plain
    return job.result(), how.planner.reports, said


def test_the_same_is_learned_within_every_budget(folder):
    for net in ("cnn", "transformer", "unet"):
        whole, reports, said = trained(net, "100%")
        assert reports and not any("without a budget" in line for line in said), said
        for recompute in ("off", "auto", "only"):
            for budget in ("90%", "80%"):
                result, seen, said = trained(net, budget, recompute)
                assert same(whole, result), f"{net} {recompute} {budget}: other bits"
                assert seen and seen[0]["peak_bytes"] < reports[0]["peak_bytes"], f"{net} {recompute} {budget}: {said}"


def test_what_a_plan_carries_is_really_copied_out_and_back(folder):
    sizes = {"out": [], "back": []}
    plain = {way: getattr(CpuLanes, way) for way in sizes}

    def counts(way):
        return lambda self, source, target, after: (sizes[way].append(source.numel()), plain[way](self, source, target, after))[1]
    with unittest.mock.patch.multiple(CpuLanes, **{way: counts(way) for way in sizes}):
        result, seen, said = trained("cnn", "80%", "off", 3)
    for way in sizes:  # the card's granules are of 512 bytes
        assert sum(-(-n // 512) * 512 for n in sizes[way]) == 3 * seen[0]["d2h_bytes"] > 0, sizes


def test_a_copy_that_comes_back_at_the_last_moment_is_before_its_views(folder):
    from ferry_torch.compiled import Planner
    plan_of = Planner.planned

    def late(self, *how):
        plan = plan_of(self, *how)
        for move in plan.moves:
            move.trigger = move.in_before
        return plan
    for net in ("cnn", "transformer"):
        whole = trained(net, "100%", steps=2)[0]
        with unittest.mock.patch.object(Planner, "planned", late):
            result, seen, said = trained(net, "80%", "off", 2)
        assert same(whole, result) and seen[0]["d2h_bytes"] > 0, said


class Later:
    """The end of a copy that is made when somebody waits for it."""

    def __init__(self, source, target, after):
        self.source, self.target, self.after = source, target, after

    def wait(self):
        if self.source is not None:
            for signal in self.after:
                signal.wait()
            self.target.copy_(self.source)
            self.source = self.after = None


class LateLanes(CpuLanes):
    def out(self, source, target, after):
        return Later(source, target, after)

    back = out


def learns_the_same_with_late_copies(inner, steps=STEPS):
    with unittest.mock.patch("ferry_torch.lanes.choose", lambda device: LateLanes()):
        for net in ("cnn", "transformer"):
            whole = trained(net, "100%", inner=inner, steps=steps)[0]
            result, seen, said = trained(net, "80%", "off", inner=inner, steps=steps)
            assert same(whole, result) and seen[0]["d2h_bytes"] > 0, said


def test_a_copy_that_ends_late_is_waited_for(folder):
    learns_the_same_with_late_copies("eager")


def test_workspaces_of_kernels_are_planned(folder):
    """Each that has one is run, and what it took beside what it made counts."""
    class Large(memory.NoMemory):
        def peak(self, span):
            return 1 << 22
    with unittest.mock.patch("ferry_torch.memory.choose", lambda device, modelled: Large()), \
            unittest.mock.patch.dict("ferry_torch.scratch.KNOWN", clear=True):
        whole, reports, _ = trained("unet", "100%", steps=1, of_machine=True)
    assert reports[0]["peak_bytes"] > 1 << 22, reports
    result, seen, _ = trained("unet", "100%", steps=1)
    assert same(whole, result) and seen[0]["peak_bytes"] < 1 << 22, seen


def test_statistics_that_change_behind_a_step_are_not_asked_for_again(folder):
    """The least that remakes alone can do: a norm that runs again would read them as they are by then."""
    whole, reports, _ = trained("cnn", "100%", steps=3)
    seen = []
    for percent in range(94, 60, -4):
        result, made, said = trained("cnn", f"{reports[0]['peak_bytes'] * percent // 100}", "only", 3)
        seen += made
        assert same(whole, result), said
    assert len(seen) > 1, seen


def test_what_does_not_fit_runs_without_a_budget(folder):
    result, reports, said = trained("cnn", "1KiB", steps=2)
    assert not reports and len(said) == 1 and "without a budget" in said[0], said


class Broken(nn.Module):
    """Half of it prints, which no graph can."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Sequential(nn.Linear(1200, 64), nn.ReLU()), nn.Linear(64, 10)

    def forward(self, x):
        x = self.one(x.flatten(1))
        torch._dynamo.graph_break()
        return self.two(x)


class Hollow(nn.Module):
    """It joins what it makes to a tensor without bytes."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(1200, 64), nn.Linear(64, 10)

    def forward(self, x):
        x = torch.tanh(self.one(x.flatten(1)))
        return self.two(torch.cat([x, torch.tanh(x[:, :0])], 1))


def test_a_tensor_without_bytes_is_none_of_the_trace(folder):
    net = Hollow, pictures(20, 10)
    whole, reports, said = trained(net, "1GiB")
    assert len(reports) == 1 and not any("without a budget" in line for line in said), said
    assert same(whole, trained(net, "100%")[0])


class Rough(torch.autograd.Function):
    """Draws on the way there what only the way back uses, and more on the way back."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x, torch.rand_like(x))
        return 2 * x

    @staticmethod
    def backward(context, gradient):
        x, noise = context.saved_tensors
        return gradient * (1 + noise) + torch.rand(x.shape) * x


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.drop = nn.Conv2d(3, 12, 3), nn.Linear(12 * 18 * 18, 10), nn.Dropout(0.3)

    def forward(self, x):
        x = Rough.apply(self.drop(torch.tanh(self.one(x))))
        return self.two(self.drop(torch.tanh(x)).flatten(1))


def test_numbers_are_drawn_in_the_programs_order(folder):
    """Each draw is once, on the way where the program has it, whichever way needs it: as without torch.compile."""
    net = Noisy, pictures(20, 10)
    plain = Job(net[0], OPTIMIZERS["adam"], net[1])
    for n in range(STEPS):
        plain.step(n)
    for budget in ("100%", "85%"):
        result, reports, said = trained(net, budget)
        assert reports and not any("without a budget" in line for line in said), said
        assert same(plain.result(), result), f"{budget}: other bits"


class Growing(nn.Module):
    """It changes a buffer that ops before have read."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 12, 3), nn.Linear(12 * 18 * 18, 10)
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x):
        x = torch.sin(torch.tanh(self.one(x) + self.scale) + self.scale)
        self.scale.mul_(1.5)
        return self.two(x.flatten(1))


def test_what_reads_a_buffer_that_changes_is_not_made_again(folder):
    net = Growing, pictures(20, 10)
    plain = Job(net[0], OPTIMIZERS["adam"], net[1])
    for n in range(3):
        plain.step(n)
    for budget in ("712KiB", "790KiB"):
        result, reports, said = trained(net, budget, steps=3)
        assert reports and not any("without a budget" in line for line in said), said
        assert same(plain.result(), result), f"{budget}: other bits"


def test_writes_to_lists_and_through_views_are_seen(folder):
    def writes(x, y, z):
        torch._foreach_mul_([y], 2)
        x.split(2)[1].add_(1)
        return x + y + z
    nodes = make_fx(writes)(*(torch.ones(4) for _ in range(3))).graph.nodes
    assert {n.name for n in written_in(list(nodes)) if n.op == "placeholder"} == {"x_1", "y_1"}


def test_parts_of_a_split_are_views(folder):
    from ferry_torch.compiled import Planner
    met, plan_of = [], Planner.planned

    def seen(self, joint, *how):
        met.extend(node.target.overloadpacket for node in joint.makers)
        return plan_of(self, joint, *how)
    with unittest.mock.patch.object(Planner, "planned", seen):
        trained("transformer", "100%", steps=1)
    aten = torch.ops.aten
    assert aten.addmm in met and not {aten.split, aten.view, aten.transpose, aten.t, aten.permute}.intersection(met), met


def test_where_a_graph_breaks_each_part_has_the_budget_and_that_is_said(folder):
    net = Broken, pictures(20, 10)
    whole, reports, _ = trained(net, "1GiB")
    result, seen, said = trained(net, "100%")
    assert same(whole, result) and len(reports) == len(seen) == 2, reports
    assert any("2 graphs" in line for line in said), said


def test_on_a_gpu_times_are_by_rates_that_it_reaches(folder):
    from ferry_torch import card, compiled
    seen = card.roof_here(torch.device("cpu"), 1 << 16, 32)
    assert all(seen[key] > 0 for key in ("memory_bytes_per_s", "fp32_flops", "bf16_flops")), seen
    roof = {"memory_bytes_per_s": 10**12, "fp32_flops": 10**12, "op_ns": 7}
    with unittest.mock.patch.multiple(compiled, this_card=lambda place: {"name": "some card"}, roof_here=lambda place: roof):
        clock = compiled.card_of(None, torch.device("cuda", 0), folder)[1]
    a = torch.ones(1000, 1000)
    assert clock(torch.ops.aten.mm.default, (a, a), a) == 2 * 10**6 + 7
    assert clock(torch.ops.aten.neg.default, (a,), a) == 8000 + 7


def test_a_budget_that_is_none_is_said(folder):
    for wrong in ({"budget": "much"}, {"budget": "1GiB", "inner": "tvm"}, {"budget": "1GiB", "recompute": "yes"},
                  {"budget": "1GiB", "device": "cuda"}, {"budget": torch.fx.symbolic_trace(torch.nn.ReLU())}):
        try:
            ferry_torch.backend(**wrong)
        except ferry_torch.Refused:
            continue
        raise AssertionError(f"{wrong} is not refused")
