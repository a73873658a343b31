# SPDX-License-Identifier: GPL-3.0-or-later
"""Times without the recorder's own share.

A recorder in Python adds about as much to each call that it sees. How much is known from a step that was
not recorded: with so much taken from every call, the recorded step takes as long as that one.
"""
import statistics
import time

import torch

LEAST = 16  # no call becomes shorter than this part of what was measured


def now(device):
    """Nanoseconds, behind all that the device has been given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter_ns()


def timed(step, times=3, device=None):
    """The step's time without recording: the median of several, in nanoseconds."""
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    spans = []
    for _ in range(times):
        started = now(device)
        step()
        spans.append(now(device) - started)
    return int(statistics.median(spans))


def lighter(spans, share):
    """Each op's calls, with `share` taken from every one."""
    return [sum(max(span - share, span // LEAST) for span in calls) for calls in spans]


def alike(spans, kinds):
    """What does the same takes as long: each call as the one in the middle of its kind. An allocator that has to wait for
    the card, or whoever else has the processor, makes some of them longer. `kinds`: what tells ops apart."""
    members, found = {}, list(spans)
    for k, kind in enumerate(kinds):
        members.setdefault((kind, len(spans[k])), []).append(k)
    for ops in members.values():
        calls = [sorted(column)[(len(ops) - 1) // 2] for column in zip(*(spans[k] for k in ops))]
        for k in ops:
            found[k] = calls
    return found


def without_recorder(spans, step_ns):
    """Nanoseconds of each op. `spans`: of each op, those of its calls; `step_ns`: what all of it takes
    when it is not recorded, or None."""
    plain = lighter(spans, 0)
    if step_ns is None or sum(plain) <= step_ns:
        return plain
    low, high = 0, max(max(calls, default=0) for calls in spans)
    while high - low > 1:
        middle = (low + high) // 2
        if sum(lighter(spans, middle)) > step_ns:
            low = middle
        else:
            high = middle
    return lighter(spans, high)
