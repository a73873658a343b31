# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan drops is made again, bit for bit, by the ops that made it."""
import itertools
import json
import os
import types

import torch
import torch.nn.functional as F
from torch import nn

import ferry_torch
from common import Allocator, Job, even_times, moves, same, solve
from ferry_torch import trace as traces
from ferry_torch.again import Below, Book, Entry, Held, ModuleCall, can_run
from ferry_torch.arena import Arena
from ferry_torch.calls import FUNCTIONS
from ferry_torch.lanes import CpuLanes
from ferry_torch.slots import Content
from nets import NETS, OPTIMIZERS, Cnn, Transformer, letters, pictures
from trap_claims import Net, refused

SLOW = 10**9  # of a link over which little is worth carrying


def plan_again(folder, job, share=0.6, mode="only"):
    """Records a step and plans it with what is dropped."""
    job.step(0)
    with ferry_torch.record(os.path.join(folder, "step.json"), job.model, job.optimizer):
        job.step(1)
    even_times(folder)
    plan = solve(folder, share, "--recompute", mode, "--limit", "300000", rate=SLOW)
    with open(plan) as file:
        assert json.load(file)["recompute"], "nothing is made again"
    return plan


def both(folder, make, steps=20, **how):
    plan = plan_again(folder, make(), **how)
    plain, planned = make(), make()
    for n in range(steps):
        plain.step(n)
    planned.step(0)
    with ferry_torch.follow(plan, planned.model, planned.optimizer) as run:
        for n in range(1, steps):
            planned.step(n)
    assert "forward" not in planned.model.__dict__
    assert same(plain.result(), planned.result()), "losses or parameters differ"
    return run.report


def as_predicted(report):
    rows = {name: (expected, seen) for name, expected, seen in report.rows()}
    assert rows["again_bytes"][0] == rows["again_bytes"][1] > 0, report.text()
    assert report.late == report.unmatched == 0, report.text()


class Validates(Job):
    """Behind each step looks at how good it has become, with another batch."""

    def step(self, number):
        super().step(number)
        self.model.eval()
        for evaluated in (torch.no_grad, torch.inference_mode):
            with evaluated():
                self.losses.append(self.model(self.batches(number)[0][:3]).sum().item())
        self.model.train()


def test_passes_without_gradients_are_no_steps(folder):
    make, batches = NETS["cnn"]
    report = both(folder, lambda: Validates(make, OPTIMIZERS["adamw"], batches))
    as_predicted(report)
    assert report.other == 0, report.text()


def test_nets_learn_the_same(folder):
    for net, (make, batches) in NETS.items():
        for optimizer in ("momentum", "adamw"):
            if net != "lstm":  # its layers are one op each, whose results cannot be made again
                as_predicted(both(folder, lambda: Job(make, OPTIMIZERS[optimizer], batches), share=0.9))


def test_with_copies_over_the_link(folder):
    """Some leave, some are dropped, and some that left are read to make others; weights leave, too, and come back by
    copies that are no ops of the step."""
    for net in ("cnn", "transformer", "unet"):
        make, batches = NETS[net]
        report = both(folder, lambda: Job(make, OPTIMIZERS["adam"], batches), share=0.2, mode="auto")
        as_predicted(report)
        assert moves(os.path.join(folder, "plan.json")) and report.out_bytes > 0, f"{net}: nothing moved"


def test_the_device_has_what_was_predicted(folder):
    for net in ("cnn", "unet"):
        make, batches = NETS[net]
        plan = plan_again(folder, Job(make, OPTIMIZERS["adam"], batches), 0.8)
        with Allocator() as allocator:
            job = Job(make, OPTIMIZERS["adam"], batches)
            job.step(0)
            with ferry_torch.follow(plan, job.model, job.optimizer) as run:
                job.step(2)
                allocator.step(lambda: job.step(3))
        predicted, seen = run.report.predicted["peak_bytes"], allocator.most()
        assert seen <= 1.1 * predicted, f"{net}: {seen} seen, {predicted} predicted"


