# SPDX-License-Identifier: GPL-3.0-or-later
"""The most that an op took from the allocator while it ran."""
import bisect
import time

import torch


class NoMemory:
    """Where nothing is allocated: meta and fake tensors."""

    def __enter__(self):
        return self

    def __exit__(self, *why):
        return None

    def before(self):
        return None

    def after(self, started):
        return None

    def peak(self, span):
        return 0


class CudaMemory(NoMemory):
    """The caching allocator's own statistics."""

    def __init__(self, device):
        self.device = device

    def before(self):
        torch.cuda.reset_peak_memory_stats(self.device)
        return torch.cuda.memory_allocated(self.device)

    def after(self, started):
        return torch.cuda.max_memory_allocated(self.device) - started

    def peak(self, span):
        return span


MARK = 7919  # bytes of the tensor by which the two clocks are compared


class CpuMemory(NoMemory):
    """The allocations that torch's profiler sees, by their times."""

    def __enter__(self):
        self.profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                              profile_memory=True)
        self.profile.__enter__()
        earliest = time.perf_counter_ns()
        mark = torch.empty(MARK, dtype=torch.uint8)
        self.marked = (earliest + time.perf_counter_ns()) // 2
        del mark
        return self

    def __exit__(self, *why):
        self.profile.__exit__(None, None, None)
        events = [(when(e), e.nbytes()) for e in self.profile.profiler.kineto_results.events()
                  if e.name() == "[memory]"]
        events.sort(key=lambda e: e[0])
        mark = next((at for at, size in events if size == MARK), None)
        shift = 0 if mark is None else self.marked - mark
        self.at = [at + shift for at, _ in events] if mark is not None else []
        self.bytes = [size for _, size in events]

    def before(self):
        return time.perf_counter_ns()

    def after(self, started):
        return started, time.perf_counter_ns()

    def peak(self, span):
        now = most = 0
        first, last = (bisect.bisect_left(self.at, at) for at in span)
        for size in self.bytes[first:last]:
            now += size
            most = max(most, now)
        return most


def when(event):
    """Nanoseconds, on the profiler's clock."""
    return event.start_ns() if hasattr(event, "start_ns") else event.start_us() * 1000


def choose(device, modelled):
    """`modelled`: times are a card's, so what this machine allocates says nothing."""
    if modelled or device.type == "meta":
        return NoMemory()
    return CudaMemory(device) if device.type == "cuda" else CpuMemory()
