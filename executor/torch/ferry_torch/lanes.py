# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies to the host and back, beside the ops: two streams on a GPU, at once on a CPU."""
import torch


class Done:
    """What needs no waiting for."""

    def wait(self):
        return None

    def over(self):
        return True


class Signal:
    """The end of a copy, for the stream that computes on that device, whichever is the current one."""

    def __init__(self, stream, device):
        self.event, self.device = torch.cuda.Event(), device
        self.event.record(stream)

    def wait(self):
        torch.cuda.current_stream(self.device).wait_event(self.event)

    def over(self):
        """A graph that is being captured cannot be asked."""
        return not torch.cuda.is_current_stream_capturing() and self.event.query()


class CpuLanes:
    """The device is plain memory: a copy is over when it returns."""

    def arena(self, size):
        return torch.empty(size, dtype=torch.uint8)

    def extra(self, size):
        return self.arena(size)

    def give_back(self, memory):
        return None

    def out(self, source, target, after):
        target.copy_(source)
        return Done()

    def back(self, source, target, after):
        target.copy_(source)
        return Done()

    def dies(self, target):
        return None

    def join(self):
        return None

    def drain(self):
        return None


class CudaLanes:
    """One stream each way. A copy starts behind all that was enqueued before it."""

    def __init__(self, device):
        self.device = device
        self.out_stream, self.in_stream = torch.cuda.Stream(device), torch.cuda.Stream(device)

    def arena(self, size):
        """Registered as it is: torch's own pinned memory is rounded up to a power of two."""
        memory = torch.empty(size, dtype=torch.uint8)
        if size:
            runtime = torch.cuda.cudart()
            failed = int(runtime.cudaHostRegister(memory.data_ptr(), size, 0))
            if failed:
                from .errors import Refused
                raise Refused(f"{size} bytes of the host's memory cannot be pinned (CUDA error "
                              f"{failed}); `ferry solve --host SIZE` plans with less")
        return memory

    def extra(self, size):
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    def on(self, stream, source, target, after):
        stream.wait_stream(torch.cuda.current_stream(self.device))
        for signal in after:
            stream.wait_event(signal.event)
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)
        return Signal(stream, self.device)

    def out(self, source, target, after):
        return self.on(self.out_stream, source, target, after)

    def back(self, source, target, after):
        return self.on(self.in_stream, source, target, after)

    def dies(self, target):
        """Nobody wants it, and a copy to it may be on its way: its memory is another's behind that."""
        target.record_stream(self.in_stream)

    def join(self):
        torch.cuda.current_stream(self.device).wait_stream(self.out_stream)
        torch.cuda.current_stream(self.device).wait_stream(self.in_stream)

    def drain(self):
        self.join()
        torch.cuda.synchronize(self.device)

    def give_back(self, memory):
        if memory.numel():
            torch.cuda.cudart().cudaHostUnregister(memory.data_ptr())


def choose(device):
    return CudaLanes(device) if device.type == "cuda" else CpuLanes()