def test_autocast(folder):
    class Mixed(Cnn):
        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return super().forward(x).float()
    as_predicted(both(folder, lambda: Job(Mixed, OPTIMIZERS["adamw"], pictures(20, 10)), share=0.9))


def test_way_back_inside_autocast(folder):
    """What runs again is what ran below autocast, also where that was off: nothing is cast anew."""
    class Inside(Job):
        def step(self, number):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                super().step(number)

    class Whole(Cnn):
        def forward(self, x):
            with torch.autocast("cpu", enabled=False):
                return super().forward(x)
    as_predicted(both(folder, lambda: Inside(Whole, OPTIMIZERS["sgd"], pictures(20, 10))))


def test_in_place_ops_and_views(folder):
    def between(net, x):
        x = net.act(net.norm(x))
        return torch.cat([x[:, :4].mul(3), torch.sigmoid(x[:, 4:])], 1)

    class Normed(Net):
        def __init__(self):
            super().__init__(between)
            self.norm, self.act = nn.BatchNorm2d(8), nn.ReLU(inplace=True)
    as_predicted(both(folder, lambda: Job(Normed, OPTIMIZERS["momentum"], pictures(20, 10)), share=0.9))


def test_accumulated_gradients(folder):
    class Twice(Job):
        def step(self, number):
            self.optimizer.zero_grad(set_to_none=True)
            for half in (0, 1):
                torch.manual_seed(2 * number + half)
                x, y = self.batches(2 * number + half)
                (self.loss(self.model(x), y) / 2).backward()
            self.optimizer.step()
    as_predicted(both(folder, lambda: Twice(Cnn, OPTIMIZERS["adam"], pictures(20, 10, batch=4)),
                      share=0.8, mode="auto"))


def test_a_short_last_batch_is_run_without_the_plan(folder):
    def batches(step):
        x, y = pictures(20, 10)(step)
        return (x[:3], y[:3]) if step == 3 else (x, y)
    report = both(folder, lambda: Job(Cnn, OPTIMIZERS["adam"], batches))
    assert report.other == 1 and report.bytes_again > 0


def test_a_graph_that_outlives_its_step(folder):
    """What it lacks is made from what its own step has noted."""
    make = lambda: Job(Cnn, OPTIMIZERS["sgd"], pictures(20, 10))
    plan = plan_again(folder, make())

    def train(job, follow):
        job.step(0)
        job.optimizer.zero_grad(set_to_none=True)
        torch.manual_seed(3)
        with follow(job):
            first = job.loss(job.model(job.batches(1)[0]), job.batches(1)[1])
            job.optimizer.step()
            second = job.loss(job.model(job.batches(2)[0]), job.batches(2)[1])
            return [g.clone() for kept in (first, second)
                    for g in torch.autograd.grad(kept, list(job.model.parameters()))]

    import contextlib
    plain = train(make(), lambda job: contextlib.nullcontext())
    planned = train(make(), lambda job: ferry_torch.follow(plan, job.model, job.optimizer))
    assert all(map(torch.equal, plain, planned))


def test_what_may_not_run_again_is_marked(folder):
    """Random ops, those that change statistics or what was there before, and the way back."""
    job = Job(Cnn, OPTIMIZERS["adam"], pictures(20, 10))
    job.step(0)
    with ferry_torch.record(os.path.join(folder, "step.json"), job.model, job.optimizer) as recording:
        job.step(1)
    again = {}
    for op in recording.trace["ops"]:
        again.setdefault(op["name"].rsplit(".", 1)[-1], set()).add("out" in op["compute"])
        assert op["phase"] == "forward" or "out" not in op["compute"], op["name"]
    assert again["convolution"] == again["native_batch_norm"] == again["relu_"] == {True}, again
    assert again["bernoulli_"] == {False} and again["add_"] == {False}, again


def changed_plan(plan, change):
    with open(plan) as file:
        whole = json.load(file)
    change(whole)
    path = plan.replace("plan.json", "changed.json")
    with open(path, "w") as file:
        json.dump(whole, file)
    return path


