# SPDX-License-Identifier: GPL-3.0-or-later
# Steps on several streams as the profiler would see them, with their true waits and uses; and whether the trace that was
# imported holds them: import_streams.py make SEED FILE TRUTH [KIND]; hold TRUTH TRACE; span PROFILE TRACE. KIND: the events
# of synchronization that tell the waits, `all` kinds of them, or `exact`, from which no other waits follow.
import gzip, json, random, sys


class Syncs:  # how each wait was made: by a record and a wait of the stream, or by the host
    def __init__ (self, r, kind, events):
        self.r, self.kind, self.events, self.calls, self.records = r, kind, events, 0, {}

    def call (self, name, now, dur=1):
        self.calls += 1
        self.events.append ({ "ph": "X", "pid": 1, "tid": 1, "cat": "cuda_runtime", "name": name, "ts": now, "dur": dur,
                              "args": { "correlation": self.calls } })
        return self.calls

    def sync (self, name, now, **args):
        self.events.append ({ "ph": "X", "cat": "cuda_sync", "name": name, "pid": 0, "tid": args.get ("stream", -1),
                              "ts": now, "dur": 1, "args": dict (args, cuda_sync_kind=name, device=0, context=1) })

    def record (self, kernel, stream, now):
        self.records[kernel] = self.call ("cudaEventRecord", now) if self.kind == "exact" or (self.kind and self.r.random () < 0.9) else -1

    def wait (self, kernel, done, on, stream, now):
        how = self.r.choice (["stream"] * 4 + ["chain", "event", "sync", "context"]) if self.kind == "all" else "stream"
        record = dict (wait_on_stream=on, wait_on_cuda_event_record_corr_id=self.records[kernel], wait_on_cuda_event_id=1)
        if how == "chain":  # by a stream that runs nothing, whose waits are not in the file
            self.call ("cudaStreamWaitEvent", now)
            now += 1
            record = dict (record, wait_on_stream=99, wait_on_cuda_event_record_corr_id=self.call ("cudaEventRecord", now))
            now += 1
        if how in ("stream", "chain"):
            self.sync ("Stream Wait Event", now, stream=stream, correlation=self.call ("cudaStreamWaitEvent", now), **record)
            return now + 1
        end = max (now, done) + 1
        if how == "event":
            call = self.call ("cudaEventSynchronize", now, end - now)
            self.sync ("Event Sync", now, stream=-1, correlation=call, **record)
        elif how == "sync":
            self.sync ("Stream Sync", now, stream=on, correlation=self.call ("cudaStreamSynchronize", now, end - now))
        else:
            self.sync ("Context Sync", now, stream=-1, correlation=self.call ("cudaDeviceSynchronize", now, end - now))
        return end


def make (seed, file, truth, kind=""):
    r = random.Random (seed)
    streams, now, gpu_free = r.randint (2, 4), 1000.0, {}
    events, kernels, blocks, open_blocks, bytes_next = [], [], [], [], 512 * 3000
    syncs, host = Syncs (r, kind, events), { "ph": "X", "pid": 1, "tid": 1 }
    count = r.randint (8, 40)
    for i in range (count):
        phase = "aten::forward%d" if i < count // 2 else "aten::backward%d"
        start, mine = now, []
        now += r.randint (1, 4)
        if r.random () < (0.6 if kind != "exact" else i == 0):  # a block that this op writes first, or another behind it
            bytes_next += 512 * r.randint (2100, 4000)
            blocks.append ({ "bytes": bytes_next, "at": now, "users": [] })
            open_blocks.append (blocks[-1])
            mine += blocks[-1:] if kind != "exact" and r.random () < 0.7 else []
            now += 1
        if kind != "exact":
            mine += [b for b in r.sample (open_blocks, min (len (open_blocks), r.randint (0, 2))) if b not in mine]
        for _ in range (r.randint (1, 3)):
            stream = 7 + (0 if r.random () < 0.55 else r.randrange (streams))
            # all work of others that touched its blocks, and some more by chance
            waits = { k for b in mine for k in b["users"] if kernels[k]["stream"] != stream }
            waits |= { k for k in range (max (0, len (kernels) - 4), len (kernels)) if r.random () < 0.15 }
            waits = { k for k in waits if kernels[k]["stream"] != stream }
            for w in sorted (waits) if kind else []:
                now = syncs.wait (w, kernels[w]["end"], kernels[w]["stream"], stream, now + 1)
            now += r.randint (1, 5)
            begin = max ([gpu_free.get (stream, 0), now + 2] + [kernels[k]["end"] for k in waits])
            end = begin + r.choice ((1, 3, 10, 40))
            gpu_free[stream] = end
            number = len (kernels)
            kernels.append ({ "stream": stream, "start": begin, "end": end, "waits": sorted (waits) })
            for b in mine:
                b["users"].append (number)
            launch = syncs.call ("cudaLaunchKernel", now)
            events.append ({ "ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": stream, "ts": begin,
                             "dur": end - begin, "args": { "device": 0, "stream": stream, "correlation": launch } })
            now += 1
            syncs.record (number, stream, now)
        now += r.randint (1, 4)
        events.append (dict (host, cat="cpu_op", name=phase % i, ts=start, dur=now - start, args={}))
        now += 1
        for b in [b for b in open_blocks if kind != "exact" and r.random () < 0.3]:
            open_blocks.remove (b)
            b["freed"] = now
            now += 1
    total = 0
    for at, size, b in sorted ([(b["at"], b["bytes"], b) for b in blocks] +
                               [(b["freed"], -b["bytes"], b) for b in blocks if "freed" in b], key=lambda e: e[0]):
        total += size
        events.append ({ "ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event", "pid": 1, "tid": 1, "ts": at,
                         "args": { "Device Type": 1, "Device Id": 0, "Bytes": size, "Addr": 4096 * (1 + blocks.index (b)),
                                   "Total Allocated": total, "Total Reserved": 1 << 30 } })
    events.append (dict (host, cat="user_annotation", name="ProfilerStep#1", ts=999, dur=now - 998))
    json.dump ({ "schemaVersion": 1, "deviceProperties": [{ "id": 0, "name": "NVIDIA H100 80GB HBM3" }],
                 "traceEvents": events }, open (file, "w"))
    json.dump ({ "kernels": kernels, "blocks": blocks, "exact": kind == "exact" }, open (truth, "w"))


