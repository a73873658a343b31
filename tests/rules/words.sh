#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Words that do not stand in our code: calls that cannot be used safely, notes to oneself, places of
# somebody's machine. Calls are looked for outside comments and texts.
. "$(dirname "$0")/common.bash"

# C without comments and texts, each line led by FILE:LINE.
bare() {
  awk '
    FNR == 1 { comment = 0 }
    {
      line = $0; out = ""
      while (line != "") {
        if (comment) {
          at = index (line, "*/")
          if (!at) { line = ""; break }
          line = substr (line, at + 2); comment = 0
        } else if (substr (line, 1, 2) == "/*") { comment = 1; line = substr (line, 3) }
        else if (substr (line, 1, 2) == "//") line = ""
        else if (match (line, /^"([^"\\]|\\.)*"/)) { out = out "\"\""; line = substr (line, RLENGTH + 1) }
        else if (match (line, /^'"'"'([^'"'"'\\]|\\.)*'"'"'/)) { out = out "0"; line = substr (line, RLENGTH + 1) }
        else { out = out substr (line, 1, 1); line = substr (line, 2) }
      }
      print FILENAME ":" FNR ": " out
    }' "$@"
}

all="$(sources) $(sources tests)"
code=$(bare $all)

calls() {
  grep -E "[^a-zA-Z0-9_](sprintf|vsprintf|strcpy|strcat|atoi|atol|atof|strtok|system|rand|srand|gets|alloca) *\(" <<<"$code"
  return 0
}

ends_or_prints() { # only cli/ exits, prints or reads the environment; server and shim have their say
  grep -E "^(base|trace|solver|plot|ferry)[a-z_/.]*:[0-9]+: .*[^a-zA-Z0-9_](exit|_exit|abort|printf|puts|putchar|getenv|secure_getenv|setenv|perror) *\(" <<<"$code"
  grep -E "^(base|trace|solver|plot|ferry)[a-z_/.]*:[0-9]+: .*[^a-zA-Z0-9_](stdout|stderr|environ)[^a-zA-Z0-9_]" <<<"$code"
  return 0
}

notes() {
  grep -rInwE '(TODO|FIXME|XXX|HACK)' $all docs README.md dev tests/count
  return 0
}

# A comment begins with the thing. One behind code on its line continues that line: "of" and "as" may.
openings() {
  grep -nEi '^ *(/\*+|//) *(-+ )?(what|where|whether|who|of|as)[^a-z]' $openly
  grep -nEi '[^ ].*/\*+ *(what|where|whether|who)[^a-z]' $openly | grep -v '"[^"]*/\*[^"]*"'
  return 0
}
openly=$(sources)

long_lines() { # 100 is what clang-format breaks at; a comment may end in one more short word
  awk 'FILENAME !~ /\.def$/ && length ($0) > 104 { print FILENAME ":" FNR ": " length ($0) " columns" }' $all
}

once() { # one function says it, so that all say the same
  grep -rnE '^  int(32|64)_t x = \*\(const int(32|64)_t \*\)a, y = \*\(const int(32|64)_t \*\)b;$' -A1 $(sources) |
    grep -E '(return x < y \? -1 : x > y|return \(x > y\) - \(x < y\));$' | grep -v '^base/order\.h'
  grep -rn '"out of memory"' $(sources "${layers/solver/}") | grep -vE '^(base/error\.c|[a-z/]*\.def):'
  grep -nE "^static .*[^a-z_](min|max|least|most|smaller|larger|greater|later) \\((int64_t|int32_t|int) [a-z]+, (int64_t|int32_t|int) [a-z]+\\) \{" $(sources "${layers/solver/}")
  return 0
}

unread() { # a number that steers is read somewhere by its name
  local name
  for name in $(sed -nE 's/^(TUNE|LIST) \(([a-z0-9_]+),.*/\2/p' solver/tuning/tuning.def); do
    grep -rqw --include='*.c' "TUNE_$name" solver cli || echo "nothing reads $name"
  done
}

types() { # names that end in _t are the system's
  grep -E "typedef.*[^a-zA-Z0-9_][a-z0-9_]+_t;" <<<"$code"
  return 0
}

claim "no banned call" calls
claim "nothing below cli/ exits, prints or reads the environment" ends_or_prints
claim "no notes to oneself" notes
claim "comments begin with the thing, not with what, where, whether, who, of, as" openings
claim "lines end near column 100" long_lines
claim "out of memory, the smaller and the larger, the order of two numbers are said in one place" once
claim "every number of tuning.def steers" unread
claim "no type of ours ends in _t" types
finish
