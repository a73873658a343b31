# SPDX-License-Identifier: GPL-3.0-or-later
"""From what was recorded to the trace's tables."""
from .errors import Refused
from .timing import alike, without_recorder

LEAST = 1 << 20
MANY = 256  # a weight that is a smaller part of all of them stays: its copies take the host longer than they are worth
SMALL = 32  # so much smaller than the result is what an op may make beside it, and be run by a module


def finish(recording, name):
    """The trace as JSON, once the step is over."""
    recorder = recording.recorder
    recorder.look_for_dead()
    if not recorder.ops:
        raise Refused("nothing ran in the recorded step")
    for entry in recorder.entries:
        if entry.first is None and entry.born == 0 and entry.died != 0:
            recorder.ops[0].reads[entry.index] = True  # in the way, though nobody looks at it
            entry.first = entry.last = 0
    used = [e for e in recorder.entries if counts(e)]
    number = {e.index: i for i, e in enumerate(used)}
    tensors = [tensor_row(e, len(recorder.ops)) for e in used]
    result = recorder.clock.result
    spans = [[result(span) for span in op.spans] for op in recorder.ops]
    spans = alike(spans, [kind_of(op, recorder.entries) for op in recorder.ops])
    times = without_recorder(spans, recording.step_ns)
    ops = [op_row(op, ns, number, recording) for op, ns in zip(recorder.ops, times)]
    annotate(ops, used, recording, number)
    recording.summary = summary(recording, used, ops)
    return {"format": "ferry-trace/1", "name": name, "batch": max(1, recording.batch),
            "source": source(recording),
            "tensors": tensors, "ops": ops}


def kind_of(op, entries):
    """The function that runs, and the sizes of all that it reads and writes."""
    return (op.phase, op.name.rsplit(".", 1)[-1], *(tuple(entries[i].bytes for i in met) for met in (op.reads, op.writes)))


def counts(entry):
    """Is it a tensor of the trace? One that nobody used in the step, or scratch, is not."""
    return entry.bytes > 0 and not entry.scratch and (entry.first is not None or entry.persistent)


def tensor_row(entry, n_ops):
    row = {"name": entry.name, "bytes": entry.bytes, "kind": entry.kind}
    if entry.persistent:
        if entry.kind not in ("parameter", "optimizer"):
            row["persistent"] = True
        return row
    if entry.born is not None:
        row["born_before"] = 0
    ends = [at for at in (entry.died, entry.over) if at is not None]
    last = min(ends, default=n_ops) - 1
    if last > entry.last:
        row["dies_after"] = last
    if entry.split:
        row["split"] = "batch"
    return row


def workspace(op, memory):
    """What the op holds beyond the trace's tensors: scratch of an update, room of its kernels."""
    most = op.scratch_most
    for span, scratch, made in op.taken:
        most = max(most, scratch + max(0, memory.peak(span) - made))
    return max(0, most - op.lasting)


def op_row(op, ns, number, recording):
    row = {"name": op.name, "ns": ns, "phase": op.phase}
    for key, indices in (("reads", op.reads), ("writes", op.writes), ("side", op.side)):
        found = sorted(number[i] for i in indices if i in number)
        if found:
            row[key] = found
    if op.collective is not None:
        row["collective"], row["group"], row["group_bytes"] = op.collective
    room = workspace(op, recording.memory)
    if room > 0:
        row["workspace_bytes"] = room
    return row


