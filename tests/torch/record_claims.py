# SPDX-License-Identifier: GPL-3.0-or-later
"""A recorded step says what really happened: bytes, ops, and what autograd kept."""
import collections
import json
import os
import time
import unittest.mock

import torch
import torch.nn.functional as F
from torch import nn

import ferry_torch
from common import Allocator, Job, card, ferry, same
from ferry_torch import trace as traces
from known_nets import Gpt2, Resnet50
from nets import NETS, OPTIMIZERS, Cnn, pictures
from trap_claims import refused


def recorded(folder, job, step=1, **how):
    path = os.path.join(folder, "step.json")
    with ferry_torch.record(path, job.model, job.optimizer, **how) as recording:
        job.step(step)
    return traces.load(path), recording


def peak_of(folder):
    return json.loads(ferry("info", os.path.join(folder, "step.json"), "--json"))["peak_bytes"]


def peaks(folder, make, optimizer, batches):
    """Of the trace, and of the allocator's events."""
    with Allocator() as allocator:
        job = Job(make, OPTIMIZERS[optimizer], batches)
        job.step(0)
        allocator.step(lambda: job.step(1))
    recorded(folder, job)
    return peak_of(folder), allocator.most()


def test_the_peak_is_the_allocators(folder):
    """Within a tenth, by the events of the allocator itself."""
    for net, (make, batches) in NETS.items():
        for optimizer in ("sgd", "adam"):
            predicted, seen = peaks(folder, make, optimizer, batches)
            assert abs(predicted - seen) <= 0.1 * seen, f"{net} {optimizer}: {predicted}, seen {seen}"


def test_workspaces_are_the_same_on_a_busy_machine(folder):
    """Whoever allocates may be held up anywhere: what an op took is known by order, not by times."""
    make, batches = NETS["cnn"]
    rooms = []
    for late in (0, 0.004):
        job = Job(make, OPTIMIZERS["adam"], batches)
        job.step(0)
        empty = torch.empty

        def slow(*sizes, **how):
            result = empty(*sizes, **how)
            if late:
                time.sleep(late)
            return result
        with unittest.mock.patch("torch.empty", slow):
            trace, _ = recorded(folder, job)
        rooms.append([op.get("workspace_bytes", 0) for op in trace["ops"]])
    assert rooms[0] == rooms[1] and any(rooms[0])


def test_recording_changes_nothing(folder):
    make, batches = NETS["transformer"]
    plain, watched = (Job(make, OPTIMIZERS["adamw"], batches) for _ in range(2))
    for n in range(3):
        plain.step(n)
    watched.step(0)
    recorded(folder, watched, 1)
    watched.step(2)
    assert plain.losses == watched.losses
    assert all(map(torch.equal, plain.model.parameters(), watched.model.parameters()))


def test_commands_take_it(folder):
    make, batches = NETS["cnn"]
    job = Job(make, OPTIMIZERS["adam"], batches)
    job.step(0)
    trace, _ = recorded(folder, job)
    path = os.path.join(folder, "step.json")
    said = json.loads(ferry("info", path, "--json"))
    assert said["peak_bytes"] > 0
    ferry("curve", path, "-d", card(folder), "--points", "3", "--limit", "5000")
    ferry("whatif", path, "-d", card(folder), "--from", card(folder), "--limit", "5000")
    packed = os.path.join(folder, "packed.json.gz")
    ferry("convert", path, "-o", packed, "--form", "packed")
    assert traces.digest(traces.load(packed)) == traces.digest(trace)


def test_digest_is_ferrys(folder):
    make, batches = NETS["lstm"]
    job = Job(make, OPTIMIZERS["sgd"], batches)
    trace, _ = recorded(folder, job)
    path, plan = os.path.join(folder, "step.json"), os.path.join(folder, "plan.json")
    ferry("solve", path, "-d", card(folder), "-o", plan)
    assert traces.load(plan)["trace"] == traces.digest(trace)


def test_classes(folder):
    job = Job(lambda: Cnn(4), OPTIMIZERS["adam"], pictures(20, 10))
    job.step(0)
    trace, recording = recorded(folder, job)
    size = recording.summary["bytes"]
    weights = sum(p.numel() * 4 for p in job.model.parameters())
    steps = 4 * len(list(job.model.parameters()))  # Adam's counters, a number each
    assert size["parameter"] == weights
    assert size["gradient"] == 2 * weights  # those of the step before go at its beginning
    assert size["optimizer"] == 2 * weights + steps
    assert {op["phase"] for op in trace["ops"]} == {"forward", "backward", "update"}
    assert sum(op["phase"] == "update" for op in trace["ops"]) == len(list(job.model.parameters()))
    assert trace["batch"] == 8


def test_first_step_has_optimizer_state_too(folder):
    job = Job(lambda: Cnn(4), OPTIMIZERS["momentum"], pictures(20, 10))
    _, recording = recorded(folder, job, 0)
    weights = sum(p.numel() * 4 for p in job.model.parameters())
    assert recording.summary["bytes"]["optimizer"] == weights


