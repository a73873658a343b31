# SPDX-License-Identifier: GPL-3.0-or-later
"""An execution trace of a step on the CPU, as the same step on a card would have left it: tensors of a GPU,
and a Kineto file beside it, in which the calls named launch a kernel each when all below them has run."""
import json


def on_a_card(text):
    return text.replace('"cpu"', '"cuda:0"')


def is_call(name):
    """Of the dispatcher: all else is a range that somebody set."""
    return name.startswith("aten::") or "::" not in name and "#" not in name and not name.startswith("[")


def launching(nodes, ops):
    """The calls that are these ops, in order: an op is named `module.call`, or `parameter.optimizer`."""
    chosen, at = [], 0
    updates = [op.rsplit(".", 1)[-1] in ("sgd",) for op in ops]
    for node in nodes:
        if at == len(ops):
            break
        base = "add_" if updates[at] else ops[at].rsplit(".", 1)[-1]
        if updates[at] and not node["below_update"]:
            continue
        if node["name"] == "aten::" + base:
            chosen.append(node)
            at += 1
    return chosen if at == len(ops) else None


def in_order(text):
    """Calls by their beginning, each with its children, and whether an optimizer's step is around it."""
    nodes = sorted(json.loads(text)["nodes"], key=lambda n: n["id"])
    for n in nodes:  # newer ones keep their fields in a list
        n.update({a["name"]: a["value"] for a in n.get("attrs", ())})
        n.setdefault("parent", n.get("ctrl_deps"))
    by_id = {n["id"]: n for n in nodes}
    for n in nodes:
        n["children"] = []
        above = by_id.get(n["parent"])
        n["below_update"] = n["name"].startswith("Optimizer.step") or bool(
            above and above is not n and above.get("below_update"))
        if above and above is not n:
            above["children"].append(n)
    return nodes


def kineto(nodes, chosen):
    events, clock = [], [1000]
    launch = {id(n): k + 1 for k, n in enumerate(chosen)}

    def tick():
        clock[0] += 2
        return clock[0]

    def walk(n):
        began = tick()
        for child in n["children"]:
            walk(child)
        if id(n) in launch:
            k = launch[id(n)]
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": n["tid"],
                           "ts": tick(), "dur": 1, "args": {"correlation": k}})
            events.append({"ph": "X", "cat": "kernel", "name": "k%d" % k, "pid": 0, "tid": 7, "ts": 10**6 + 10 * k,
                           "dur": 9, "args": {"device": 0, "stream": 7, "correlation": k}})
        if n["rf_id"]:
            args = {"External id": n["rf_id"], "Record function id": n["rf_id"]}
            if n["seq_id"] >= 0:
                args["Sequence number"] = n["seq_id"]
            if n["fw_tid"]:
                args["Fwd thread id"] = n["fw_tid"]
            events.append({"ph": "X", "cat": "user_annotation" if "#" in n["name"] else "cpu_op", "name": n["name"],
                           "pid": 1, "tid": n["tid"], "ts": began, "dur": tick() - began, "args": args})

    for n in nodes:
        if n["name"].startswith("[pytorch|profiler") and n["name"].endswith("thread]"):
            for child in n["children"]:
                walk(child)
    events.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 990,
                   "dur": clock[0] + 10 - 990, "args": {}})
    return json.dumps({"schemaVersion": 1, "traceEvents": events})
