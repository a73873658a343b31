#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The table of docs/hosts.md: three networks in 60 % of the memory that they need, on 1, 2, 4 and 8 cards of an
# HGX H100; planned for one card, and for the host. hosts.sh [OPTIONS OF ferry whatif] makes the rows as JSON, as
# data/host-ranks.json has them; hosts.sh --table FILE is the table of such a file.
set -eu
ferry=${builddir:-build}/ferry

if [ "${1-}" = --table ]; then
  python3 - "$2" <<'END'
import json, sys
print ("| network | ranks | plan for one card | plan for the host | way | bound | pinned a rank |\n|---|---|---|---|---|---|---|")
for net in json.load (open (sys.argv[1]))["networks"]:
    slower = lambda ns: "%.1f ms, %+.1f %%" % (ns / 1e6, 100 * ns / net["baseline_ns"] - 100)
    for r in net["rows"]:
        print ("| %s | %d | %s | %s | %s | %.1f ms | %.1f GiB |" % (net["name"].replace (" --batch", ", batch"), r["ranks"],
               slower (r["alone_step_ns"]), slower (r["step_ns"]), r["way"], r["lower_bound_ns"] / 1e6, r["pinned_bytes"] / 2**30 / r["ranks"]))
END
  exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
for net in "gpt2-xl --batch 4" "llama-1b --batch 2" "resnet50 --batch 256"; do
  # shellcheck disable=SC2086
  "$ferry" zoo -q $net -d h100-sxm -o "$work/net.json"
  "$ferry" whatif -q "$work/net.json" --host hgx-h100 --ranks 1,2,4,8 -b 60% "$@" --json >"$work/$((n++)) $net"
done
python3 - "$*" "$work"/[0-9]* <<'END'
import json, os, sys
networks = [ { "name": os.path.basename (p).split (" ", 1)[1], **json.load (open (p)) } for p in sys.argv[2:] ]
print (json.dumps ({ "made_by": " ".join (["tests/bench/hosts.sh", sys.argv[1]]).strip (), "networks": networks }, indent=1, sort_keys=True))
END