def test_a_changed_saved_tensor_is_said(folder):
    class Net(Cnn):
        def forward(self, x):
            x = torch.sigmoid(self.conv1(x))
            x.detach().mul_(2)
            return self.out(F.adaptive_avg_pool2d(self.conv2(x), 10).flatten(1))
    try:
        recorded(folder, Job(Net, OPTIMIZERS["sgd"], pictures(20, 10)))
    except (ferry_torch.Refused, RuntimeError) as error:
        assert "in place" in str(error) or "inplace" in str(error), error
        return
    raise AssertionError("it was recorded all the same")


def fake_step(make, batch, optimizer, path):
    """One step of a model that takes no memory, timed by the roofline of a card."""
    from torch._subclasses import FakeTensorMode
    with FakeTensorMode():
        model = make()
        chosen = optimizer(model.parameters())
        x, y = batch()
        with ferry_torch.record(path, model, chosen, device="h200") as recording:
            chosen.zero_grad(set_to_none=True)
            F.cross_entropy(model(x), y).backward()
            chosen.step()
    return recording


def zoo(folder, *arguments):
    path = os.path.join(folder, "zoo.json")
    ferry("zoo", *arguments, "-d", "h200", "-q", "-o", path)
    return traces.tensors_and_ops(traces.load(path))


def forward_ops(ops):
    return collections.Counter(op["name"].split(".")[-1] for op in ops if op["phase"] == "forward")


def saved_bytes(tensors, ops):
    """Activations that the way there writes or meets and the way back reads."""
    there, back = set(), set()
    for op in ops:
        if op["phase"] == "forward":
            there.update(op["writes"])
        elif op["phase"] == "backward":
            back.update(op["reads"])
    return sum(tensors[i]["bytes"] for i in there & back if tensors[i]["kind"] == "activation")


def agree(folder, recording, published):
    tensors, ops = traces.tensors_and_ops(recording.trace)
    theirs, their_ops = published

    def parameters(rows):
        return sum(t["bytes"] for t in rows if t["kind"] == "parameter")

    source = recording.trace["source"]  # the card, and a batch that a plan knows its steps by
    assert source["made_for"] == "h200" and all(row["shape"] for row in source["inputs"]), source
    assert parameters(tensors) == parameters(theirs), (parameters(tensors), parameters(theirs))
    ours, zoos = saved_bytes(tensors, ops), saved_bytes(theirs, their_ops)
    assert abs(ours - zoos) <= 0.05 * zoos, f"saved: {ours}, in the zoo {zoos}"
    return forward_ops(ops), forward_ops(their_ops)


def test_resnet50_is_the_zoos(folder):
    recording = fake_step(Resnet50, lambda: (torch.empty(8, 3, 224, 224),
                                             torch.zeros(8, dtype=torch.long)),
                          OPTIMIZERS["momentum"], os.path.join(folder, "step.json"))
    ours, zoos = agree(folder, recording, zoo(folder, "resnet50", "--batch", "8"))
    for kind, theirs in (("convolution", "conv_fwd"), ("native_batch_norm", "batchnorm_fwd"),
                         ("relu_", "relu_fwd"), ("max_pool2d_with_indices", "maxpool_fwd"),
                         ("mean", "adaptive_fwd"), ("addmm", "linear_fwd")):
        assert ours[kind] == zoos[theirs], kind
    assert ours["add_"] == zoos["add"] + 53  # and each norm counts its batches
    assert sum(ours.values()) - 53 - sum(zoos.values()) <= 3  # the loss is two ops, and the graph's seed


def test_gpt2_is_the_zoos(folder):
    recording = fake_step(Gpt2, lambda: (torch.zeros(1, 1024, dtype=torch.long),
                                         torch.zeros(1, 1024, dtype=torch.long)),
                          OPTIMIZERS["adamw"], os.path.join(folder, "step.json"))
    agree(folder, recording, zoo(folder, "gpt2", "--batch", "1", "--explicit-attention"))


def test_a_model_on_the_meta_device(folder):
    """It takes no memory, and its trace is that of the real one in everything but times."""
    def net():
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3),
                             nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16 * 16, 10))
    real = Job(net, OPTIMIZERS["momentum"], pictures(20, 10))
    meta = Job(lambda: net().to("meta"), OPTIMIZERS["momentum"],
               lambda step: [t.to("meta") for t in pictures(20, 10)(step)])
    rows = []
    for job in (real, meta):
        with ferry_torch.record(os.path.join(folder, "step.json"), job.model, job.optimizer,
                                device="h200") as recording:
            step_of(job, 1)
        rows.append(recording.summary["bytes"])
    for kind in ("parameter", "optimizer"):
        assert rows[0][kind] == rows[1][kind]
    assert abs(rows[0]["activation"] - rows[1]["activation"]) < 0.2 * rows[0]["activation"]


