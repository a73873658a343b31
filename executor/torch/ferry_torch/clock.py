# SPDX-License-Identifier: GPL-3.0-or-later
"""How long an op takes: on a GPU by events, on a CPU by its clock, or by the roofline of a card."""
import json
import math
import time

import torch

from . import tool
from .errors import Refused
from .storages import tensors_in


class CpuClock:
    """Nanoseconds of the thread that calls."""

    name = "the CPU's clock"

    def card(self):
        """The trace's words on the card of its times."""
        return {}

    def start(self):
        return time.perf_counter_ns()

    def stop(self, started, call):
        return time.perf_counter_ns() - started

    def result(self, span):
        return span


class CudaClock:
    """Two events around each op, read once all is over."""

    name = "CUDA events"

    def __init__(self, device):
        self.device = device

    def card(self):
        return {"device": torch.cuda.get_device_name(self.device)}

    def start(self):
        return mark(self.device)

    def stop(self, started, call):
        return started, mark(self.device)

    def result(self, span):
        span[1].synchronize()
        return max(0, int(span[0].elapsed_time(span[1]) * 1e6))


def mark(device):
    """An event with a time, on the stream that computes there."""
    event = torch.cuda.Event(enable_timing=True)
    event.record(torch.cuda.current_stream(device))
    return event


def is_captured(device):
    """Nothing may be asked of a stream whose work becomes a graph."""
    return device.type == "cuda" and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


class Roofline:
    """The times that a card could reach at best: flops and bytes over its rates, of which `roof` may be those measured."""

    def __init__(self, name, roof=None):
        self.name, self.of = "the roofline of " + name, str(name)
        self.roof = card(name).get("roofline") if roof is None else roof
        if not self.roof or not self.roof.get("memory_bytes_per_s"):
            raise Refused(f"{name} has no roofline; take another card of `ferry devices`")
        self.share = self.roof.get("efficiency_ppm", 10**6) / 1e6

    def card(self):
        return {} if self.of.endswith(".json") else {"made_for": self.of}

    def start(self):
        return None

    def stop(self, started, call):
        func, args, out = call
        tensors = tensors_in([args, out if isinstance(out, (list, tuple)) else [out]], [])
        moved = sum(t.numel() * t.element_size() for t in tensors)
        name = func._schema.name.split("::")[-1]
        work = flops(name, args, out) / self.rate(tensors)
        spent = max(work, moved / self.roof["memory_bytes_per_s"]) / self.share
        return int(spent * 1e9) + self.roof.get("op_ns", 0)

    def rate(self, tensors):
        kind = {torch.float16: "fp16_flops", torch.bfloat16: "bf16_flops"}.get(
            tensors[0].dtype if tensors else None)
        if kind is None and torch.backends.cuda.matmul.allow_tf32:
            kind = "tf32_flops"
        return self.roof.get(kind) or self.roof.get("fp32_flops") or math.inf

    def result(self, span):
        return span


def flops(name, args, out):
    """Two for each multiplication of a product, one for each number of anything else."""
    first = out[0] if isinstance(out, (list, tuple)) and out else out
    numbers = first.numel() if isinstance(first, torch.Tensor) else 0
    if name in ("mm", "bmm"):
        return 2 * numbers * args[0].shape[-1]
    if name in ("addmm", "baddbmm"):
        return 2 * numbers * args[1].shape[-1]
    if name == "convolution":
        return 2 * numbers * convolution_work(args[1], args[6])
    if name == "convolution_backward":
        sides = sum(bool(x) for x in args[-1][:2])
        return 2 * args[0].numel() * convolution_work(args[2], args[7]) * sides
    if "scaled_dot_product" in name and len(args) > 2:
        backward = "backward" in name
        q, k, v = args[1:4] if backward else args[:3]
        products = q.numel() // max(1, q.shape[-1]) * k.shape[-2]
        return 2 * products * (q.shape[-1] + v.shape[-1]) * (5 if backward else 2) // 2
    return numbers


def convolution_work(weight, transposed):
    """Multiplications for one number of the output (of the input where it is transposed)."""
    return weight.numel() // max(1, weight.shape[1 if transposed else 0])


def card(name):
    """A device file: a path, or a name of `ferry devices`."""
    if str(name).endswith(".json"):
        with open(name) as file:
            return json.load(file)
    for device in tool.answer("devices", "--json"):
        if device["name"] == name:
            return device
    raise Refused(f"no card is called {name}; `ferry devices` lists them")


def choose(device, wanted):
    if wanted is not None:
        return Roofline(wanted)
    if device.type == "cuda":
        return CudaClock(device)
    if device.type == "meta":
        raise Refused("nothing runs on the meta device; device=\"h200\" gives the times of that card")
    return CpuClock()
