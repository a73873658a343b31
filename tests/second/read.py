# SPDX-License-Identifier: GPL-3.0-or-later
"""A second reading of the profiles that ferry imports: slow, obvious, written from docs/import.md and trace/import/rules.md
alone.  Each reader gives (ops, tensors, peak): ops are (name, ns, gap, phase); a tensor is
(bytes, ops that read it, ops that write it, pinned, from, to) with the ops between which it lives."""
import gzip
import io
import json
import pickle


def text_of(path):
    data = open(path, "rb").read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def peak_of(n_ops, tensors, workspace):
    return max(sum(t[0] for t in tensors if t[4] <= k <= t[5]) + workspace[k] for k in range(n_ops))


SLACK = 1 << 20  # what a large block may have left over


def padded(n):
    return (n + 511) // 512 * 512


# ---- names ----

def is_autograd(name):
    return (name.startswith("autograd::engine::") or name.startswith("torch::autograd::") or
            name.startswith("struct torch::autograd::") or ("Backward" in name and not name.startswith("aten::")))


PARTS = {"aten::" + n for n in """slice select split chunk narrow unbind expand unfold diagonal split_with_sizes
    broadcast_to expand_as tensor_split real imag view_as_real movedim unsafe_split unsafe_chunk hsplit vsplit set_
    detach_ as_strided_ unsafe_split_with_sizes""".split()}


def is_part(o):
    """as_strided is in every view; its own call may hand on anything."""
    return o.name in PARTS or (o.name == "aten::as_strided" and
                               (o.parent is None or not o.parent.name.startswith("aten::")))


ITEMS = {"float": 4, "double": 8, "long int": 8, "long": 8, "int": 4, "short int": 2, "short": 2, "unsigned char": 1,
         "signed char": 1, "char": 1, "bool": 1, "c10::Half": 2, "c10::BFloat16": 2, "long long": 8,
         "c10::complex<float>": 8, "c10::complex<double>": 16}
SCALARS = {"Int", "Bool", "Double", "Scalar", "ScalarList", "Device", "String", "None", ""}
LISTS = "cat stack index foreach einsum lstm gru rnn meshgrid block_diag tensors".split()


# ---- Kineto ----

class Op:
    pass


def kineto_events(document):
    """Ops, launches, GPU events, memory events and steps, in nanoseconds."""
    ops, launches, gpu, memory, steps = [], {}, [], [], []
    for e in document["traceEvents"]:
        category, args = e.get("cat", ""), e.get("args", {})
        ns = lambda key: round(float(str(e[key])) * 1000) if "." in str(e[key]) else int(e[key]) * 1000
        if e["name"] == "[memory]":
            if args.get("Device Type") == 1 and args.get("Bytes"):
                memory.append({"at": ns("ts"), "thread": "%s/%s" % (e["pid"], e["tid"]), "bytes": args["Bytes"],
                               "device": args["Device Id"], "address": args.get("Addr"),
                               "total": args.get("Total Allocated", -1), "file": len(memory)})
            continue
        if e.get("ph") != "X":
            continue
        if category in ("cpu_op", "Operator", "user_annotation"):
            o = Op()
            o.name, o.start, o.end = e["name"], ns("ts"), ns("ts") + ns("dur")
            o.thread = "%s/%s" % (e["pid"], e["tid"])
            o.note = category == "user_annotation"
            o.sequence = int(args.get("Sequence number", -1))
            o.external = int(args.get("External id", -1))
            o.forward = int(args.get("Fwd thread id", 0))
            o.record = int(args.get("Record function id", -1))
            o.dims, o.types = args.get("Input Dims"), args.get("Input type", [])
            o.parent = None
            if o.name.startswith("ProfilerStep#"):
                steps.append(o)
            else:
                o.index = len(ops)
                ops.append(o)
        elif category in ("cuda_runtime", "Runtime", "cuda_driver", "hip_runtime"):
            if args.get("correlation"):
                launches.setdefault(args["correlation"], (ns("ts"), "%s/%s" % (e["pid"], e["tid"])))
        elif category.lower() in ("kernel", "memcpy", "memset", "gpu_memcpy", "gpu_memset"):
            tid = str(e["tid"]).replace("stream ", "")
            gpu.append({"start": ns("ts"), "ns": ns("dur"), "device": int(args.get("device", e["pid"])),
                        "stream": int(args.get("stream", tid)), "correlation": args.get("correlation"),
                        "kernel": category.lower() == "kernel", "name": e["name"]})
    return ops, launches, gpu, memory, sorted(steps, key=lambda s: s.start)


def nest(ops, launches, gpu, memory, steps):
    """Parents, marks, owners."""
    by_thread = {}
    for o in ops:
        by_thread.setdefault(o.thread, []).append(o)
    for group in by_thread.values():
        group.sort(key=lambda o: (o.start, -o.end, o.external, o.index))
        stack = []
        for o in group:
            stack = [s for s in stack if s.end >= o.start]
            around = [s for s in stack if not (s.end <= o.start and s.end < o.end)]
            o.parent = around[-1] if around else None
            stack.append(o)

    def innermost(thread, at):
        best = None
        for o in by_thread.get(thread, []):
            if not o.note and o.start <= at <= o.end:
                best = o  # later in the order is further in
        return best

    def own_mark(o):
        if o.name.startswith("Optimizer.step"):
            return "update"
        return "backward" if o.forward or (not o.note and is_autograd(o.name)) else None
    for o in ops:
        a, o.mark = o, None
        while a is not None and o.mark is None:
            o.mark = own_mark(a)
            a = a.parent
    step_threads = {s.thread for s in steps}
    for thread, group in by_thread.items():
        marks = {o.mark for o in group}
        forward = any(o.mark is None and o.sequence >= 0 for o in group)
        if "backward" in marks and "update" not in marks and thread not in step_threads and not forward:
            for o in group:
                o.mark = o.mark or "backward"
    for g in gpu:
        launch = launches.get(g["correlation"])
        g["launched"] = launch[0] if launch else None
        g["thread"] = launch[1] if launch else None
        g["owner"] = innermost(launch[1], launch[0]) if launch else None
    for m in memory:
        m["around"] = innermost(m["thread"], m["at"])


