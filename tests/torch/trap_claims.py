# SPDX-License-Identifier: GPL-3.0-or-later
"""Known traps: each of these fails when the guard against it is taken out."""
import json
import os
import types
import unittest.mock

import torch
import torch.nn.functional as F
from torch import nn

import ferry_torch
from common import Job, both, budget_of, card, even_times, ferry, moves, plan_for, same
from nets import OPTIMIZERS, Cnn, Transformer, letters, pictures
from ferry_torch import plan as plans
from ferry_torch.follower import Follower
from ferry_torch.held import Held
from ferry_torch.spill import Room
from ferry_torch.storages import Watched, Weak, storage_of
from ferry_torch.updates import state_of


def refused(what, words):
    try:
        what()
    except (ferry_torch.Refused, RuntimeError) as error:
        assert words in str(error), error
        return
    raise AssertionError(f"not refused: {words}")


class Net(nn.Module):
    """Some layers with whatever stands between them."""

    def __init__(self, between):
        super().__init__()
        self.a, self.b, self.c = (nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1),
                                  nn.Linear(8 * 400, 10))
        self.between = between

    def forward(self, x):
        x = self.between(self, self.a(x))
        x = F.relu(self.b(x))
        return self.c(x.flatten(1))


def compare(folder, between, steps=6):
    make = lambda: Job(lambda: Net(between), OPTIMIZERS["momentum"], pictures(20, 10))
    plain, planned, spare = make(), make(), make()
    spare.step(0)
    plan = plan_for(folder, spare)
    for n in range(steps):
        plain.step(n)
    planned.step(0)
    with ferry_torch.follow(plan, planned.model, planned.optimizer) as run:
        for n in range(1, steps):
            planned.step(n)
    assert same(plain.result(), planned.result()), "losses or parameters differ"
    assert run.report.followed > 0, "the plan moves nothing here"
    return run.report


def test_an_address_is_not_an_identity(folder):
    """A storage that lies where another did is another one, as long as anybody watches."""
    watched, addresses, met = Watched(), set(), 0
    for n in range(50):
        tensor = torch.full((1000,), float(n))
        assert watched.find(storage_of(tensor)) is None, "taken for one that is gone"
        met += tensor.data_ptr() in addresses
        addresses.add(tensor.data_ptr())
        watched.add(storage_of(tensor), n)
        del tensor
    assert met > 0, "no address was met twice, so nothing was tried"


def test_tensors_at_one_address_keep_their_own_bytes(folder):
    """Each is saved, freed once it is out, and the next lies where it was."""
    def between(net, x):
        for k in range(4):
            x = torch.sigmoid(x * (1 + k))
        return x
    compare(folder, between)


def test_another_storage_in_the_place_of_a_known_one(folder):
    """The pack has the size and the turn of the trace's, and yet it is another tensor."""
    def between(net, x):
        y = torch.tanh(x)
        w = y * 2 if net.other else y
        return w * w

    def make(other):
        job = Job(lambda: Net(between), OPTIMIZERS["momentum"], pictures(20, 10))
        job.model.other = other
        return job
    plain, planned, spare = make(True), make(True), make(False)
    spare.step(0)
    plan = plan_for(folder, spare)
    for n in range(4):
        plain.step(n)
    planned.step(0)
    with ferry_torch.follow(plan, planned.model, planned.optimizer) as run:
        for n in range(1, 4):
            planned.step(n)
    assert run.report.unmatched > 0 and same(plain.result(), planned.result())


def test_a_write_after_a_discarded_save(folder):
    """Autograd saved the bytes from before the write for a graph that nobody walks back."""
    def between(net, x):
        x = torch.tanh(x).detach().requires_grad_(True) + 0.5 * x
        net.kept = (x * net.b.weight.sum()).sum()
        x.mul_(2)
        return x * x
    compare(folder, between)


def test_the_copy_is_made_when_it_is_packed(folder):
    """The bytes may change as soon as the op is over: with `.data` autograd does not look. So a copy
    made later would be another."""
    from ferry_torch.arena import Arena
    from ferry_torch.lanes import CpuLanes
    from ferry_torch.slots import Content
    from ferry_torch.storages import Form
    x = torch.arange(8.0)
    content = Content(x, Arena(CpuLanes(), 512), 0)
    saved = x.clone()
    x.data.mul_(3)
    content.release(True)
    content.bring()
    assert torch.equal(Form(x).of(content.use()), saved)


