# SPDX-License-Identifier: GPL-3.0-or-later
# `python`: one with a torch that ferry_torch takes. Without one the test that reads this is skipped.
python=${FERRY_PYTHON:-}
for found in "$PWD/venv/bin/python" /usr/bin/python3; do
  [ -n "$python" ] || [ ! -x "$found" ] || python=$found
done
"${python:=python3}" -c 'import sys, torch; sys.exit(tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6))' 2>/dev/null || {
  echo "$python has no torch from 2.6 on; python3 -m venv build/venv && build/venv/bin/pip install torch, or FERRY_PYTHON names a Python that has it"
  exit 77
}
export FERRY_PYTHON=$python
