# SPDX-License-Identifier: GPL-3.0-or-later
"""Made training steps whose true uses are known, written in each format that ferry imports.

A net is a list of calls; a call has pieces, each of which launches kernels and truly reads and
writes tensors.  Custom functions and compiled regions read what they saved without listing it,
slices hand on parts, residuals read what is long made, collectives run on another stream."""
import json
import pickle
import random

PAD = 512


class Tensor:
    def __init__(self, net, elements, kind="made"):
        self.id = len(net.tensors)
        self.elements, self.kind = elements, kind
        self.bytes = 4 * elements
        self.padded = (self.bytes + PAD - 1) // PAD * PAD
        self.made_by = None  # (call, piece)
        self.uses = []       # calls, in order
        net.tensors.append(self)


class Piece:
    def __init__(self, reads, writes, inner=None, kernels=1, listed=None):
        self.reads, self.writes = list(reads), list(writes)
        self.inner = inner  # the name of a call inside the call, or None: the call itself launches
        self.kernels = kernels
        self.listed = list(reads) if listed is None else list(listed)


class Call:
    def __init__(self, name, thread, phase, pieces, seq=-1, listed=None, opaque=False):
        self.name, self.thread, self.phase, self.pieces, self.seq = name, thread, phase, pieces, seq
        self.opaque = opaque
        self.listed = listed if listed is not None else [t for p in pieces for t in p.listed]
        self.side = False


class Net:
    def __init__(self, seed, adam=False):
        r = self.random = random.Random(seed)
        self.tensors, self.calls = [], []
        self.numel = r.choice([256, 1024, 4096])
        self.seq = 40
        self.weights = []
        self.state = {}
        self.adam = adam
        self.input = Tensor(self, self.numel, "input")
        self.build(r.randint(3, 9))
        self.number()

    def piece_kernels(self):
        return self.random.randint(1, 3)

    def forward(self, name, pieces, **more):
        self.seq += 1
        call = Call(name, 1, "forward", pieces, self.seq, **more)
        self.calls.append(call)
        return self.seq

    def build(self, layers):
        r, acts, tape = self.random, [self.input], []
        cur = self.input
        for _ in range(layers):
            kind = r.choice(["linear", "linear", "relu", "relu", "add", "part", "custom", "compiled", "hidden"])
            out = Tensor(self, self.numel)
            if kind == "linear":
                w = Tensor(self, r.choice([self.numel, 2 * self.numel, 128]), "weight")
                self.weights.append(w)
                seq = self.forward("aten::linear", [Piece([cur, w], [out], kernels=self.piece_kernels())])
                tape.append(("AddmmBackward0", seq, [cur, w], w, False))
            elif kind == "relu":
                seq = self.forward("aten::relu", [Piece([cur], [out])])
                tape.append(("ReluBackward0", seq, [out], None, False))
            elif kind == "add":
                old = r.choice(acts)
                seq = self.forward("aten::add", [Piece([cur, old], [out])])
                tape.append(("AddBackward0", seq, [], None, False))
            elif kind == "part":
                self.calls.append(Call("aten::slice", 1, "forward", [Piece([], [], kernels=0, listed=[cur])]))
                half = Piece([cur], [out])
                half.listed, half.part = [cur], True
                seq = self.forward("aten::exp", [half])
                tape.append(("ExpBackward0", seq, [cur], None, False))
            elif kind == "hidden":
                old = r.choice(acts)
                seq = self.forward("Hidden", [Piece([cur, old], [out], listed=[cur])], listed=[cur], opaque=True)
                tape.append(("HiddenBackward", seq, [cur], None, True))
            else:
                inner, saved = Tensor(self, self.numel), Tensor(self, self.numel)
                pieces = [Piece([cur], [inner], kernels=self.piece_kernels()),
                          Piece([inner], [saved], inner="aten::mm"),
                          Piece([cur, saved], [out], kernels=self.piece_kernels())]
                if kind == "compiled":
                    pieces += [Piece([out], [out], inner="aten::mul_")]
                name = "CompiledFunction" if kind == "compiled" else "MyFunction"
                seq = self.forward(name, pieces, listed=[cur], opaque=True)
                tape.append((name + "Backward", seq, [cur, saved, inner], None, True))
            acts.append(out)
            cur = out
        self.backward(tape, cur)

    def backward(self, tape, last):
        r = self.random
        grad = Tensor(self, self.numel)
        self.calls.append(Call("aten::ones_like", 1, "forward", [Piece([last], [grad])]))
        grads = []
        for name, seq, saved, weight, opaque in reversed(tape):
            new = Tensor(self, self.numel)
            if opaque:
                temporary = Tensor(self, self.numel)
                pieces = [Piece([grad] + saved[:1], [temporary], kernels=self.piece_kernels()),
                          Piece([grad, temporary], [new], inner="aten::mm"),
                          Piece(saved + [temporary, new], [new], kernels=self.piece_kernels())]
                self.calls.append(Call(name, 2, "backward", pieces, seq, listed=[grad], opaque=True))
            else:
                pieces = [Piece([grad] + saved, [new], inner="aten::mul")]
                if weight is not None:
                    made = Tensor(self, weight.elements, "gradient")
                    grads.append((weight, made))
                    pieces += [Piece([grad] + saved[:1], [made], inner="aten::mm")]
                self.calls.append(Call(name, 2, "backward", pieces, seq, listed=[grad]))
            if r.random() < 0.3:
                self.calls.append(Call("aten::add_", 2, "backward", [Piece([new, grad], [new])]))
            grad = new
        if grads and r.random() < 0.5:
            weight, made = grads[0]
            side = Call("c10d::allreduce_", 2, "backward", [Piece([made], [made])])
            side.side = True
            self.calls.append(side)
        for weight, made in grads:
            self.calls.append(Call("aten::add_", 1, "update", [Piece([weight, made], [weight])]))

    def number(self):
        """Who makes and uses each tensor, in calls; the true ops."""
        self.ops = []  # (name, reads, writes, call, pieces)
        for c, call in enumerate(self.calls):
            for piece in call.pieces:
                for t in piece.reads + piece.writes + piece.listed:
                    t.uses.append(c)
                for t in piece.writes:
                    if t.made_by is None and t.kind in ("made", "gradient"):
                        t.made_by = (c, piece)
                if piece.kernels and not call.side:
                    piece.op = len(self.ops)
                    self.ops.append((call, piece))
        self.persistent = [t for t in self.tensors if t.made_by is None]

    def true_uses(self):
        """Per tensor: the ops that read or write it; what a collective uses counts beside it."""
        uses = {t.id: set() for t in self.tensors}
        for op, (call, piece) in enumerate(self.ops):
            for t in piece.reads + piece.writes:
                uses[t.id].add(op)
        return uses


