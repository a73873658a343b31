# SPDX-License-Identifier: GPL-3.0-or-later
"""Before there is a plan a step runs in less memory, with the same bits, and is recorded as it is."""
import sys
import types
import unittest.mock

import torch

import ferry_torch
from common import Job, both, same
from ferry_torch.record import Recording
from ferry_torch.spill import Room
from ferry_torch.storages import Weak, storage_of
from ferry_torch.writer import finish
from nets import NETS, OPTIMIZERS, Cnn, pictures


def saved_bytes(make, batches):
    job, room = Job(make, OPTIMIZERS["adam"], batches), Room()
    with ferry_torch.spilled(job.model, room):
        job.step(0)
    return room.sent


def test_nets_learn_the_same(folder):
    for net, (make, batches) in NETS.items():
        plain, all_away, half = (Job(make, OPTIMIZERS["adam"], batches) for _ in range(3))
        room = Room(saved_bytes(make, batches) // 2)
        before = room.left
        for n in range(2):
            plain.step(n)
            with ferry_torch.spilled(all_away.model):
                all_away.step(n)
            with ferry_torch.spilled(half.model, room):
                half.step(n)
        assert same(plain.result(), all_away.result()) and same(plain.result(), half.result()), net
        assert room.sent and room.left == before, f"{net}: {room.sent} sent, {room.left} left"


def test_nothing_saved_stays_on_the_device(folder):
    """Who watches the results of all modules sees their storages go, but for the last one's."""
    make, batches = NETS["cnn"]
    alive = []
    for room in (Room(), Room(1 << 40)):
        job, seen = Job(make, OPTIMIZERS["adam"], batches), []
        for module in job.model.modules():
            if not list(module.children()):
                module.register_forward_hook(lambda m, i, out: seen.append(Weak(storage_of(out))))
        with ferry_torch.spilled(job.model, room):
            out = job.model(batches(0)[0])
            alive.append(sum(not weak.expired() for weak in seen))
        del out
    assert alive[0] == 1 < alive[1], alive


def test_a_change_in_place_is_seen(folder):
    """Where the bytes stay. What is on the host is what was saved, whatever is done to the original."""
    for room, refused in ((Room(), False), (Room(1 << 40), True)):
        model = torch.nn.Linear(4, 4)
        with ferry_torch.spilled(model, room):
            twice = model(torch.ones(4)) * 2
            loss = (twice * twice).sum()
            with torch.no_grad():
                twice.add_(1)
        try:
            loss.backward()
        except RuntimeError as error:
            assert refused and "inplace" in str(error), error
            continue
        assert not refused, "the change was not seen"


def test_tensors_without_memory_stay(folder):
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8, device="meta") for _ in range(2)))
    with ferry_torch.spilled(model):
        (torch.sigmoid(model(torch.empty(4, 8, device="meta"))) * 2.5).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def recorded(make, batches, room):
    job = Job(make, OPTIMIZERS["adam"], batches)
    job.step(0)
    recording = Recording(job.model, job.optimizer, None, room=room)
    with recording.run():
        job.step(1)
        with torch.no_grad():
            recording.name_gradients()
    trace = finish(recording, "net")
    for op in trace["ops"]:
        op["ns"] = 0
    return trace, job.result()


def test_a_recorded_step_is_the_same(folder):
    for net, (make, batches) in NETS.items():
        room = Room(saved_bytes(make, batches) // 2)
        plain, result = recorded(make, batches, None)
        for where in (Room(), room):
            trace, again = recorded(make, batches, where)
            assert where.sent and same(result, again), net
            assert trace == plain, f"{net}: the trace is another one"


def fitted(make, batches, left):
    """What it learned, with so many bytes left beside the first step."""
    job = Job(make, OPTIMIZERS["adam"], batches)
    with unittest.mock.patch.object(sys.modules["ferry_torch.fit"], "left_beside", lambda *asked: left):
        with ferry_torch.fit(job.model, job.optimizer, "85%", say=lambda text: None) as run:
            for n in range(5):
                job.step(n)
    assert run.report.steps == 2 and run.report.unmatched == 0, run.report.text()
    return job.result(), run


def test_fit_learns_in_what_is_left(folder):
    make, batches = NETS["cnn"]
    plain = Job(make, OPTIMIZERS["adam"], batches)
    for n in range(5):
        plain.step(n)
    all_of_it = saved_bytes(make, batches)
    for left in (0, all_of_it // 2, all_of_it, None):
        result, run = fitted(make, batches, left)
        assert same(plain.result(), result), left
        fits_whole = left is None or left >= all_of_it
        assert (run.room is None) == fits_whole and run.step_ns > 0, (left, run.room, run.step_ns)


def short(number):
    x, y = pictures(20, 10)(number)
    return (x[:3], y[:3]) if number == 5 else (x, y)


def test_a_step_that_is_not_the_plans_goes_to_the_host_where_there_is_no_room(folder):
    """On a CPU nobody counts, so this says how much there is."""
    for most, sends in ((1, True), (1 << 40, False), (None, False)):
        with unittest.mock.patch("ferry_torch.spill.most_of", lambda *asked: most), \
                unittest.mock.patch("ferry_torch.spill.used_of", lambda *asked: 0):
            plain, planned, report = both(folder, lambda: Job(Cnn, OPTIMIZERS["adam"], short), steps=8)
        assert same(plain, planned) and report.other == 1 and report.followed > 0
        assert (report.beside_bytes > 0) == ("beside the plan" in report.text()) == sends, report.text()


def test_a_budget_of_the_card_counts_what_others_leave(folder):
    """Fakes of what torch says of a card."""
    from ferry_torch import card
    device = types.SimpleNamespace(type="cuda")
    says = {"get_device_properties": types.SimpleNamespace(total_memory=1000), "mem_get_info": (300, 1000),
            "memory_reserved": 200, "max_memory_allocated": 180}
    fakes = types.SimpleNamespace(**{name: lambda *asked, value=value: value for name, value in says.items()})
    fakes.memory = types.SimpleNamespace(memory_stats_as_nested_dict=lambda device: {"allocated_bytes": {"all": {"current": 150}}})
    with unittest.mock.patch.object(card, "torch", types.SimpleNamespace(cuda=fakes)):
        assert card.most_of(device, None) == 500 and card.most_of(device, 400) == 400
        assert card.left_beside(device, None) == 500 - 41 - 180 and card.left_beside(device, 100) == 0
        fakes.get_per_process_memory_fraction = lambda device: 0.25
        assert card.most_of(device, 400) == 250 and card.used_of(device) == 150
    assert card.most_of(torch.device("cpu"), 400) is None


def test_a_plan_leaves_torch_its_holes(folder):
    from ferry_torch.card import to_enforce, to_plan
    cuda, cpu = types.SimpleNamespace(type="cuda"), torch.device("cpu")
    for budget, there, here in (("20KiB", "18774B", "20480B"), (1000, "917B", "1000B"), ("60%", "55%", "60%"),
                                ("2.5%", "2.29167%", "2.5%"), ("much", "much", "much")):
        assert (to_plan(cuda, budget), to_plan(cpu, budget)) == (there, here), budget
    assert to_enforce(917) == 1000


def test_budgets_are_bytes_where_they_can_be(folder):
    from ferry_torch.card import bytes_of
    for text, size in (("10GiB", 10 << 30), ("1.5 MB", 1500000), (7, 7), ("12B", 12), ("60%", None), ("much", None),
                       ("1.2.3GiB", None), ("", None)):
        assert bytes_of(text) == size, text
