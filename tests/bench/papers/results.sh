#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# docs/results.md from what the programs beside this have said:
# results.sh docs/results.json docs/matrix.json > docs/results.md
set -eu
cat <<'HEAD'
# Results beside those published

Made by `make papers` from `results.json` and `matrix.json`. Published figures come from the sources named; measured
ones from ferry's machine model, not from a GPU: the decisions of the published rules and of ferry's planner on the
same trace, link and budget. Percentages are of the step without any plan. Where a figure is not reproduced, that is
said.

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
    printf "%s.\n\n", field("claim")
    printf "- published: %s\n- measured: %s\n- verdict: %s\n- by hand: `%s`\n", \
      field("published"), field("measured"), field("verdict"), field("command")
    if (field("commit")) printf "- run on commit `%s`\n", field("commit")
    print ""
  }' "$1"
cat <<'MATRIX'
## The best published policy beside ours

Networks of the zoo on a card of 11 TFLOP/s whose link carries so many GB/s each way, at four budgets in per cent of
the memory that the step takes without a plan. A cell has what ferry's plan adds to the step, then the best policy's
and its name, of those plans that only swap; `-` where there is none. `tests/bench/papers/matrix NETWORK GB_PER_S PERCENT`
makes any of them again; the search has a small limit of ticks here.

MATRIX
awk "$fields"'
  function loss(ns) { return ns > 0 ? sprintf("+%.1f", 100 * (ns - base) / base) : "-" }
  function sort(list, n,   i, j, x) {
    for (i = 2; i <= n; i++)
      for (j = i; j > 1 && list[j - 1] > list[j]; j--) { x = list[j]; list[j] = list[j - 1]; list[j - 1] = x }
  }
  function count(ours, best, name, kind,   r, b) {
    if (ours <= 0 && best <= 0) { none[kind]++; return }
    cases[kind]++
    if (best <= 0) { alone[kind]++; return }
    if (ours <= 0 || ours > best) { slower[kind]++; return }
    if (best - ours <= ours / 1000) { equal[kind]++; as_good[kind] = as_good[kind] (as_good[kind] ~ name ? "" : " " name) }
    if (ours <= base) { if (best > base + base / 1000) unstalled[kind]++; return }
    r = (best - base) / (ours - base)
    ratio[kind, ++n[kind]] = r
    b = r < 1.01 ? 1 : r < 1.1 ? 2 : r < 1.5 ? 3 : r < 2 ? 4 : r < 5 ? 5 : 6
    bucket[kind, b]++
  }
  function tell(kind, what,   i, list, m) {
    m = n[kind]
    for (i = 1; i <= m; i++) list[i] = ratio[kind, i]
    sort(list, m)
    printf "- **%s**: %d cases with a plan. No policy has a plan in %d; ferry is slower than the best policy in %d, ", \
      what, cases[kind], alone[kind], slower[kind]
    printf "within a thousandth of it in %d%s. ", equal[kind], equal[kind] ? " (there as good:" as_good[kind] ")" : ""
    printf "ferry has no stall at all where the best policy has one in %d. ", unstalled[kind]
    if (m) printf "Where both stall (%d), the best policy'\''s stall is %.2f times ferry'\''s in the median, %.2f and %.2f in the quartiles, %.1f at most: ", \
      m, list[int((m + 1) / 2)], list[int((m + 3) / 4)], list[int((3 * m + 1) / 4)], list[m]
    printf "below 1.01 in %d, to 1.1 in %d, to 1.5 in %d, to 2 in %d, to 5 in %d, above in %d.\n", bucket[kind, 1], \
      bucket[kind, 2], bucket[kind, 3], bucket[kind, 4], bucket[kind, 5], bucket[kind, 6]
  }
  BEGIN {
    print "| network | GB/s | 80 % | 60 % | 50 % | 40 % |"
    print "|---|---|---|---|---|---|"
  }
  /^\{/ {
    base = field("baseline_ns") + 0 # a number, not a text: comparisons differ
    net = field("network")
    if (!(net in seen)) { seen[net] = 1; nets[++n_nets] = net }
    name = field("best")
    cell[net, field("gb_per_s"), field("percent")] = loss(field("ours_ns")) ", " loss(field("best_ns")) (name ? " " name : "")
    total++
    count(field("ours_ns") + 0, field("best_ns") + 0, name, 1)
    count(field("ours_any_ns") + 0, field("best_any_ns") + 0, field("best_any"), 2)
    commit = field("commit")
    if (commit && !(commit in known)) { known[commit] = 1; commits = commits (commits ? ", " : "") "`" commit "`" }
    if (field("bound_ns") > 0) gap[++gaps] = 100 * (field("ours_ns") / field("bound_ns") - 1)
  }
  END {
    split("12 25 50", speed, " "); split("80 60 50 40", percent, " ")
    for (i = 1; i <= n_nets; i++)
      for (j = 1; j <= 3; j++) {
        printf "| %s | %s |", nets[i], speed[j]
        for (k = 1; k <= 4; k++) {
          at = nets[i] SUBSEP speed[j] SUBSEP percent[k]
          printf " %s |", at in cell ? cell[at] : "not run"
        }
        printf "\n"
      }
    printf "\n%d of %d cases were run%s.\n\n", total, 9 * 3 * 4, commits ? ", on commit " commits : ""
    tell(1, "Swapping only")
    tell(2, "With recomputing allowed to both")
    sort(gap, gaps)
    printf "- ferry'\''s plans that only swap are %.2f %% over their bound in the median, %.1f %% at most.\n\n", \
      gap[int((gaps + 1) / 2)], gap[gaps]
  }' "$2"
cat <<'TAIL'
## Not reproduced here

- The G10 artifact with its SSD: ferry has one place beside the device, the host.
- Plans for several jobs (TENSILE's figures): see `what-if.md`.
- Predicted against measured is the executor's: see `executor.md`.
TAIL