def test_refusals(folder):
    job = Job(Cnn, OPTIMIZERS["sgd"], pictures(20, 10))
    plan = plan_again(folder, job)
    ops = traces.load(os.path.join(folder, "step.json"))["ops"]
    dice = next(k for k, op in enumerate(ops) if op["name"].endswith("bernoulli_"))
    loss = next(k for k, op in enumerate(ops) if op["name"].endswith("nll_loss2d_forward")
                or op["name"].endswith("nll_loss_forward"))

    def follow(path):
        with ferry_torch.follow(path, job.model, job.optimizer):
            job.step(2)
    for k in (dice, loss):
        refused(lambda: follow(changed_plan(plan, lambda whole: whole["recompute"][0].update(ops=[k]))), "rule rewrite")

    def drops_what_is_held(whole):
        entry = whole["recompute"][0]
        entry["replaces"] = [t for t, row in enumerate(traces.load(os.path.join(folder, "step.json"))["tensors"])
                             if row["name"].endswith("bernoulli_") or row["kind"] == "parameter"][:1]
    refused(lambda: follow(changed_plan(plan, drops_what_is_held)), "is not written by this entry")
    unmarked = {"name": "mul", "compute": {"kind": "torch"}, "side": [], "writes": [0]}  # other executors could
    refused(lambda: Entry(0, {"before": 1, "ops": [0], "replaces": [0]}, [unmarked], [{"persistent": False}]), "would not make the same")


def test_random_ops_are_not_run_again(folder):
    aten, fresh = torch.ops.aten, types.SimpleNamespace(persistent=False, born=None)
    x = torch.ones(1, 2, 4, 4)
    for func, args, kwargs, may in (
            (aten.relu.default, [x], {}, True), (aten.rand_like.default, [x], {}, False),
            (aten.native_dropout.default, [x, 0.5, True], {}, False),
            (aten._scaled_dot_product_flash_attention_for_cpu.default, [x, x, x, 0.5], {}, False)):
        before = [fresh for a in args if a is x]
        assert can_run(FUNCTIONS[func], args, kwargs, before, []) is may, func
    kept = types.SimpleNamespace(persistent=True, born=None)
    assert not can_run(FUNCTIONS[aten.add_.Tensor], [x, x], {}, [kept, fresh], [(kept, False)])


def test_a_weight_that_has_changed_is_not_used_again(folder):
    layer, x = nn.Linear(4, 4), torch.ones(2, 4)
    call = ModuleCall(layer, layer.forward, types.SimpleNamespace(inputs=[-1], module="layer"), [x], {})
    with torch.no_grad():
        layer.weight.mul_(2)
    follower = types.SimpleNamespace(standing={})
    refused(lambda: call.run(None, follower), "a weight of layer")


def test_statistics_change_the_first_time_only(folder):
    class Own(nn.BatchNorm2d):
        def forward(self, x):
            return super().forward(x) + 1
    for kind, training in ((nn.BatchNorm2d, True), (nn.BatchNorm2d, False), (Own, True)):
        norm, x = kind(2).train(training), torch.randn(3, 2, 4, 4)
        call = ModuleCall(norm, norm.forward, types.SimpleNamespace(inputs=[-1], module="norm"), [x], {})
        made, before = norm(x), [t.clone() for t in norm.buffers()]
        again = call.run(None, types.SimpleNamespace(standing={}))
        assert torch.equal(again, made.detach())
        assert all(map(torch.equal, before, norm.buffers())), "the statistics have moved twice"


def test_a_norm_makes_the_same_bits_without_its_statistics(folder):
    """By each kernel that is here: on a GPU torch chooses one by type, layout and size."""
    for device, dtype, layout, size in itertools.product(["cpu"] + ["cuda"] * torch.cuda.is_available(), (torch.float32, torch.bfloat16),
                                                         (torch.contiguous_format, torch.channels_last), (4, 28)):
        norm = nn.BatchNorm2d(32).to(device)
        x = torch.randn(8, 32, size, size, device=device).to(dtype=dtype, memory_format=layout).requires_grad_()
        call = ModuleCall(norm, norm.forward, types.SimpleNamespace(inputs=[-1], module="norm"), [x], {})
        made = norm(x).detach()
        with Below(made.device):
            again = call.run(None, types.SimpleNamespace(standing={}))
        assert torch.equal(again, made) and again.stride() == made.stride(), f"{device} {dtype} {layout} {size}"


