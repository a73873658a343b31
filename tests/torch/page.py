# SPDX-License-Identifier: GPL-3.0-or-later
"""The outputs that docs/pytorch.md shows: page.py writes them anew, page.py --check compares.

A block behind a line `<!-- page.py: NAME -->` is what the example NAME prints. `--check` runs the examples
again. Texts must be the same. What the machine decides may differ, by rule: how near a plan is to its bound,
and by which bound; of numbers times, shares and the search's effort at will, losses by a fiftieth, bytes and
counts of a plan that follows from measured times by a quarter. What is 0 stays 0. An example whose times are
a card's has to be the same throughout.
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../docs/pytorch.md")
PACKAGE = os.path.join(HERE, "../../executor/torch")
MEASURED = {"gpt": False, "cnn": True, "lstm": True}  # are its times this machine's?

BLOCK = re.compile(r"(<!-- page\.py: (\w+) -->\n```\n)(.*?)(```\n)", re.S)
NOISE = re.compile(r"^W\d+ .*CPUAllocator|^WARNING: Logging before")
PICTURE = re.compile(r"│|^ +0 +[\d.]+ \w+$|^ +[\d.]+ \w+ +[\d.]+ \w+$|^ +line: ")
NEARNESS = re.compile(r"and no plan is faster|at most [\d.]+ % above what any plan .*")
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
FREE_UNITS = ("ns", "us", "ms", "s", "%", "copies")  # copies that came late
PLANNED = 0.25


def program(name):
    return os.path.join(PACKAGE, "examples", f"{name}.py")


def lines_of(name):
    """What the example prints, without pictures; what is left out in the middle becomes dots."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.abspath(os.environ["FERRY"]), os.path.join(folder, "ferry"))
        env = {**os.environ, "PYTHONPATH": PACKAGE, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1", "COLUMNS": "80",
               "PATH": folder + os.pathsep + os.environ["PATH"], "LC_ALL": "C.UTF-8", "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run([sys.executable, program(name)], cwd=folder, env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            raise SystemExit(f"{name}.py ended with {done.returncode}:\n{done.stdout[-2000:]}")
    lines = []
    for line in done.stdout.splitlines():
        if NOISE.match(line):
            continue
        if PICTURE.search(line):
            if lines and not lines[-1]:
                lines.pop()
            line = "..."
        if line != "..." or lines[-1:] != ["..."]:
            lines.append(line.rstrip())
    return lines


def parts(line):
    """The line's text with its numbers left out, and each number with the word behind it."""
    line = re.sub(r"(found by\s+)\w+", r"\1somebody", " ".join(line.split()))
    line = NEARNESS.sub("as near to the bound as it is", line)
    line = re.sub(r"certified by (compute|crossing|flow-lp); it covers every plan\b.*", "certified", line)
    numbers = [(m.group(), re.match(r"\s*([^\s;,]*)", line[m.end():]).group(1)) for m in NUMBER.finditer(line)]
    text = NUMBER.sub("#", line)
    for unit in ("KiB", "MiB", "GiB", "B"):
        text = re.sub(rf"# {unit}\b", "# BYTES", text)
    for unit in ("ns", "us", "ms", "s"):
        text = re.sub(rf"# {unit}\b", "# TIME", text)
    return text, numbers


SIZES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def near(kind, a, b):
    """May one number stand where the other one does?"""
    (left, unit), (right, other) = a, b
    if unit in FREE_UNITS and other in FREE_UNITS or unit.startswith("candidate"):
        return True
    x, y = float(left) * SIZES.get(unit, 1), float(right) * SIZES.get(other, 1)
    if kind.startswith("loss"):
        return abs(x - y) <= 0.02 * abs(x)
    return (x == 0) == (y == 0) and abs(x - y) <= PLANNED * max(abs(x), abs(y))


def differences(name, shown, printed):
    """Lines that the page has otherwise than the example."""
    found = []
    for at in range(max(len(shown), len(printed))):
        a, b = (lines[at] if at < len(lines) else "" for lines in (shown, printed))
        (kind, left), (other, right) = parts(a), parts(b)
        same = a == b if not MEASURED[name] else \
            kind == other and len(left) == len(right) and all(near(kind, x, y) for x, y in zip(left, right))
        if not same:
            found.append(f"{name}: line {at + 1}\n  page:    {a}\n  program: {b}")
    return found


def blocks():
    with open(PAGE) as file:
        return {name: text.splitlines() for _, name, text, _ in BLOCK.findall(file.read())}


def check(name):
    return differences(name, blocks()[name], lines_of(name))


def write():
    with open(PAGE) as file:
        page = file.read()
    page = BLOCK.sub(lambda m: m.group(1) + "\n".join(lines_of(m.group(2))) + "\n" + m.group(4), page)
    with open(PAGE, "w") as file:
        file.write(page)


if __name__ == "__main__":
    if "--check" in sys.argv:
        wrong = [line for block in blocks() for line in check(block)]
        print("\n".join(wrong) if wrong else "the page shows what the examples print")
        sys.exit(bool(wrong))
    write()
