# SPDX-License-Identifier: GPL-3.0-or-later
"""Before there is a plan a step runs in less memory, with the same bits, and is recorded as it is."""
import os
import sys
import unittest.mock

import torch

import ferry_torch
from common import Job, same
from ferry_torch import trace as traces
from ferry_torch.record import Recording
from ferry_torch.spill import Room
from ferry_torch.storages import Weak, storage_of
from ferry_torch.writer import finish
from nets import NETS, OPTIMIZERS


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
        assert (run.room is None) == (run.step_ns is not None) == fits_whole, (left, run.room, run.step_ns)


def test_budgets_are_bytes_where_they_can_be(folder):
    from ferry_torch.card import bytes_of
    for text, size in (("10GiB", 10 << 30), ("1.5 MB", 1500000), (7, 7), ("12B", 12), ("60%", None), ("much", None),
                       ("1.2.3GiB", None), ("", None)):
        assert bytes_of(text) == size, text