class Nothing(torch.autograd.Function):
    """Saves a tensor without bytes, as batch normalization does on some GPUs."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x, torch.empty(0, 4))
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        x, nothing = context.saved_tensors
        assert nothing.shape == (0, 4)
        return gradient * (1 + 0 * x)


def test_a_saved_tensor_without_bytes(folder):
    make = lambda: Net(lambda net, x: F.relu(Nothing.apply(x)))
    plain, planned, report = both(folder, lambda: Job(make, OPTIMIZERS["adam"], pictures(20, 10)), steps=6)
    assert same(plain, planned) and report.unmatched == 0 and report.kept > 0, report.text()


def test_a_forward_pass_without_a_way_back_leaves_nothing(folder):
    """A saved result has the op that saves it behind it: a hook that holds it holds itself."""
    seen = []

    def between(net, x):
        x = F.relu(x)
        seen.append(Weak(storage_of(x)))
        return x
    job = Job(lambda: Net(between), OPTIMIZERS["adam"], pictures(20, 10))
    job.step(0)
    plan = plan_for(folder, job)
    for around in (ferry_torch.follow(plan, job.model, job.optimizer), ferry_torch.spilled(job.model, Room(1 << 40))):
        with around:
            job.step(1)
            job.model(pictures(20, 10)(2)[0])
            assert all(weak.expired() for weak in seen), "it is there for ever"


def test_a_kept_tensor_that_changed_is_an_error(folder):
    """As it is without a plan: hooks switch autograd's own check off."""
    job = Job(lambda: Net(lambda net, x: torch.sigmoid(x)), OPTIMIZERS["sgd"], pictures(20, 10))
    job.step(0)
    plan = plan_for(folder, job)
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        a = torch.ones(3, requires_grad=True)
        run.follower.lost = True
        b = a * 2
        c = b * b
        b.add_(1)
        refused(lambda: c.sum().backward(), "modified by an inplace operation")


def test_a_saved_view_of_a_dead_base(folder):
    """Only the view is saved; its storage has more bytes, and they all move."""
    def between(net, x):
        base = torch.cat([x, x * 2], 1)
        view = base[:, 4:12]
        del base
        return torch.sigmoid(view) * view
    report = compare(folder, between)
    assert report.unmatched == 0


def test_a_storage_that_is_no_multiple_of_an_element(folder):
    """As of a tensor that is a view of bytes."""
    def between(net, x):
        row = torch.empty(x.numel() * 4 + 3, dtype=torch.uint8)
        y = row[:-3].view(torch.float32).view(x.shape)
        y.copy_(x.detach())
        z = torch.sin(y)
        del row, y
        return x * z
    compare(folder, between)
    row = torch.arange(7, dtype=torch.uint8)
    from ferry_torch.storages import Form, as_bytes
    y = row[:4].view(torch.int32)
    assert torch.equal(as_bytes(y), row) and torch.equal(Form(y).of(as_bytes(y).clone()), y)
    for part in (row, row[1:], row[::2], row[2:5]):  # of bytes any part says where all of them are
        assert torch.equal(Form(y).of(part), y), part


def test_a_place_on_the_host_is_not_given_twice(folder):
    """As long as a graph may ask for what lies there."""
    from ferry_torch.arena import Arena
    from ferry_torch.lanes import CpuLanes
    arena = Arena(CpuLanes(), 1024)
    first, second = arena.take(0, 512), arena.take(256, 512)
    assert arena.extra == 512 and second.bytes.data_ptr() != arena.memory[256:].data_ptr()
    first.leave()
    assert arena.take(256, 512).bytes.data_ptr() == arena.memory[256:].data_ptr()


def test_a_loss_that_is_kept_alive(folder):
    """Its graph still holds tensors on the host when the next step comes to the same place."""
    make = lambda: Job(lambda: Net(lambda net, x: torch.sigmoid(x)), OPTIMIZERS["sgd"],
                       pictures(20, 10))
    spare = make()
    spare.step(0)
    plan = plan_for(folder, spare)

    def train(job, follow):
        job.step(0)
        with follow(job):
            x, y = job.batches(1)
            kept = job.loss(job.model(x), y)
            job.optimizer.step()  # nothing to do: no gradients, but the step is over
            x, y = job.batches(2)
            second = job.loss(job.model(x), y)
            gradients = torch.autograd.grad(kept, list(job.model.parameters()))
            more = torch.autograd.grad(second, list(job.model.parameters()))
        return [g.clone() for g in gradients + more]

    import contextlib
    def nothing(job):
        job.optimizer.zero_grad(set_to_none=True)
        return contextlib.nullcontext()

    def planned(job):
        job.optimizer.zero_grad(set_to_none=True)
        return ferry_torch.follow(plan, job.model, job.optimizer)
    assert all(map(torch.equal, train(make(), nothing), train(make(), planned)))


