#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The description of the API, against the tables that it is made from and the commands' options.
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
exec python3 "$srcdir/tests/service/openapi.py"
