#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# `pip install $(ferry torch-path)`, offline, and the package as it lies then.
set -u
. "$srcdir/tests/torch/python.bash"
"$python" -c 'import pip, setuptools' 2>/dev/null || { echo "$python lacks pip or setuptools"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ferry=$PWD/ferry
[ -x "$ferry" ] || ferry=$builddir/ferry
cp -r "$("$ferry" torch-path)" "$work/source" || exit 1
PIP_ROOT_USER_ACTION=ignore "$python" -m pip install -q --disable-pip-version-check --no-index --no-deps --no-build-isolation \
  --target "$work/here" "$work/source" || exit 1
cd "$work" || exit 1
PYTHONPATH=$work/here "$python" - <<'END' 2>/dev/null || { echo "the package does not work once it is installed"; exit 1; }
import os, sys
import ferry_torch
import torch
assert ferry_torch.__file__.startswith(os.environ["PYTHONPATH"]), ferry_torch.__file__
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
with ferry_torch.record("step.json", model, optimizer) as recording:
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
sys.exit(recording.summary["ops"] < 3)
END
"$ferry" info step.json >/dev/null
