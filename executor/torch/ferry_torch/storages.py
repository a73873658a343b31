# SPDX-License-Identifier: GPL-3.0-or-later
"""Which memory a tensor lies in.

A storage is known by a weak reference of its own: as long as that is held its number is not given to
another storage, though the bytes may be gone and their address in use again.
"""
import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass


def local_of(tensor):
    """The local part of a tensor that is spread over several processes."""
    return getattr(tensor, "_local_tensor", tensor)


def storage_of(tensor):
    """The untyped storage, of this process; None where the tensor has none of its own, as sparse ones."""
    tensor = getattr(tensor, "_local_tensor", tensor)  # as local_of, without its call: this runs for each pack
    if tensor.layout is not torch.strided:
        return None
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


class Weak:
    """A weak reference to a storage. `key` is unique for as long as this object lives."""

    __slots__ = ("key", "free", "gone")

    def __init__(self, storage):
        self.key = storage._weak_ref()
        self.free = type(storage)._free_weak_ref
        self.gone = type(storage)._expired

    def expired(self):
        return self.gone(self.key)

    def __deepcopy__(self, memo):
        raise TypeError("a reference that is counted once cannot be copied")

    def __del__(self):
        self.free(self.key)


class Watched:
    """Storages by identity, each with what somebody knows of it."""

    def __init__(self):
        self.rows = {}

    def find(self, storage):
        row = self.rows.get(storage._cdata)
        return None if row is None or row[0].expired() else row[1]

    def add(self, storage, what):
        """Holds the weak reference, so that no other storage gets this number."""
        weak = Weak(storage)
        self.rows[weak.key] = (weak, what)
        return weak

    def forget(self, weak):
        self.rows.pop(weak.key, None)


def is_plain(tensor):
    """Can be rebuilt from the bytes of its storage, its type, sizes and strides."""
    return (type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
            and not tensor.is_quantized and not tensor.is_conj() and not tensor.is_neg())


def as_bytes(tensor):
    """All of the tensor's storage as one row of bytes."""
    storage = storage_of(tensor)
    flat = tensor.detach().as_strided((storage.nbytes() // tensor.element_size(),), (1,), 0)
    row = flat.view(torch.uint8) if tensor.dtype is not torch.uint8 else flat
    left_over = storage.nbytes() % tensor.element_size()
    return row.as_strided((storage.nbytes(),), (1,), 0) if left_over else row


def row_of(storage):
    """Its bytes as a tensor. It counts no changes of others."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


class Form:
    """How a tensor lies in its storage."""

    __slots__ = ("dtype", "each", "size", "stride", "offset", "grad")

    def __init__(self, tensor):
        self.dtype, self.each = tensor.dtype, tensor.element_size()
        self.size = tensor.size()
        self.stride = tensor.stride()
        self.offset = tensor.storage_offset()
        self.grad = tensor.requires_grad and tensor.is_leaf

    def is_of(self, tensor):
        """Does it lie so?"""
        return tensor.size() == self.size and tensor.stride() == self.stride and tensor.dtype is self.dtype \
            and tensor.storage_offset() == self.offset

    def is_all(self, tensor, bytes_):
        """Are these all bytes of its storage, each once? Then one op copies them as they are."""
        return self.offset == 0 and tensor.numel() * self.each == bytes_ and tensor.is_contiguous()

    def of(self, raw):
        """The same tensor in other bytes: those of the storage of `raw`, of which it may be a part."""
        if self.is_of(raw):
            return raw
        if raw.dtype is not torch.uint8 or raw.dim() != 1 or raw.numel() != raw.untyped_storage().nbytes():
            raw = row_of(raw.untyped_storage())
        left_over = raw.numel() % self.each
        raw = raw[:-left_over] if left_over else raw
        row = raw if self.dtype is torch.uint8 else raw.view(self.dtype)
        return row.as_strided(self.size, self.stride, self.offset)


def lanes_apart(a, b):
    """Columns of one matrix that are not the same: nothing is shared, and no byte is looked at."""
    if not a.stride or not b.stride or a.dtype != b.dtype or max(a.stride) != max(b.stride):
        return False
    step, ranges = max(a.stride), []
    for form in (a, b):
        first = form.offset % step if step else 0
        span = sum((n - 1) * s for n, s in zip(form.size, form.stride) if s != step)
        ranges.append((first, first + span))
        if first + span >= step:
            return False
    return ranges[0][1] < ranges[1][0] or ranges[1][1] < ranges[0][0]


def overlap(a, b, size):
    """Do two forms in one storage of that many bytes share any?"""
    if a.size == b.size and a.stride == b.stride and a.offset == b.offset:
        return True
    if lanes_apart(a, b):
        return False
    met = torch.zeros(size, dtype=torch.uint8)
    a.of(met).fill_(1)
    return bool((b.of(met) != 0).any())


def parts_of(tensor):
    """By name, the tensors that one of several consists of, as 8-bit state of codes and scales; else none. Of one that is
    spread over processes this one's part stands for it."""
    if hasattr(tensor, "_local_tensor") or not is_traceable_wrapper_subclass(tensor):
        return {}
    return {name: getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]}


def inner_tensors(things):
    return [inner for t in tensors_in(things, []) for inner in parts_of(t).values() or [t]]


def tensors_in(things, found):
    """All tensors of nested lists, tuples and dictionaries, in order, added to `found`."""
    for thing in things:
        if isinstance(thing, torch.Tensor):
            found.append(thing)
        elif isinstance(thing, (list, tuple)):
            tensors_in(thing, found)
        elif isinstance(thing, dict):
            tensors_in(thing.values(), found)
    return found
