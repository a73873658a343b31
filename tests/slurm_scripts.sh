#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The scripts of contrib/slurm without Slurm: what they do with odd jobs, by stand-ins for ferry and curl.
# tests/service_slurm.sh has them in a cluster.
. "$(dirname "$0")/rules/common.bash"
source=$PWD
scratch
etc="$work/e tc" plans="$work/the plans"
cp -r "$source/contrib/slurm" "$etc"
cat >"$work/a ferry" <<'END'
#!/bin/sh
echo "$*"
while [ $# -gt 0 ]; do
  [ "$1" != -o ] || echo plan >"$2"
  shift
done
END
chmod +x "$work/a ferry"
cat >>"$etc/ferry.conf" <<END
FERRY_PLANS="$plans"
FERRY="$work/a ferry"
END

script() { env -i PATH="$PATH" SLURM_JOB_UID="$(id -u)" "${@:2}" sh "$etc/$1.sh" 2>&1; }
begins() { script prolog SLURM_JOB_ID=7 SLURM_JOB_COMMENT="$1"; }

job() {
  begins ferry:alex.64@123456 && [ "$(script task_prolog SLURM_JOB_ID=7)" = "export FERRY_PLAN=$plans/7/plan.json" ] &&
    grep -q '^advise alex.64 .*--slowdown 12.3456%' "$plans/7/advice" || return 1
  script epilog SLURM_JOB_ID=7 && [ ! -e "$plans/7" ] && [ -d "$plans" ]
}
other_jobs() { # a job without a number of its own takes nobody's plan away
  local id
  begins ferry:alex.64 || return 1
  for id in '' .. . 'a b' '7/..'; do
    script prolog SLURM_JOB_ID="$id" SLURM_JOB_COMMENT=ferry:alex.64
    script epilog SLURM_JOB_ID="$id"
  done
  script prolog SLURM_JOB_COMMENT=ferry:alex.64
  script epilog
  [ "$(find "$plans" -type f | sort | tr '\n' ' ')" = "$plans/7/advice $plans/7/log $plans/7/plan.json " ] || find "$plans"
}
no_business() {
  local comment
  rm -rf "$plans"
  for comment in '' ferry: ferry alex.64 'ferry:a b' 'ferry:$(x)' ferry:-a ferry:a@ ferry:a@05 ferry:a@1@2 ferry:@5; do begins "$comment"; done
  [ ! -e "$plans" ] || find "$plans"
}
no_ferry() { # the job starts all the same
  echo "FERRY=$work/nowhere" >>"$etc/ferry.conf"
  begins ferry:alex.64 && [ -z "$(script task_prolog SLURM_JOB_ID=7)" ]
}
lua=$(command -v lua5.4 || command -v lua5.3 || command -v lua)
memories() { # what stays pinned on the host is added to what was asked for, in any of Slurm's units
  [ -n "$lua" ] || { echo "Lua is not here"; return 77; }
  mkdir -p bin
  printf '#!/bin/sh\nprintf '\''{"fits":true,"card_bytes":5368709121,"pinned_host_bytes":1048577,"reason":null}\\n200'\''\n' >bin/curl
  chmod +x bin/curl
  cat >ask.lua <<'END'
slurm = { SUCCESS = 0, ERROR = -1, log_info = function () end, log_error = print }
dofile (arg[1] .. "/cli_filter.lua")
for i = 2, #arg do
  local options = { comment = "ferry:alex.64", gres = "gpu:1", mem = arg[i] }
  io.write (slurm_cli_pre_submit (options, 0), " ", options.gres, " ", options.mem, "\n")
end
END
  PATH=$work/bin:$PATH "$lua" ask.lua "$etc" 500 500M 500mb 2G 2g 0 much >out
  diff - out <<'END'
0 shard:6 502M
0 shard:6 502M
0 shard:6 502M
0 shard:6 2050M
0 shard:6 2050M
0 shard:6 0
0 shard:6 much
END
}
claim "a job's plan is there while it runs" job
claim "a job without a number of its own takes nobody's plan away" other_jobs
claim "comments that are none of ferry's leave nothing" no_business
claim "a node without ferry starts jobs" no_ferry
claim "pinned memory is added in any unit" memories
finish
