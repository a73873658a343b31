# SPDX-License-Identifier: GPL-3.0-or-later
"""Updates that run as soon as a gradient is final, in the middle of the way back.

Then a gradient need not wait for the optimizer's step. The weight must not be asked for by the rest of
the way back: as long as autograd keeps it anywhere, its update waits.
"""
import weakref

import torch

from . import updates
from .errors import Refused


def processes():
    """How many train together."""
    apart = torch.distributed
    return apart.get_world_size() if apart.is_available() and apart.is_initialized() else 1


class Final:
    """Calls `act` when a backward pass has added up all of a parameter's gradient."""

    def __init__(self, parameter, act):
        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            self.handle = parameter.register_post_accumulate_grad_hook(act)
            return
        # older: the node that adds up, which lives only as long as somebody holds it
        self.node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        self.handle = self.node.register_hook(lambda *unused: act(parameter))

    def remove(self):
        self.handle.remove()


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
        self.done, self.waiting, self.due = set(), [], False  # due: was there a gradient since the last step?
        self.finals = [Final(p, self.final) for p in updates.parameters_of(optimizer)
                       if p.requires_grad]

    def undo(self):
        for final in self.finals:
            final.remove()

    def keep(self, key, packed):
        """Autograd has saved this weight, or a view of it."""
        self.kept.setdefault(key, weakref.WeakSet()).add(packed)

    def is_kept(self, parameter):
        from .storages import storage_of
        return len(self.kept.get(storage_of(parameter)._cdata, ())) > 0

    def final(self, parameter):
        self.due = True
        if id(parameter) in self.done:
            raise Refused("a gradient grew after its update: with gradients that are added up over "
                          "several passes, updates cannot be moved; record without order=\"updates\"")
        if self.is_kept(parameter):
            self.waiting.append(parameter)
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
        ready = [p for p in self.waiting if not self.is_kept(p)]
        self.waiting = [p for p in self.waiting if self.is_kept(p)]
        for p in ready:
            self.run(p)

    def end(self):
        """The optimizer's own step: what is left."""
        if not self.due:
            raise Refused("the optimizer takes a step without a way back before it, and the gradients of the last one are "
                          "gone: updates cannot be moved; record without order=\"updates\"")
        for p in updates.parameters_of(self.optimizer):
            if p.grad is not None and id(p) not in self.done:
                self.run(p)
        self.done, self.waiting, self.due = set(), [], False
