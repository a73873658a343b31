#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The picture of the calls of `solve` in solver/README.md is that of the objects: `calls.sh --update` draws
# it anew. A line is a file of solver/ or a room, and what it calls further down; nothing calls upward.
. "$(dirname "$0")/common.bash"
page=solver/README.md begin='<!-- calls of solve: tests/rules/calls.sh --update -->' end='<!-- end of calls -->'

# FILE CALLED, without endings, for each call from one file of the layer to another of it or of trace/.
edges() {
  local file
  find solver trace -name '*.c' | sort | while read -r file; do
    [ ! -f "$builddir/${file%.c}.o" ] || echo "$builddir/${file%.c}.o"
  done | xargs "${NM:-nm}" -A | awk -v build="$builddir/" '
    { file = substr ($0, length (build) + 1, index ($0, ".o:") - length (build) - 1) }
    $(NF - 1) == "U" { user[++n] = file; uses[n] = $NF; next }
    $(NF - 1) ~ /^[TDBRVW]$/ { home[$NF] = file }
    END { for (i = 1; i <= n; i++) if (uses[i] in home && home[uses[i]] != user[i]) print user[i], home[uses[i]] }' | sort -u
}

# From solve on, each node behind all that call it; a circle is said.
picture() {
  awk '
    function node(f) {
      if (f ~ /^solver\/[^\/]*$/) return substr (f, 8)
      sub (/\/[^\/]*$/, "", f); sub (/^solver\//, "", f)
      return f
    }
    $1 ~ /^solver\// && node($2) != "trace" { from[++n] = $1; to[n] = $2 }
    END {
      reached["solver/solve"] = 1
      do { more = 0
        for (i = 1; i <= n; i++) if (from[i] in reached && !(to[i] in reached)) more = reached[to[i]] = 1
      } while (more)
      for (f in reached) files[node(f)] = 1
      for (i = 1; i <= n; i++) if (from[i] in reached) {
        a = node(from[i]); b = node(to[i])
        if (a != b && !((a, b) in edge)) { edge[a, b] = 1; calls[a] = calls[a] " " b; above[b]++ }
      }
      for (a in files) { left++; sorted[left] = a }
      for (i = 2; i <= left; i++) for (j = i; j > 1 && sorted[j - 1] > sorted[j]; j--) {
        x = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = x }
      total = left
      while (left > 0) {
        for (k = 1; k <= total; k++) if (!(sorted[k] in done) && above[sorted[k]] <= 0) break
        if (k > total) { print "    in a circle:"; for (k = 1; k <= total; k++) if (!(sorted[k] in done)) print "      " sorted[k]; break }
        a = sorted[k]; done[a] = 1; left--
        m = split (calls[a], it, " ")
        for (i = 2; i <= m; i++) for (j = i; j > 1 && it[j - 1] > it[j]; j--) { x = it[j]; it[j] = it[j - 1]; it[j - 1] = x }
        line = ""
        for (i = 1; i <= m; i++) { above[it[i]]--; line = line " " it[i] }
        if (m && a !~ /^trace/) printf "    %-14s %s\n", a, line
      }
    }'
}

drawn() { awk -v begin="$begin" -v end="$end" '$0 == end { exit } on { print } $0 == begin { on = 1 }' "$page"; }

if [ "${1:-}" = --update ]; then
  made=$(edges | picture)
  awk -v begin="$begin" -v end="$end" -v made="$made" '
    $0 == begin { print; print ""; print made; print ""; off = 1; next } $0 == end { off = 0 } !off' "$page" >"$page.new" && mv "$page.new" "$page"
  exit
fi

as_built() {
  diff <(drawn | grep .) <(edges | picture) || echo "$page shows other calls than the objects have: bash tests/rules/calls.sh --update"
}
circle_said() {
  printf '%s\n' 'solver/solve solver/a/x' 'solver/a/x solver/b/y' 'solver/b/y solver/a/x' | picture | grep -q 'in a circle' ||
    echo "a call upward is not seen"
}

claim "a planted call upward is seen" circle_said
claim "$page shows the calls of solve as they are built" as_built
finish
