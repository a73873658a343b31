#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What `make check` says of the service, for longer: 200 kills on each store, 1000 jobs of two replicas,
# an hour of mixed load.
export FERRY_SOAK=1
status=0
for it in service_fuzz service_api_fuzz service_killed service_postgres service_hour; do
  echo "== $it"
  bash "$srcdir/tests/$it.sh" || [ $? = 77 ] || status=1
done
exit $status
