# SPDX-License-Identifier: GPL-3.0-or-later
# For cases of imports: texts in one file, profiles from lists of their events (made.awk), what comes out.
split() { # FILE: a file each of what stands behind a line "== NAME"; their names are $parts
  parts=$(sed -n 's/^== //p' "$1")
  awk '/^== / { name = $2; next } { print >name }' "$1"
}
made() { cat "$@" | awk -f "$TRACES/made.awk"; } # PART...: the profile
show() { # FILE... [OPTION...]: the report but for what `info` says too, and the trace
  echo "== $*"
  ferry import "$@" -o trace.json 2>&1 | grep -vE '^(read|bytes|held by|floor) |^            [0-9]|, sha256 '
  echo "status ${PIPESTATUS[0]}"
  ferry convert -f plain trace.json | sed '/^  "source": {/,/^  },/d; /"format"/d'
}
refused() { # FILE... [OPTION...]: the message and the status
  local said
  said=$(ferry import "$@" -o trace.json 2>&1 >/dev/null)
  echo "$*: status $?: ${said#ferry: }"
}
