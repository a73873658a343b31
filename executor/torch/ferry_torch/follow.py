# SPDX-License-Identifier: GPL-3.0-or-later
"""Follows a plan.

    with ferry_torch.follow("plan.json", model, optimizer) as run:
        for batch in loader:
            step(batch)
    print(run.report.text())
"""
import contextlib
import functools

import torch

from . import lanes as all_lanes
from . import plan as plans
from . import tool, updates
from .arena import Arena
from .card import to_enforce
from .follower import Follower
from .modules import Called, alone, device_of, inside_all, one_of, refuse_compiled, refuse_script, roots_of
from .outside import Before, Whole
from .pieces import Pieces
from .report import Report
from .watch import around_all


@contextlib.contextmanager
def enforced(device, budget):
    """torch refuses what is above the budget, instead of the card."""
    if device.type != "cuda" or not budget:
        yield
        return
    total = torch.cuda.get_device_properties(device).total_memory
    asked = getattr(torch.cuda, "get_per_process_memory_fraction", None)  # newer: what the program had set
    before = asked(device) if asked is not None else 1.0
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(1.0, budget / total), device)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(before, device)


class Run:
    """What `follow` gives: the report, and the follower where the plan moves anything."""

    def __init__(self, report, follower, files):
        self.report, self.follower, self.files = report, follower, files

    def _repr_html_(self):
        """In a notebook: the plan's picture, and what was seen."""
        return tool.picture(*self.files) + self.report._repr_html_()


def hook(follower, model, method, stack):
    """Everything that the plan is followed through; the stack takes it off again."""
    if follower.early is not None:
        stack.callback(follower.early.undo)
    if follower.standing:
        back = follower.outside.behind(torch.autograd.backward)
        stack.callback(Called(torch.autograd, "backward", back).undo)
        for owner in (*roots_of(model), *updates.each(follower.optimizer)):
            stack.callback(Before(owner, "state_dict", follower.bring_standing).undo)
        stack.callback(Whole(follower.bring_whole).undo)
    around_all(follower, model, method, stack)
    inside_all(model, method, follower.around_root, stack)
    updates.wrap(follower.optimizer, follower.step, stack)
    stack.callback(follower.outside.end)
    if follower.everywhere:
        stack.enter_context(torch.autograd.graph.saved_tensors_hooks(follower.pack, follower.unpack))


def counted(optimizer, pieces, report):
    """An optimizer's step where nothing moves: as it was recorded, and told to the report."""
    inner = {id(one): functools.partial(updates.step_in_pieces, one, pieces=pieces) if updates.in_pieces(one) else one.step
             for one in updates.each(optimizer)}
    over = updates.Round(optimizer)

    def step(one, *closure, **options):
        loss = inner[id(one)](*closure, **options)
        if over.is_over(one):
            report.step_ended()
        return loss
    return step


@contextlib.contextmanager
def follow(path, model, optimizer, trace=None, enforce=True):
    """Runs the steps in it by the plan at `path`. The trace that the plan is for is looked for
    beside it, unless it is given. Outside everything is on the device again."""
    with alone(), followed(path, one_of(model), optimizer, trace, enforce) as run:
        yield run


@contextlib.contextmanager
def followed(path, model, optimizer, trace=None, enforce=True, method="forward"):
    refuse_compiled(model)
    refuse_script(model)
    plan = plans.load(path, trace)
    plans.require_model(plan, model)
    device = device_of(model)
    report = Report(plan, device)
    with contextlib.ExitStack() as stack:
        stack.enter_context(enforced(device, to_enforce(plan.budget) if enforce else 0))
        if not plan.moves and not plan.entries and not plan.moves_updates():
            updates.wrap(optimizer, counted(optimizer, Pieces(plan, updates.positions_of(model, plan)).of, report), stack)
            yield Run(report, None, plan.files)
            return
        lanes = all_lanes.choose(device)
        arena = Arena(lanes, plan.host_bytes)
        stack.callback(arena.close)
        follower = Follower(model, optimizer, plan, lanes, arena, report)
        stack.callback(follower.bring_all)
        hook(follower, model, method, stack)
        yield Run(report, follower, plan.files)
