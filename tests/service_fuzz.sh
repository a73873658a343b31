#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Requests made from the description of the API, and mutated: tests/service/fuzz.py. More of them with
# FERRY_SOAK=1.
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
requests=1000
[ -z "${FERRY_SOAK:-}" ] || requests=100000
# Freed memory that a sanitizer holds back is no growth of the daemon.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=8"
exec python3 "$srcdir/tests/service/fuzz.py" "$requests" 1