def test_what_was_changed_meanwhile_is_said(folder):
    """Nothing is made from bytes that the program has changed since they were noted."""
    class Stub:
        standing = {}
        entries, tensors = [], [{"name": "batch"}]
    batch = torch.ones(3)
    book = Book(Stub)
    book.held[0] = {7: Held(batch)}  # by op
    assert torch.equal(book.outside(0, 7, Stub), torch.ones(3))
    batch[1:].mul_(2)
    refused(lambda: book.outside(0, 7, Stub), "modified by an inplace operation")
    book.held[0][9] = Held(batch)
    assert torch.equal(book.outside(0, 9, Stub), batch)


def test_weights_that_differ_between_two_passes_of_a_step(folder):
    """What each pass has made is made again from the weights that it had."""
    class Ascends(Job):  # the second pass is at the worst point near by
        def step(self, number):
            torch.manual_seed(number)
            x, y = self.batches(number)
            weights, ways = list(self.model.parameters()), []
            for sign in (1, -1):
                self.optimizer.zero_grad(set_to_none=True)
                loss = self.loss(self.model(x), y)
                loss.backward()
                with torch.no_grad():
                    ways = ways or [p.grad * 0.05 for p in weights]
                    for p, way in zip(weights, ways):
                        p.add_(way, alpha=sign)
            self.optimizer.step()
            self.losses.append(loss.item())
    for share in (0.3, 0.6):
        report = both(folder, lambda: Ascends(Cnn, OPTIMIZERS["momentum"], pictures(20, 10)), share=share)
        assert report.ops_again > 0, report.text()


def test_a_dropped_tensor_that_was_changed_before_is_said(folder):
    """As long as the bytes are the program's own, autograd's rule holds."""
    content = Content(x := torch.ones(3), Arena(CpuLanes(), 0), None)
    content.bring()
    assert not content.changed()
    x.add_(1)
    assert content.changed()
    content.drop()
    content.put(torch.zeros(12, dtype=torch.uint8))
    assert not content.changed() and content.use() is content.raw


def test_a_model_that_takes_another_way_keeps_all(folder):
    """A module is given what the trace does not have: what it makes is kept, and the model learns the same."""
    class Forked(Cnn):
        other = False

        def forward(self, x):
            return super().forward(x if not self.other else torch.sin(x))
    make = lambda: Job(Forked, OPTIMIZERS["adam"], pictures(20, 10))
    plan = plan_again(folder, make())
    plain, planned = make(), make()
    for job in (plain, planned):
        job.step(0)
        job.model.other = True
    for n in range(1, 4):
        plain.step(n)
    with ferry_torch.follow(plan, planned.model, planned.optimizer) as run:
        for n in range(1, 4):
            planned.step(n)
    assert same(plain.result(), planned.result()), run.report.text()


class Chosen(nn.Module):
    """Layers of one size, in an order of its own in each step."""

    def __init__(self):
        super().__init__()
        self.rows = nn.ModuleList(nn.Embedding(50, 16) for _ in range(3))
        self.out, self.order, self.tanh = nn.Linear(16, 50), (0, 1, 2), nn.Tanh()

    def forward(self, x):
        return self.out(sum(self.tanh(self.rows[i](x)) for i in self.order)).transpose(1, 2)


def test_ops_on_other_tensors_than_the_traces(folder):
    """The same ops in the same order, and what one reads is not what the trace says."""
    class Turns(Job):
        def step(self, number):
            self.model.order = (0, 0, 1) if number < 2 else [(0, 1, 0), (1, 2, 2)][number % 2]
            super().step(number)
    report = both(folder, lambda: Turns(Chosen, OPTIMIZERS["adam"], letters(24)), share=0.9)
    assert report.ops_again > 0, report.text()
