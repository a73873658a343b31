#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# base < trace < { solver, executor } < plot < server < cli; solver and executor do not know each
# other. A file includes files of its own layer and of those below it.
. "$(dirname "$0")/common.bash"

declare -A rank=([base]=0 [trace]=1 [solver]=2 [executor]=2 [plot]=3 [library]=3 [server]=4 [cli]=5)

upward_includes() { # LAYER
  local mine=${rank[$1]} line other theirs
  grep -rnE '^ *# *include *"[a-z]+/' --include='*.[ch]' --include='*.def' --include='*.cu' "$1" |
    while IFS= read -r line; do
      other=${line#*include*\"} other=${other%%/*}
      theirs=${rank[$other]:-9}
      if [ "$theirs" -gt "$mine" ] || { [ "$theirs" = "$mine" ] && [ "$other" != "$1" ]; }; then
        echo "$line"
      fi
    done
}

# "file.h" without a folder hides its layer; config.h alone has none.
plain_includes() {
  grep -nE '^ *# *include *"[^/"]+"' $(sources | grep -v '^ferry\.') | grep -vE '"(config|ferry)\.h"'
  return 0
}

public_includes() {
  grep -rnE '^ *# *include *"(plot|server|cli|executor)/' library ferry.h
  return 0
}

for layer in $layers; do
  [ -d "$layer" ] && claim "$layer/ looks only downward" upward_includes "$layer"
done
claim "headers are included by their path from the root" plain_includes
claim "the public library needs no layer above the solver" public_includes
finish
