#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Walks as files: they keep to their schema, and whoever has the file alone can follow it.
. "$(dirname "$0")/rules/common.bash"
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1 FERRY_DEVICE=titanx-pascal
root=$PWD
scratch
follow() { python3 "$root/tests/walk.py" "$root/data/schema/walk.schema.json" "$@"; }
made() { "$ferry" solve -q t.json "${@:2}" --limit 20000 -o "$1.json" >/dev/null && "$ferry" export t.json "$1.json" --walk "$1.walk"; }

"$ferry" zoo -q alexnet --image 64 --width-divisor 8 --classes 100 --batch 64 -o t.json || { echo "no trace"; exit 1; }

swaps() { made swaps -b 60% --swap-only && grep -q '"queue": "out"' swaps.walk && follow swaps.walk; }
remakes() { made remakes -b 50% --recompute auto && grep -q '"remake": 0' remakes.walk && follow remakes.walk; }
sections() { made sections -b 40% && follow sections.walk; }
places() {
  made arena -b 80% --placement arena && made granules -b 80% --placement granules && follow arena.walk granules.walk &&
    grep -q '"kind": "arena"' arena.walk && grep -q '"kind": "granules"' granules.walk
}
# One wait less, and it is not followed.
lost() {
  python3 - <<'END' || return 1
import json
walk = json.load (open ("swaps.walk"))
item = next (i for i in walk["items"] if i["queue"] == "op" and any (w["queue"] == "in" and "implied" not in w for w in i["waits"]))
item["waits"] = []
json.dump (walk, open ("lost.walk", "w"))
END
  ! follow lost.walk 2>said && { grep -q "is away" said || { tail -3 said; return 1; }; }
}
twice() { "$ferry" export t.json swaps.json --walk again.walk --json >said && cmp swaps.walk again.walk && grep -q '"output": "again.walk"' said; }
usage() {
  run 2 export t.json swaps.json && grep -q -e "--walk FILE" err && run 2 export t.json swaps.json --walk a --chrome b && run 2 export t.json swaps.json --walk a --steps 2 &&
    run 3 export swaps.json swaps.json --walk a; [ ! -e a ]
}
claim "a walk of swaps is followed by its file alone" swaps
claim "a walk of remakes is" remakes
claim "a walk of sections is" sections
claim "a walk in an arena is, and one in granules" places
claim "a walk without one of its waits is not" lost
claim "the same plan gives the same bytes" twice
claim "what cannot be exported is refused" usage
finish
