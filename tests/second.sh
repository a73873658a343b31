#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A second reading of each profile format, written from docs/import.md and trace/import/rules.md alone, agrees with `ferry import`
# on made steps and on real files; no plan moves a tensor away while an op that may use it runs.
# SECOND_STEPS says how many steps are made; FERRY_REAL_TRACES where real files are.
set -u
command -v python3 >/dev/null || { echo "python3 is missing"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
real=${FERRY_REAL_TRACES:-}
[ -d "$real" ] || real=
python3 "$srcdir/tests/second/agree.py" "$builddir/ferry" "$work" "${SECOND_STEPS:-12}" ${real:+"$real"}
