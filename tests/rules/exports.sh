#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# libferry.so offers what ferry.h declares and nothing else; the library keeps no state: no object of
# it has data that can be written, but for the list below.
. "$(dirname "$0")/common.bash"

# OBJECT:SYMBOL that may be written: the driver's table, filled once; where a thread goes that reads
# JSON and gets no memory, for Jansson's functions for memory carry nothing of ours.
allowed='
driver.o:driver_functions
json_load.o:once
json_load.o:starved_to
'
library=$(ls "$builddir"/libferry.so 2>/dev/null)
archive=$builddir/libcore.a
# Sanitizers and coverage put symbols and data of their own into every object.
if [ -z "$library" ] || grep -q -- '-fsanitize' <<<"$COMPILE_FLAGS"; then
  echo "there is no plain shared library here"
  exit 77
fi

offered=$(${NM:-nm} -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | sort)
declared=$(grep -oE '\bferry_[a-z0-9_]+ \(' ferry.h | sed 's/ (//' | sort -u)

differ() {
  diff <(echo "$offered") <(echo "$declared")
}

# .data.rel.ro is constant once loaded; .data, .bss, .tdata, .tbss and common symbols are not.
mutable() {
  ${OBJDUMP:-objdump} -t "$archive" "$builddir"/library/*.o | awk '
    /file format/ { object = $1; sub (/:$/, "", object); sub (/^.*\//, "", object) }
    $0 ~ / (\.data|\.bss|\.tdata|\.tbss|\*COM\*)(\.[a-zA-Z0-9_.]*)?\t/ && $0 !~ /\.data\.rel\.ro/ \
      && $0 !~ / d  / { print object ":" $NF }' | sed 's/\.[0-9]*$//' |
    grep -vxF "$allowed"
  return 0
}

claim "libferry.so offers exactly what ferry.h declares" differ
claim "no library object has data that can be written" mutable
finish
