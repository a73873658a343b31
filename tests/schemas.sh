#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Every shipped trace, device and plan keeps to the JSON Schemas in data/schema/.
set -u
command -v python3 >/dev/null || { echo "python3 is missing"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$srcdir/tests/schemas.py" "$srcdir/data/schema" "$srcdir/data" "$srcdir/tests/cases/machine"
