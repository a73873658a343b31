#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The experiments on this machine's GPU: one JSON object on standard output; 77 where there is none.
#   tests/gpu/run.sh [BUILD-FOLDER]
set -eu
build=$(realpath "${1:-build}")
make -s -C "$build" tests/gpu/experiments >&2
exec "$build/tests/gpu/experiments"
