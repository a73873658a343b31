# SPDX-License-Identifier: GPL-3.0-or-later
"""The card that is here: what a plan has to know of it, and what is left of its memory."""
import functools
import os
import re

import torch

from .clock import card, mark
from .errors import Refused
from .lanes import choose
from .timing import now, timed

HOLES = 12  # one part in so many of a card's budget is torch's own: blocks are rounded, and some lie unused


def this_card(device):
    """A device file of the GPU that is here; on a CPU, of a card with as much memory as the plan may
    ask for, so that a program can be tried without one."""
    if device.type != "cuda":
        return {"format": "ferry-device/1", "name": "cpu", "memory_bytes": 1 << 40,
                "granule_bytes": 512, "host_bytes": 1 << 40,
                "link": {"d2h_bytes_per_s": 8 * 10**9, "h2d_bytes_per_s": 8 * 10**9}}
    seen = torch.cuda.get_device_properties(device)
    rate, copy_ns = link_rate(device), time_of_a_copy(device)
    return {"format": "ferry-device/1", "name": seen.name, "memory_bytes": seen.total_memory,
            "granule_bytes": 512, "host_bytes": host_bytes(),
            "link": {"d2h_bytes_per_s": rate, "h2d_bytes_per_s": rate, "copy_ns": copy_ns}}


def link_rate(device, size=64 << 20):
    """Bytes a second from pinned memory, the best of three copies."""
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(size, dtype=torch.uint8, device=device)
    best = 1e9
    for _ in range(3):
        start = mark(device)
        target.copy_(host, non_blocking=True)
        end = mark(device)
        end.synchronize()
        best = min(best, start.elapsed_time(end))
    return int(size / best * 1000)


@functools.cache
def roof_here(device, size=256 << 20, side=4096):
    """What the card that is here reaches: bytes a second of its memory, products in each type, and the time of the least op."""
    row, least = torch.zeros(size, dtype=torch.uint8, device=device), torch.zeros(1, device=device)

    def rate(work, step):
        return max(1, work * 10**9 // max(1, timed(step, device=device)))
    roof = {"memory_bytes_per_s": rate(2 * size, row.clone), "op_ns": timed(lambda: [least.add_(1) for _ in range(64)], device=device) // 64}
    for key, kind in (("fp32_flops", torch.float32), ("bf16_flops", torch.bfloat16), ("fp16_flops", torch.float16)):
        square = torch.rand(side, side, device=device).to(kind)
        roof[key] = rate(2 * side**3, lambda: square @ square)
    return roof


def time_of_a_copy(device, times=64):
    """Nanoseconds that each copy takes beside its bytes: most of them Python's, to enqueue it."""
    lanes = choose(device)
    source = torch.empty(512, dtype=torch.uint8, device=device)
    target = torch.empty(512, dtype=torch.uint8, pin_memory=True)
    lanes.out(source, target, [])
    started = now(device)
    for _ in range(times):
        lanes.out(source, target, []).wait()
    return (now(device) - started) // times


def most_of(device, budget):
    """The most bytes that the program can have: of the budget, of what torch may take, and of what others leave.
    None on a CPU, where nobody counts."""
    if device.type != "cuda":
        return None
    total = torch.cuda.get_device_properties(device).total_memory
    asked = getattr(torch.cuda, "get_per_process_memory_fraction", None)
    allowed = int(total * (asked(device) if asked is not None else 1.0))
    return min(allowed, torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device), budget or allowed)


def used_of(device):
    """What torch.cuda.memory_allocated says, which makes a long list first."""
    return torch.cuda.memory.memory_stats_as_nested_dict(device)["allocated_bytes"]["all"]["current"]


def left_beside(device, budget):
    """The bytes that a step like those up to now would leave, less the holes."""
    most = most_of(device, budget)
    return None if most is None else max(0, most - most // HOLES - torch.cuda.max_memory_allocated(device))


def host_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4


RECOMPUTE = ("off", "cheap", "auto", "only")
UNITS = {"": 1, "b": 1, **{name + b: 1000**n for n, name in enumerate("kmgt", 1) for b in ("", "b")},
         **{name + "ib": 1024**n for n, name in enumerate("kmgt", 1)}}


def bytes_of(budget):
    """None: it is a part of something that nobody knows yet, or `ferry` shall say what is wrong with it."""
    if isinstance(budget, int):
        return budget
    found = re.fullmatch(r"([0-9.]+) *([A-Za-z]*)", budget)
    try:
        return int(float(found[1]) * UNITS[found[2].lower()])
    except (TypeError, KeyError, ValueError):
        return None


def share_of(budget):
    """How many per cent; None where it is none of those."""
    share = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *%", budget)
    return None if share is None else float(share[1])


def require_budget(budget):
    """Said before the steps that are learned from."""
    if isinstance(budget, bool) or not isinstance(budget, (int, str)) or (bytes_of(budget) or -1) < 0 \
            and (isinstance(budget, int) or not share_of(budget)):
        raise Refused(f"budget is a number of bytes, \"10GiB\" or \"60%\" of what a step takes, not {budget!r}")


def require_options(device, recompute):
    """These too."""
    if recompute not in RECOMPUTE:
        raise Refused(f"recompute is one of {', '.join(RECOMPUTE)}, not {recompute!r}")
    if device is None or os.path.isfile(str(device)):
        return
    try:
        card(str(device))
    except (Refused, OSError):
        raise Refused(f"device names a card to plan for, or its file, and {device} is neither; `ferry devices` lists names, "
                      "and without device= it is the card that is here") from None


def to_plan(device, budget):
    """The budget of a plan, as `ferry` takes it, for a limit of torch's allocator."""
    size = bytes_of(budget)
    if device.type != "cuda":
        return budget if size is None else f"{size}B"
    if size is not None:
        return f"{size - size // HOLES}B"
    share = share_of(budget)
    return budget if share is None else f"{share * (HOLES - 1) / HOLES:.6g}%"


def to_enforce(planned):
    """The limit of torch's allocator for a plan's budget."""
    return planned * HOLES // (HOLES - 1)


def too_small(device, said):
    """What `ferry` says of such a budget. A plan for a GPU gets less than the program asks for, which is then named."""
    if device.type != "cuda" or said["found_bytes"] <= 0:
        return said["why"]
    return f"no plan fits in this budget; ask for {to_enforce(said['found_bytes']) // 2**20 + 1}MiB"
