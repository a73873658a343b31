#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Floods of connections on `ferry serve`, and another client meanwhile.
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
"$builddir/ferry" serve --state /nonexistent/x 2>&1 | grep -q "without-server" && { echo "built --without-server"; exit 77; }
exec python3 "$srcdir/tests/service/flood.py"
