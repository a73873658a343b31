#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Slurm's TaskProlog, as the user: a line "export NAME=VALUE" sets a variable of the task.
. "$(dirname "$0")/ferry.conf"
plan=$FERRY_PLANS/$SLURM_JOB_ID/plan.json
[ ! -r "$plan" ] || echo "export FERRY_PLAN=$plan"
