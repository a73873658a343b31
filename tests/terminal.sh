#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What people see on a terminal: tables and pictures that fit it, and one line that tells how a long
# command goes on.
. "$(dirname "$0")/rules/common.bash"
scratch
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
export LC_ALL=C.UTF-8

"$ferry" zoo -q alexnet --batch 64 --image 64 --width-divisor 2 --classes 100 -d v100 -o a.json &&
  "$ferry" zoo -q resnet18 --batch 32 --depth-divisor 2 -d v100 -o large.json && "$ferry" solve -q a.json -b 80% --limit 100 -o p.json >/dev/null || exit 1

# fits COLUMNS HEAD COMMAND...: no line of the table that begins with HEAD, nor its note, is wider
fits() {
  local columns=$1 head=$2
  shift 2
  COLUMNS=$columns run 0 "$@" -q || return 1
  python3 - "$columns" "$head" <<'END'
import sys
columns, inside, seen = int (sys.argv[1]), False, 0
for line in open ("out", encoding="utf-8").read ().split ("\n"):
    inside = (inside or line.strip ().split (" ")[0] == sys.argv[2]) and line != "" and not line.startswith ("left out")
    seen += inside
    assert not inside or "no plan: " in line or len (line) <= columns, (columns, len (line), line)
    assert line == line.rstrip () or not inside, repr (line)
assert seen > 1, "no table"
END
}
tables() {
  local columns
  for columns in 80 40; do
    fits $columns budget curve a.json --points 3 --limit 10 --sections off --order as-is && fits $columns policy compare a.json -b 80% --policies ferry,lru,g10 --limit 10 &&
      fits $columns device whatif a.json -d v100,a100-40 -b 80% --limit 10 && fits $columns job pack a.json a.json -d v100,v100 --points 3 --limit 10 --sections off --compare || return 1
  done
  fits 80 way max-batch alexnet --image 64 --width-divisor 8 --classes 100 -d v100 -b 32MiB --limit 10 --fine 64 --most 256
}
wide() { COLUMNS=40 run 0 pack a.json -d v100 --points 3 --limit 10 --sections off -q && grep -q '^left out, --wide shows: ' out && COLUMNS=40 run 0 pack a.json -d v100 --points 3 --limit 10 --sections off -q --wide && grep -q 'by itself' out && ! grep -q '^left out' out; }
pictures() {
  local columns
  for columns in 80 40; do
    COLUMNS=$columns run 0 plot a.json p.json && python3 - $columns <<'END' || return 1
import sys
drawn = [l for l in open ("out", encoding="utf-8").read ().split ("\n") if "│" in l]
assert len (drawn) > 3 and max (len (l) for l in drawn) <= int (sys.argv[1]), max (drawn, key=len)
END
  done
}
equal_cards() { # which of two is said, in the table and in the JSON
  run 0 pack a.json a.json -d v100,v100 -b 300MiB --points 3 --limit 10 --sections off -q && grep -qE '^a +v100\.1 ' out && grep -qE '^a.2 +v100\.2 ' out &&
    run 0 pack a.json a.json -d v100,v100 -b 300MiB --points 3 --limit 10 --sections off -q --json && grep -q '"card": *"v100.2"' out && grep -qE '"share": *[01]\b' out
}
live() { # one line that is written over and gone in the end; nothing of it in a file, nothing of the search's inside
  python3 - "$ferry" <<'END'
import os, pty, subprocess, sys
def ask (*args):
    master, slave = pty.openpty ()
    p = subprocess.Popen ([sys.argv[1], *args], stdout=subprocess.DEVNULL, stderr=slave)
    os.close (slave)
    told = b""
    while True:
        try:
            part = os.read (master, 4096)
        except OSError:
            break
        if not part: break
        told += part
    assert p.wait () == 0, told
    return told.decode ()
one = ask ("solve", "large.json", "-b", "40%", "--recompute", "auto", "--limit", "20000")
assert "\r\x1b[Ksolve: searching" in one and ", best " in one and ", gap " in one, one[:500]
assert "\n" not in one and one.endswith ("\r\x1b[K"), one[-200:]
many = ask ("curve", "large.json", "--swap-only", "--points", "4", "--limit", "4000")
assert "curve: [" in many and " of " in many and many.endswith ("\r\x1b[K"), many[:500]
END
  run 0 solve a.json -b 80% --limit 1000 && [ ! -s err ] && run 0 solve a.json -b 80% --limit 1000 -v && grep -q 'bound' err
}
claim "tables fit 80 and 40 columns" tables
claim "--wide shows what was left out" wide
claim "pictures fit 80 and 40 columns" pictures
claim "pack says which of two equal cards" equal_cards
claim "a live line tells how a long command goes on" live
finish
