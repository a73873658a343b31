#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# kill -9 in the middle of everything: see tests/service/kill.py. FERRY_SOAK=1: 200 rounds.
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
rounds=20
[ -z "${FERRY_SOAK:-}" ] || rounds=200
exec python3 "$srcdir/tests/service/kill.py" "$rounds" 1
