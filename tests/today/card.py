# SPDX-License-Identifier: GPL-3.0-or-later
"""A profile without a GPU as if it had one: card.py IN OUT. Each innermost op launches one kernel, of its own length;
memory and tensors are on the card. All else stays as torch wrote it."""
import gzip
import json
import sys


def innermost(events):
    ops = sorted((e for e in events if e.get("cat") == "cpu_op"), key=lambda e: (e["tid"], e["ts"], -e["dur"]))
    return [a for a, b in zip(ops, ops[1:] + [None]) if not b or b["tid"] != a["tid"] or b["ts"] >= a["ts"] + a["dur"]]


def launched(events):
    free = 0
    for n, op in enumerate(sorted(innermost(events), key=lambda e: e["ts"]), 1):
        at = op["ts"] + op["dur"] / 2
        free = max(free, at + 1)
        yield {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": op["pid"], "tid": op["tid"], "ts": at, "dur": 0.01,
               "args": {"External id": op["args"]["External id"], "cbid": 211, "correlation": n}}
        yield {"ph": "X", "cat": "kernel", "name": "kernel of " + op["name"], "pid": 0, "tid": 7, "ts": free, "dur": op["dur"],
               "args": {"External id": op["args"]["External id"], "device": 0, "context": 1, "stream": 7, "correlation": n}}
        free += op["dur"]


with gzip.open(sys.argv[1], "rt") as file:
    trace = json.load(file)
if "traceEvents" in trace:
    for event in trace["traceEvents"]:
        if event.get("name") == "[memory]":
            event["args"].update({"Device Type": 1, "Device Id": 0})
    trace["traceEvents"] += launched(trace["traceEvents"])
text = json.dumps(trace)
with open(sys.argv[2], "w") as file:
    file.write(text if "traceEvents" in trace else text.replace('"cpu"', '"cuda:0"'))
