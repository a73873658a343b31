#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A plan is left and entered again at random, and no byte is ever wrong; FERRY_STEPS for more of it.
. "$(dirname "$0")/run.bash"
steps=${FERRY_STEPS:-300} least=$((${FERRY_STEPS:-300} / 4))

perturbed() { # SEED BUDGET
  plain perturbed "$programs/habits" "$kernels" "$steps" perturbed "$1" &&
    same perturbed --wait --budget "$2" --emulated fuzz=50us,seed=$1 -- "$programs/habits" "$kernels" "$steps" perturbed "$1" &&
    echo "$steps steps in $2: entered $(figure entries perturbed) times, left $(figure leaves perturbed) times" >>told &&
    [ "$(figure entries perturbed)" -ge $least ] && [ "$(figure leaves perturbed)" -ge $least ] ||
    { echo "entered $(figure entries perturbed), left $(figure leaves perturbed) times"; return 1; }
}

claim "a plan is left and entered at random, budget 1300 KiB" perturbed 3 1300KiB
claim "and in 900 KiB" perturbed 4 900KiB
cat told
finish
