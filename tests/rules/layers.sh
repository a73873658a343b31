#!/bin/bash
# base < trace < { solver, executor } < plot < server < cli; solver and executor do not know each
# other. A file includes files of its own layer and of those below it.
. "$(dirname "$0")/common.bash"

rank() {
  case $1 in
    base) echo 0 ;; trace) echo 1 ;; solver | executor) echo 2 ;;
    plot) echo 3 ;; server) echo 4 ;; cli) echo 5 ;;
  esac
}

upward_includes() { # LAYER
  local mine file line other theirs
  mine=$(rank "$1")
  grep -rnE '^ *# *include *"[a-z]+/' --include='*.[ch]' --include='*.def' --include='*.cu' "$1" |
    while IFS= read -r line; do
      other=$(sed -E 's,.*include *"([a-z]+)/.*,\1,' <<<"$line")
      theirs=$(rank "$other")
      if [ -z "$theirs" ] || [ "$theirs" -gt "$mine" ] ||
        { [ "$theirs" = "$mine" ] && [ "$other" != "$1" ]; }; then
        echo "$line"
      fi
    done
}

# "file.h" without a folder hides its layer; config.h alone has none.
plain_includes() {
  grep -nE '^ *# *include *"[^/"]+"' $(sources | grep -v '^ferry\.') | grep -v '"config.h"'
  return 0
}

public_includes() {
  grep -nE '^ *# *include *"(plot|server|cli|executor)/' ferry.c ferry.h
  return 0
}

for layer in $layers; do
  [ -d "$layer" ] && claim "$layer/ looks only downward" upward_includes "$layer"
done
claim "headers are included by their path from the root" plain_includes
claim "the public library needs no layer above the solver" public_includes
finish