def test_batch_norm_counts_once(folder):
    make = lambda: Job(Cnn, OPTIMIZERS["sgd"], pictures(20, 10))
    job = make()
    job.step(0)
    plan = plan_for(folder, job)
    with ferry_torch.follow(plan, job.model, job.optimizer):
        for n in range(2, 6):
            job.step(n)
    assert int(job.model.bn1.num_batches_tracked) == 6


def test_refusals(folder):
    job = Job(lambda: Net(lambda net, x: torch.sigmoid(x)), OPTIMIZERS["adam"], pictures(20, 10))
    job.step(0)
    plan = plan_for(folder, job)
    path = os.path.join(folder, "step.json")

    def follow(plan=plan, **how):
        with ferry_torch.follow(plan, job.model, job.optimizer, **how):
            job.step(2)

    other = os.path.join(folder, "other.json")
    with ferry_torch.record(other, job.model, job.optimizer):
        job.step(3)
    refused(lambda: follow(trace=other), "another trace")
    refused(lambda: follow(plan=path), "not a plan")
    whole = plans.load(plan).walk.json
    first, second, *others = whole["ops"]
    for change, words in (({"ops": [{**first, "batch": [0, 1]}, second, *others]}, "sections"),
                          ({"ops": [{**first, "of": 1}, {**second, "of": 0}, *others]}, "another order"),
                          ({"moves": [dict(whole["moves"][0], of=2)]}, "parts")):
        changed = os.path.join(folder, "changed.json")
        with open(changed, "w") as file:
            json.dump({**whole, **change}, file)
        refused(lambda: follow(plan=changed), words)
    os.remove(path)
    refused(follow, "no trace beside")


def test_a_move_that_the_program_forbids(folder):
    """A plan made for another executor moves what Python still holds."""
    job = Job(Transformer, OPTIMIZERS["adam"], letters(24))
    job.step(0)
    plan = plan_for(folder, job)
    step = os.path.join(folder, "step.json")
    least = budget_of(step, card(folder), 0)
    ferry("solve", step, "-d", card(folder), "--budget", f"{least}B", "--for", "replay", "-o", plan)

    def follow():
        with ferry_torch.follow(plan, job.model, job.optimizer):
            job.step(2)
    refused(follow, "--for torch")


def test_unknown_optimizers_keep_their_state(folder):
    class Own(torch.optim.SGD):
        pass
    job = Job(Cnn, lambda p: Own(p, 0.1, momentum=0.9), pictures(20, 10))
    job.step(0)
    plan = plan_for(folder, job)
    with ferry_torch.follow(plan, job.model, job.optimizer) as run:
        job.step(2)
    assert not run.follower.standing


def test_everything_is_back_after_an_exception(folder):
    job = Job(lambda: Cnn(4), OPTIMIZERS["adam"], pictures(20, 10, batch=1))
    job.step(0)
    plan = plan_for(folder, job)
    try:
        with ferry_torch.follow(plan, job.model, job.optimizer):
            job.step(2)
            raise KeyError("in between")
    except KeyError:
        pass
    state = [t for p in job.model.parameters() for t in state_of(job.optimizer, p).values()]
    for t in [*job.model.parameters(), *state]:  # sizes first: what is away cannot be read
        assert storage_of(t).nbytes() == t.numel() * t.element_size() and torch.isfinite(t).all()
    assert "step" not in job.optimizer.__dict__
    job.step(3)


class Rows(nn.Module):
    """Its weight is most of it, and changed by a sparse gradient."""

    def __init__(self):
        super().__init__()
        self.rows, self.out = nn.Embedding(1000, 16, sparse=True), nn.Linear(16, 4)

    def forward(self, x):
        return self.out(self.rows(x)).mean(1)


def test_plans_for_torch_move_whole_storages(folder):
    """The search cuts what it moves; here nothing may be cut."""
    def make():
        return Job(Rows, OPTIMIZERS["sgd"], lambda n: (torch.arange(256).view(32, 8) * 3 % 1000, torch.zeros(32, 4)),
                   F.mse_loss)
    plain, planned = make(), make()
    for job in (plain, planned):
        job.step(0)
    path, plan = os.path.join(folder, "step.json"), os.path.join(folder, "plan.json")
    with ferry_torch.record(path, planned.model, planned.optimizer):
        planned.step(1)
    even_times(folder, 20000)
    for seed in range(1, 6):
        for share in (80, 85, 90, 95):
            ferry("solve", path, "-d", card(folder), "--for", "torch", "--budget", f"{share}%", "--seed", seed,
                  "--gap", "0%", "--limit", "20000", "-o", plan)
            assert all(move.get("of", 1) == 1 for move in moves(plan)), (seed, share)
    plain.step(1)
    with ferry_torch.follow(plan, planned.model, planned.optimizer):
        planned.step(2)
    plain.step(2)
    assert same(plain.result(), planned.result())


