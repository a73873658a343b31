# SPDX-License-Identifier: GPL-3.0-or-later
# The sentences of a page, one a line: WORDS PAGE:LINE TEXT. Code, tables, headings and links' targets
# are no sentences; a row of a list begins a new one.
function tell(   n, i, part, words, w, k) {
  gsub (/\]\([^)]*\)/, "]", text)
  gsub (/`[^`]*`/, "code", text)
  n = split (text, part, /[.:;?!]\**( |$)/)
  for (i = 1; i <= n; i++) {
    words = 0
    k = split (part[i], w, /[ \t]+/)
    for (; k > 0; k--) if (w[k] ~ /[A-Za-z0-9]/) words++
    if (words > 0) print words, page ":" start, part[i]
  }
  text = ""
}
FNR == 1 { if (text != "") tell(); page = FILENAME; code = 0 }
/^```/ { tell(); code = !code; next }
code || /^    / && text == "" { next }
/^[ \t]*$/ || /^#/ || /^\|/ || /^!\[/ { tell(); next }
/^ *([-*]|[0-9]+\.) / { tell() }
{ if (text == "") start = FNR; text = text " " $0 }
END { tell() }
