#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The table of docs/hosts.md: three networks in 60 % of the memory that they need, on 1, 2, 4 and 8 cards of an
# HGX H100; planned for one card, and for the host. hosts.sh [OPTIONS OF ferry whatif]
set -eu
ferry=${builddir:-build}/ferry
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo '| network | ranks | plan for one card | plan for the host | way | bound | pinned |'
echo '|---|---|---|---|---|---|---|'
for net in "gpt2-xl --batch 4" "llama-1b --batch 2" "resnet50 --batch 256"; do
  # shellcheck disable=SC2086
  "$ferry" zoo -q $net -d h100-sxm -o "$work/net.json"
  "$ferry" whatif -q "$work/net.json" --host hgx-h100 --ranks 1,2,4,8 -b 60% "$@" --json >"$work/rows.json"
  python3 - "$net" "$work/rows.json" <<'END'
import json, sys
name, path = sys.argv[1:]
d = json.load (open (path))
for r in d["rows"]:
    slower = lambda ns: "%.1f ms, %+.1f %%" % (ns / 1e6, 100 * ns / d["baseline_ns"] - 100)
    print ("| %s | %d | %s | %s | %s | %.1f ms | %.1f GiB |" % (name.replace (" --batch", ", batch"), r["ranks"],
           slower (r["alone_step_ns"]), slower (r["step_ns"]), r["way"], r["lower_bound_ns"] / 1e6, r["pinned_bytes"] / 2**30))
END
done
