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
  for comment in '' ferry: ferry alex.64 xferry:a 'ferry:$(x)' ferry:-a ferry:a@ ferry:a@05 ferry:a@1@2 ferry:@5; do begins "$comment"; done
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
rewrites() { # SITE ASKED: what a site makes of a request
  cat >rewrite.lua <<'END'
local ferry, site = dofile (arg[1] .. "/ferry.lua"), dofile (arg[1] .. "/site.lua")
for key, value in pairs (load ("return {" .. arg[2] .. "}") ()) do site[key] = value end
local c = ferry.rewrite (site, load ("local asked = {" .. arg[3] .. "} asked.text = asked.text or 'ferry:alex.64' return asked") (), 1)
print (c.gres, c.per_task, c.feature, c.host_mib, c.refuse)
END
  PATH=$work/bin:$PATH "$lua" rewrite.lua "$etc" "$1" "$2" | tr '\t' ' '
}
requests() { # 5 GiB and a byte of a card, 1 MiB and a byte of pinned memory
  [ -n "$lua" ] || { echo "Lua is not here"; return 77; }
  local cards='cards = {a100 = {bytes = 40 << 30, feature = "big"}, t4 = {bytes = 4 << 30, feature = "small"}, odd = {bytes = 40 << 30}}' site asked expected
  while IFS='|' read -r site asked expected; do
    [ "$(rewrites "$site" "$asked")" = "$expected" ] || echo "$site, $asked: $(rewrites "$site" "$asked"), not $expected"
  done <<END
|gres = "gpu:1"|shard:6 nil nil 2 nil
|gres = "gres/gpu:a100:1,gres/nvme:2"|gres/shard:6,gres/nvme:2 nil nil 2 nil
|gres = "nvme:1,gpu"|nvme:1,shard:6 nil nil 2 nil
|gres = "gpu:1,gpu:b:1"|nil nil nil nil nil
|gres = "gpu:2"|nil nil nil nil nil
per_task = true|gres = "gpu:2,nvme:1", tasks_per_node = 2|nvme:1 gres/shard:6 nil 4 nil
per_task = true|gres = "gres:gpu:2,nvme:1", tasks_per_node = 2|nvme:1 gres:shard:6 nil 4 nil
per_task = true|gres = "gpu:2", tasks_per_node = 4|nil nil nil nil nil
|gres = "gpu:2", tasks_per_node = 2|nil nil nil nil nil
host = "h"|gres = "gpu:2,nvme:1", tasks_per_node = 2|nil nil nil 2 nil
host = "h"|gres = "gpu:2"|nil nil nil 2 nil
host = "h", per_task = true|gres = "gpu:2", tasks_per_node = 2| gres/shard:6 nil 2 nil
host = "h", card_bytes = 1|gres = "gpu:2"|nil nil nil 2 nil
|gres = "gpu:2", tasks_per_node = 4|nil nil nil nil nil
|gres = "shard:500"|shard:80 nil nil nil nil
|gres = "gpu:1", text = "night run, ferry:alex.64@70000;x"|shard:6 nil nil 2 nil
|gres = "gpu:1", text = "xferry:alex.64"|nil nil nil nil nil
|gres = "gpu:1", text = "ferry:\$(x) ferry:alex.64"|nil nil nil nil nil
share = "mps"|gres = "gpu:1"|mps:7 nil nil 2 nil
share = "mps"|gres = "mps:500"|mps:100 nil nil nil nil
share = "mps"|gres = "shard:500"|nil nil nil nil nil
$cards|gres = "gpu:a100:1"|shard:6 nil big 2 nil
$cards|gres = "gpu:t4:1"|nil nil nil nil nil
$cards, refuse = true|gres = "gpu:t4:1"|nil nil nil nil ferry: it does not fit
$cards|gres = "gpu:odd:1"|nil nil nil nil nil
$cards|gres = "gpu:none:1"|nil nil nil nil nil
$cards|gres = "gpu:1"|shard:6 nil nil 2 nil
$cards, share = "mps"|gres = "gpu:a100:1"|mps:13 nil big 2 nil
END
}
other_words() { # of a field of the site's choice
  begins 'a night run; ferry:alex.64,x' && grep -q '^advise alex.64 ' "$plans/7/advice" && script epilog SLURM_JOB_ID=7 || return 1
  sed -i 's/^FERRY_FIELD=COMMENT/FERRY_FIELD=EXTRA/' "$etc/ferry.conf"
  begins ferry:alex.64 && [ ! -e "$plans/7" ] || return 1
  script prolog SLURM_JOB_ID=7 SLURM_JOB_EXTRA=ferry:alex.64 && [ -e "$plans/7/plan.json" ] || return 1
  sed -i 's/^FERRY_FIELD=EXTRA/FERRY_FIELD=COMMENT/' "$etc/ferry.conf"
}
claim "a job's plan is there while it runs" job
claim "a job without a number of its own takes nobody's plan away" other_jobs
claim "comments that are none of ferry's leave nothing" no_business
claim "the word may stand among others, and in a field of the site's choice" other_words
claim "a node without ferry starts jobs" no_ferry
claim "pinned memory is added in any unit" memories
claim "one card, one a task, lists, cards of several sizes, and MPS" requests
finish
