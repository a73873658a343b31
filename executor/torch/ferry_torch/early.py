# SPDX-License-Identifier: GPL-3.0-or-later
"""Updates that run as soon as a gradient is final, in the middle of the way back.

Then a gradient need not wait for the optimizer's step. The weight must not be asked for by the rest of
the way back: as long as autograd keeps it anywhere, its update waits.
"""
import math
import weakref

import torch

from . import updates
from .errors import Refused


def processes():
    """How many train together."""
    apart = torch.distributed
    return apart.get_world_size() if apart.is_available() and apart.is_initialized() else 1


class Final:
    """Calls `before` when a backward pass is about to add to a parameter's gradient, and `act` when it has
    added up all of it."""

    def __init__(self, parameter, before, act):
        def first(unused):  # what a hook gives would be the gradient
            before(parameter)

        self.first = parameter.register_hook(first)
        self.handle = parameter.register_post_accumulate_grad_hook(act)

    def remove(self):
        self.first.remove()
        self.handle.remove()


class Gone:
    """Stands for a gradient that its update has used up: no number, of one element's memory. So it shows
    whether the program drops the gradient before the next one, or zeroes it, or has it grow."""

    def __init__(self, like, element):
        self.tensor = element.expand_as(like).data
        self.was = self.tensor._version

    def zeroed(self):
        """Nothing but filling is allowed for such a tensor."""
        return self.tensor._version != self.was


class Early:
    """The updates of one optimizer, each when it may be."""

    def __init__(self, optimizer, update):
        if not updates.each_alone(optimizer):
            raise Refused(f"{type(optimizer).__name__} is not known to update each parameter alone, "
                          "so its updates cannot be moved")
        if processes() > 1:
            raise Refused("gradients are added up over several processes behind the way back: updates cannot "
                          "be moved; record without order=\"updates\"")
        self.optimizer, self.update = optimizer, update
        self.groups = {}
        self.kept = {}  # by the parameter's storage: what autograd keeps of it
        self.done, self.waiting, self.due = set(), {}, False  # due: was there a gradient since the last step?
        self.gone, self.elements, self.zeroes = {}, {}, False  # zeroes: so the program does, and does not drop them
        self.finals = [Final(p, self.meet, self.final) for p in updates.parameters_of(optimizer)
                       if p.requires_grad]

    def undo(self):
        for final in self.finals:
            final.remove()
        for p in updates.parameters_of(self.optimizer):
            if self.take(p) is not None:
                p.grad = torch.zeros_like(p) if self.zeroes else None

    def use_up(self, parameter):
        """The memory of this gradient is free from here on."""
        kind = parameter.device, parameter.dtype
        with torch.no_grad():
            if kind not in self.elements:
                self.elements[kind] = torch.full((), math.nan, dtype=parameter.dtype, device=parameter.device)
            self.gone[id(parameter)] = gone = Gone(parameter, self.elements[kind])
        parameter.grad = gone.tensor

    def take(self, parameter):
        """What stands for its gradient, if the program has left it there."""
        gone = self.gone.pop(id(parameter), None)
        if gone is None or parameter.grad is not gone.tensor:
            return None
        parameter.grad = None
        self.zeroes = self.zeroes or gone.zeroed()
        return gone

    def meet(self, parameter):
        """Its gradient of the step before must be over."""
        if id(parameter) in self.done:
            raise Refused("a gradient grew after its update, and no step came between: with gradients that are added up "
                          "over several passes, or a step left out, updates cannot be moved; record without "
                          "order=\"updates\"")
        gone = self.take(parameter)
        if gone is not None and not gone.zeroed():
            raise Refused("a gradient of the step before is still to count, and it is gone: call zero_grad in each step, "
                          "or record without order=\"updates\"")
        return gone

    def keep(self, key, packed):
        """Autograd has saved this weight, or a view of it."""
        self.kept.setdefault(key, weakref.WeakSet()).add(packed)

    def is_kept(self, parameter):
        from .storages import storage_of
        return len(self.kept.get(storage_of(parameter)._cdata, ())) > 0

    def final(self, parameter):
        self.due = True
        if self.is_kept(parameter):
            self.waiting[id(parameter)] = parameter
        else:
            self.run(parameter)

    def require_old(self):
        """A pass behind the way back sees the new weights, where without ferry the step is yet to come."""
        if self.done:
            raise Refused("the model is called between a way back and its optimizer's step, when some weights are new "
                          "ones already: updates cannot be moved; record without order=\"updates\"")

    def require_stepped(self):
        """A gradient that no step follows, as a discriminator has from its generator's way back."""
        if self.done:
            raise Refused("a weight has had its update, and no step of its optimizer came: updates cannot be moved, "
                          "and this one is too many; record without order=\"updates\"")

    def group_of(self, parameter):
        """A state that is loaded brings other groups."""
        found = self.groups.get(id(parameter))
        if not any(group is found for group in self.optimizer.param_groups):
            self.groups = {id(p): group for group in self.optimizer.param_groups for p in group["params"]}
        return self.groups[id(parameter)]

    def run(self, parameter):
        self.done.add(id(parameter))
        self.update(self.group_of(parameter), parameter)

    def look(self):
        """Weights that autograd has let go of since."""
        for p in [p for p in self.waiting.values() if not self.is_kept(p)]:
            del self.waiting[id(p)]
            self.run(p)

    def end(self):
        """The optimizer's own step: what is left."""
        if not self.due:
            raise Refused("the optimizer takes a step without a way back before it, and the gradients of the last one are "
                          "gone: updates cannot be moved; record without order=\"updates\"")
        for p in updates.parameters_of(self.optimizer):
            if id(p) in self.done:
                continue
            if self.meet(p) is not None:  # no way back came to it, and torch updates it by a gradient of nothing
                p.grad = torch.zeros_like(p)
            if p.grad is not None:
                self.run(p)
        self.done, self.waiting, self.due = set(), {}, False
        self.elements = {}
