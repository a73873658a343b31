# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams and events of a GPU that is not the current one, with stand-ins for all that needs one."""
import contextlib
import types
import unittest.mock

import torch

from ferry_torch import card, clock, lanes, report
from ferry_torch.arena import Arena
from ferry_torch.errors import Refused
from ferry_torch.modules import device_of
from ferry_torch.slots import Content

SECOND = torch.device("cuda", 1)


class Stream:
    """Knows who waited for what."""

    def __init__(self, name, calls):
        self.name, self.calls = name, calls

    def wait_event(self, event):
        self.calls.append(f"{self.name} waits for {event.stream.name}")

    def wait_stream(self, stream):
        self.calls.append(f"{self.name} waits for {stream.name}")


class Event:
    def __init__(self, main, **options):
        self.main = main

    def record(self, stream=None):
        self.stream = stream or self.main
        self.stream.calls.append(f"an event on {self.stream.name}")

    def synchronize(self):
        return None

    def elapsed_time(self, other):
        return 1


@contextlib.contextmanager
def two_gpus():
    """The first is the current one. What was called is said."""
    calls = []
    main = [Stream(f"gpu {k}", calls) for k in range(2)]

    def current(device=None):
        return main[0 if device is None else torch.device(device).index]
    with contextlib.ExitStack() as stack:
        for name, stand_in in (("Stream", lambda device: Stream(f"a stream of gpu {device.index}", calls)),
                               ("Event", lambda **options: Event(main[0], **options)), ("current_stream", current),
                               ("stream", lambda stream: contextlib.nullcontext()),
                               ("reset_peak_memory_stats", lambda device: None)):
            stack.enter_context(unittest.mock.patch.object(torch.cuda, name, stand_in))
        yield calls


def test_the_stream_that_computes_waits_on_its_own_gpu(folder):
    row = torch.zeros(4, dtype=torch.uint8)
    with two_gpus() as calls:
        lanes.CudaLanes(SECOND).back(row.clone(), row, []).wait()
    assert calls == ["a stream of gpu 1 waits for gpu 1", "an event on a stream of gpu 1",
                     "gpu 1 waits for a stream of gpu 1"], calls


def test_times_are_of_the_gpu_that_computes(folder):
    plan = types.SimpleNamespace(predicted={}, budget=0, host_bytes=0, expects_again=lambda: 0)
    empty = torch.empty
    with two_gpus() as calls, unittest.mock.patch.object(
            torch, "empty", lambda size, **options: empty(size, dtype=torch.uint8)):
        watch = clock.choose(SECOND, None)
        watch.stop(watch.start(), None)
        report.Report(plan, SECOND).step_ended()
        card.link_rate(SECOND, 16)
    assert calls and set(calls) == {"an event on gpu 1"}, calls


def test_a_model_on_several_gpus_is_refused(folder):
    def model(*devices):
        return types.SimpleNamespace(parameters=lambda: iter([types.SimpleNamespace(device=torch.device(*d)) for d in devices]))
    assert device_of(model(("cuda", 1), ("cuda", 1), ("cpu",))) == SECOND
    try:
        device_of(model(("cuda", 0), ("cuda", 1)))
    except Refused as why:
        assert "several GPUs" in str(why)
    else:
        raise AssertionError("it is not refused")


class Dying(lanes.CpuLanes):
    """Counts what nobody wanted while a copy to it was under way."""

    def __init__(self):
        self.died = []

    def dies(self, target):
        self.died.append(target.data_ptr())


def test_memory_that_a_copy_still_writes_is_not_given_to_another(folder):
    """As autograd gives up a saved tensor that comes back, for a way back that nobody walks."""
    for used in (False, True):
        arena = Arena(Dying(), 64)
        content = Content(torch.ones(8), arena, 0)
        content.release(True)
        content.bring()
        at = content.raw.data_ptr()
        if used:
            content.use()
        del content
        assert arena.lanes.died == ([] if used else [at]), arena.lanes.died
    target = unittest.mock.Mock()
    with two_gpus():
        of_a_gpu = lanes.CudaLanes(SECOND)
        of_a_gpu.dies(target)
    target.record_stream.assert_called_once_with(of_a_gpu.in_stream)
