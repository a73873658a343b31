# SPDX-License-Identifier: GPL-3.0-or-later
# ferry.h as the manual page ferry(3): comments are text, declarations are code; with `names` only the
# names of the functions, one a line.
function text(line) {
  sub(/^ *\/\*+ ?/, "", line); sub(/ *\*\/ *$/, "", line); sub(/^ +/, "", line)
  gsub(/\\/, "\\e", line); sub(/^[.']/, "\\\\\\&&", line)
  return line
}
function flush_code() { if (code != "") printf ".PP\n.nf\n%s.fi\n", code; code = "" }
names { while (match($0, /ferry_[a-z0-9_]+ \(/)) { print substr($0, RSTART, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH) } next }
NR == 1 {
  printf ".TH FERRY 3 \"%s\" \"ferry %s\" \"Library Functions Manual\"\n", date, version
  printf ".SH NAME\nferry \\- plans for what a GPU holds and what the host holds\n"
  printf ".SH SYNOPSIS\n.nf\n#include <ferry.h>\n.sp\ncc ... $(pkg\\-config \\-\\-cflags \\-\\-libs ferry)\n.fi\n.SH DESCRIPTION\n"
}
/^\/\* -+ .* -+ \*\/$/ { flush_code(); title = $0; gsub(/^\/\* -+ | -+ \*\/$/, "", title); printf ".SH %s\n", toupper(title); next }
/^\/\* -+ / { flush_code(); title = $0; gsub(/^\/\* -+ | -+$/, "", title); printf ".SH %s\n", toupper(title); comment = 1; next }
/^\/\*/ { flush_code(); print ".PP"; comment = 1 }
comment { if (text($0) != "") print text($0); else print ".PP"; if (/\*\//) comment = 0; next }
/^#|^extern "C"|^}$/ || (/^$/ && code == "") { next }
{ line = $0; gsub(/\\/, "\\e", line); gsub(/-/, "\\-", line); sub(/^\./, "\\\\\\&.", line); code = code line "\n" }
END {
  if (names) exit
  flush_code()
  printf ".SH EXIT STATUS\nA ferry_error has the exit status of the command: 1 the answer is no, 2 usage, 3 a file, 4 a limit, 70 memory or an internal error, 130 stopped.\n"
  printf ".SH EXAMPLES\ntests/example in the sources: step_time.c judges a plan, solve.c makes one, executor.c carries one out.\n"
  printf ".SH SEE ALSO\n.BR ferry (1)\n"
}
