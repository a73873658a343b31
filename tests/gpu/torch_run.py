# SPDX-License-Identifier: GPL-3.0-or-later
"""Unmodified PyTorch under `ferry run`, and beside what people do today to need less memory.

  torch_run.py OUT FERRY STEPS "NETWORK BATCH"...

Each network of pytorch.py trains by itself; then under ferry in all the memory that it wants, and in 90, 70 and
50 % of what it held; then by each other way, alone for its time and under ferry for what it holds at most; and
unchanged under ferry again, in that much memory; and once under `ferry profile --audit`. What it holds is counted in one way everywhere: by ferry,
from the program's own calls. OUT is written after each network. The exit status is 1 where a run under ferry
said something else than the program alone, or held more than its budget; 77 where there is no PyTorch or no
GPU. TORCH_PERCENTS and TORCH_WAYS name fewer of them.
"""
import datetime
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
AMPLE, LONGEST_S = "1024GiB", 1800
PERCENTS = [int(p) for p in os.environ.get("TORCH_PERCENTS", "90 70 50").split()]
WAYS = os.environ.get("TORCH_WAYS", "save_on_cpu checkpoint half").split()


def last_line(text):
    return (text.strip().splitlines() or [""])[-1]


def parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return {}


class Network:
    """One network, its batch, and what it says by itself."""

    def __init__(self, ferry, row, steps, stem):
        self.ferry, self.steps, self.stem = ferry, steps, stem
        self.name, self.batch = row.split()
        self.plain = None
        self.rows = []

    def program(self, way):
        return [sys.executable, os.path.join(HERE, "pytorch.py"), "train", self.name, self.batch, str(self.steps), way]

    def train(self, way="plain", budget=None, kept=()):
        """What the program says, ferry's report where it runs under ferry, and the last line of errors."""
        program = self.program(way)
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report.json")
            around = [self.ferry, "run", "-q", "--wait", "--budget", budget, "--report", report, *kept, "--"] if budget else []
            try:
                done = subprocess.run(around + program, capture_output=True, text=True, timeout=LONGEST_S)
            except subprocess.TimeoutExpired:
                return {}, {}, f"not done in {LONGEST_S} s"
            if done.returncode == 77:
                sys.exit(print(last_line(done.stderr), file=sys.stderr) or 77)
            said = parsed(open(report).read()) if os.path.exists(report) else {}
        return (parsed(done.stdout), said, "") if done.returncode == 0 else ({}, said, last_line(done.stderr) or "it failed")

    def is_same(self, seen):
        return bool(self.plain) and all(self.plain.get(k) == seen.get(k) for k in ("losses", "parameters"))

    def add(self, part, **more):
        self.rows.append({"batch": int(self.batch), "network": self.name, "part": part, **more})
        return self.rows[-1]

    def under(self, part, budget, **more):
        """A row of the unchanged program under ferry. What was planned and how it went lie beside OUT: a step that is
        slower than predicted is looked into there."""
        stem = f"{self.stem}-{self.name}-{part}"
        seen, report, error = self.train(budget=budget, kept=["--chrome", stem + ".chrome.json", "--keep-plan",
                                                              stem + ".plan.json", "--keep-trace", stem + ".trace.json"])
        predicted = report.get("predicted_step_ns", 0)
        row = self.add(part, budget=budget, error=error, report=report, same=self.is_same(seen),
                       step_ns=seen.get("step_ns", 0), step_ns_plain=self.plain.get("step_ns", 0), **more)
        if predicted and report.get("planned_step_ns"):
            row["off_prediction_ppm"] = (report["planned_step_ns"] - predicted) * 1000000 // predicted
        return row

    def beside(self, way, whole):
        """Another way alone, and ferry in the memory that this way needs."""
        alone, _, error = self.train(way)
        _, report, second = self.train(way, AMPLE)
        peak = report.get("live_high_bytes", 0)
        error = error or second or ("" if peak else "ferry counted nothing")
        about = {"way": way, "way_peak_bytes": peak, "way_same": self.is_same(alone),
                 "way_step_ns": alone.get("step_ns", 0)}
        if error or peak >= whole:
            return self.add(way, error=error or "it needs no less memory", **about)
        row = self.under(way, f"{peak}B", **about)
        if row["same"]:
            row["ferry_over_way_ppm"] = row["step_ns"] * 1000000 // max(1, row["way_step_ns"])
        return row

    def audit(self):
        """Does a profile see every call that CUPTI sees?"""
        with tempfile.TemporaryDirectory() as folder:
            around = [self.ferry, "profile", "--audit", "-o", os.path.join(folder, "step.json"), "--"]
            try:
                done = subprocess.run(around + self.program("plain"), capture_output=True, text=True, timeout=LONGEST_S)
            except subprocess.TimeoutExpired:
                return self.add("audit", error=f"not done in {LONGEST_S} s")
        said = [line for line in done.stderr.splitlines() if "audit" in line]
        return self.add("audit", error="" if done.returncode == 0 and said else last_line(done.stderr) or "no audit",
                        said=said)

    def measure(self):
        self.plain, _, error = self.train()
        if error:
            return self.add("plain", error=error)
        self.add("plain", error="", **self.plain)
        whole = self.under("all", AMPLE)["report"].get("live_high_bytes", 0)
        for percent in PERCENTS if whole else ():
            self.under(str(percent), f"{whole * percent // 100}B")
        for way in WAYS if whole else ():
            self.beside(way, whole)
        self.audit()


def fault(row):
    """What is wrong with a row; a budget that ferry refused as too small is not."""
    if "same" not in row:
        return "" if "way" in row else row["error"]
    if row["report"].get("device_high_bytes", 0) > row["report"].get("budget_bytes", 0):
        return "over its budget"
    return "" if row["same"] or "budget" in row["error"] else row["error"] or "NOT THE SAME"


def gpu(what):
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=" + what, "--format=csv,noheader"], capture_output=True,
                              text=True, timeout=60).stdout
        return said.strip().splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return ""


def main(out, ferry, steps, *names):
    rows = []
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    for name in names:
        network = Network(ferry, name, int(steps), os.path.splitext(out)[0])
        network.measure()
        rows += network.rows
        with open(out, "w") as f:
            json.dump({"command": "torch_run.sh " + ";".join(names), "date": datetime.date.today().isoformat(),
                       "driver": gpu("driver_version"), "gpu": gpu("name"), "rows": rows}, f, indent=1, sort_keys=True)
    for row in rows:
        said = fault(row) or row["error"] or ("same" if row.get("same") else "")
        print(f"{row['network']:10} {row['part']:12} {row.get('budget', ''):>16} "
              f"{row.get('step_ns', 0) / 1e6:9.1f} ms  {row.get('way_step_ns', 0) / 1e6:9.1f} ms  {said}")
    return 1 if not rows or any(map(fault, rows)) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
