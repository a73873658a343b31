#!/bin/bash
# docs/results.md from docs/results.json: results.sh docs/results.json > docs/results.md
set -eu
cat <<'HEAD'
# Results beside those published

Made by `make papers` from `results.json`. Published figures come from the sources named; measured ones from ferry's
machine model, not from a GPU: the decisions of the published rules and of ferry's planner on the same trace, link
and budget. Percentages are of the step without any plan. Where a figure is not reproduced, that is said.

HEAD
awk '
  function field(name,   at, rest) {
    at = index($0, "\"" name "\":\"")
    if (!at) return ""
    rest = substr($0, at + length(name) + 4)
    return substr(rest, 1, index(rest, "\"") - 1)
  }
  /^\{/ {
    if (field("paper") != last) printf "## %s\n\n", field("paper")
    last = field("paper")
    printf "%s.\n\n", field("claim")
    printf "- published: %s\n- measured: %s\n- verdict: %s\n- by hand: `%s`\n\n", \
      field("published"), field("measured"), field("verdict"), field("command")
  }' "$1"
cat <<'TAIL'
## Not reproduced here

- The G10 artifact's instances need its tables of kernels, which are not part of ferry.
- tvDNN's sections, plans for several jobs, and noise wait for programs of their own.
- Predicted against measured is the executor's: see `executor.md`.
TAIL
