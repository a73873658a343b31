#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# docs/measured.md from what the benches have said: measured.sh docs/measured.json > docs/measured.md
set -eu
fields='
  function field(name,   at, rest) {
    at = index($0, "\"" name "\":")
    if (!at) return ""
    rest = substr($0, at + length(name) + 3)
    if (substr(rest, 1, 1) == "\"") { rest = substr(rest, 2); return substr(rest, 1, index(rest, "\"") - 1) }
    sub(/[,}].*/, "", rest)
    return rest
  }
  function gap() { return 100 * (field("step_ns") / field("lower_bound_ns") - 1) }
  function short(x) { return x < 0.005 ? "0" : sprintf("%.2f", x) }
  function times(x) { return sprintf("%.4f", x / field("baseline_ns")) }
  # One row for each key, with a column for each of the names, in the order in which they came.
  function put(key, column, text) {
    if (!(key in known)) { known[key] = 1; keys[++n_keys] = key }
    cell[key, column] = text
  }
  function rows(columns,   n, name, i, j, line) {
    n = split(columns, name, " ")
    for (i = 1; i <= n_keys; i++) {
      line = "| " keys[i] " |"
      for (j = 1; j <= n; j++) line = line " " ((keys[i], name[j]) in cell ? cell[keys[i], name[j]] : "-") " |"
      print line
    }
    print ""
  }'
json=$1
has() { grep -q "\"bench\":\"$1\"" "$json"; }
table() { # BENCH AWK: the rows, and on which commits they were run
  grep "\"bench\":\"$1\"" "$json" | awk "$fields $2"
  grep "\"bench\":\"$1\"" "$json" | sed -n 's/.*"commit":"\([^"]*\)".*/\1/p' | sort | uniq -c |
    awk '{ printf "%s`%s`", n++ ? ", " : "Run on commit ", $2 } END { if (n) print ".\n" }'
}
cat <<'END'
# Measured

How near plans are to their bounds, and how long they take to find. `make measured` makes this page from `measured.json`,
`tests/bench/measure.sh NAME` one table. Steps and bounds come from the machine model and are the same on every machine.
Seconds are processor time of one core.

END

if has solve; then
  cat <<'END'
## Plans against the bound

`tests/bench/bench_solve`: networks of the zoo at 11 TFLOP/s, default options. A cell has gaps between plan and certified
bound in per cent. The three are for links of 12, 25 and 50 GB/s each way; `-`: no plan fits.

| network | 80 % of peak | 60 % | 50 % | 40 % |
|---|---|---|---|---|
END
  table solve '
    { key = field("network") " b" field("batch"); percent = field("percent")
      link[key, percent] = link[key, percent] " " short(gap()); put(key, percent, substr(link[key, percent], 2))
      all[++n] = gap(); seconds += field("seconds") }
    END {
      rows("80 60 50 40")
      for (i = 2; i <= n; i++) for (j = i; j > 1 && all[j - 1] > all[j]; j--) { x = all[j]; all[j] = all[j - 1]; all[j - 1] = x }
      printf "Of %d cases the median gap is %.2f %%, nine tenths are within %.2f %%, the largest is %.2f %%.\n", \
        n, all[int((n + 1) / 2)], all[int((9 * n + 9) / 10)], all[n]
      printf "Together they take %d seconds.\n\n", seconds
    }'
fi

if has speed; then
  cat <<'END'
## Time to a plan

`tests/bench/bench_speed`: from a trace in memory to a plan within the gap asked for, with its certificate.
A cell has the gap in per cent and the seconds.

| trace | ops | 80 % of peak | 60 % | 50 % | 40 % | most memory, MB |
|---|---|---|---|---|---|---|
END
  table speed '
    { key = field("row") " | " field("ops")
      put(key, field("percent"), short(gap()) ", " sprintf("%.2f s", field("seconds")))
      mb = int(field("peak_bytes") / 1000000)
      if (mb > most[key]) { most[key] = mb; put(key, "mb", mb) } }
    END { rows("80 60 50 40 mb") }'
fi

if has growth; then
  cat <<'END'
## Growth

`tests/bench/bench_growth - 100000`: synthetic steps at 60 % of their peak, to a plan within 1 %.

END
  table growth '
    field("ops") + 0 > 50000 { told = told sprintf("%s%s %.2f s and %d MB", told ? "; " : "", field("kind"), field("seconds"),
      field("peak_bytes") / 1000000) }
    END { print "Of some 100,000 ops: " told ".\n" }'
  printf '![Growth of time and memory](growth.svg)\n\n'
fi

if has bound; then
  cat <<'END'
## The bound alone

`tests/bench/bench_bound`: from gaps to the proved bound, all refinement included. A cell has the seconds, and the bound over
compute.

| trace | ops | 80 % of peak | 60 % | 40 % | most rows |
|---|---|---|---|---|---|
END
  table bound '
    field("ops") + 0 > 5000 && field("ops") + 0 < 50000 { next }
    { key = field("trace") " | " field("ops")
      put(key, field("percent"), sprintf("%.2f s, %.3f", field("seconds"), field("lower_bound_ns") / field("compute_ns")))
      if (field("rows") + 0 > most[key]) { most[key] = field("rows") + 0; put(key, "rows", most[key]) } }
    END { rows("80 60 40 rows") }'
fi

if has mix; then
  cat <<'END'
## Swapping and recomputing

`tests/bench/bench_mix mix NETWORK BATCH 50 bf16 PERCENT ROWS DEVICES`: an H200 behind 50 GB/s each way, default
limits. A cell has the step with a plan over the step without a limit; `-`: no plan, or not run.

| network | % of peak | swap alone | recompute alone | both | with sections | bound | gap, % | seconds |
|---|---|---|---|---|---|---|---|---|
END
  table mix '
    { key = field("network") " b" field("batch") " | " field("percent")
      name = field("row"); column = name == "swap alone" ? "s" : name == "recompute alone" ? "r" : name == "both" ? "b" : "c"
      put(key, column, times(field("step_ns")))
      if (column == "b" || column == "c") {
        put(key, "bound", times(field("lower_bound_ns"))); put(key, "gap", short(gap())); put(key, "t", field("seconds")) } }
    END { rows("s r b c bound gap t") }'
fi