# ---- the CPU's and the GPU's clock ----

def timeline(net, seed):
    """(call, start, end, [(piece, start, end, [launch...])], frees) in microseconds, and kernels."""
    r = random.Random(seed * 7 + 1)
    cpu, gpu, correlation = 1000, 1100, 0
    rows, kernels = [], []
    last = {}
    for t in net.tensors:
        if t.uses:
            last[t.id] = max(t.uses)
    for c, call in enumerate(net.calls):
        cpu += r.randint(1, 4)
        start = cpu
        pieces = []
        for piece in call.pieces:
            cpu += 1
            begin = cpu
            launches = []
            for _ in range(piece.kernels):
                cpu += 2
                correlation += 1
                gpu = max(gpu + (r.randint(0, 3) if r.random() < 0.3 else 0), cpu + 2)
                ns = r.randint(2, 9)
                stream = 20 if call.side else 7
                kernels.append((correlation, stream, gpu if not call.side else cpu + 3, ns, piece))
                if not call.side:
                    gpu += ns
                launches.append((correlation, cpu))
            cpu += 2
            pieces.append((piece, begin, cpu, launches))
            cpu += 1
        cpu += 1
        end = cpu
        frees = [t for t in net.tensors if t.made_by and last.get(t.id) == c and t.kind == "made"]
        rows.append((call, start, end, pieces, frees))
        cpu += 2
    return rows, kernels, cpu + 5


# ---- Kineto ----

