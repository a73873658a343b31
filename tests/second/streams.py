# SPDX-License-Identifier: GPL-3.0-or-later
"""Ops of all streams, read from a Kineto file by docs/import.md and trace/import/rules.md alone: streams, times, what each
op waits for where no events of synchronization tell it, and collectives.  streams.py PROFILE TRACE: whether `ferry import
--streams all`, as plain JSON, has the same."""
import gzip
import json
import sys

import read

KINDS = [("reduce_scatter", "reducescatter"), ("all_reduce", "allreduce"), ("all_gather", "allgather"),
         ("all_to_all", "alltoall"), ("broadcast",), ("send",), ("recv",)]
SIZES = {"float": 4, "bfloat16": 2, "half": 2, "double": 8, "long": 8, "int": 4, "short": 2, "byte": 1, "char": 1, "bool": 1}


def kind_in(text):
    low = text.lower()
    for names in KINDS:
        if any(name in low for name in names):
            return None if names[0] in ("send", "recv") and "sendrecv" in low else names[0]
    return None


def gpu_arguments(document):
    """Of each GPU event, in the order of read.kineto_events."""
    kinds = ("kernel", "memcpy", "memset", "gpu_memcpy", "gpu_memset")
    return [e.get("args", {}) for e in document["traceEvents"]
            if e.get("ph") == "X" and e["name"] != "[memory]" and e.get("cat", "").lower() in kinds]


def collective_of(g):
    """Kind, bytes and group of the op that begins with that event."""
    args = g["arguments"]
    called = args.get("Collective name") or ""
    kind = kind_in(called)
    if not kind and g["kernel"] and ("nccl" in g["name"].lower() or "rccl" in g["name"].lower()):
        texts, o = [g["name"]], g["owner"]
        while o is not None:
            texts.append(o.name)
            o = o.parent
        kind = next(filter(None, map(kind_in, texts)), None)
    if not kind or not called:
        return kind, 0, None
    one = SIZES.get(str(args.get("dtype", "")).lower(), 0)
    elements = max(int(args.get("In msg nelems", 0)), int(args.get("Out msg nelems", 0)))
    return kind, one * elements, args.get("Process Group Name") or args.get("Process Group Ranks") or None


def split_stream(mine, others):
    """Runs of one stream: events of one owner, until another stream's event ends or starts between two of them."""
    runs, end = [], mine[0]["start"]
    for g in mine:
        last = runs[-1]["events"][-1] if runs else None
        cut = last is None or g["owner"] is None or last["owner"] is not g["owner"] or any(
            last["start"] < o["start"] + o["ns"] <= g["start"] or last["start"] + last["ns"] <= o["start"] < g["start"] + g["ns"]
            for o in others)
        if cut:
            runs.append({"events": [], "begin": g["start"], "ns": 0})
        runs[-1]["events"].append(g)
        runs[-1]["ns"] += max(0, g["start"] + g["ns"] - max(g["start"], end))
        end = max(end, g["start"] + g["ns"])
    return runs


def read_streams(document):
    ops, launches, gpu, memory, steps = read.kineto_events(document)
    for g, arguments in zip(gpu, gpu_arguments(document)):
        g["arguments"] = arguments
    read.nest(ops, launches, gpu, memory, steps)
    _, window, device, side = read.kineto_runs(ops, gpu, steps)
    first = min(g["start"] for g in gpu if g["launched"] is not None and window[0] <= g["launched"] < window[1] and g["device"] == device)
    mine = [g for g in gpu if g["device"] == device and window[0] <= read.at_launch(g) < window[1] and
            (g["launched"] is not None or g["start"] >= first)]
    aside = {g["stream"] for g in side}
    compute = next(g["stream"] for g in mine if g["stream"] not in aside)
    place = {id(g): i for i, g in enumerate(gpu)}
    mine.sort(key=lambda g: (g["start"], g["start"] + g["ns"], place[id(g)]))
    numbers = {compute: 0}
    for g in mine:
        numbers.setdefault(g["stream"], len(numbers))
    runs = []
    for stream, number in numbers.items():
        rows = split_stream([g for g in mine if g["stream"] == stream], [g for g in mine if g["stream"] != stream])
        runs += [dict(r, stream=number) for r in rows]
    runs.sort(key=lambda r: (r["begin"], r["stream"]))
    for r in runs:
        r["end"] = max(g["start"] + g["ns"] for g in r["events"])
        r["launches"] = [read.at_launch(g) for g in r["events"]]
        r["collective"] = collective_of(r["events"][0])
    return runs


def known_by_times(runs):
    """Per op all that has surely ended when it begins: what had, and was launched early enough."""
    known, newest = [], {}
    for k, r in enumerate(runs):
        last = {}
        for j, x in enumerate(runs[:k]):
            if x["stream"] != r["stream"] and x["end"] <= r["begin"] and x["launches"][0] <= max(r["launches"]):
                last[x["stream"]] = j
        before = set(last.values()) | ({newest[r["stream"]]} if r["stream"] in newest else set())
        known.append(before.union(*(known[j] for j in before)))
        newest[r["stream"]] = k
    return known


def known_of(ops):
    known, newest = [], {}
    for k, o in enumerate(ops):
        stream = o.get("stream", 0)
        before = set(o.get("after", [])) | ({newest[stream]} if stream in newest else set())
        known.append(before.union(*(known[j] for j in before)))
        newest[stream] = k
    return known


def compare(profile, trace):
    document = json.load((gzip.open if profile.endswith(".gz") else open)(profile))
    ops, runs = json.load(open(trace))["ops"], read_streams(document)
    assert len(ops) == len(runs), ("ops", len(ops), len(runs))
    for k, (o, r) in enumerate(zip(ops, runs)):
        assert o.get("stream", 0) == r["stream"], ("stream", k, o, r["stream"])
        assert o.get("ns", 0) == r["ns"], ("ns", k, o["name"], o.get("ns", 0), r["ns"])
        mine = o.get("collective"), o.get("group_bytes", 0), o.get("group")
        assert mine == r["collective"], ("collective", k, mine, r["collective"])
    if not any(e.get("cat") == "cuda_sync" for e in document["traceEvents"]):
        told, mine = known_of(ops), known_by_times(runs)
        assert told == mine, ("waits", [k for k in range(len(ops)) if told[k] != mine[k]])
    return len(ops), len({r["stream"] for r in runs}), sum(r["collective"][0] is not None for r in runs)


if __name__ == "__main__":
    print("%d ops on %d streams, %d collectives" % compare(*sys.argv[1:]))
