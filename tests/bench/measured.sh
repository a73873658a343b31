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

Made from `measured.json` by `make measured`, or `tests/bench/measure.sh NAME` for one table. Steps and bounds
come from the machine model and are the same on every machine. Seconds are processor time of one core.

END

if has solve; then
  cat <<'END'
## Plans against the bound

`tests/bench/bench_solve`: networks of the zoo at 11 TFLOP/s, a link that carries both ways at once, default
options. A cell has the gap between the plan and its certified bound, in per cent; `-`: no plan fits.

| network | GB/s | 80 % of peak | 60 % | 50 % | 40 % |
|---|---|---|---|---|---|
END
  table solve '
    { put(field("network") " b" field("batch") " | " field("gb_per_s"), field("percent"), short(gap()))
      all[++n] = gap(); seconds += field("seconds") }
    END {
      rows("80 60 50 40")
      for (i = 2; i <= n; i++) for (j = i; j > 1 && all[j - 1] > all[j]; j--) { x = all[j]; all[j] = all[j - 1]; all[j - 1] = x }
      printf "Of %d cases the median gap is %.2f %%, nine tenths are within %.2f %%, the largest is %.2f %%.\n", \
        n, all[int((n + 1) / 2)], all[int((9 * n + 9) / 10)], all[n]
      printf "All of them together take %d seconds.\n\n", seconds
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

| trace | ops | seconds | microseconds an op | MB | gap, % |
|---|---|---|---|---|---|
END
  table growth '{ printf "| %s | %d | %.2f | %.0f | %d | %s |\n", field("kind"), field("ops"), field("seconds"), \
    1e6 * field("seconds") / field("ops"), field("peak_bytes") / 1000000, short(gap()) }'
  printf '\n![Growth of time and memory](growth.svg)\n\n'
fi

if has bound; then
  cat <<'END'
## The bound alone

`tests/bench/bench_bound`: from gaps to the proved bound, all refinement included.

| trace | ops | % of peak | seconds | slots | rows | bound / compute |
|---|---|---|---|---|---|---|
END
  table bound '{ printf "| %s | %d | %d | %.2f | %d | %d | %.3f |\n", field("trace"), field("ops"), field("percent"), \
    field("seconds"), field("slots"), field("rows"), field("lower_bound_ns") / field("compute_ns") }'
  echo
fi

if has mix; then
  cat <<'END'
## Swapping and making again

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

if has foil; then
  cat <<'END'
## A binary for each value and moment

`tests/bench/foil_time_indexed 28`: the form of Checkmate and POET on the same solver, 60 seconds each. Values
are not compared, only who answers: that form may recompute and counts copies as time of their own.

| ops | binaries | rows | its answer | its seconds | our gap, % | our seconds |
|---|---|---|---|---|---|---|
END
  table foil 'field("binaries") > 0 { printf "| %d | %d | %d | %s | %.1f | %s | %.2f |\n", field("ops"), field("binaries"), field("rows"), \
    field("status"), field("foil_s"), short(gap()), field("ours_s") }'
  echo
fi