def began (ops):  # by the machine model: when each op begins and ends if nothing stalls
    last, ends, starts = {}, [], []
    for o in ops:
        at = max ([last.get (o.get ("stream", 0), 0)] + [ends[k] for k in o.get ("after", [])]) + o.get ("gap_ns", 0)
        starts.append (at)
        ends.append (at + o.get ("ns", 0))
        last[o.get ("stream", 0)] = ends[-1]
    return starts, ends


def hold (truth, trace):
    t, u = json.load (open (trace)), json.load (open (truth))
    ops, kernels = t["ops"], u["kernels"]
    starts, ends = began (ops)
    first = min (k["start"] for k in kernels)
    launched = [k["stream"] for k in kernels]
    compute = max (dict.fromkeys (launched), key=launched.count)  # the first of those with most
    order = sorted (kernels, key=lambda k: (k["stream"] != compute, k["start"], k["stream"]))
    names = { s: i for i, s in enumerate (dict.fromkeys ([compute] + [k["stream"] for k in order])) }
    for s, i in names.items ():
        assert sum (o.get ("ns", 0) for o in ops if o.get ("stream", 0) == i) == \
            1000 * sum (k["end"] - k["start"] for k in kernels if k["stream"] == s), "time was lost"
    tail = ops[0].get ("gap_ns", 0)
    span = 1000 * (max (k["end"] for k in kernels) - first)
    assert max (ends) == span, (max (ends), span)
    op_of, begun = {}, set ()  # each kernel lies in the op of its stream that began last
    for k in sorted (range (len (kernels)), key=lambda k: kernels[k]["start"]):
        at = 1000 * (kernels[k]["start"] - first) + tail
        i = op_of[k] = max (i for i, o in enumerate (ops)
                            if o.get ("stream", 0) == names[kernels[k]["stream"]] and starts[i] <= at)
        assert i in begun or starts[i] == at, ("an op begins late", k, i)
        begun.add (i)
    assert len (begun) == len (ops)
    known = []  # per op all that has surely ended when it begins
    last = {}
    for i, o in enumerate (ops):
        before = set ()
        for j in o.get ("after", []) + ([last[o.get ("stream", 0)]] if o.get ("stream", 0) in last else []):
            assert j < i
            before |= known[j] | { j }
        known.append (before)
        last[o.get ("stream", 0)] = i
    for k, x in enumerate (kernels):
        for w in x["waits"]:
            assert op_of[w] in known[op_of[k]] or op_of[w] == op_of[k], ("a wait is missing", w, k)
    if u["exact"]:  # what surely ended follows from what was waited for, and from nothing else
        last, told = {}, []
        for i, o in enumerate (ops):
            stream = o.get ("stream", 0)
            waits = { op_of[w] for k, x in enumerate (kernels) if op_of[k] == i for w in x["waits"] } - { i }
            waits |= { last[stream] } if stream in last else set ()
            told.append (waits.union (*(told[w] for w in waits)))
            last[stream] = i
        assert known == told, ("waits are made up", [i for i in range (len (ops)) if known[i] != told[i]])
    lives = { x["bytes"]: n for n, x in enumerate (t["tensors"]) }
    uses = { n: [i for i, o in enumerate (ops) if n in o.get ("reads", []) + o.get ("writes", [])] for n in lives.values () }
    held = 0
    for b in u["blocks"]:
        n, users = lives.get (b["bytes"]), [op_of[k] for k in b["users"]]
        if n is None or not users:
            continue  # it lives in one op, as workspace
        held += 1
        end = t["tensors"][n].get ("dies_after", max (uses[n]))
        assert min (uses[n]) <= min (users) and max (users) <= max (end, max (uses[n])), (b, uses[n], users)
    return held


def span (profile, trace):  # a recorded one: all GPU time is in ops, and they span what the GPU did
    opened = gzip.open if profile.endswith (".gz") else open
    gpu = [e for e in json.load (opened (profile))["traceEvents"] if e.get ("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    ops = json.load (open (trace))["ops"]
    _, ends = began (ops)
    device = max ({ e["args"]["device"] for e in gpu }, key=lambda d: sum (e["args"]["device"] == d for e in gpu))
    gpu = [e for e in gpu if e["args"]["device"] == device]
    assert abs (max (ends) - 1000 * (max (e["ts"] + e["dur"] for e in gpu) - min (e["ts"] for e in gpu))) < 1
    assert len ({ o.get ("stream", 0) for o in ops }) == len ({ e["args"]["stream"] for e in gpu })


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "make":
        make (int (rest[0]), *rest[1:])
    elif what == "hold":
        print (hold (*rest))
    else:
        span (*rest)