def at_launch(g):
    return g["launched"] if g["launched"] is not None else g["start"]


def phase_of(o):
    return "other" if o is None else o.mark or "forward"


def kineto_runs(ops, gpu, steps):
    counts = {}
    for g in gpu:
        counts[g["device"]] = counts.get(g["device"], 0) + 1
    device = min(counts, key=lambda d: (-counts[d], d))
    mine = [g for g in gpu if g["device"] == device]
    if steps:
        windows = [(s.start, s.end) for s in steps if s.end > s.start]
    else:
        optimizer = lambda o: o.name.startswith("Optimizer.step#")
        ends = sorted((o.end, o.start) for o in ops if optimizer(o) and not any(optimizer(a) for a in ancestors(o.parent)))
        windows = [(a[0], b[0]) for a, b in zip(ends, ends[1:])]
    inside = lambda g, w: w[0] <= at_launch(g) < w[1]
    kernels = [[g for g in mine if g["kernel"] and inside(g, w)] for w in windows]
    window = [w for w, rows in zip(windows, kernels) if rows][-1]
    if steps:
        counts = sorted(len(rows) for rows in kernels if rows)
        middle = counts[len(counts) // 2] if len(counts) > 2 else 0
        phases = [{phase_of(g["owner"]) for g in rows} - {"other"} for rows in kernels]
        whole = [w for w, rows, has in zip(windows, kernels, phases)
                 if rows and has == set().union(*phases) and len(rows) >= middle - middle // 4]
        window = (whole or [window])[-1]
    mine = [g for g in mine if inside(g, window)]
    streams = {}
    for g in mine:
        row = streams.setdefault(g["stream"], [0, 0])
        row[0] += g["kernel"] and phase_of(g["owner"]) == "forward"
        row[1] += 1
    stream = max(streams, key=lambda s: tuple(streams[s]))
    first = min((g["start"] for g in mine if g["launched"] is not None), default=None)
    mine = [g for g in mine if g["launched"] is not None or first is None or g["start"] >= first]
    side = [g for g in mine if g["stream"] != stream]
    order = {id(g): i for i, g in enumerate(gpu)}
    mine = sorted((g for g in mine if g["stream"] == stream), key=lambda g: (g["start"], g["start"] + g["ns"], order[id(g)]))
    runs, end, parts = [], mine[0]["start"], {}
    for g in mine:
        if not runs or g["owner"] is None or runs[-1]["owner"] is not g["owner"]:
            key = id(g["owner"])
            part = parts.get(key, 0) if g["owner"] is not None else 0
            parts[key] = part + 1
            name = g["owner"].name if g["owner"] is not None else g["name"]
            runs.append({"owner": g["owner"], "start": max(g["start"], end), "ns": 0, "launches": [],
                         "thread": g["thread"], "name": name + (" (%d)" % (part + 1) if part else "")})
        run = runs[-1]
        run["ns"] += max(0, g["start"] + g["ns"] - max(g["start"], end))
        end = max(end, g["start"] + g["ns"])
        run["launches"].append(at_launch(g))
    for i, run in enumerate(runs):
        before = runs[i - 1] if i else None
        run["gap"] = run["start"] - before["start"] - before["ns"] if before else 0
    runs[0]["gap"] = end - runs[-1]["start"] - runs[-1]["ns"]
    return runs, window, device, side


def ancestors(o):
    while o is not None:
        yield o
        o = o.parent


def shapes_of(o):
    """The padded sizes of its inputs; None: it does not list them."""
    if o.note or is_autograd(o.name) or "::" not in o.name or o.dims is None:
        return None
    sizes = []
    for i, dims in enumerate(o.dims):
        kind = o.types[i] if i < len(o.types) else "?"
        nested = isinstance(dims, list) and any(isinstance(d, list) for d in dims)
        if kind == "TensorList" or nested or (kind in ("GenericList", "") and any(w in o.name for w in LISTS)):
            return None
        if kind in SCALARS or kind == "GenericList":
            continue
        item = 1 if kind.startswith("c10::Float8") else ITEMS.get(kind)
        if item is None:
            return None
        elements = 1
        for d in dims:
            elements *= d
        if elements:
            sizes.append(padded(elements * item))
    return sizes


def may_hold(block, tensor):
    """Both padded. A large block may be larger than its tensor, as what is left over is not worth a block."""
    return block == tensor or (block > tensor > SLACK and block - tensor <= SLACK)


class Readers:
    """Who may read what the forward pass saved."""

    def __init__(self, ops, runs, window):
        self.runs, self.ops = runs, ops
        self.inside = lambda o: window[0] <= o.start < window[1]
        self.of = {}  # op index: its runs, those of calls in it included
        for i, run in enumerate(runs):
            for o in ancestors(run["owner"]):
                self.of.setdefault(o.index, []).append(i)
        self.numbered = {}  # sequence: the first run of each backward op; threads count for themselves
        for o in ops:
            if o.sequence >= 0 and o.mark == "backward" and self.inside(o) and o.index in self.of:
                self.numbered.setdefault(o.sequence, []).append(self.of[o.index][0])
        self.readers = []  # (run, sizes or None, first backward op, part)
        owners = {run["owner"].index for run in runs if run["owner"] is not None}
        for i, run in enumerate(runs):
            if run["owner"] is None:
                self.readers.append((i, None, None, False))
        for o in ops:
            part = is_part(o)
            if o.mark is None and self.inside(o) and (o.index in owners or part):
                if o.index in owners:
                    at = self.of[o.index][-1]
                else:
                    later = [i for i, r in enumerate(runs) if max(r["launches"]) >= o.start]
                    at = later[0] if later else len(runs) - 1
                self.readers.append((at, shapes_of(o), self.backward(o, at), part))

    def backward(self, o, behind):
        firsts = [run for a in ancestors(o) if a.sequence >= 0 and a.mark is None
                  for run in self.numbered.get(a.sequence, []) if run > behind]
        return min(firsts) if firsts else None

    def call(self, run):
        """The runs of the call that a run belongs to."""
        owner = self.runs[run]["owner"]
        outer = owner
        for a in ancestors(owner):
            if not a.note and (a.sequence >= 0 or "::" in a.name):
                outer = a
        return self.of[outer.index] if outer is not None else [run]

    def spell(self, around, size, birth, death, likely=False):
        limit = self.call(death)[0]
        if limit <= birth:
            return death, death
        own = min(self.call(birth)[-1], limit - 1)
        last = own
        backs = [self.backward(around, birth) if around is not None else None]
        if backs[0] is None:
            backs = [i for i in range(birth + 1, len(self.runs)) if phase_of(self.runs[i]["owner"]) == "backward"][:1]
        if own + 1 < limit:
            last = max(last, min(self.call(own + 1)[-1], limit - 1))
            if self.runs[own + 1]["owner"] is not None:
                backs.append(self.backward(self.runs[own + 1]["owner"], own + 1))
        part = False
        if not likely:
            for unknown in (False, True):
                rows = [r for r in self.readers if r[0] >= birth and
                        (r[1] is None if unknown else r[1] is not None and any(may_hold(size, s) for s in r[1]))]
                if any(r[0] < limit for r in rows):
                    last = max([last] + [r[0] for r in rows if r[0] < limit])
                    backs += [r[2] for r in rows]
                    part = part or any(r[3] for r in rows)
        backs = [b for b in backs if b is not None]
        back = min(backs) if backs else limit
        if back <= birth or back > limit:
            back = limit
        forward = [i for i in range(back) if phase_of(self.runs[i]["owner"]) in ("forward", "other")]
        turn = max([birth] + forward[-1:])
        return (turn if part or last > turn else last), back


def order_ties(memory):
    """At one time the running totals tell the order."""
    out, i, total = [], 0, -1
    while i < len(memory):
        j = i
        while j < len(memory) and memory[j]["at"] == memory[i]["at"]:
            j += 1
        tie = memory[i:j]
        while total >= 0 and len(tie) > 0:
            fits = [m for m in tie if m["total"] - m["bytes"] == total]
            if not fits:
                break
            out.append(fits[0])
            tie.remove(fits[0])
            total = fits[0]["total"]
        out += tie
        total = out[-1]["total"]
        i = j
    return out


def kineto_blocks(memory):
    addresses = all(m["address"] is not None for m in memory)
    totals = all(m["total"] >= 0 for m in memory)
    memory = sorted(memory, key=lambda m: (m["at"], m["file"]))
    if totals:
        memory = order_ties(memory)
    blocks, opened = [], {}
    for place, m in enumerate(memory):
        m["place"] = place
        key = m["address"] if addresses else abs(m["bytes"])
        if m["bytes"] > 0:
            if addresses and opened.get(key):  # its free is not in the file
                opened[key].pop()[1] = m
            blocks.append([m, None, m["bytes"]])
            opened.setdefault(key, []).append(blocks[-1])
        elif opened.get(key):
            opened[key].pop()[1] = m
        else:
            blocks.append([None, m, -m["bytes"]])
    return blocks, memory, totals


def read_kineto(path, likely=False):
    ops, launches, gpu, memory, steps = kineto_events(json.loads(text_of(path)))
    nest(ops, launches, gpu, memory, steps)
    runs, window, device, side = kineto_runs(ops, gpu, steps)
    n = len(runs)
    memory = [m for m in memory if m["device"] == device]
    tensors, inside, workspace = [], [[] for _ in runs], [0] * n
    rows = [(r["name"], r["ns"], r["gap"], phase_of(r["owner"])) for r in runs]
    if not memory:
        return rows, [], 0
    blocks, memory, totals = kineto_blocks(memory)
    readers = Readers(ops, runs, window)
    side_end = {}
    for g in side:
        if g["owner"] is not None:
            side_end[g["owner"].index] = max(side_end.get(g["owner"].index, 0), g["start"] + g["ns"])

    def birth_of(m):
        for same in (True, False):
            found = [(max(r["launches"]), i) for i, r in enumerate(runs)
                     if (not same or r["thread"] == m["thread"]) and max(r["launches"]) >= m["at"]]
            if found:
                return min(found)[1]
        return None

    def death_of(m):
        found = [i for i, r in enumerate(runs) if min(r["launches"]) <= m["at"]]
        return max(found) if found else None
    known_before = 0
    for alloc, free, size in blocks:
        from_, to = alloc["at"] if alloc else None, free["at"] if free else None
        if (alloc and from_ >= window[1]) or (free and to < window[0]):
            continue
        before = alloc is None or from_ < window[0]
        after = free is None or to >= window[1]
        if before and after:
            continue
        birth = 0 if before else birth_of(alloc)
        death = n - 1 if after else death_of(free)
        known_before += size if before else 0
        if birth is None or (before and death is None):
            continue
        if death is None:
            death = -1
        if not before:
            around = alloc["around"]
            if around is not None and around.index in side_end:
                while death + 1 < n and runs[death + 1]["start"] < side_end[around.index]:
                    death += 1
        if not before and not after and death <= birth:
            inside[birth] += [(alloc["place"], size), (free["place"], -size)]
            continue
        saved = (not before and not after and phase_of(runs[birth]["owner"]) == "forward" and
                 phase_of(runs[death]["owner"]) == "backward")
        last, back = readers.spell(alloc["around"], size, birth, death, likely) if saved else (death, death)
        # made by the optimizer and never freed: its state, which is there from step to step
        kept = not before and free is None and phase_of(runs[birth]["owner"]) == "update"
        writes = () if before else (birth,)
        if back > last + 1:
            reads = tuple(range(birth + 1, last + 1)) + tuple(range(back, death + 1))
            tensors.append((size, reads, writes, False, birth, death))
        else:
            reads = () if after else (death,)
            tensors.append((size, reads, writes, True, 0 if before or kept else birth, n - 1 if after else death))
    for i, rows_inside in enumerate(inside):
        live = 0
        for _, size in sorted(rows_inside):
            live += size
            workspace[i] = max(workspace[i], live)
    mine = [m for m in memory if window[0] <= m["at"] < window[1]]
    baseline = mine[0]["total"] - mine[0]["bytes"] if mine and mine[0]["total"] >= 0 else 0
    if baseline - known_before > 0:
        tensors.append((baseline - known_before, (), (), True, 0, n - 1))
    return rows, tensors, peak_of(n, tensors, workspace)


# ---- generations: storages whose ids come back ----

def schema_masks(schema):
    """Which arguments are written, and which results are views that are not."""
    if "(" not in schema:
        return set(), set()

    def pieces(text):
        out, depth, now = [], 0, ""
        for c in text:
            if c in "([":
                depth += 1
            elif c in ")]":
                depth -= 1
                if depth < 0:
                    out.append(now)
                    return out
            if c == "," and depth == 0:
                out.append(now)
                now = ""
            else:
                now += c
        out.append(now)
        return out
    inside = schema[schema.index("(") + 1:]
    arguments = [p for p in pieces(inside) if p.strip() != "*"]
    depth, end = 1, 0
    while end < len(inside) and depth:
        depth += {"(": 1, ")": -1}.get(inside[end], 0)
        end += 1
    results = inside[end:].lstrip(" ->")
    if results.startswith("("):
        results = results[1:]
    written = {i for i, p in enumerate(arguments) if "!" in p}
    views = {i for i, p in enumerate(pieces(results)) if "(" in p and "!" not in p}
    return written, views


def tensors_in(value, found):
    if isinstance(value, (list, tuple)):
        if len(value) == 6 and isinstance(value[5], str) and not any(isinstance(v, (list, tuple)) for v in value):
            if value[5].startswith("cuda") and value[1] != 0:
                found.append(value)
            return
        for v in value:
            tensors_in(v, found)


class Generation:
    def __init__(self, storage, node, defined):
        self.storage, self.first, self.last, self.defined = storage, node, node, defined
        self.bytes, self.touched, self.written = 0, set(), set()


def split(nodes):
    """Nodes in order of the walk: .axis, .parent (a node or None), .phase, .mentions of (storage,
    bytes, output, written).  Gives each mention its generation."""
    current, generations, named = {}, [], {}
    for node in nodes:
        for m in node.mentions:
            before = current.get(m.storage)
            own = [x for x in node.mentions[:node.mentions.index(m)] if x.storage == m.storage]
            fresh = m.output and not any(not x.output for x in own)
            below = before is not None and any(node in climb(x) for x in named.get(id(before), []) if x is not node)
            defines = fresh and not any(x.output for x in own) and not below
            if before is None or defines:
                current[m.storage] = Generation(m.storage, node, defines)
                generations.append(current[m.storage])
            g = m.generation = current[m.storage]
            named.setdefault(id(g), []).append(node)
            g.bytes = max(g.bytes, m.bytes)
            if node.axis > g.last.axis:
                g.last = node
            g.touched.add(node.phase)
            if m.written and (not fresh or defines):
                g.written.add(node.phase)
    return generations


def climb(node):
    out = []
    while node is not None:
        out.append(node)
        node = node.parent
    return out


class Mention:
    def __init__(self, storage, size, output, written):
        self.storage, self.bytes, self.output, self.written = storage, size, output, written


def mentions_of(node, ins, outs, schema, views_need_schema=True):
    written, views = schema_masks(schema)
    node.mentions = []
    for output, values in ((False, ins), (True, outs)):
        for argument, value in enumerate(values):
            found = []
            tensors_in(value if isinstance(value, (list, tuple)) else [], found)
            for t in found:
                size = (t[2] + t[3]) * t[4] if t[3] else 0
                node.mentions.append(Mention(t[1], size, output, argument not in views if output else argument in written))


def tensors_from(uses, generations, n, always):
    """uses: {generation: {op: [read, write]}}."""
    out = []
    for g in generations:
        if g.bytes == 0 or id(g) not in uses:
            continue
        row = uses[id(g)]
        reads = tuple(sorted(op for op in row if row[op][0]))
        writes = tuple(sorted(op for op in row if row[op][1]))
        stays = not g.defined or always(g)
        out.append((g.bytes, reads, writes, False, 0 if stays else min(row), n - 1 if stays else max(row)))
    return out


class Uses:
    def __init__(self):
        self.rows, self.first = {}, {}

    def add(self, g, op, output, written, makes):
        write = written or makes
        self.rows.setdefault(id(g), []).append((op, not output or not write, write))

    def settle(self, first):
        out = {}
        for key, rows in self.rows.items():
            row = out.setdefault(key, {})
            for op, read, write in rows:
                cell = row.setdefault(max(op, first[key]), [False, False])
                cell[0] |= read
                cell[1] |= write
        return out


FILLS = ("::zero ::ones ::empty ::full ::new_ ::fill ::clone ::copy_ ::_to_copy ::rand ::resize ::_foreach_zero "
         "::detach ::scalar_tensor ::_foreach_copy").split()


def fills(name):
    return name == "aten::to" or any(f in name for f in FILLS)


def makes_state(generations, made_plainly):
    seen = any(not g.defined and g.touched == {"update"} and g.written for g in generations)

    def state(g):
        return (g.defined and g.first.phase == "update" and g.last.phase == "update" and not seen and made_plainly(g))
    return state


# ---- execution traces ----

def et_nodes(path):
    document = json.loads(text_of(path))
    nodes, by_id = [], {}
    for raw in document["nodes"]:
        node = Op()
        attrs = {a["name"]: a.get("value") for a in raw.get("attrs", [])}
        get = lambda key, default: raw.get(key, attrs.get(key, default))
        node.name, node.id, node.axis = raw["name"], raw["id"], int(get("rf_id", -1))
        node.parent_id = raw.get("parent", raw.get("ctrl_deps"))
        node.thread, node.forward = int(get("tid", 0)), int(get("fw_tid", 0))
        node.structural = node.name.startswith("[pytorch|")
        node.note = str(get("scope", 0)) == "7"
        side = lambda s: s["values"] if isinstance(s, dict) else s
        node.mentions = []
        if not node.structural:
            mentions_of(node, side(raw.get("inputs", [])), side(raw.get("outputs", [])), get("op_schema", "") or "")
        nodes.append(node)
        by_id[node.id] = node
    for node in nodes:
        parent = by_id.get(node.parent_id)
        node.parent = parent if parent is not None and parent.axis < node.axis else None
    parents = {id(n.parent) for n in nodes if n.parent is not None}
    for node in nodes:
        node.leaf = id(node) not in parents
        above = climb(node)
        node.phase = ("update" if any(a.name.startswith("Optimizer.step") for a in above) else
                      "backward" if any(a.forward or not a.note and is_autograd(a.name) for a in above) else "forward")
    return nodes


def below_optimizer(node):
    while node.parent is not None and not node.parent.name.startswith("Optimizer.step") and node.parent.phase == "update":
        node = node.parent
    return node


def et_state(generations):
    def plainly(g):
        made = below_optimizer(g.first)
        return fills(made.name) and below_optimizer(g.last) is not made
    return makes_state(generations, plainly)


def read_et(path):
    nodes = et_nodes(path)
    generations = split(nodes)
    leaves = sorted((n for n in nodes if n.leaf and not n.structural and n.mentions), key=lambda n: n.axis)
    place = {}
    for node in nodes:
        later = [i for i, leaf in enumerate(leaves) if leaf.axis >= node.axis]
        place[id(node)] = later[0] if later else len(leaves) - 1
    uses, first = Uses(), {}
    for g in generations:
        first[id(g)] = place[id(g.first)] if g.defined else 0
    for node in nodes:
        for m in node.mentions:
            g = m.generation
            if m.output and not node.leaf and g.defined and g.first is not node:
                continue
            uses.add(g, place[id(node)], m.output, m.written, m.output and g.defined and g.first is node)
    ops = [(leaf.name, 0, 0, leaf.phase) for leaf in leaves]
    tensors = tensors_from(uses.settle(first), generations, len(ops), et_state(generations))
    return ops, tensors, peak_of(len(ops), tensors, [0] * len(ops))


# ---- an execution trace and Kineto ----

def join(nodes, ops):
    of = {}
    if any(o.record > 0 for o in ops):
        by = {o.record: o for o in ops if o.record > 0}
        for n in nodes:
            o = by.get(n.axis)
            if not n.structural and n.axis > 0 and o is not None and o.name == n.name:
                of[id(n)] = o
        return of
    threads, others = {}, {}
    for n in nodes:
        if not n.structural and not n.name.startswith("ProfilerStep#"):
            threads.setdefault(n.thread, []).append(n)
    for o in ops:
        others.setdefault(o.thread, []).append(o)
    for mine in threads.values():
        mine.sort(key=lambda n: n.axis)
        for key, theirs in list(others.items()):
            theirs.sort(key=lambda o: o.external)
            if [n.name for n in mine] == [o.name for o in theirs]:
                of.update({id(n): o for n, o in zip(mine, theirs)})
                del others[key]
                break
    return of


def read_pair(et, kineto):
    nodes = et_nodes(et)
    generations = split(nodes)
    ops, launches, gpu, memory, steps = kineto_events(json.loads(text_of(kineto)))
    nest(ops, launches, gpu, memory, steps)
    runs, window, device, side = kineto_runs(ops, gpu, steps)
    of, n = join(nodes, ops), len(runs)
    own, span = {}, {}
    for i, run in enumerate(runs):
        if run["owner"] is not None:
            own.setdefault(run["owner"].index, []).append(i)
    for i, run in enumerate(runs):
        for o in ancestors(run["owner"]):
            if o.index in own:
                span.setdefault(o.index, []).append(i)
    def opaque(o):
        return o.sequence >= 0 and (is_autograd(o.name) or "::" not in o.name)
    nodes_of_number = {}
    for i, run in enumerate(runs):
        for o in ancestors(run["owner"]):
            if o.index in own and opaque(o) and o.mark == "backward":
                nodes_of_number.setdefault(o.sequence, {})[o.index] = span[o.index]

    def nodes_behind(o):
        """The runs of each autograd node that may be the call's: threads count for themselves."""
        if o.sequence < 0 or o.mark is not None:
            return []
        last = span[o.index][-1] if o.index in span else -1
        return [rows for rows in nodes_of_number.get(o.sequence, {}).values() if rows[0] > last]
    sides = {}
    for g in side:
        if g["owner"] is not None:
            row = sides.setdefault(g["owner"].index, [g["start"], 0])
            row[0], row[1] = min(row[0], g["start"]), max(row[1], g["start"] + g["ns"])

    def folded(o):
        for same in (True, False):
            found = [(max(r["launches"]), i) for i, r in enumerate(runs)
                     if (not same or r["thread"] == o.thread) and max(r["launches"]) >= o.start]
            if found:
                return min(found)[1]
        return n - 1

    def beside(index):
        start, end = sides[index]
        first = next((i for i in range(n) if (runs[i + 1]["start"] - runs[i + 1]["gap"] if i + 1 < n else
                                              runs[i]["start"] + runs[i]["ns"]) > start), n - 1)
        return [first] + [i for i in range(first + 1, n) if runs[i]["start"] < end]

    def places(o):
        if o.index not in own and o.index not in sides:
            return [folded(o)]
        return own.get(o.index, []) + (beside(o.index) if o.index in sides else [])

    uses, first, functions = Uses(), {}, [o for o in ops if o.index in span and o.mark is None and opaque(o) and
                                          not o.name.startswith("Compiled")]
    for g in generations:
        o = of.get(id(g.first))
        first[id(g)] = 0
        if g.defined and o is not None and o.start >= window[0]:
            first[id(g)] = (own[o.index][0] if o.index in own else places(o)[0])
    for node in nodes:
        o = of.get(id(node))
        if o is None or not window[0] <= o.start < window[1]:
            continue
        works = o.index in own or o.index in sides
        for m in node.mentions:
            g = m.generation
            makes = m.output and g.defined and g.first is node
            if not (m.output and g.defined and not makes and not node.leaf and not works):
                for op in places(o):
                    uses.add(g, op, m.output, m.written, makes)
            for a in ancestors(o):
                rows = span.get(a.index, [])
                if rows and rows[-1] > rows[0] and opaque(a):
                    for op in range(rows[0], rows[-1] + 1):
                        uses.add(g, op, False, False, False)
                for back in nodes_behind(a):
                    for op in range(back[0], back[-1] + 1):
                        uses.add(g, op, False, False, False)
    lives = uses.settle(first)
    for o in functions:
        for g in generations:
            row = lives.get(id(g))
            if row is None or g.defined and (min(row) > span[o.index][-1] or max(row) < span[o.index][0]):
                continue
            for op in range(span[o.index][0], span[o.index][-1] + 1):
                uses.add(g, op, False, False, False)
            for back in nodes_behind(o):
                if not g.defined or max(row) >= back[0]:
                    for op in range(back[0], back[-1] + 1):
                        uses.add(g, op, False, False, False)
    rows = [(r["name"], r["ns"], r["gap"], phase_of(r["owner"])) for r in runs]
    tensors = tensors_from(uses.settle(first), generations, n, et_state(generations))
    return rows, tensors, peak_of(n, tensors, [0] * n)


# ---- Chakra ----

def fields(data):
    at, out = 0, []

    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = number()
        kind = key & 7
        if kind == 0:
            out.append((key >> 3, number()))
        elif kind == 2:
            size = number()
            out.append((key >> 3, data[at:at + size]))
            at += size
        else:
            size = 8 if kind == 1 else 4
            out.append((key >> 3, data[at:at + size]))
            at += size
    return out


def python_values(text):
    """Lists, tuples, numbers, quoted texts, True, False, None and <...>; nothing is evaluated."""
    at = 0

    def value():
        nonlocal at
        while text[at] == " ":
            at += 1
        c = text[at]
        if c in "[(":
            close, out = {"[": "]", "(": ")"}[c], []
            at += 1
            while True:
                while text[at] in " ,":
                    at += 1
                if text[at] == close:
                    at += 1
                    return out
                out.append(value())
        if c in "'\"":
            end = at + 1
            while text[end] != c:
                end += 2 if text[end] == "\\" else 1
            word, at = text[at + 1:end], end + 1
            return word
        end = at
        while end < len(text) and text[end] not in ",])":
            end += 1
        word, at = text[at:end], end
        return int(word) if word.lstrip("-").isdigit() else None
    return value() if text.strip() else []


def read_chakra(path):
    data, at, messages = text_of(path), 0, []
    while at < len(data):
        size, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        messages.append(data[at:at + size])
        at += size
    nodes = []
    for raw in messages[1:]:
        node = Op()
        node.id, node.name, node.type, node.us, node.data = -1, "", 0, 0, []
        node.cpu, node.record, node.thread, node.forward, node.stream, node.schema = False, -1, 0, 0, None, ""
        node.ins, node.outs = [], []
        for field, v in fields(raw):
            if field == 1:
                node.id = v
            elif field == 2:
                node.name = v.decode()
            elif field == 3:
                node.type = v
            elif field == 7:
                node.us = v
            elif field == 5:
                node.data += [v] if isinstance(v, int) else [x for x in varints(v)]
            elif field in (8, 9):
                values = [x for f, x in fields(v) if f == 1]
                values = python_values(values[0].decode()) if values else []
                if field == 8:
                    node.ins = values
                else:
                    node.outs = values
            elif field == 10:
                name, number, text = "", 0, ""
                for f, x in fields(v):
                    if f == 1:
                        name = x.decode()
                    elif isinstance(x, int):
                        number = x
                    else:
                        text = x.decode(errors="replace")
                if name == "is_cpu_op":
                    node.cpu = number != 0
                elif name == "rf_id":
                    node.record = number
                elif name == "tid":
                    node.thread = number
                elif name == "fw_tid":
                    node.forward = number
                elif name == "stream":
                    node.stream = int(text) if text else number
                elif name == "op_schema":
                    node.schema = text
        nodes.append(node)
    by_id = {n.id: n for n in nodes}
    owner = lambda n: by_id.get(n.data[0]) if n.data else None
    owned = [n for n in nodes if not n.cpu and owner(n) is not None]
    threads = 2 * sum(owner(n).thread == n.thread for n in owned) > len(owned)
    words = ("nccl NCCL rccl RCCL allreduce all_reduce allgather all_gather AllReduce AllGather ReduceScatter "
             "reduce_scatter alltoall all_to_all broadcast_coalesced c10d::").split()

    def stream(n):
        if n.stream is not None:
            return n.stream
        if threads:
            return -2 if n.type in (5, 6, 7) or any(w in n.name for w in words) else -1
        return n.thread
    key = lambda n: n.record if n.record >= 0 else n.id
    groups = {}
    for n in nodes:
        if n.cpu:
            group = groups.setdefault(key(n), Op())
            if not hasattr(group, "cpus"):
                group.cpus, group.gpus, group.axis, group.parent = [], [], key(n), None
            group.cpus.append(n)
    for n in nodes:
        if not n.cpu and owner(n) is not None and owner(n).cpu:
            groups[key(owner(n))].gpus.append(n)
    order = [groups[k] for k in sorted(groups)]
    backward = lambda n: bool(n.forward or "_backward" in n.name or is_autograd(n.name))
    main = order[0].cpus[0].thread
    autograd = {n.thread for n in nodes if n.cpu and n.thread != main and backward(n)}
    last = -1
    for i, g in enumerate(order):
        first = g.cpus[0]
        g.phase = "backward" if first.thread in autograd or backward(first) else "forward"
        last = i if g.phase == "backward" else last
    for g in order[last + 1:] if last >= 0 else []:
        g.phase = "update"
    for g in order:
        parts = {"in": [], "out": [], "gpu": []}
        for n in [x for x in nodes if x in g.cpus or x in g.gpus]:
            mentions_of(n, n.ins, n.outs, n.schema)
            for m in n.mentions:
                if m.bytes:
                    parts["out" if m.output else "in" if n.cpu else "gpu"].append(m)
        g.mentions = parts["in"] + parts["out"] + parts["gpu"]
    collective = lambda n: n.type in (5, 6, 7) or any(w in n.name for w in words)
    tally = {}
    for n in nodes:
        if not n.cpu:
            row = tally.setdefault(stream(n), [0, 0])
            if owner(n) is not None and owner(n).cpu:
                group = groups[key(owner(n))]
                row[0] += group.phase == "forward" and not collective(n)
                row[1] += 1
    compute = max(tally, key=lambda s: tuple(tally[s]))
    generations = split(order)
    place, ops = {}, []
    for g in order:
        g.work = [n for n in g.gpus if stream(n) == compute]
        place[id(g)] = len(ops)
        if g.work:
            name = g.cpus[0].name
            if name.endswith(")") and name[:-1].rpartition("(")[2].isdigit():
                name = name[:name.rindex("(")]
            ops.append((name, sum(n.us for n in g.work) * 1000, 0, g.phase))
    n_ops = len(ops)
    for g in order:
        place[id(g)] = min(place[id(g)], n_ops - 1)
    uses, first = Uses(), {}
    for g in generations:
        first[id(g)] = place[id(g.first)] if g.defined else 0
    for group in order:
        for m in group.mentions:
            g = m.generation
            uses.add(g, place[id(group)], m.output, m.written, m.output and g.defined and g.first is group)
    state = makes_state(generations, lambda g: g.first is not g.last and fills(g.first.cpus[0].name))
    tensors = tensors_from(uses.settle(first), generations, n_ops, state)
    return ops, tensors, peak_of(n_ops, tensors, [0] * n_ops)


def varints(data):
    value, shift = 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value, shift = 0, 0


# ---- snapshots ----

class Safe(pickle.Unpickler):
    def find_class(self, module, name):
        raise ValueError("a snapshot wants to run %s.%s" % (module, name))


def asked_for(block):
    history = block.get("history")
    return block.get("requested_size", history[0]["real_size"] if history else block["size"])


def read_snapshot(path):
    root = Safe(io.BytesIO(text_of(path))).load()

    def card(index):
        events = root["device_traces"][index]
        active = sum(asked_for(b) for s in root["segments"] if s.get("device", 0) == index
                     for b in s["blocks"] if b["state"].startswith("active"))
        net = peak = 0
        for e in events:
            peak = max(peak, net + e["size"] if e["action"] == "oom" else 0)
            net += e["size"] if e["action"] == "alloc" else -e["size"] if e["action"] == "free_completed" else 0
            peak = max(peak, net)
        return max(0, active - net) + peak, active - net
    cards = [i for i, events in enumerate(root["device_traces"]) if events]
    best = max(cards, key=lambda i: (card(i)[0], -i))
    start = card(best)[1]
    blocks, opened, allocs = [], {}, 0
    for e in root["device_traces"][best]:
        if e["action"] == "alloc":
            allocs += 1
            blocks.append([e["size"], allocs, None])
            opened[e["addr"]] = blocks[-1]
        elif e["action"] == "oom":
            allocs += 1
            blocks.append([e["size"], allocs, allocs])
        elif e["action"] == "free_completed":
            block = opened.pop(e["addr"], None)
            if block is None:
                blocks.append([e["size"], 0, allocs])
                start -= e["size"]
            else:
                block[2] = allocs
    n = allocs + 1
    tensors = [(size, birth, n - 1 if death is None else death, False) for size, birth, death in blocks if size]
    if start > 0:
        tensors.append((start, 0, n - 1, True))
    change = [0] * (n + 1)
    for size, a, b, _ in tensors:
        change[a] += size
        change[b + 1] -= size
    live = peak = 0
    for c in change:
        live += c
        peak = max(peak, live)
    rows = [("", 0, 0, "other")] * n
    return rows, [(size, (b,) if b > a else (), (a,), resident, a, b) for size, a, b, resident in tensors], peak


# ---- logs of operator calls ----

def read_dtr(path):
    text = text_of(path).decode()
    lines = text.split("\n")
    marks = [i for i, l in enumerate(lines) if '"START"' in l]
    lines = [json.loads(l) for l in lines[marks[0] + 1 if marks else 0:] if l.strip()]
    of, storages, ops, backward = {}, [], [], False

    def storage(size, constant):
        storages.append({"bytes": size, "constant": constant, "names": 0, "reads": [], "writes": [], "held": None})
        return storages[-1]

    def drop(s):
        s["names"] -= 1
        if s["names"] == 0 and not s["constant"] and ops:
            s["held"] = len(ops) - 1
    i = 0
    while i < len(lines):
        l, kind = lines[i], lines[i]["INSTRUCTION"]
        i += 1
        details = []
        while i < len(lines) and lines[i]["INSTRUCTION"] in ("MEMORY", "ALIAS"):
            details.append(lines[i])
            i += 1
        size = {d["NAME"]: int(d["MEMORY"]) for d in details if d["INSTRUCTION"] == "MEMORY"}
        alias = {d["NAME"]: int(d["ALIAS"]) for d in details if d["INSTRUCTION"] == "ALIAS"}
        if kind == "CONSTANT":
            of[l["NAME"]] = storage(size[l["NAME"]], True)
            of[l["NAME"]]["names"] = 1
        elif kind in ("CALL", "MUTATE"):
            backward |= "backward" in l["NAME"] or "Backward" in l["NAME"]
            op = len(ops)
            ops.append((l["NAME"], int(l["TIME"]), 0, "backward" if backward else "forward"))
            args = [of[a] for a in l["ARGS"]]
            for s in args:
                if op not in s["reads"]:
                    s["reads"].append(op)
            for place in l.get("MUTATE", []):
                args[place]["writes"].append(op)
            for r in l.get("RESULT", []):
                if alias.get(r, -1) >= 0:
                    of[r] = args[alias[r]]
                else:
                    of[r] = storage(size[r], False)
                    of[r]["writes"].append(op)
                of[r]["names"] += 1
        elif kind in ("COPY", "COPY_FROM"):
            of[l["SRC"]]["names"] += 1
            if kind == "COPY_FROM":
                drop(of[l["DST"]])
            of[l["DST"]] = of[l["SRC"]]
        elif kind == "RELEASE" and l["NAME"] in of:
            drop(of.pop(l["NAME"]))
        elif kind == "ANNOTATE":
            backward |= l["ANNOTATION"] == "BACKWARD"
    n, tensors = len(ops), []
    for s in storages:
        if not s["bytes"]:
            continue
        held = n - 1 if s["names"] > 0 else s["held"]
        used = s["reads"] + s["writes"] + ([held] if held is not None else [])
        span = (0, n - 1) if s["constant"] else (min(used), max(used))
        tensors.append((s["bytes"], tuple(s["reads"]), tuple(s["writes"]), False) + span)
    return ops, tensors, peak_of(n, tensors, [0] * n)
