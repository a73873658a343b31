# SPDX-License-Identifier: GPL-3.0-or-later
"""The most that an op took from the allocator while it ran."""
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


MARK, MARKS = 7919, 64  # bytes of the tensors around each op, which are told apart by their sizes


class CpuMemory(NoMemory):
    """The allocations that torch's profiler sees, in their order: a tensor of a size of its own is
    made before each op, and given up behind it. No clock is asked, so a busy machine says the same."""

    def __enter__(self):
        self.profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                              profile_memory=True)
        self.profile.__enter__()
        self.count, self.most, self.mark = 0, [], None
        return self

    def __exit__(self, *why):
        self.profile.__exit__(None, None, None)
        events = [(e.start_ns(), e.nbytes()) for e in self.profile.profiler.kineto_results.events()
                  if e.name() == "[memory]"]
        events.sort(key=lambda e: e[0])
        self.most = peaks_between([size for _, size in events], self.count)

    def before(self):
        self.mark = None  # an op that failed has left its own
        self.mark = torch.empty(size_of_mark(self.count), dtype=torch.uint8)
        self.count += 1

    def after(self, started):
        self.mark = None
        return self.count - 1

    def peak(self, number):
        return self.most[number] if number < len(self.most) else 0


def size_of_mark(number):
    return MARK + number % MARKS


def peaks_between(sizes, count):
    """The most that was taken between each mark and its end."""
    found, now, most, inside = [], 0, 0, False
    for size in sizes:
        mark = size_of_mark(len(found))
        if not inside:
            inside, now, most = size == mark, 0, 0
        elif size == -mark:
            inside = False
            found.append(most)
        else:
            now += size
            most = max(most, now)
    return found + [0] * (count - len(found))


def choose(device, modelled):
    """`modelled`: times are a card's, so what this machine allocates says nothing. A profile of the program's own
    leaves no room for another one."""
    if modelled or torch.autograd._profiler_enabled() and device.type == "cpu" or device.type == "meta":
        return NoMemory()
    return CudaMemory(device) if device.type == "cuda" else CpuMemory()
