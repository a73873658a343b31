# SPDX-License-Identifier: GPL-3.0-or-later
# Who knows whom: a folder with sources is a room, an edge leads from one to another that it includes
# or calls.

# An edge is a line "FROM TO REASON".
includes() { # ROOT LAYER
  (cd "$1" && grep -rnE '^ *# *include *"[a-z0-9_/]+/[^/"]+"' --include='*.[ch]' --include='*.def' --include='*.cu' "$2") |
    awk -F: '{
      from = $1; sub (/\/[^\/]*$/, "", from)
      match ($0, /"[^"]*"/); header = substr ($0, RSTART + 1, RLENGTH - 2)
      to = header; sub (/\/[^\/]*$/, "", to)
      if (from != to) print from, to, $1 ":" $2 " includes " header }'
}

# What is built of the layer's sources; objects whose source is gone are not looked at.
objects() { # ROOT BUILD LAYERS
  local file
  # shellcheck disable=SC2086
  (cd "$1" && find $3 -name '*.c') | sort | while read -r file; do
    [ ! -f "$2/${file%.c}.o" ] || echo "$2/${file%.c}.o"
  done
}

# Two libraries may have entries of one name: a room that has one calls that.
calls() { # ROOT BUILD LAYERS
  local list
  list=$(objects "$1" "$2" "$3")
  [ -n "$list" ] || return 0
  # shellcheck disable=SC2086
  ${NM:-nm} -A $list | awk -v build="$2/" '
    { at = index ($0, ".o:"); file = substr ($0, length (build) + 1, at - length (build) - 1)
      room = file; sub (/\/[^\/]*$/, "", room)
      if ($(NF - 1) == "U") { n++; user[n] = file; uses[n] = $NF; in_room[n] = room }
      else if ($(NF - 1) ~ /^[TDBRVWC]$/) { home[$NF] = room; made_by[$NF] = file; own[room, $NF] = 1 } }
    END { for (i = 1; i <= n; i++)
      if (uses[i] in home && home[uses[i]] != in_room[i] && !((in_room[i], uses[i]) in own))
        print in_room[i], home[uses[i]], user[i] ".c calls " uses[i] " of " made_by[uses[i]] ".c" }'
}

# circle LAYER: edges on standard input; prints one circle of the layer's rooms, nothing without one.
circle() {
  awk -v layer="$1" '
    function inside(room) { return room == layer || index (room, layer "/") == 1 }
    inside($1) && inside($2) && $1 != $2 {
      key = $1 " " $2; if (!(key in count)) { from[++n] = $1; to[n] = $2; why[n] = substr ($0, length (key) + 2) }
      count[key]++ }
    END {
      # Edges that lead nowhere go, until none does; what is left leads round.
      do { gone = 0; split ("", out)
        for (i = 1; i <= n; i++) if (!dead[i]) out[from[i]] = 1
        for (i = 1; i <= n; i++) if (!dead[i] && !(to[i] in out)) { dead[i] = 1; gone = 1 } } while (gone)
      for (i = 1; i <= n; i++) if (!dead[i] && !(from[i] in next_edge)) next_edge[from[i]] = i
      for (i = 1; i <= n && dead[i]; i++) ;
      if (i > n) exit
      for (room = from[i]; !(room in seen); room = to[next_edge[room]]) seen[room] = 1
      first = room
      do { i = next_edge[room]; key = from[i] " " to[i]
        print count[key] " in " from[i] " look at " to[i] ": " why[i]; room = to[i] } while (room != first)
    }' | sort -n
}
