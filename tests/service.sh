#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The API of `ferry serve` and its client, over real sockets on loopback, and the session of docs/service.md.
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
"$builddir/ferry" serve --state /nonexistent/x 2>&1 | grep -q "without-server" && { echo "built --without-server"; exit 77; }
command -v curl >/dev/null || { echo "curl is not here"; exit 77; }
status=0
python3 "$srcdir/tests/service/hostile.py" & # it waits, mostly
hostile=$!
python3 "$srcdir/tests/service/clock.py" & # so does this
clock=$!
python3 "$srcdir/tests/service/api.py" || status=1
python3 "$srcdir/tests/service/session.py" || status=1
python3 "$srcdir/tests/service/tokens.py" || status=1
python3 "$srcdir/tests/service/limits.py" || status=1
python3 "$srcdir/tests/service/sandbox.py" || status=1
python3 "$srcdir/tests/service/kube.py" || status=1
python3 "$srcdir/tests/service/hosts.py" || status=1
wait $hostile || status=1
wait $clock || status=1
exit $status
