# SPDX-License-Identifier: GPL-3.0-or-later
"""The recipes of docs/pytorch.md, run from the page's own text."""
import os
import re
import shutil
import subprocess
import sys

from common import FERRY, HERE
from home_claims import needs

PAGE = os.path.join(HERE, "../../docs/pytorch.md")
RECIPE = re.compile(r"<!-- recipe: (\w+) -->\n```python\n(.*?)```\n", re.S)


def recipes():
    with open(PAGE, encoding="utf-8") as file:
        return dict(RECIPE.findall(file.read()))


def said_by(name, folder):
    """What the recipe prints. `ferry` is found by PATH, as the page says."""
    os.symlink(os.path.abspath(FERRY), os.path.join(folder, "ferry"))
    env = {**os.environ, "PATH": folder + os.pathsep + os.environ["PATH"],
           "PYTHONPATH": os.path.join(HERE, "../../executor/torch"), "CUDA_VISIBLE_DEVICES": ""}
    del env["FERRY"]
    done = subprocess.run([sys.executable, "-c", recipes()[name]], cwd=folder, env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "without a budget" not in done.stdout, done.stdout
    return done.stdout


def test_the_page_has_three_recipes(folder):
    assert set(recipes()) == {"eager", "compile", "trainer"}, set(recipes())


def test_a_loop_of_ones_own(folder):
    said = said_by("eager", folder)
    assert "ferry: a step takes" in said and "of 7 steps" in said and "0 steps were not the plan's" in said, said


def test_a_compiled_model(folder):
    if not shutil.which(os.environ.get("CXX", "g++")):
        return print("no C++ compiler: the recipe for torch.compile is not tried")
    assert re.search(r"ferry: .* in .* without a limit", said_by("compile", folder))


@needs("transformers", "accelerate")
def test_a_trainer(folder):
    said = said_by("trainer", folder)
    assert "of 7 steps" in said and "0 steps were not the plan's" in said, said