def kineto(net, seed, shapes=True, addresses=True, memory=True, record_ids=None, step=True):
    rows, kernels, end = timeline(net, seed)
    events, external = [], 0
    where = {}
    total = 5 * PAD + sum(t.padded for t in net.persistent)

    def op(name, thread, a, b, seq=-1, forward=0, listed=None, cat="cpu_op", record=None):
        nonlocal external
        external += 1
        args = {"External id": external}
        if record is not None:
            args["Record function id"] = record
        if seq >= 0:
            args["Sequence number"] = seq
        if forward:
            args["Fwd thread id"] = forward
        if shapes and listed is not None:
            args["Input Dims"] = [[t.elements] for t in listed]
            args["Input type"] = ["float"] * len(listed)
        events.append({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": thread, "ts": a, "dur": b - a,
                       "args": args})

    def mem(thread, at, address, size):
        nonlocal total
        total += size
        args = {"Device Type": 1, "Device Id": 0, "Bytes": size}
        if addresses:
            args["Addr"] = address
            args["Total Allocated"] = total
            args["Total Reserved"] = total
        memories.append({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": thread,
                         "ts": at, "args": args})

    memories, address = [], {}
    if step:
        op("ProfilerStep#3", 1, 990, end, cat="user_annotation")
    ids = record_ids or {}
    updating = None
    for c, (call, start, finish, pieces, frees) in enumerate(rows):
        forward = 1 if call.phase == "backward" and call.seq >= 0 else 0
        if call.phase == "update" and updating is None:
            updating = start
            op("Optimizer.step#SGD.step", 1, start - 1, rows[-1][2] + 1, cat="user_annotation",
               record=ids.get("opt"))
        if forward:
            op("autograd::engine::evaluate_function: " + call.name, 2, start, finish, call.seq, forward,
               record=ids.get((c, "engine")))
        op(call.name, call.thread, start, finish, call.seq, forward, call.listed, record=ids.get((c, None)))
        for n, (piece, a, b, launches) in enumerate(pieces):
            for t in piece.writes:
                if t.made_by == (c, piece):
                    address[t.id] = 4096 * (len(address) + 1)
                    mem(call.thread, a, address[t.id], t.padded)
            if piece.inner:
                listed = piece.listed
                # A way back that computes its forward pass again, on a thread that counts for itself.
                again = 41 + (seed + c) % (net.seq - 40) if forward and call.opaque else -1
                op(piece.inner, call.thread, a, b, again, 0, listed, record=ids.get((c, n)))
            for correlation, at in launches:
                events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1,
                               "tid": call.thread, "ts": at, "dur": 1, "args": {"correlation": correlation}})
        for t in frees:
            mem(call.thread, finish, address[t.id], -t.padded)
    for correlation, stream, at, ns, _ in kernels:
        events.append({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": stream, "ts": at, "dur": ns,
                       "args": {"device": 0, "stream": stream, "correlation": correlation}})
    if memory:
        events += memories
    return json.dumps({"schemaVersion": 1, "traceEvents": events})


# ---- execution trace, with the ids that a Kineto file of the same run has ----

