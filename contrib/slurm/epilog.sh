#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Slurm's Epilog, as root: the plan of a job goes with it.
. "$(dirname "$0")/ferry.conf"
case $SLURM_JOB_ID in '' | *[!0-9]*) exit 0 ;; esac
rm -rf "${FERRY_PLANS:?}/$SLURM_JOB_ID"
exit 0
