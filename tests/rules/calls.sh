#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The walk of a question through the planner, read from the built objects: which files of solver/
# `solve` reaches, and that no call leads back up. With --update it is drawn into solver/README.md.
. "$(dirname "$0")/common.bash"
. tests/rules/rooms.bash
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# "CALLER CALLED" of files below solver/, from solver/solve on; what stands by itself is left out.
walk() {
  # shellcheck disable=SC2046
  ${NM:-nm} -A $(objects . "$builddir" solver) | awk -v build="$builddir/" '
    { at = index ($0, ".o:"); file = substr ($0, length (build) + 1, at - length (build) - 1)
      if ($(NF - 1) == "U") { n++; user[n] = file; uses[n] = $NF }
      else if ($(NF - 1) ~ /^[TDBRVWC]$/) home[$NF] = file }
    END {
      for (i = 1; i <= n; i++) if (uses[i] in home && home[uses[i]] != user[i] && !((user[i], home[uses[i]]) in has)) {
        has[user[i], home[uses[i]]] = 1; out[user[i]] = out[user[i]] " " home[uses[i]] }
      todo[1] = "solver/solve"; last = 1; seen["solver/solve"] = 1
      for (k = 1; k <= last; k++) { m = split (out[todo[k]], to, " ")
        for (j = 1; j <= m; j++) { print todo[k], to[j]; if (!seen[to[j]]++) todo[++last] = to[j] } } }' | sort -u
}

# A file calls those below it: without what is called by nobody any more, nothing is left.
back_up() {
  tsort "$work/walk" 2>&1 >/dev/null | sed -n 's/^tsort: \(solver.*\)/\1 is in a circle of calls/p'
}

# Files of solver/ by themselves, each with what it calls there; rooms with the rooms that they call.
drawn() {
  awk '
    function room(f) { sub (/\/[^\/]*$/, "", f); return f }
    function short(f) { sub (/^solver\//, "", f); return f }
    { from = room($1); to = room($2); files[$1] = files[$2] = 1
      a = from == "solver" ? short($1) ".c" : short(from) "/"; b = to == "solver" ? short($2) ".c" : short(to) "/"
      if (a != b && !((a, b) in has)) { has[a, b] = 1; n_out[a]++; out[a, n_out[a]] = b; n_in[b]++ } nodes[a] = nodes[b] = 1 }
    END {
      for (f in files) { total++; if (room(f) != "solver") of[short(room(f)) "/"]++ }
      # from above: who is called by nobody that is left
      for (left = 1; left; ) { left = 0; best = ""
        for (x in nodes) { left = 1; if (!n_in[x] && (best == "" || x < best)) best = x }
        if (!left) break
        if (best == "") { print "a circle"; break }
        line = ""; m = n_out[best]
        for (i = 1; i <= m; i++) { list[i] = out[best, i]; n_in[out[best, i]]-- }
        for (i = 2; i <= m; i++) for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
        for (i = 1; i <= m; i++) line = line " " list[i]
        printf "    %-16s %s%s\n", best (best in of ? " " of[best] : ""), m ? "->" : "", line
        delete nodes[best] }
      printf "    %d files\n", total }' "$work/walk"
}

as_drawn() {
  diff <(sed -n '/^<!-- calls -->/,/^<!-- \/calls -->/p' solver/README.md | sed '1d;$d' | grep .) <(drawn) >"$work/diff" ||
    { echo "solver/README.md: run tests/rules/calls.sh --update in a build"; cat "$work/diff"; }
}

[ -f "$builddir/solver/solve.o" ] || { echo "not built"; exit 77; }
walk >"$work/walk"
if [ "${1:-}" = --update ]; then
  awk -v drawn="$(drawn)" '/^<!-- calls -->/ { print; print ""; print drawn; print ""; skip = 1 } /^<!-- \/calls -->/ { skip = 0 } !skip && !/^<!-- calls -->/' \
    solver/README.md >"$work/README" && cp "$work/README" solver/README.md
  exit
fi
claim "no call of a question of solve leads back up" back_up
claim "the walk of solve is drawn in solver/README.md" as_drawn
finish
