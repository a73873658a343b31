# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the time of a step under `ferry run` goes, and steps with tensors made again: one command of five minutes.

  where.py FOLDER FERRY            ResNet-50 and GPT-2 of pytorch.py, on a GPU
  where.py FOLDER FERRY PROGRAMS   the same, tiny, on the emulated device; PROGRAMS has player and its kernels

At 70 % of what it holds the first network runs as it is; with no events around its ops; without digests; with swaps
alone; with waits for the tail of the copies in; with granules that lie far from each other; and with another kind of
convolution (dry: on three streams). Then come the rows of the table: 50 %, and
both of the second network. Each run has a timeline, NAME.html and NAME.chrome.json; FOLDER/where.json is written behind each.
WHERE_SECONDS, 290 without it: no row begins later. The exit status is 1 where a run said something else than the
program alone, held more than its budget or failed; 77 where there is no PyTorch or no GPU.
"""
import datetime
import json
import os
import re
import subprocess
import sys
import time

from torch_run import gpu, last_line, parsed

HERE = os.path.dirname(os.path.abspath(__file__))
VARIANTS = {"as it is": [], "events off": ["--time-every", "0"], "no digests": ["--remake", "trusted"],
            "swaps alone": ["--remake", "off"]}
WAYS = {"waits for the tail": "tail", "granules strewn": "strewn"}  # of the library for tests, FERRY_VARIANT
STEPS, LONGEST_S = "24", 120


class Where:
    def __init__(self, folder, ferry, programs):
        self.folder, self.ferry, self.programs = folder, ferry, programs
        self.begun, self.rows = time.monotonic(), []
        self.most_s = int(os.environ.get("WHERE_SECONDS", "290"))
        os.makedirs(folder, exist_ok=True)
        self.ways = os.path.join(programs or os.path.join(os.path.dirname(os.path.realpath(ferry)), "ways"), "libferry-shim.so")

    def program(self, network, way):
        """A network's command; the other way of the emulated one has streams."""
        if not self.programs:
            return [sys.executable, os.path.join(HERE, "pytorch.py"), "train", *network.split(), STEPS, way]
        more = ["streams=3"] if way != "plain" else []
        return [f"{self.programs}/player", f"{self.programs}/player_kernels.so", STEPS, network, *more]

    def start(self, command, way=""):
        more = {"FERRY_VARIANT": f",{way},", "FERRY_SHIM_LIBRARY": self.ways} if way else {}
        left = max(1, min(LONGEST_S, self.most_s - (time.monotonic() - self.begun)))
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=left, env={**os.environ, **more})
        except subprocess.TimeoutExpired:
            return None, f"not done in {left:.0f} s", 0
        if done.returncode == 77:
            sys.exit(print(last_line(done.stderr), file=sys.stderr) or 77)
        said = parsed(done.stdout)
        what = [said.get("losses"), said.get("parameters")] if said else done.stdout
        took = re.search(r"(\d+) ns a step", done.stderr)
        ns = said.get("step_ns", 0) or int(took.group(1) if took else 0)
        return what, "" if done.returncode == 0 else last_line(done.stderr) or "it failed", ns

    def under(self, network, way, budget, name, options, variant=""):
        stem = os.path.join(self.folder, re.sub(r"[^a-z0-9]+", "-", name.lower()))
        device = ["--driver", "emulated", "--emulated", "granule=8192,link=300MB/s"] if self.programs else []
        command = [self.ferry, "run", "-q", "--wait", "--budget", budget, "--report", stem + ".report.json", "--chrome",
                   stem + ".chrome.json", "--html", stem + ".html", *device, *options, "--",
                   *self.program(network, way)]
        said, error, ns = self.start(command, variant)
        report = {}
        if os.path.exists(stem + ".report.json"):
            with open(stem + ".report.json") as f:
                report = json.load(f)
        return said, error, ns, report, command

    def write(self):
        with open(os.path.join(self.folder, "where.json"), "w") as f:
            json.dump({"command": "where.py", "date": datetime.date.today().isoformat(),
                       "driver": "emulated" if self.programs else gpu("driver_version"),
                       "gpu": "emulated device" if self.programs else gpu("name"), "rows": self.rows},
                      f, indent=1, sort_keys=True)

    def row(self, network, part, percent, alone, options=(), way="plain", variant=""):
        name = f"{os.path.basename(network)} {percent} {part}"
        late = time.monotonic() - self.begun > self.most_s
        if late or (variant and not os.path.exists(self.ways)):
            self.rows.append({"name": name, "error": "no time was left" if late else f"{self.ways} is not there", "skipped": True})
            return self.write()
        plain, whole = alone
        said, error, ns, report, command = self.under(network, way, f"{whole * percent // 100}B", name, list(options), variant)
        seen, predicted = report.get("planned_step_ns", 0), report.get("predicted_step_ns", 0)
        self.rows.append({
            "name": name, "network": network, "percent": percent, "variant": part, "command": " ".join(command),
            "error": error, "same": said is not None and said == plain[0], "step_ns": ns, "step_ns_alone": plain[2],
            "over_alone_ppm": ns * 1000000 // plain[2] if plain[2] else 0, "planned_step_ns": seen,
            "predicted_step_ns": predicted, "off_prediction_ppm": (seen - predicted) * 1000000 // predicted if predicted else 0,
            "over_budget": report.get("device_high_bytes", 0) > report.get("budget_bytes", 1 << 62),
            **{k: report.get(k, 0) for k in ("remakes", "dropped_bytes", "out_bytes", "in_bytes", "learned_ops", "tested_ops",
                                             "unfit_ops", "planned_steps", "planned_map_calls")}})
        return self.write()

    def alone(self, network, way="plain"):
        """What it says and takes by itself, and the bytes that it holds."""
        plain = self.start(self.program(network, way))
        said, _, ns, report, _ = self.under(network, way, "1GiB" if self.programs else "1024GiB", "ample " + way, [])
        whole = report.get("live_high_bytes", 0)
        if self.programs:  # by itself it has another clock
            plain = (plain[0], plain[1] or ("" if said == plain[0] else "NOT THE SAME"), ns)
        if plain[1] or not whole:
            self.rows.append({"name": f"{os.path.basename(network)} {way} alone", "error": plain[1] or "ferry counted nothing"})
            self.write()
        return (plain, whole) if whole and not plain[1] else None

    def measure(self, first, second):
        alone = self.alone(first)
        for part, options in VARIANTS.items() if alone else ():
            self.row(first, part, 70, alone, options)
        for part, variant in WAYS.items() if alone else ():
            self.row(first, part, 70, alone, variant=variant)
        other = self.alone(first, "native") if alone else None
        if other:
            self.row(first, "other convolutions", 70, other, way="native")
        if alone:
            self.row(first, "as it is", 50, alone)
        alone = self.alone(second)
        for percent in (70, 50) if alone else ():
            self.row(second, "as it is", percent, alone)


def is_bad(row):
    return not row.get("skipped") and bool(row["error"] or not row["same"] or row["over_budget"])


def main(folder, ferry, programs=None):
    it = Where(folder, ferry, programs)
    names = [os.path.join(folder, "first.json"), os.path.join(folder, "second.json")] if programs else ["resnet50 96", "gpt2 8"]
    it.measure(*names)
    for row in it.rows:
        print(f"{row['name']:40} {row.get('step_ns', 0) / 1e6:9.2f} ms, {row.get('over_alone_ppm', 0) / 1e6:5.3f} of alone, "
              f"predicted {row.get('predicted_step_ns', 0) / 1e6:9.2f}  {row.get('remakes', 0)} remakes  "
              f"{row['error'] or ('same' if row.get('same') else 'NOT THE SAME')}")
    return 1 if not it.rows or any(map(is_bad, it.rows)) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
