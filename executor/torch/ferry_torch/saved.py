# SPDX-License-Identifier: GPL-3.0-or-later
"""The tensors that autograd saves: what a pack leaves in the graph, and what an unpack gives back.

The n-th pack of a step is the n-th of the trace. A pack that does not fit makes the rest of the step unknown.
"""
import weakref

import torch

from .held import Held, changed_in_place
from .slots import Content
from .spill import Beside, Sent, Spill
from .storages import Form, is_plain, storage_of

PLAIN = torch.Tensor, torch.nn.Parameter  # with a storage, where they are strided


class Packed:
    """A saved tensor that may be on the host, or nowhere until it is made again."""

    __slots__ = ("content", "form", "order", "book", "tensor", "__weakref__")

    def __init__(self, content, tensor, order, book=None):
        self.content, self.order, self.book = content, order, book
        self.form = content.form if content is not None and content.form.is_of(tensor) else Form(tensor)
        self.tensor = tensor.detach() if content is None else None  # until its storage has all its bytes


class SavedTensors:
    """The part of a follower that autograd calls."""

    def pack(self, tensor):
        """What nothing depends on is a row of its bytes, its version and its number."""
        if tensor.dim() == 0 or tensor.is_cpu is not self.on_cpu \
                or type(tensor) not in PLAIN and storage_of(tensor) is None or tensor.layout is not torch.strided:
            return Held(tensor, None)
        order = self.pack_at
        if not self.lost and not self.ended and order < len(self.quiet) and self.quiet[order]:
            self.pack_at = order + 1
            return tensor if tensor.is_leaf else tensor.detach(), tensor._version
        packed = self.pack_known(tensor)
        if self.early is not None and isinstance(packed, Held):
            self.early.keep(storage_of(tensor)._cdata, packed)
        return packed

    def pack_known(self, tensor):
        storage = storage_of(tensor)
        standing = self.known.find(storage) if self.standing else None
        if self.lost or self.ended:
            return self.pack_beside(tensor, standing)
        order = self.pack_at
        if order >= len(self.packs) or not self.fits(storage, standing, self.packs[order][1]):
            self.lose()
            return self.pack_beside(tensor, standing)
        self.pack_at += 1
        position, index = self.packs[order]
        self.reach(position)
        if standing is not None or index not in self.plan.comes or not is_plain(tensor):
            self.report.kept += 1
            return Held(tensor, (self.number, order), standing)
        if self.pack_content[order] != self.last_content[index]:
            packed = Packed(None, tensor, (self.number, order), self.book)
            self.unfinished.setdefault(index, []).append(weakref.ref(packed))
            return packed
        return self.pack_moved(tensor, index, order)

    def pack_beside(self, tensor, standing):
        """The plan has made no room for it."""
        if standing is not None:
            return Held(tensor, None, standing)
        if self.beside is None:
            self.beside = Spill(self.model, Beside(self.device, self.plan.budget))
        before = self.beside.room.sent
        packed = self.beside.pack(tensor)
        self.report.beside_bytes += self.beside.room.sent - before
        return packed

    def fits(self, storage, standing, index):
        """What the trace has not, as a tensor without bytes, is anything."""
        size = storage.nbytes() if standing is None else standing.size
        return index < 0 or size == self.plan.tensors[index]["bytes"]

    def pack_moved(self, tensor, index, order):
        held = self.contents.get(index)
        content = held() if held is not None else None
        if content is None:
            content = self.first_content(tensor, index)
            self.join_early(index, content)
        elif content.weak.expired() or content.weak.key != storage_of(tensor)._cdata:
            self.lose()
            return self.pack_beside(tensor, None)
        self.report.followed += 1
        if self.leaving:
            self.let_go_of_ended()
        return Packed(content, tensor, (self.number, order), self.book)

    def first_content(self, tensor, index):
        move = self.first_move.get(index)
        content = Content(tensor, self.arena, None if move is None else move.offset)
        self.contents[index] = weakref.ref(content)
        if self.book is not None:
            self.book.keep(index, content)
        if move is not None:
            self.leaving.append((move.outs, content))
            self.report.out_bytes += content.size
        return content

    def join_early(self, index, content):
        """What was packed while other parts of the storage were still written is in it too: the
        trace has seen that none of those writes touched it."""
        for weak in self.unfinished.pop(index, []):
            packed = weak()
            if packed is not None and content.weak.key == storage_of(packed.tensor)._cdata:
                packed.content, packed.tensor = content, None
                self.report.followed += 1

    def unpack(self, packed):
        if type(packed) is tuple:
            if packed[0]._version != packed[1]:
                raise changed_in_place(packed[1], packed[0]._version)
            return packed[0]
        if self.early is not None:
            self.early.look()
        if isinstance(packed, Sent):
            return packed.back()
        if not self.lost and packed.order is not None:
            self.meet_unpack(packed.order)
        if isinstance(packed, Packed) and packed.content is None:
            return packed.tensor
        if isinstance(packed, Packed):
            if packed.content.raw is None:
                self.ensure(packed.content, packed.book)
            if packed.content.changed():
                raise changed_in_place(packed.content.version, packed.content.raw._version)
            return packed.form.of(packed.content.use())
        if packed.standing is not None:
            self.ensure(packed.standing)
        else:
            packed.look()
        return packed.tensor

    def meet_unpack(self, order):
        """A graph of a step before says nothing of this one."""
        number, order = order
        if number != self.number or order not in self.back_at:
            return
        places = self.back_at[order]
        if len(places) == 1:
            return self.reach(places[0])
        times = self.asked[order] = self.asked.get(order, 0) + 1
        self.reach(places[min(times, len(places)) - 1])
