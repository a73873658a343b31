# SPDX-License-Identifier: GPL-3.0-or-later
"""The program `ferry` beside the package: who carries a plan out, a server that plans, batches."""
import json
import os
import signal
import subprocess
import unittest.mock

import torch
import torch.nn.functional as F
from torch import nn

import ferry_torch
from common import FERRY, Job, budget_of, card, ferry, same
from nets import NETS, OPTIMIZERS
from trap_claims import refused


def recorded(folder):
    make, batches = NETS["cnn"]
    job = Job(make, OPTIMIZERS["adam"], batches)
    job.step(0)
    path = os.path.join(folder, "step.json")
    with ferry_torch.record(path, job.model, job.optimizer):
        job.step(1)
    return path


def planned(folder, trace, *options):
    plan = os.path.join(folder, "plan.json")
    budget = budget_of(trace, card(folder), 0.6)
    ferry("solve", trace, "-d", card(folder), "--budget", f"{budget}B", "--limit", "20000", "-o", plan,
          *options)
    with open(plan) as file:
        return json.load(file)


def test_for_torch_is_what_is_meant_without_it(folder):
    """A step that ferry_torch recorded is planned for it, by every command."""
    trace = recorded(folder)
    assert planned(folder, trace, "--for", "torch") == planned(folder, trace)
    floors = [json.loads(ferry("info", trace, "--json", *how))["floor_bytes"]
              for how in ((), ("--for", "torch"), ("--for", "replay"))]
    assert floors[0] == floors[1] > floors[2], floors
    for command, options in (("curve", ("--points", "3")), ("whatif", ("-b", "95%")), ("min-memory", ()), ("compare", ("-b", "95%", "--policies", "ferry-all"))):
        said = [ferry(command, trace, "-d", card(folder), "--limit", "2000", *options, *how) for how in ((), ("--for", "torch"), ("--for", "replay"))]
        assert said[0] == said[1] != said[2] or command == "compare", (command, said)  # a comparison has times of the day
        done = subprocess.run([FERRY, command, trace, "-d", card(folder), "--sections", "auto"], stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2 and "ferry_torch, which recorded this step" in done.stderr, done
    assert planned(folder, trace, "--for", "replay", "--recompute", "only")["recompute"]


def test_for_run_keeps_places(folder):
    """An unmodified program keeps its addresses, and runs what it runs."""
    trace = recorded(folder)
    assert planned(folder, trace, "--for", "run")["placement"]["same_places"] is True
    assert "same_places" not in planned(folder, trace, "--for", "replay")["placement"]
    for option in (("--recompute", "auto"), ("--sections", "auto"), ("--order", "any")):
        done = subprocess.run([FERRY, "solve", trace, "-d", card(folder), "--for", "run", *option],
                              stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2 and "--for run" in done.stderr and option[0] in done.stderr, done


def test_for_torch_cuts_nothing_and_proves_nothing(folder):
    trace = recorded(folder)
    for option in (("--sections", "auto"), ("--order", "updates"), ("--proof",)):
        done = subprocess.run([FERRY, "solve", trace, "-d", card(folder), "--for", "torch", *option],
                              stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2 and "--for torch" in done.stderr, done


def test_a_server_plans_the_same(folder):
    """Its plan is, byte for byte, that of this machine, and fit asks it."""
    trace, here, there = (os.path.join(folder, n) for n in ("step.json", "here.json", "there.json"))
    recorded(folder)
    server = subprocess.Popen([FERRY, "serve", "--state", os.path.join(folder, "state"), "--listen",
                               "127.0.0.1:0", "--workers", "1", "-q"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    try:
        said = server.stdout.readline().split()
        if not said:
            return print("built --without-server: nothing was tried")
        options = ["solve", trace, "-d", card(folder), "--for", "torch", "--budget", "90%", "--recompute",
                   "cheap", "--limit", "20000"]
        ferry(*options, "-o", here)
        ferry(*options, "-o", there, "--server", said[-1])
        with open(here, "rb") as a, open(there, "rb") as b:
            assert a.read() == b.read()
        make, batches = NETS["cnn"]
        plain, fitted = (Job(make, OPTIMIZERS["adam"], batches) for _ in range(2))
        for n in range(5):
            plain.step(n)
        with ferry_torch.fit(fitted.model, fitted.optimizer, "90%", say=lambda text: None,
                             server=said[-1], recompute="auto") as run:
            for n in range(5):
                fitted.step(n)
        assert same(plain.result(), fitted.result()) and run.report.steps == 2
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate()


def test_the_largest_batch_of_a_model_of_ones_own(folder):
    """It is planned, the next one is not; with more memory it is no smaller."""
    def make(batch):
        model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 4))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def step():
            x, y = torch.zeros(batch, 64), torch.zeros(batch, dtype=torch.long)
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        return model, optimizer, step
    said, seen = [], []
    small = ferry_torch.max_batch(make, "h200", "2MiB", slowdown=10, say=said.append)
    assert f"batch {small.above} does not fit" in "".join(said) and len(said) > 3, said

    def interrupted(batch):
        seen.append(batch)
        if batch > 8:
            raise KeyboardInterrupt
        return make(batch)
    assert ferry_torch.max_batch(interrupted, "h200", "2MiB", slowdown=10)[0] == 8 and seen == [1, 2, 4, 8, 16], seen
    large = ferry_torch.max_batch(make, "h200", 4 << 20, slowdown=10)
    assert small.above == small.batch + 1 and small.peak_bytes <= 2 << 20, small
    assert large.batch > 1.5 * small.batch, (small, large)
    assert ferry_torch.max_batch(make, "h200", "4MiB", slowdown=10, most=8).above is None
    refused(lambda: ferry_torch.max_batch(lambda batch: make(batch)[:2], "h200", "4MiB"), "its optimizer and a step")
    with unittest.mock.patch.dict(os.environ, FERRY="/bin/true"):
        refused(lambda: ferry_torch.max_batch(make, "h200", "4MiB"), "/bin/true does not answer as ferry does")


def test_questions_are_about_the_executor_that_the_trace_came_from(folder):
    """What ferry_torch cannot move does not make its budgets smaller; granules are its allocator's."""
    trace, plan = recorded(folder), os.path.join(folder, "least.json")
    def asked(command, *more):
        return json.loads(ferry(command, trace, "--json", *more, accept=(0, 1, 4)))
    for command in ("curve", "min-memory"):
        more = ("-d", card(folder), *(("-n", "2") if command == "curve" else ()))
        own, torchs, replayed = (asked(command, *more, *how) for how in ((), ("--for", "torch"), ("--for", "replay")))
        assert own == torchs and own["floor_bytes"] > replayed["floor_bytes"], command
        assert own["allowed"] == {"order": "as-is", "recompute": "off", "sections": "off"}, own["allowed"]
        assert asked(command, *more, "--for", "compile")["allowed"]["recompute"] != "off"
    assert asked("info")["needs"]["granule_bytes"] < asked("info", "--for", "replay")["needs"]["granule_bytes"]
    ferry("min-memory", trace, "-d", card(folder), "-o", plan)
    ferry("check", trace, plan, accept=(0,))
    done = subprocess.run([FERRY, "curve", trace, "-d", card(folder), "--order", "any"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "--for replay" in done.stderr, done
