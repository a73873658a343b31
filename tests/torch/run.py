# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the claims of the files named: every function test_* with a folder of its own."""
import faulthandler
import importlib
import os
import shutil
import sys
import tempfile
import time
import traceback

CLAIM_SECONDS = 1200
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../executor/torch")]


def claims(name):
    module = importlib.import_module(name)
    return [(f"{name}.{key}", what) for key, what in vars(module).items()
            if key.startswith("test_") and callable(what)]


def hold(name, claim):
    folder = tempfile.mkdtemp(prefix="ferry-torch-")
    started = time.process_time()
    faulthandler.dump_traceback_later(CLAIM_SECONDS, exit=True)
    try:
        claim(folder)
        return True
    except Exception:
        print(f"does not hold: {name}\n{traceback.format_exc()}", flush=True)
        return False
    finally:
        faulthandler.cancel_dump_traceback_later()
        if "-v" in sys.argv:
            print(f"{time.process_time() - started:7.2f} s  {name}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)


def main(names):
    import torch
    torch.set_num_threads(1)
    wanted = [n for n in names if not n.startswith("-")]
    results = [hold(name, claim) for file in wanted for name, claim in claims(file)]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