def annotate(ops, used, recording, number):
    """What only this executor asks for: where tensors are packed and unpacked, from when on only
    autograd holds them, and which weights a module brings back by itself."""
    whole = run_by_modules(recording)
    for row, op in zip(ops, recording.recorder.ops):
        note = {"kind": "torch"}
        for key, events in op.notes.items():
            seen = [number.get(i, -1) for i, begun in events if begun or not recording.roots]
            if seen:
                note[key] = seen
        if op.again is not None and row.get("writes") and op in whole:
            for key, entries in zip(("in", "out"), op.again):
                note[key] = [-1 if e is None else number.get(e.index, -1) for e in entries]
        row["compute"] = note
    for entry in used:
        if entry.let_go is not None and 0 < entry.let_go <= len(ops) and not entry.persistent \
                and entry.bytes >= least_of(recording) and not (entry.before and recording.roots) \
                and not (entry.bare and recording.order is None):
            ops[entry.let_go - 1]["compute"].setdefault("free", []).append(number[entry.index])
    ops[0]["compute"]["roots"] = recording.roots
    ops[0]["compute"]["unpacked"] = recording.unpacked
    ops[0]["compute"]["calls"] = [
        [call.name, call.first, call.end, call.begins, call.ends,
         [-1 if e is None else number.get(e.index, -1) for e in call.inputs]]
        for call in recording.calls if call.end is not None]
    if recording.order:
        ops[0]["compute"]["order"] = recording.order
    ops[0]["compute"]["leave"] = sorted(number[i] for i in may_leave(recording) if i in number)
    late = sorted(number[i] for i in recording.late if i in number)
    if late:
        ops[0]["compute"]["late"] = late


def run_by_modules(recording):
    """The ops that one call of a module makes again: the only one in it that makes anything, from what the module was
    given and what it owns, and nothing large but what it gave back."""
    found = set()
    for call in recording.calls:
        ops = recording.recorder.ops[call.begins:call.ends] if call.leaf else []
        makers = [op for op in ops if op.again is not None]
        if len(makers) == 1 and len(call.output) == 1 and makes_all(makers[0], call) \
                and all(op is makers[0] or writes_own(op, recording.recorder.entries) for op in ops):
            found.add(makers[0])
    return found


def makes_all(op, call):
    given, made = op.again
    aside = sum(e.bytes for e in made if e is not None and e is not call.output[0])
    return call.output[0] in made and call.output[0] is not None and aside * SMALL <= call.output[0].bytes \
        and all(e is None or e.persistent or e in call.inputs for e in given)


def writes_own(op, entries):
    """Statistics of the module."""
    return all(entries[i].persistent for i in op.writes)


def least_of(recording):
    """On a GPU Python takes longer to enqueue a copy than the link takes for a tensor below that."""
    return LEAST if recording.device.type == "cuda" else 0


def may_leave(recording):
    """Weights and optimizer state that can be away between two uses."""
    from . import updates
    if recording.optimizer is None or not updates.each_alone(recording.optimizer):
        return []
    weights = [i for i in recording.guarded if i not in recording.loose]
    entries = recording.recorder.entries
    wanted = weights + [e.index for e in entries if e.kind == "optimizer" and e.index not in recording.loose]
    least = max(least_of(recording), sum(e.bytes for e in entries if e.kind in ("parameter", "optimizer")) // MANY)
    return [i for i in wanted if entries[i].bytes >= least]


def source(recording):
    """Where the trace is from: the card of its times, and the batch, by which a plan knows its steps."""
    inputs = [{"type": dtype, "shape": list(shape)} for dtype, shape in recording.signature or ()]
    return {"kind": "ferry_torch", "detail": detail(recording), "confidence": "exact", "inputs": inputs, **recording.clock.card()}


def detail(recording):
    said = [f"one step, timed by {recording.clock.name}"]
    if recording.step_ns is not None:
        said[0] += ", less the recorder's own share by a step that it did not see"
    for what, count in sorted(recording.recorder.unseen.items()):
        said.append(f"not seen: {count} {what}")
    for dtype, shape in recording.signature or ():
        said.append(f"input {dtype} {'x'.join(map(str, shape)) or 'scalar'}")
    return "; ".join(said)


def summary(recording, used, ops):
    total = {}
    for entry in used:
        total[entry.kind] = total.get(entry.kind, 0) + entry.bytes
    return {"ops": len(ops), "tensors": len(used), "bytes": total,
            "step_ns": sum(row["ns"] for row in ops), "unseen": dict(recording.recorder.unseen)}
