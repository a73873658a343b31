#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Slurm's Prolog, as root on the node: fetches the plan of a job whose comment has the word ferry:FINGERPRINT,
# or ferry:FINGERPRINT@PPM for another slowdown than the site's, in millionths.
# Without a plan the job starts all the same: a Prolog that fails would take the node away.
here=$(dirname "$0")
. "$here/ferry.conf"
field=$(printenv "SLURM_JOB_${FERRY_FIELD:-COMMENT}")
asked=
set -f
for word in $(printf %s "$field" | tr ',;' '  '); do
  case $word in ferry:*)
    asked=${word#ferry:}
    break
    ;;
  esac
done
set +f
[ -n "$asked" ] || exit 0
print=${asked%@*} slowdown=$FERRY_SLOWDOWN
case $SLURM_JOB_ID in '' | *[!0-9]*) exit 0 ;; esac # its folder is emptied
case $print in '' | *[!A-Za-z0-9._-]* | [!A-Za-z0-9_]*) exit 0 ;; esac
if [ "$print" != "$asked" ]; then
  ppm=${asked##*@}
  case $ppm in '' | *[!0-9]* | 0?* | ??????????*) exit 0 ;; esac
  slowdown=$(printf '%d.%04d%%' $((ppm / 10000)) $((ppm % 10000)))
fi
folder=$FERRY_PLANS/$SLURM_JOB_ID
umask 077
mkdir -p "$FERRY_PLANS" && chmod 711 "$FERRY_PLANS" && rm -rf "$folder" && mkdir "$folder" || exit 0
[ -z "${FERRY_TOKEN_FILE:-}" ] || FERRY_TOKEN=$(cat "$FERRY_TOKEN_FILE")
export FERRY_TOKEN
timeout -k 1 "$FERRY_PATIENCE" "${FERRY:-ferry}" advise "$print" --server "$FERRY_SERVER" --slowdown "$slowdown" \
  --gpu-memory "$FERRY_CARD" -o "$folder/plan.json" >"$folder/advice" 2>"$folder/log" </dev/null
chown -R "$SLURM_JOB_UID" "$folder"
exit 0
