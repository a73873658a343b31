# SPDX-License-Identifier: GPL-3.0-or-later
# The functions of our C, one a line: FILE:LINE NAME LINES PARAMETERS. The layout is clang-format's:
# a definition begins in column 0, its body with a line that ends in "{" and ends with a "}" there.
function parameters(head, at, depth, i, c, n) {
  at = match (head, /[A-Za-z_0-9]+ \(/)
  if (!at) return -1
  name = substr (head, RSTART, RLENGTH - 2)
  for (i = RSTART + RLENGTH - 1; i <= length (head); i++) {
    c = substr (head, i, 1)
    if (c == "(") depth++
    else if (c == ")" && --depth == 0) break
    else if (c == "," && depth == 1) n++
  }
  return substr (head, RSTART + RLENGTH, i - RSTART - RLENGTH) == "void" ? 0 : n + 1
}
FNR == 1 { head = ""; inside = 0 }
inside && /^}/ { print FILENAME ":" start, name, FNR - start + 1, count; inside = 0; next }
inside { next }
/^[A-Za-z_]/ && /\(/ && !/^(typedef|struct|enum|union|#)/ && !/;$/ && !/^[A-Z_]+ \(/ { head = ""; start = FNR; open = 1 }
open { head = head " " $0 }
open && /;$/ { open = 0 }
open && /{$/ { open = 0; if (head !~ / = {$/) { count = parameters(head); inside = count >= 0 } }
