#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# contrib/slurm on a cluster of its own: munged, slurmctld and slurmd on loopback, gone afterwards.
# tests/service/slurm.py has what must hold. Skipped where these programs, or root, are not there.
[ "$(id -u)" = 0 ] || { echo "Slurm's daemons need root"; exit 77; }
for it in munged slurmctld slurmd sbatch scontrol curl python3; do
  PATH=$PATH:/usr/sbin command -v $it >/dev/null || { echo "$it is not here"; exit 77; }
done
find /usr/lib -name job_submit_lua.so 2>/dev/null | grep -q . || { echo "Slurm's Lua plugins are not here"; exit 77; }
work=$(mktemp -d /tmp/ferry-slurm-XXXXXX)
export PATH=$PATH:/usr/sbin
stop() {
  local pids
  pids=$(cat "$work"/run/*.pid 2>/dev/null)
  [ -z "$pids" ] || kill $pids 2>/dev/null
  for it in $pids; do
    for _ in $(seq 50); do kill -0 "$it" 2>/dev/null || break; sleep 0.1; done
  done
  rm -rf "$work"
}
trap stop EXIT
chmod 755 "$work"
mkdir "$work"/{etc,user,state,spool,log,dev,run,plans}
for card in 0 1; do mknod "$work/dev/nvidia$card" c 1 3 2>/dev/null; done; [ -e "$work/dev/nvidia1" ] || { echo "no device can be made here"; exit 77; }
free_port() { python3 -c 'import socket; s = socket.socket (); s.bind (("127.0.0.1", 0)); print (s.getsockname ()[1])'; }
host=$(hostname -s)
head -c 1024 /dev/urandom >"$work/etc/munge.key" && chmod 600 "$work/etc/munge.key"
cp "$srcdir"/contrib/slurm/* "$work/etc/" && chmod 755 "$work"/etc/*.sh
# Each of two cards has 80 shards; more processors than there are, so that two jobs run at once anywhere.
cat >"$work/etc/slurm.conf" <<END
ClusterName=ferry
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
AuthType=auth/munge
AuthInfo=socket=$work/run/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/run/slurmctld.pid
SlurmdPidFile=$work/run/slurmd.pid
SlurmctldLogFile=$work/log/slurmctld
SlurmdLogFile=$work/log/slurmd
SlurmdParameters=config_overrides
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0
ReturnToService=2
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=50
GresTypes=gpu,shard
AccountingStorageType=accounting_storage/none
JobSubmitPlugins=lua
PrologFlags=Alloc
Prolog=$work/etc/prolog.sh
TaskProlog=$work/etc/task_prolog.sh
Epilog=$work/etc/epilog.sh
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 RealMemory=4000 Gres=gpu:fake:2,shard:160 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
cat >"$work/etc/gres.conf" <<END
Name=gpu Type=fake File=$work/dev/nvidia[0-1]
Name=shard Count=160
END
export SLURM_CONF=$work/etc/slurm.conf
munged --force --key-file="$work/etc/munge.key" --socket="$work/run/munge.socket" --pid-file="$work/run/munged.pid" \
  --log-file="$work/log/munged" --seed-file="$work/run/seed" >/dev/null 2>&1 || { echo "munged does not start here"; exit 77; }
slurmctld >/dev/null 2>&1 || { echo "slurmctld does not start here"; exit 77; }
slurmd >/dev/null 2>&1 || { echo "slurmd does not start here"; exit 77; }
idle() { [ "$(timeout 5 sinfo -h -o %t 2>/dev/null)" = idle ]; }
end=$((SECONDS + 30))
until idle || [ $SECONDS -ge $end ]; do sleep 0.1; done
idle ||
  { echo "Slurm's node is not idle here: $(tail -n 2 "$work/log/slurmd" "$work/log/slurmctld" | tr '\n' ' ')"; exit 77; }
status=0
timeout 240 python3 "$srcdir/tests/service/slurm.py" "$work" || status=1
[ $status = 0 ] || tail -n 30 "$work/log/slurmctld" "$work/log/slurmd"
exit $status
