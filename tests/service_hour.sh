#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# An hour of mixed load on `ferry serve`, of `make soak`; FERRY_SECONDS: another time.
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
exec python3 "$srcdir/tests/service/hour.py" "${FERRY_SECONDS:-3600}"
