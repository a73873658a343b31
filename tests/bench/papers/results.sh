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
    if (field("paper") != last) printf "## %s\n\n", field("paper")
    last = field("paper")
    printf "%s. Published: %s.\n\n", field("claim"), field("published")
    n = split(field("measured"), part, "; ")
    for (i = 1; i <= n; i++) if (part[i] !~ /^kernels 5 times/) printf "- %s\n", part[i]
    printf "\n%s%s.\n\n", toupper(substr(field("verdict"), 1, 1)), substr(field("verdict"), 2)
    if (field("command") != shown) printf "    %s\n\n", shown = field("command")
    if (field("commit") && !(field("commit") in known)) { known[field("commit")] = 1; commits = commits (commits ? ", " : "") "`" field("commit") "`" }
  }
  END { if (commits) printf "Run on commit %s.\n\n", commits }' "$1"
cat <<'MATRIX'
## The best published policy beside ours

Networks of the zoo on a card of 11 TFLOP/s, at four budgets in per cent of the memory that the step takes without a plan.
A cell has what ferry's plan adds to the step, then what the best policy's adds, for plans that only swap; `-`: no plan.
`tests/bench/papers/matrix NETWORK GB_PER_S PERCENT` repeats a cell and names the policy. Rows in which both add nothing are
listed below the table.

MATRIX
awk "$fields"'
  function loss(ns) { return ns > 0 ? sprintf("+%.1f", 100 * (ns - base) / base) : "-" }
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
  BEGIN {
    print "| network | GB/s | 80 % | 60 % | 50 % | 40 % |"
    print "|---|---|---|---|---|---|"
  }
  /^\{/ {
    base = field("baseline_ns") + 0 # a number, not a text: comparisons differ
    net = field("network")
    if (!(net in seen)) { seen[net] = 1; nets[++n_nets] = net }
    cell[net, field("gb_per_s"), field("percent")] = loss(field("ours_ns")) ", " loss(field("best_ns"))
    if (cell[net, field("gb_per_s"), field("percent")] != "+0.0, +0.0") lossy[net, field("gb_per_s")] = 1
    total++
    count(field("ours_ns") + 0, field("best_ns") + 0, 1)
    count(field("ours_any_ns") + 0, field("best_any_ns") + 0, 2)
    commit = field("commit")
    if (commit && !(commit in known)) { known[commit] = 1; commits = commits (commits ? ", " : "") "`" commit "`" }
    if (field("bound_ns") > 0) gap[++gaps] = 100 * (field("ours_ns") / field("bound_ns") - 1)
  }
  END {
    split("12 25 50", speed, " "); split("80 60 50 40", percent, " ")
    for (i = 1; i <= n_nets; i++)
      for (j = 1; j <= 3; j++) {
        if (!((nets[i], speed[j]) in lossy)) { free = free (free ? ", " : "") nets[i] " at " speed[j]; continue }
        printf "| %s | %s |", nets[i], speed[j]
        for (k = 1; k <= 4; k++) {
          at = nets[i] SUBSEP speed[j] SUBSEP percent[k]
          printf " %s |", at in cell ? cell[at] : "not run"
        }
        printf "\n"
      }
    if (free) printf "\nNothing is added in %s GB/s.\n", free
    printf "\n%d of %d cases were run%s.\n\n", total, 9 * 3 * 4, commits ? ", on commit " commits : ""
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
- Predicted against measured: [executor](executor.md).
TAIL
