# SPDX-License-Identifier: GPL-3.0-or-later
"""Profiles of a step as torch 2.13 writes them, without a GPU: record.py FOLDER made those beside this file."""
import gzip
import json
import os
import re
import sys

import torch
from torch import nn
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule

WAYS = {"plain": {}, "memory": {"profile_memory": True}, "shapes": {"record_shapes": True}, "stacks": {"with_stack": True},
        "all": {"profile_memory": True, "record_shapes": True, "with_stack": True, "with_flops": True, "with_modules": True}}


def job(compiled):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 12 * 12, 10))
    optimizer = torch.optim.Adam(model.parameters())
    run = torch.compile(model) if compiled else model
    x, y = torch.randn(4, 3, 16, 16), torch.randint(10, (4,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(run(x), y).backward()
        optimizer.step()
    for _ in range(3):
        step()
    return step


def write(folder, name, trace):
    """Without the machine: its name, and folders of files."""
    for key in ("traceName", "host_name", "trace_id"):
        trace.pop(key, None)
    text = re.sub(r'"(?:/[^"/]+)+/', '"', json.dumps(trace, separators=(",", ":")))
    with gzip.GzipFile(os.path.join(folder, name + ".json.gz"), "wb", 9, mtime=0) as file:
        file.write(text.encode())


def record(folder, name, step, **ways):
    path = os.path.join(folder, "raw.json")
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=2),
                 on_trace_ready=lambda seen: seen.export_chrome_trace(path), **ways) as seen:
        for _ in range(3):
            step()
            seen.step()
    with open(path) as file:
        write(folder, name, json.load(file))
    os.remove(path)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    torch.set_num_threads(1)
    step = job(False)
    for way, options in WAYS.items():
        record(folder, way, step, **options)
    record(folder, "compiled", job(True), **WAYS["all"])
    path = os.path.join(folder, "raw.json")
    observer = ExecutionTraceObserver().register_callback(path)
    with profile(activities=[ProfilerActivity.CPU], execution_trace_observer=observer, record_shapes=True) as seen:
        step()
        seen.step()
    with open(path) as file:
        write(folder, "graph", json.load(file))
    os.remove(path)


main(sys.argv[1])