def step_of(job, number):
    x, y = job.batches(number)
    job.optimizer.zero_grad(set_to_none=True)
    job.loss(job.model(x), y).backward()
    job.optimizer.step()


def test_the_recorders_own_share_is_taken_from_every_call(folder):
    from ferry_torch.timing import without_recorder
    true = [[1000], [500, 700], [20000], [300] * 4]
    seen = [[span + 900 for span in calls] for calls in true]
    found = without_recorder(seen, sum(map(sum, true)))
    assert all(abs(a - sum(b)) <= 2 * len(b) for a, b in zip(found, true)), found
    assert without_recorder(seen, None) == [sum(calls) for calls in seen]
    assert without_recorder(seen, 10**9) == [sum(calls) for calls in seen]
    assert all(ns > 0 for ns in without_recorder(seen, 1))


def test_what_does_the_same_takes_as_long(folder):
    from ferry_torch.timing import alike
    seen = [[100, 7], [900, 5], [110, 6], [3], [50], [80, 80]]
    assert alike(seen, "aaabbc") == [[110, 6], [110, 6], [110, 6], [3], [3], [80, 80]], "the middle, or the less of two"
    assert alike(seen, "aaaaac")[3:] == [[3], [3], [80, 80]], "other calls are another kind"
    deep = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(6)))
    job = Job(lambda: deep, OPTIMIZERS["sgd"], lambda n: (torch.ones(8, 64), torch.zeros(8, dtype=torch.long)))
    with ferry_torch.record(folder + "/step.json", job.model, job.optimizer):
        step_of(job, 0)
    with open(folder + "/step.json") as file:
        ops = json.load(file)["ops"]
    times = [op["ns"] for op in ops if op["phase"] == "forward" and op["name"].endswith("addmm")]
    assert len(times) == 6 and len(set(times[1:])) == 1, times


def test_a_step_that_nobody_records_sets_the_times(folder):
    make, batches = NETS["lstm"]
    job = Job(make, OPTIMIZERS["adam"], batches)
    job.step(0)
    path = os.path.join(folder, "step.json")
    with unittest.mock.patch("ferry_torch.clock.CpuClock.result", lambda clock, span: 10000):
        trace, _ = recorded(folder, job)
        before = sum(op["ns"] for op in trace["ops"])
        less, _ = recorded(folder, job, step_ns=before // 2)
    assert before // 3 < sum(op["ns"] for op in less["ops"]) <= before // 2, before
    assert "less the recorder's own share" in less["source"]["detail"]
    try:
        with ferry_torch.record(path, job.model, job.optimizer, device="h200", step_ns=1):
            pass
    except ferry_torch.Refused as error:
        assert "a card's" in str(error), error
        return
    raise AssertionError("a card's times were changed")


def test_parts_of_one_storage_are_read_and_written_in_turn(folder):
    """A GRU's cell calculates in place in some columns of a matrix, from others of it that autograd keeps."""
    class Gru(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.GRU(16, 16, 2)

        def forward(self, x):
            return self.cells(x)[0]

    def make():
        return Job(Gru, OPTIMIZERS["adam"], lambda n: (torch.randn(10, 8, 16), torch.zeros(10, 8, 16)), F.mse_loss)
    plain, job = make(), make()
    for n in range(3):
        plain.step(n)
    job.step(0)
    recorded(folder, job, 1)
    job.step(2)
    assert same(plain.result(), job.result())


def test_on_a_gpu_small_tensors_stay(folder):
    """To enqueue their copies takes longer than the copies."""
    least = 4096
    make, batches = NETS["cnn"]
    job = Job(make, OPTIMIZERS["adam"], batches)
    job.step(0)
    with unittest.mock.patch("ferry_torch.writer.least_of", lambda recording: least):
        trace, _ = recorded(folder, job)
    ferry("solve", os.path.join(folder, "step.json"), "-d", card(folder), "--for", "torch", "--budget", "85%", "--limit", "20000",
          "-o", os.path.join(folder, "plan.json"))
    with open(os.path.join(folder, "plan.json")) as file:
        plan = json.load(file)
    units = [[t] for t in range(len(trace["tensors"]))] + plan["groups"]
    moved = [trace["tensors"][t] for move in plan["moves"] for t in units[move["unit"]]]
    assert moved and all(t["bytes"] >= least for t in moved), moved
    assert any(t["bytes"] < least for t in trace["tensors"] if t["kind"] == "optimizer")


def test_two_steps_are_no_trace(folder):
    job = Job(Cnn, OPTIMIZERS["sgd"], pictures(20, 10))

    def record():
        with ferry_torch.record(os.path.join(folder, "step.json"), job.model, job.optimizer):
            job.step(0), job.step(1)
    refused(record, "took 2 steps")
    with ferry_torch.record(os.path.join(folder, "step.json"), job.model, job.optimizer, device="h200"):
        job.step(2)
    assert traces.load(os.path.join(folder, "step.json"))["source"]["made_for"] == "h200"
    ferry("info", os.path.join(folder, "step.json"), accept=(0,))
