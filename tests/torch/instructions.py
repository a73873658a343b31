# SPDX-License-Identifier: GPL-3.0-or-later
"""Instructions of a step: plain, with torch's hooks of saved tensors on everywhere that do nothing, and followed.

    instructions.py [NETWORK:PLAN:SHARE...]    names of lean.py; it takes minutes, valgrind and a C compiler

Callgrind counts them, so they are nearly the same on every machine, however busy. The middle one is the floor of whatever
looks at saved tensors from Python. The work is that of the plan itself: copies, which a GPU makes beside the step, and
modules that run again.
"""
import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile

ROWS = ("lstm:swaps:0.8", "unet:swaps:0.8", "resnet50:swaps:0.8", "resnet50:remakes:0.8")
SWITCH = """#include <valgrind/callgrind.h>
void on (void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void toggle (void) { CALLGRIND_TOGGLE_COLLECT; }
void off (const char *name) { CALLGRIND_DUMP_STATS_AT (name); CALLGRIND_STOP_INSTRUMENTATION; }
"""


def counted(folder, rows):
    """In a process under valgrind."""
    import lean
    import torch
    import ferry_torch
    torch.set_num_threads(1)
    switch = ctypes.CDLL(os.path.join(folder, "switch.so"))

    class Collected(lean.Work):
        def timed(self, inner):
            def outer(*arguments, **options):
                switch.toggle()
                try:
                    return inner(*arguments, **options)
                finally:
                    switch.toggle()
            return outer
    work = Collected()

    def count(row, way, step):
        step(1)
        switch.on()
        step(2), step(3)
        switch.off(f"{row} {way}".encode())
    for row in rows:
        net, plan, share = row.split(":")
        with tempfile.TemporaryDirectory() as place:
            job, path = lean.planned(place, lean.NETS[net], lean.PLANS[plan], float(share))
            count(row, "plain", job.step)

            def hooked(number):
                with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                    job.step(number)
            count(row, "hooks", hooked)
            with ferry_torch.follow(path, job.model, job.optimizer):
                for n in range(4):
                    job.step(n)
                count(row, "followed", job.step)
                with work.seen():
                    job.step(1)
                    switch.on(), switch.toggle()
                    job.step(2), job.step(3)
                    switch.toggle(), switch.off(f"{row} work".encode())


def main(rows):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", os.path.join(folder, "switch.so")], input=SWITCH,
                       text=True, check=True)
        subprocess.run(["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out",
                        sys.executable, os.path.abspath(__file__), "--in", folder, *rows], check=True,
                       env={**os.environ, "OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "AVX2"}, stderr=subprocess.DEVNULL)
        found = {}
        for path in glob.glob(f"{folder}/out.*"):
            with open(path) as file:
                text = file.read()
            row, way = re.search(r"Client Request: (\S+) (\S+)", text).groups()
            found[row, way] = int(re.search(r"^totals: (\d+)", text, re.M)[1]) // 2
    for row in rows:
        plain = found[row, "plain"]
        print(f"{row:22} {plain / 1e6:7.1f} million plain, {found[row, 'hooks'] / plain:.2f} with empty hooks, "
              f"{found[row, 'followed'] / plain:.2f} followed, {found[row, 'work'] / plain:.2f} of it work", flush=True)


if __name__ == "__main__":
    HERE = os.path.dirname(os.path.abspath(__file__))
    sys.path[:0] = [HERE, os.path.join(HERE, "../../executor/torch")]
    if sys.argv[1:2] == ["--in"]:
        counted(sys.argv[2], sys.argv[3:])
    else:
        main(sys.argv[1:] or ROWS)
