# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan predicted, beside what was seen."""
import collections
import statistics
import time

import torch

from .clock import is_captured, mark

LATELY = 1000  # steps whose times are kept
PATIENCE = 10  # steps in a row that are not the plan's, before that is said


class Report:
    """Counts of a run; `text` says them."""

    def __init__(self, plan, device):
        self.predicted, self.device = plan.predicted, device
        self.budget = plan.budget
        self.steps = self.followed = self.kept = self.unmatched = self.late = self.other = 0
        self.out_bytes = self.in_bytes = self.extra_bytes = self.beside_bytes = 0
        self.ops_again = self.bytes_again = 0
        self.unlike = self.in_a_row = 0  # steps that were not the plan's; how many of them were the last ones
        self.say = None
        self.replayed = 0  # steps of a captured graph
        self.expects_again = plan.expects_again()
        self.host_bytes = plan.host_bytes
        self.times, self.last = collections.deque(maxlen=LATELY), None
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)

    def made_again(self, ops, size):
        self.ops_again += ops
        self.bytes_again += size

    def step_ended(self):
        if is_captured(self.device):
            return
        if self.device.type == "cuda":
            now = mark(self.device)
        else:
            now = time.perf_counter_ns()
        self.steps += 1
        self.count_unlike()
        if self.last is not None:
            self.times.append((self.last, now))
        self.last = now

    def count_unlike(self):
        before, self.unlike = self.unlike, self.other + self.unmatched
        self.in_a_row = self.in_a_row + 1 if self.unlike > before else 0
        if self.in_a_row == PATIENCE and self.say is not None:
            self.say(f"ferry: the last {PATIENCE} steps were not the plan's, and ran without it: a plan is for one size of batch, "
                     "and for the modules that it saw called; pad batches to one size")

    def step_ns(self):
        """The median time from the end of one of the last steps to that of the next; None before two ended."""
        if not self.times:
            return None
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            return int(statistics.median(a.elapsed_time(b) for a, b in self.times) * 1e6)
        return int(statistics.median(b - a for a, b in self.times))

    def peak_bytes(self):
        if self.device.type != "cuda":
            return None
        return torch.cuda.max_memory_allocated(self.device)

    def rows(self):
        """Name, predicted, seen; None where it is not known."""
        p, steps = self.predicted, max(1, self.steps)
        return [("step_ns", p.get("step_ns"), self.step_ns()),
                ("peak_bytes", p.get("peak_bytes"), self.peak_bytes()),
                ("d2h_bytes", p.get("d2h_bytes"), self.out_bytes // steps),
                ("h2d_bytes", p.get("h2d_bytes"), self.in_bytes // steps),
                ("again_bytes", self.expects_again, self.bytes_again // steps),
                ("host_bytes", p.get("host_peak_bytes"), self.host_bytes + self.extra_bytes)]

    def text(self):
        lines = [f"{'':8} {'predicted':>12} {'seen':>12}  of {self.steps} steps"]
        for name, predicted, seen in self.rows():
            show = time_text if name == "step_ns" else bytes_text
            lines.append(f"{NAMES[name]:8} {show(predicted):>12} {show(seen):>12}")
        lines.append(f"packs    {self.followed} followed, {self.kept} kept, {self.unmatched} unmatched"
                     f"; {self.late} copies came late, {self.other} steps were not the plan's")
        if self.beside_bytes:
            lines[-1] += f", for which {bytes_text(self.beside_bytes)} went to the host beside the plan"
        if self.replayed:
            lines.append(f"captured {self.replayed} steps were replayed as one graph")
        return "\n".join(lines)


    def _repr_html_(self):
        """In a notebook."""
        rows = "".join(f"<tr><td>{NAMES[name]}<td>{show(predicted)}<td>{show(seen)}" for name, predicted, seen in self.rows()
                       for show in [time_text if name == "step_ns" else bytes_text])
        return f"<table><tr><th>of {self.steps} steps<th>predicted<th>seen{rows}</table><p>{self.text().splitlines()[-1]}"


NAMES = {"step_ns": "step", "peak_bytes": "device", "d2h_bytes": "out", "h2d_bytes": "in",
         "again_bytes": "again", "host_bytes": "host"}


def bytes_text(value):
    if value is None:
        return "-"
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size:
            return f"{value / size:.2f} {unit}"
    return f"{value} B"


def time_text(value):
    if value is None:
        return "-"
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value} ns"