def test_one_of_a_group_may_be_over_before_it_moves(folder):
    """Tensors that move as one are away while one of them waits: the others need no place then."""
    between = lambda net, x: torch.sin(torch.sin(torch.sin(x)))
    make = lambda: Job(lambda: Net(between), OPTIMIZERS["sgd"], pictures(20, 10))
    plain, planned = make(), make()
    for job in (plain, planned):
        job.step(0), job.step(1)
    plan = plan_for(folder, planned, 0, step=2)
    plain.step(2)
    read = plans.load(plan)
    free, back = read.let_go(), read.first_back()
    waits = max((t for t in free.keys() & back.keys() if free[t] < back[t]), key=free.get)
    over = next(t for t, uses in read.uses.items() if uses[-1] < free[waits] and not read.tensors[t]["persistent"]
                and read.tensors[t]["dies_after"] is None)
    move = {"tensors": [over, waits], "part": 0, "of": 1, "bytes": 0, "unit_offset": 0, "host_offset": 0, "clean": False,
            "out_after": free[waits], "in_before": back[waits]}
    copy = {"index": 0, "position": 0, "granules": [], "behind": {"op": free[waits], "steps_ago": 0}}
    walk = read.walk.json
    items = [{**copy, "queue": queue, "waits": [{"queue": awaited, "position": position, "steps_ago": 0}]}
             for queue, awaited, position in (("out", "op", free[waits]), ("in", "out", 0))]
    with open(plan, "w") as file:
        json.dump({**walk, "moves": [move], "items": walk["items"] + items}, file)
    with ferry_torch.follow(plan, planned.model, planned.optimizer) as run:
        plain.step(3), planned.step(3)
    assert same(plain.result(), planned.result()) and run.report.followed > 0 == run.report.late, run.report.text()


def test_a_weight_that_is_back_keeps_no_place(folder):
    """Unless the plan's next move is to need no copy, the host's place is for others from there on."""
    from ferry_torch.arena import Arena
    from ferry_torch.follower import Follower
    from ferry_torch.lanes import CpuLanes
    from ferry_torch.slots import Standing

    class Stub(Follower):
        def __init__(self, slot):
            self.standing, self.report, self.leaving = {0: slot}, unittest.mock.MagicMock(), []
            self.contents, self.valve = {}, unittest.mock.MagicMock()
    for keeps in (True, False):
        arena, x = Arena(CpuLanes(), 512), torch.arange(8.0)
        slot = Standing(0, x, arena)
        slot.leave(0, False), slot.release(True)
        assert slot.away
        Stub(slot).bring(unittest.mock.MagicMock(tensor=0, frees=None, last=True, keeps=keeps))
        other = arena.take(0, 512)
        assert arena.extra == (512 if keeps else 0) and torch.equal(x, torch.arange(8.0))
        other.bytes.zero_()
        assert slot.leave(0, True) == (0 if keeps else 32) and slot.release(True) and slot.bring()
        assert torch.equal(x, torch.arange(8.0))


def test_what_a_hook_leaves_on_the_device_is_compared(folder):
    """Its bytes are still the program's."""
    for x in (torch.ones(3), torch.ones(3, requires_grad=True) * 2):
        held = Held(x)
        held.look()
        x.add_(1)
        refused(held.look, "modified by an inplace operation")


def test_a_tensor_without_bytes_is_any(folder):
    stub = types.SimpleNamespace(plan=types.SimpleNamespace(tensors=[{"bytes": 8}]))
    storage = torch.ones(3).untyped_storage()
    assert Follower.fits(stub, storage, None, -1) and not Follower.fits(stub, storage, None, 0)


def test_what_a_module_uses_later_stays_until_its_end(folder):
    """It has called another: what it owns may leave, but for what the recorder saw it use behind such a call."""
    early, late, inner = (types.SimpleNamespace(index=i) for i in range(3))
    stub = types.SimpleNamespace(late={1}, running={0: [("outer", [early, late]), ("inner", [inner])]})
    assert [Follower.is_busy(stub, slot) for slot in (early, late, inner)] == [False, True, True]
