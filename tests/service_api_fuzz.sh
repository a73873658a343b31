#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Requests made from the OpenAPI text by fast-check, replies held against it by ajv: see
# tests/service/fuzz.mjs. FERRY_NODE_MODULES is a folder that has both; FERRY_SOAK=1: more of them.
command -v node >/dev/null || { echo "node is not here"; exit 77; }
[ -d "${FERRY_NODE_MODULES:-}/fast-check" ] && [ -d "$FERRY_NODE_MODULES/ajv" ] || { echo "FERRY_NODE_MODULES has no fast-check and ajv"; exit 77; }
requests=4000
[ -z "${FERRY_SOAK:-}" ] || requests=100000
work=$(mktemp -d)
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
"$builddir/ferry" zoo -q alexnet --batch 64 --image 64 --width-divisor 2 --classes 100 --device v100 -o a.json || exit 1
"$builddir/ferry" serve --state state --listen 127.0.0.1:0 --workers 1 --job-seconds 2 --max-queue 30 -q >address &
server=$!
for _ in $(seq 100); do [ -s address ] && break; sleep 0.1; done
url=$(awk '{ print $NF }' address)
trace=$("$builddir/ferry" submit a.json --server "$url") || exit 1
node "$srcdir/tests/service/fuzz.mjs" "$url" $server "$trace" $requests "$(cd "$FERRY_NODE_MODULES" && pwd)"
