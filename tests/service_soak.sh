#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What `make check` says of the service, for longer: 200 kills on each store, 1000 jobs of two replicas,
# floods of 5,000 connections for a minute each,
# an hour of mixed load. FLOOD_S and FERRY_SECONDS: other times.
export FERRY_SOAK=1
status=0
export FLOOD_CONNECTIONS=5000 FLOOD_S=${FLOOD_S:-60} FLOOD_BUSIEST_S=0.1
for it in service_fuzz service_flood service_killed service_postgres service_hour; do
  echo "== $it"
  bash "$srcdir/tests/$it.sh" || [ $? = 77 ] || status=1
done
exit $status
