#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# docs/results.md from what the programs beside this have said:
# results.sh docs/results.json docs/matrix.json > docs/results.md
set -eu
cat <<'HEAD'
# Results beside those published

What published planners report, and what the same decisions give on ferry's machine model with the same trace, link and
budget; nothing here ran on a GPU. Percentages are added to the step without any plan. `make papers` makes this page from
`results.json` and `matrix.json`; the command repeats one case by hand.

HEAD
fields='
  function field(name,   at, rest) {
    at = index($0, "\"" name "\":")
    if (!at) return ""
    rest = substr($0, at + length(name) + 3)
    if (substr(rest, 1, 1) != "\"") { sub(/[,}].*/, "", rest); return rest }
    gsub(/\\"/, "\001", rest)
    rest = substr(rest, 2)
    rest = substr(rest, 1, index(rest, "\"") - 1)
    gsub(/\001/, "\"", rest)
    return rest
  }'
awk "$fields"'
  /^\{/ {
    if (field("paper") != last) { printf "## %s\n\n", field("paper"); verdict = "" }
    last = field("paper")
    printf "%s. Published: %s.\n\n", field("claim"), field("published")
    n = split(field("measured"), part, "; ")
    for (i = 1; i <= n; i++) if (part[i] !~ /^kernels 5 times/) printf "- %s\n", part[i]
    printf "\n"
    if (field("verdict") != verdict) printf "%s%s.\n\n", toupper(substr(field("verdict"), 1, 1)), substr(field("verdict"), 2)
    verdict = field("verdict")
    if (field("command") != shown) printf "    %s\n\n", shown = field("command")
    if (field("commit") && !(field("commit") in known)) { known[field("commit")] = 1; commits = commits (commits ? ", " : "") "`" field("commit") "`" }
  }
  END { if (commits) printf "Run on commit %s.\n\n", commits }' "$1"
cat <<'MATRIX'
## The best published policy beside ours

Nine networks of the zoo on a card of 11 TFLOP/s behind 12, 25 and 50 GB/s, at 80, 60, 50 and 40 % of the memory that the step takes
without a plan. [matrix.json](matrix.json) has each cell; `tests/bench/papers/matrix NETWORK GB_PER_S PERCENT` repeats one.

MATRIX
awk "$fields"'
  function sort(list, n,   i, j, x) {
    for (i = 2; i <= n; i++)
      for (j = i; j > 1 && list[j - 1] > list[j]; j--) { x = list[j]; list[j] = list[j - 1]; list[j - 1] = x }
  }
  function count(ours, best, kind,   r) {
    if (ours <= 0 && best <= 0) { none[kind]++; return }
    cases[kind]++
    if (best <= 0) { alone[kind]++; return }
    if (ours <= 0 || ours > best) { slower[kind]++; return }
    if (best - ours <= ours / 1000) equal[kind]++
    if (ours <= base) { if (best > base + base / 1000) unstalled[kind]++; return }
    r = (best - base) / (ours - base)
    ratio[kind, ++n[kind]] = r
  }
  function tell(kind, what,   i, list, m) {
    m = n[kind]
    for (i = 1; i <= m; i++) list[i] = ratio[kind, i]
    sort(list, m)
    printf "| %s | %d | %d | %d | %d | %d | %.2f | %.2f | %.1f |\n", what, cases[kind], alone[kind], slower[kind], equal[kind], \
      unstalled[kind], list[int((m + 1) / 2)], list[int((m + 3) / 4)], list[m]
  }
  /^\{/ {
    base = field("baseline_ns") + 0 # a number, not a text: comparisons differ
    total++
    count(field("ours_ns") + 0, field("best_ns") + 0, 1)
    count(field("ours_any_ns") + 0, field("best_any_ns") + 0, 2)
    commit = field("commit")
    if (commit && !(commit in known)) { known[commit] = 1; commits = commits (commits ? ", " : "") "`" commit "`" }
    if (field("bound_ns") > 0) gap[++gaps] = 100 * (field("ours_ns") / field("bound_ns") - 1)
  }
  END {
    printf "%d of %d cases were run%s.\n\n", total, 9 * 3 * 4, commits ? ", on commit " commits : ""
    print "| allowed | cases | only ferry has a plan | ferry is slower | within a thousandth | only ferry has no stall | stall of the best policy over ours: median | lower quartile | most |"
    print "|---|---|---|---|---|---|---|---|---|"
    tell(1, "swapping")
    tell(2, "and recomputing")
    print ""
    sort(gap, gaps)
    printf "ferry'\''s plans that only swap are %.2f %% over their bound in the median, %.1f %% at most.\n\n", \
      gap[int((gaps + 1) / 2)], gap[gaps]
  }' "$2"
cat <<'TAIL'
## Not reproduced here

- The G10 artifact with its SSD: ferry has one place beside the device, the host.
- Plans for several jobs (TENSILE's figures): [what if](what-if.md).
TAIL
