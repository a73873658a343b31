# SPDX-License-Identifier: GPL-3.0-or-later
"""The program `ferry`, which does all of the planning."""
import json
import os
import shutil
import subprocess
import tempfile

from .errors import Refused


def path():
    """FERRY, or what PATH has."""
    found = os.environ.get("FERRY") or shutil.which("ferry")
    if not found:
        raise Refused("ferry is not on PATH; set FERRY to where it lies")
    return found


def ferry(*arguments, accept=(0,)):
    """Runs it, and gives back what it printed."""
    try:
        done = subprocess.run([path(), *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, check=False)
    except OSError as error:
        raise Refused(f"{path()} does not run ({error.strerror}); set FERRY to where ferry lies") from None
    if done.returncode not in accept:
        said = done.stderr.strip() or f"status {done.returncode}"
        raise Refused(f"ferry {arguments[0]}: {said.splitlines()[-1].removeprefix('ferry: ')}")
    return done.stdout


def answer(*arguments, accept=(0,)):
    """What it printed, as data."""
    said = ferry(*arguments, accept=accept)
    try:
        return json.loads(said)
    except ValueError:
        raise Refused(f"{path()} does not answer as ferry does; set FERRY to where ferry lies") from None


def picture(trace, plan):
    """A plan as SVG, for a notebook."""
    with tempfile.TemporaryDirectory(prefix="ferry-") as folder:
        drawn = os.path.join(folder, "plan.svg")
        ferry("plot", trace, plan, "--svg", drawn, "-q")
        with open(drawn, encoding="utf-8") as file:
            return file.read()