def et(net, opaque_lists=False):
    nodes, ids, record = [], {}, [1]
    storage = {t.id: 100 + t.id for t in net.tensors}

    def tensor(t):
        return [t.id + 1, storage[t.id], 0, t.elements, 4, "cuda:0"]

    def node(name, rid, parent, thread, forward, ins, outs, schema=""):
        nodes.append({"name": name, "id": rid + 1000, "rf_id": rid, "parent": parent, "tid": thread,
                      "fw_tid": forward, "op_schema": schema, "inputs": [tensor(t) for t in ins],
                      "outputs": [tensor(t) for t in outs]})

    def new():
        record[0] += 1
        return record[0]

    updating, update_id = [], None
    for c, call in enumerate(net.calls):
        parent = 2
        forward = 1 if call.phase == "backward" and call.seq >= 0 else 0
        engine = None
        if call.phase == "update":
            if update_id is None:
                update_id = ids["opt"] = new()
            parent = update_id + 1000
        if forward:
            engine = ids[(c, "engine")] = new()
            parent = engine + 1000
        rid = ids[(c, None)] = new()
        made = [t for p in call.pieces for t in p.writes if t.made_by and t.made_by[0] == c]
        for n, piece in enumerate(call.pieces):
            if piece.inner:
                inner = ids[(c, n)] = new()
                mutated = [t for t in piece.writes if t.made_by != (c, piece)]
                ins = list(dict.fromkeys(mutated + piece.reads))
                marks = ", ".join("Tensor(%s!) a%d" % ("a", i) if t in mutated else "Tensor a%d" % i
                                  for i, t in enumerate(ins))
                node(piece.inner, inner, rid + 1000, call.thread, 0, ins,
                     [t for t in piece.writes], "%s(%s) -> Tensor" % (piece.inner, marks))
        direct = [p for p in call.pieces if not p.inner]
        mutated = [t for p in direct for t in p.writes if t.kind in ("weight",) or t not in made]
        ins = list(dict.fromkeys(mutated + (call.listed if call.opaque else [t for p in direct for t in p.reads + p.listed])))
        if not direct:
            ins = list(call.listed)
        outs = [] if call.opaque else [t for p in direct for t in p.writes]
        if call.opaque:
            outs = [t for t in call.pieces[-1].writes]
        marks = ", ".join("Tensor(a!) a%d" % i if t in mutated else "Tensor a%d" % i for i, t in enumerate(ins))
        node(call.name, rid, parent, call.thread, forward, ins, outs,
             "%s(%s) -> Tensor" % (call.name, marks) if "::" in call.name else "")
        if engine:
            node("autograd::engine::evaluate_function: " + call.name, engine, 2, 2, 1, [], [])
    if update_id is not None:
        node("Optimizer.step#SGD.step", update_id, 2, 1, 0, [], [])
    nodes.append({"name": "[pytorch|process]", "id": 1, "rf_id": 0, "parent": 1, "tid": 0, "fw_tid": 0,
                  "op_schema": "", "inputs": [], "outputs": []})
    return json.dumps({"schema": "1.0.1", "pid": 1, "nodes": nodes}), ids


# ---- Chakra ----

