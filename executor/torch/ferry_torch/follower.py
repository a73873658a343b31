# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a plan through autograd's hooks, a position at a time.

The trace says at which position each tensor was packed and unpacked. The n-th pack of a step is the
n-th of the trace: so a hook knows where in the step it is, and does all that the plan has for the
positions up to there. A pack that does not fit makes the rest of the step unknown: then nothing
more leaves, and what is away is fetched on use.
"""
import bisect
import contextlib
import threading

import torch

from . import updates
from .again import Book
from .clock import is_captured
from .early import Early
from .errors import Refused
from .modules import signature
from .outside import Outside
from .pieces import Pieces
from .saved import SavedTensors
from .slots import Standing
from .storages import Watched, local_of, storage_of
from .valve import Valve
from .watch import POP, PUSH, TOP, choose, told_by

OUT_OF_MEMORY = torch.cuda.OutOfMemoryError


class Follower(SavedTensors):
    """One model, one optimizer, one plan."""

    def __init__(self, model, optimizer, plan, lanes, arena, report):
        self.model, self.optimizer, self.plan = model, optimizer, plan
        self.lanes, self.arena, self.report = lanes, arena, report
        self.packs = plan.events("pack")
        self.back_at = {}  # of each pack, the positions at which it is asked for: several where a graph is walked again
        for (at, _), n in zip(plan.events("unpack"), plan.unpacked):
            self.back_at.setdefault(n, []).append(at)
        self.pack_positions = [at for at, _ in self.packs]
        self.pack_content = plan.contents()
        self.last_content = {t: c for (_, t), c in zip(self.packs, self.pack_content)}
        self.first_move = {m.tensor: m for m in plan.moves if m.first}
        self.standing, self.known = {}, Watched()
        self.moved = {}  # by the parameter's id
        self.device = next(model.parameters()).device
        self.on_cpu = self.device.type == "cpu"
        self.valve = Valve(plan, self.device)
        self.update_at, self.late = updates.positions_of(model, plan), plan.used_late()
        self.find_standing()
        self.outside = Outside(self)
        self.early = Early(optimizer, self.update_early) if plan.moves_updates() else None
        self.book, self.everywhere = None, self.early is not None  # everywhere: every pack is looked at
        self.actions, self.beside = self.schedule(), None
        self.n_actions = len(self.actions)
        self.choose_calls()
        self.number, self.inside, self.more = 0, 0, 0  # the step; calls of the model that run; hooks that are on beside those of calls
        self.running = {}  # by thread: modules, each with the weights that it owns
        self.round = updates.Round(optimizer)
        self.pieces = Pieces(plan, self.update_at, self.moments())
        self.start_step()
        self.ended = True  # what is packed before the model is called is no part of a step

    # ---- before the first step ----

    def choose_calls(self):
        """Which packs are looked at, and the calls of modules around them."""
        wanted = told_by(self.plan, [row[0] for row in self.actions])
        self.quiet = [n not in wanted and not self.everywhere for n in range(len(self.packs))]
        self.calls = choose(self.plan, wanted)
        seen = [n for n, quiet in enumerate(self.quiet) if not quiet]
        self.valve.hooks = sorted({at for n in seen for at in (self.packs[n][0], *self.back_at.get(n, ()))})

    def find_standing(self):
        """Weights and optimizer state that the plan moves."""
        rows = self.plan.tensors
        wanted = {rows[m.tensor]["name"]: m.tensor for m in self.plan.moves
                  if rows[m.tensor]["persistent"]}
        if wanted:
            updates.require_alone(self.optimizer)
        for name, tensor in self.named():
            if name in wanted:
                self.stand(wanted.pop(name), name, tensor)
        if wanted:
            raise Refused(f"the plan moves {sorted(wanted)[0]}, which is not there; run steps "
                          "before, until the optimizer has all of its state")

    def stand(self, index, name, tensor):
        tensor = local_of(tensor)
        if not storage_of(tensor).resizable():  # it was loaded from a file, and lies in a part of that
            if isinstance(tensor, torch.nn.Parameter):
                raise Refused(f"{name} lies in memory that torch cannot give up; load it without assign=True and mmap=True")
            tensor.data = tensor.clone()
        size = storage_of(tensor).nbytes()
        if size != self.plan.tensors[index]["bytes"]:
            raise Refused(f"{name} has {size} bytes, and {self.plan.tensors[index]['bytes']} in the "
                          "trace; record the step again")
        self.standing[index] = Standing(index, tensor, self.arena)
        self.known.add(storage_of(tensor), self.standing[index])

    def named(self):
        names = {id(p): name for name, p in self.model.named_parameters()}
        for name, p in self.model.named_parameters():
            yield name, p
        for i, p in enumerate(updates.parameters_of(self.optimizer)):
            name = names.get(id(p), f"parameter{i}")
            for key, value in updates.state_of(self.optimizer, p).items():
                yield f"{name}.{key}", value

    def schedule(self):
        """What is to be done on the way, by position: the waits first, then what leaves, what comes
        back, what is made again, and what leaves behind that."""
        found = [(at, 0, order, self.release, outs) for order, (at, outs)
                 in enumerate(sorted(self.plan.waits.items()))]
        for order, move in enumerate(self.plan.moves):
            if move.tensor in self.standing or not move.first:
                found.append((move.out_after + 1, 4 if move.behind_copy else 1, order, self.leave, move))
            found.append((move.trigger, 2, order, self.bring, move))
        found += [(at, 4 if behind else 1, i, self.drop, i) for at, behind, i in self.plan.drops]
        found += [(e.before, 3, e.number, self.make_again, e) for e in self.plan.entries]
        found.sort(key=lambda row: row[:3])
        return [(row[0], row[3], row[4]) for row in found]

    def moments(self):
        """Where something is due beside copies of weights and state."""
        return [at for at, action, what in self.actions if action in (self.drop, self.make_again)
                or action in (self.leave, self.bring) and what.tensor not in self.standing]

    # ---- a step ----

    def start_step(self):
        self.pack_at = self.next_action = 0
        self.number = getattr(self, "number", 0) + 1
        self.reached = -1  # the last position
        self.contents, self.lost, self.ended = {}, False, False
        self.asked = {}  # how often for each pack that is asked for more than once
        self.unfinished = {}  # packs of storages of which other parts are still written
        self.leaving = []  # copies out that hold their source: number in the plan's order, slot
        self.undropped = []  # to be dropped once all is there to make them again
        self.delayed = []  # moves that wait for the end of a module
        self.book = Book(self.plan) if self.plan.entries else None
        self.beside = None  # hooks for what is not the plan's
        for slot in self.standing.values():
            slot.until = 0

    def enter_root(self, inputs):
        """A pass that nobody can walk back, as one that validates, is no part of a step."""
        if self.early is not None:
            self.early.require_old()
        if not torch.is_grad_enabled():
            return
        self.outside.end()
        if self.ended:
            self.start_step()
            if signature(inputs) != self.plan.inputs:
                self.lost = True
                self.report.other += 1

    @contextlib.contextmanager
    def around_root(self, inputs):
        """In a step unlike the trace's, every saved tensor goes through a hook."""
        self.enter_root(inputs)
        self.inside += 1
        if self.lost and torch.is_grad_enabled():
            self.look_everywhere()
        try:
            yield
        finally:
            self.inside -= 1
            while self.more and not self.inside:
                self.more -= 1
                POP()

    def look_everywhere(self):
        if self.inside and not self.more and not self.everywhere and TOP() in (None, (self.pack, self.unpack)):
            self.more += 1
            PUSH(self.pack, self.unpack)

    def note_call(self, call, noted, out):
        for k in call.makes:
            self.book.note(k, noted, out, self)
        self.reach(call.ends)

    def reach(self, position):
        """Everything that the plan has up to here."""
        if self.lost:
            return
        if position > self.reached:
            self.reached = position
        while self.next_action < self.n_actions and self.actions[self.next_action][0] <= position:
            _, action, what = self.actions[self.next_action]
            self.next_action += 1
            action(what)
        if self.leaving:
            self.let_go_of_ended()
        if self.leaving and self.valve.is_tight(position):
            self.let_go_of_all()
        if self.undropped and self.book.news:
            self.book.news = False
            self.drop_ready()

    def lose(self):
        """The step is not the trace's: from here on nothing leaves."""
        self.lost = True
        self.report.unmatched += 1
        self.look_everywhere()

    def release(self, outs):
        """The op here waits for the first `outs` copies out: their sources may go."""
        rest = []
        for number, slot in self.leaving:
            if number is not None and number <= outs:
                slot.release(True)
            else:
                rest.append((number, slot))
        self.leaving = rest

    def let_go_of_ended(self):
        self.leaving = [(n, slot) for n, slot in self.leaving if not slot.release(False)]

    def let_go_of_all(self):
        for _, slot in self.leaving:
            slot.release(True)
        self.leaving = []

    def leave(self, move):
        slot = self.slot_of(move.tensor)
        if move.out_after < move.trigger <= self.reached:
            return  # it was put off, and would be back by now
        if self.is_busy(slot):
            self.delayed.append(move)
        elif slot is not None and move.out_after >= getattr(slot, "until", 0):
            self.report.out_bytes += slot.leave(move.offset, move.clean)
            self.leaving.append((move.outs or 0, slot))

    def slot_of(self, index):
        """What has the tensor's bytes, if anybody still has it."""
        held = self.contents.get(index)
        return self.standing.get(index) if held is None else held()

    def drop(self, index):
        """Its last use is over; it may not have been packed yet, nor all from which it is made."""
        content = self.slot_of(index)
        if content is not None and self.book.can_drop(index, content):
            content.drop()
        elif index not in self.contents or content is not None:
            if self.plan.maker[index].number not in self.book.over:
                self.undropped.append(index)

    def drop_ready(self):
        """Those that waited until their makers had run."""
        undropped, self.undropped = self.undropped, []
        for index in undropped:
            if self.book.calls.keys() >= self.plan.maker[index].every:
                self.drop(index)
            else:
                self.undropped.append(index)

    def make_again(self, entry):
        self.book.run(entry, self)

    def bring(self, move):
        if move.frees is not None:
            self.release(move.frees)
        slot = self.slot_of(move.tensor)
        if slot is not None:
            try:
                self.fetch(slot, move.last)
            except OUT_OF_MEMORY:
                self.let_go_of_all()  # it is fetched on use
            if move.tensor in self.standing and not move.keeps:
                slot.give_up_copy()

    def fetch(self, slot, last=True):
        if slot.bring(last):
            self.valve.took(slot.size)
            self.report.in_bytes += slot.size
            return True
        return False

    def ensure(self, slot, book=None):
        """On the device, whatever the plan said."""
        if slot.dropped:
            book.run(book.maker_of(slot), self)
            self.report.late += 1
        try:
            came = self.fetch(slot)
        except OUT_OF_MEMORY:
            self.let_go_of_all()
            came = self.fetch(slot)
        self.report.late += came
        return slot.use()

    # ---- modules and the optimizer ----

    def enter_module(self, module, slots):
        self.running.setdefault(threading.get_ident(), []).append((module, slots))
        for slot in slots:
            self.ensure(slot)
            self.stay(slot)
        self.leave_delayed()

    def owned_by(self, module):
        """Those of the module's own weights that the plan moves."""
        slots = [self.known.find(storage_of(p)) for p in module._parameters.values() if p is not None]
        return [slot for slot in slots if slot is not None]

    def leave_module(self, module):
        """The module has ended, and so have those that it called, if one raised."""
        running = self.running.get(threading.get_ident(), [])
        while running and running.pop()[0] is not module:
            continue
        self.leave_delayed()

    def leave_delayed(self):
        if not self.delayed:
            return
        delayed, self.delayed = self.delayed, []
        for move in delayed:
            self.leave(move)

    def is_busy(self, slot):
        """May a module that runs still use it? Packs say where the step is: in one that is not the trace's they may
        say that it is behind an op that is to come. A module uses what it owns before it calls another one, but for
        what the recorder has seen later."""
        for running in map(list, list(self.running.values())):
            for _, slots in running:
                if slot in slots and (slots is running[-1][1] or slot.index in self.late):
                    return True
        return False

    def stay(self, slot):
        """Up to its next use. In a step that is not the trace's the plan may have it leave before."""
        done = self.pack_at >= bisect.bisect_right(self.pack_positions, self.reached)
        uses = self.plan.uses.get(slot.index, [])
        at = (bisect.bisect_right if done else bisect.bisect_left)(uses, self.reached)
        slot.until = uses[at] if at < len(uses) else len(self.plan.ops)

    def step(self, optimizer, closure=None):
        loss = updates.run_closure(optimizer, closure)
        self.outside.end()
        self.running.clear()  # of modules that raised something
        self.leave_delayed()
        with updates.Hooks(optimizer):
            if self.early is not None:
                self.early.end()
            elif self.standing or updates.in_pieces(optimizer):
                self.step_each(optimizer)  # as it was recorded: all at once would hold more than the plan knows
            else:
                updates.plain_step(optimizer)
        updates.count_step(optimizer)
        if self.round.is_over(optimizer):
            self.end_step()
        return loss

    def end_step(self):
        self.reach(len(self.plan.ops))
        if is_captured(self.device):
            self.let_go_of_all()
            self.lanes.join()
        self.ended = True
        self.report.extra_bytes = self.arena.extra
        self.report.step_ended()
        self.outside.begin()

    def step_each(self, optimizer):
        found = updates.with_gradients(optimizer)
        for group, parameters in updates.each_by_itself(found) if self.lost else self.pieces.of(found):
            self.update(optimizer, group, *parameters)

    def update(self, optimizer, group, *parameters):
        at = [self.update_at[id(p)] for p in parameters if id(p) in self.update_at]
        slots = dict.fromkeys(slot for p in parameters for slot in self.slots_of(p))
        running = self.running.setdefault(threading.get_ident(), [])
        running.append((None, slots))  # they stay meanwhile: a plan may have some leave between two of them
        try:
            for position in at[-1:]:
                self.reach(position)
            for slot in slots:
                self.ensure(slot)
            updates.step_of(optimizer, group, *parameters)
        finally:
            running.remove((None, slots))
        for slot in slots:
            slot.changed()
        self.leave_delayed()
        for position in at[-1:]:
            self.reach(position + 1)

    def slots_of(self, p):
        """Those of the parameter and its state that the plan moves."""
        found = self.moved.get(id(p))
        if found is None:
            slots = [self.known.find(storage_of(t)) for t in (p, *updates.state_of(self.optimizer, p).values())]
            found = self.moved[id(p)] = [slot for slot in slots if slot is not None]
        return found

    def update_early(self, group, p):
        self.update(self.early.optimizer, group, p)
        self.early.use_up(p)

    def bring_standing(self):
        """Brings weights and state back, for code that reads them without an op."""
        for slot in self.standing.values():
            self.ensure(slot)

    def bring_whole(self, tensor):
        """Brings one of them back, for code that reads its bytes."""
        storage = storage_of(tensor)
        slot = None if storage is None else self.known.find(storage)
        if slot is not None:
            self.ensure(slot)

    def bring_all(self):
        """The model as it was before: everything on the device."""
        for slot in self.standing.values():
            slot.bring()
            slot.use()
        self.lanes.drain()
