# SPDX-License-Identifier: GPL-3.0-or-later
"""A saved tensor that a hook leaves on the device."""


def changed_in_place(saved, now):
    return RuntimeError("one of the variables needed for gradient computation has been modified by an "
                        f"inplace operation: it was saved at version {saved} and is at {now}")


class Held:
    """With it autograd cannot see later changes, so this looks. The tensor itself may have the very op that saves it
    behind it, a circle that nobody would open if no way back comes: so this has its bytes alone. (Below a mode a
    Python number would come out of `detach` as one; it has no op behind it.)"""

    __slots__ = ("tensor", "version", "order", "standing", "__weakref__")

    def __init__(self, tensor, order=None, standing=None):
        self.tensor, self.version = tensor if tensor.is_leaf else tensor.detach(), tensor._version
        self.order, self.standing = order, standing

    def look(self):
        if self.tensor._version != self.version:
            raise changed_in_place(self.version, self.tensor._version)