def varint(n):
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def part(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def chakra(net, seed, streams="attribute"):
    rows, kernels, _ = timeline(net, seed)
    text, _ = et(net)
    by_piece = {}
    for correlation, stream, at, ns, piece in kernels:
        by_piece.setdefault(id(piece), []).append((stream, ns))
    out = part(0, b"")[:0]

    def message(data):
        return varint(len(data)) + data

    def attribute(name, value):
        body = part(1, name) + (part(29, value) if isinstance(value, str) else number(9, value))
        return part(10, body)

    def side(field, values):
        return part(field, part(1, "[" + ", ".join("[%d, %d, 0, %d, 4, 'cuda:0']" % (t.id + 1, 100 + t.id, t.elements)
                                                     for t in values) + "]"))

    out = message(part(1, "1.0"))
    node_id, record = [2], [0]

    def node(name, us, ins, outs, attributes, owner=None, kind=4):
        node_id[0] += 1
        body = number(1, node_id[0]) + part(2, name) + number(3, kind)
        if owner is not None:
            body += number(5, owner)
        if us:
            body += number(7, us)
        body += side(8, ins) + side(9, outs)
        for key, value in attributes:
            body += attribute(key, value)
        return message(body), node_id[0]

    groups = []  # (op name, ns, ins, outs) of the compute stream
    for call in net.calls:
        for piece in call.pieces:
            record[0] += 1
            mutated = [t for t in piece.writes if t.made_by is None or t.made_by[1] is not piece]
            ins = list(dict.fromkeys(mutated + piece.reads + piece.listed))
            name = piece.inner or call.name
            marks = ", ".join("Tensor(a!) a%d" % i if t in mutated else "Tensor a%d" % i for i, t in enumerate(ins))
            attributes = [("is_cpu_op", 1), ("rf_id", record[0]), ("tid", call.thread),
                          ("fw_tid", 1 if call.phase == "backward" else 0),
                          ("op_schema", "%s(%s) -> Tensor" % (name, marks))]
            data, cpu = node(name, 0, ins, piece.writes, attributes)
            out += data
            for stream, ns in by_piece.get(id(piece), []):
                attributes = [("tid", stream if streams == "tid" else call.thread)]
                if streams == "attribute":
                    attributes.append(("stream", stream))
                data, _ = node("ncclKernel" if call.side else "k", ns, [], [], attributes, cpu,
                               7 if call.side else 4)
                out += data
    return out


# ---- a memory snapshot ----

def snapshot(net, seed, cards=1):
    rows, _, _ = timeline(net, seed)
    events, address = [], {}
    at = 0
    for c, (call, start, finish, pieces, frees) in enumerate(rows):
        for piece, a, b, launches in pieces:
            for t in piece.writes:
                if t.made_by == (c, piece):
                    address[t.id] = 4096 * (len(address) + 1)
                    at += 1
                    events.append({"action": "alloc", "addr": address[t.id], "size": t.bytes, "stream": 0,
                                   "time_us": at, "frames": [{"filename": "C:\\u\\net.py", "name": "f",
                                                              "line": len(events) % 9}]})
        if seed % 5 == c % 7:
            events.append({"action": "oom", "device_free": 512, "size": 3 * net.numel, "stream": 0, "frames": []})
        for t in frees:
            for action in ("free_requested", "free_completed"):
                at += 1
                events.append({"action": action, "addr": address[t.id], "size": t.bytes, "stream": 0,
                               "time_us": at, "frames": []})
    live = [t for t in net.tensors if t.id in address and t not in [x for row in rows for x in row[4]]]
    blocks = [{"size": t.padded, "requested_size": t.bytes, "state": "active_allocated"}
              for t in live + net.persistent]
    if seed % 3 == 0:  # as before PyTorch 2.1
        for b in blocks:
            b["history"] = [{"addr": 1, "real_size": b.pop("requested_size")}, {"addr": 1, "real_size": 7}]
    blocks.append({"size": 1024, "requested_size": 0, "state": "inactive"})
    segments = [{"device": 0, "total_size": sum(b["size"] for b in blocks), "blocks": blocks}]
    traces = [events]
    if cards > 1:
        traces.append([{"action": "alloc", "addr": 1, "size": 64, "stream": 0, "frames": []}])
    return pickle.dumps({"segments": segments, "device_traces": traces}, protocol=4)


# ---- a log of operator calls ----

def dtr(net, seed):
    rows, kernels, _ = timeline(net, seed)
    us = {}
    for _, _, _, ns, piece in kernels:
        us[id(piece)] = us.get(id(piece), 0) + ns
    lines, version = [], {}
    put = lambda **fields: lines.append(json.dumps(fields, sort_keys=True))
    name = lambda t: "x%d" % t.id
    put(INSTRUCTION="ANNOTATE", ANNOTATION="START")
    for t in net.persistent:
        put(INSTRUCTION="CONSTANT", NAME=name(t))
        put(INSTRUCTION="MEMORY", NAME=name(t), MEMORY=str(t.bytes))
    for c, (call, start, finish, pieces, frees) in enumerate(rows):
        if call.side:
            continue
        if call.phase == "backward":
            put(INSTRUCTION="ANNOTATE", ANNOTATION="BACKWARD")
        for piece, a, b, launches in pieces:
            if not piece.kernels:
                continue
            made = [t for t in piece.writes if t.made_by == (c, piece)]
            mutated = [t for t in piece.writes if t not in made]
            args = list(dict.fromkeys(mutated + piece.reads))
            time = str(us[id(piece)] * 1000)
            if made:
                put(INSTRUCTION="CALL", NAME=piece.inner or call.name, ARGS=[name(t) for t in args],
                    RESULT=[name(t) for t in made], TIME=time)
                for t in made:
                    put(INSTRUCTION="MEMORY", NAME=name(t), MEMORY=str(t.bytes))
                    put(INSTRUCTION="ALIAS", NAME=name(t), ALIAS="-1")
            else:
                put(INSTRUCTION="MUTATE", NAME=piece.inner or call.name, ARGS=[name(t) for t in args],
                    MUTATE=[args.index(t) for t in mutated], TIME=time)
        for t in frees:
            put(INSTRUCTION="RELEASE", NAME=name(t))
    return "\n".join(lines) + "\n"
