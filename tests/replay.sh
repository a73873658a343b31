#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# `ferry replay` on stored files, as it is met by somebody who has just made a trace and a plan.
. "$(dirname "$0")/rules/common.bash"
scratch

one_line() { [ "$(wc -l <err)" = 1 ] && grep -q '^ferry: ' err && [ ! -s out ]; }
says() { grep -qF -- "$1" err || { echo "not said: $1"; cat err; return 1; }; }
is_json() { ! command -v python3 >/dev/null || python3 -m json.tool "$1" >/dev/null; }
number() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" out | head -n 1; }

"$ferry" zoo vgg16 --batch 2 --width-divisor 8 --image 64 --classes 10 -d titanx-pascal -q -o t.json &&
  "$ferry" zoo vgg16 --batch 3 --width-divisor 8 --image 64 --classes 10 -d titanx-pascal -q -o other.json &&
  sed 's/"granule_bytes": *[0-9]*/"granule_bytes": 65536/' "$srcdir/data/devices/titanx-pascal.json" >d.json || exit 1
for budget in 30MiB 28MiB 26MiB 24MiB 22MiB 21MiB; do
  "$ferry" solve t.json -p capuchin -d d.json --budget $budget -q -o p.json >report && grep -q ' [1-9][0-9]* moves' report && break
done
grep -q ' [1-9][0-9]* moves' report && [ -s p.json ] || { cat report; exit 1; }

equal() { run 0 replay t.json p.json && [ ! -s err ] && [ "$(grep -c ' equal$' out)" = 6 ] && grep -q 'differ by 0 ns at most' out; }
same() { run 0 replay t.json p.json --json && mv out first && run 0 replay t.json p.json --json && cmp first out && is_json out; }
report() { [ "$(number largest_start_difference_ns)" = 0 ] && [ "$(number mismatched_words)" = 0 ] && [ "$(number iterations)" -ge 3 ] && [ "$(number iterations)" -le 32 ]; }
exact_length() { run 0 replay t.json p.json --json -n 40 && [ "$(number iterations)" = 40 ] && [ "$(number largest_start_difference_ns)" = 0 ]; }
few_verified() { run 0 replay t.json p.json --verify --json && [ "$(number mismatched_words)" = 0 ] && [ "$(number iterations)" -ge 4 ] && [ "$(number iterations)" -lt 32 ]; }
verified() { run 0 replay t.json p.json --verify --races -n 4 && grep -q 'every byte was where it should be' out; }
real() { run 0 replay t.json p.json --clock real --verify -n 3 && grep -q 'of 3 steps' out && grep -q 'every byte' out; }
chrome() { run 0 replay t.json p.json -n 2 --chrome c.json.gz && gzip -t c.json.gz && gunzip -c c.json.gz >c.json && is_json c.json && grep -q 'copies to the host' c.json; }
doctor() { run 0 doctor t.json p.json && grep -qE '^plan      takes 2[0-9.]* MiB of the device and pins ' out && grep -q 'there is room for it' out; }
doctor_locked() { (ulimit -l 64 && run 0 doctor t.json p.json && grep -q 'it pins more than may be locked' out); }
doctor_half() { run 2 doctor p.json && one_line && says 'give both' && run 1 doctor other.json p.json && one_line; }
other_trace() { run 1 replay other.json p.json && one_line && says 'the plan is for the trace sha256:'; }
smaller() { run 70 replay t.json p.json --bytes all --fault missing=1MiB && one_line && says 'the device has no room for the plan'; }
all_missing() { run 70 replay t.json p.json --fault missing=1TiB && one_line && says 'the device has no room for the plan'; }
fastest() {
  sed -E 's/"(d2h|h2d)_bytes_per_s": *[0-9]+/"\1_bytes_per_s": 9007199254740992/g; s/"both_bytes_per_s": *[0-9]+, *//' d.json >fast.json &&
    run 0 solve t.json -d fast.json --budget 30MiB -q -o fast-plan.json && run 0 replay t.json fast-plan.json
}
no_memory() { sed 's/"\(memory\|reserved\)_bytes": *[0-9]*/"\1_bytes": 0/' d.json >none.json && run 3 link -d none.json && one_line && says 'has no memory'; }
slowest() {
  sed -E 's/_bytes_per_s": *[0-9]+/_bytes_per_s": 1000000/; s/"copy_ns": *[0-9]+/"copy_ns": 9007199254740992/; s/"share_ppm": *[0-9]+/"share_ppm": 1/' d.json >slow.json &&
    run 70 link -d slow.json && one_line && says 'no rate can be told'
}
unpinned() { run 70 replay t.json p.json --fault pinned=4KiB && one_line && says 'out of memory on the host: the plan needs'; }
broken() { run 70 replay t.json p.json --fault copy=3 && one_line && says 'CUDA_ERROR_ECC_UNCORRECTABLE'; }
lost() { run 1 replay t.json p.json --verify -n 4 --fault lost=20 && grep -q 'words were wrong' err; }
lost_seen_early() { run 1 replay t.json p.json --races -n 4 --fault lost=20 && grep -q 'of the [0-9]* copies .* of step [1-4] the device was given' err; }
wait_lost() { run 1 replay t.json p.json --races -n 4 --fault wait=9 && grep -q 'has to wait for .* of step [1-4], and nothing orders them' err; }
implied() { run 0 replay t.json p.json --races --json && [ "$(number waits)" -gt 0 ] && [ "$(number waits)" -lt "$(number plan_waits)" ] && [ "$(number races)" = 0 ]; }
no_fault() { run 2 replay t.json p.json --fault heat=3 && one_line && says 'is not missing=SIZE, pinned=SIZE, copy=N, lost=N, wait=N or counter=N'; }
no_emulator() { FERRY_EMU=/nowhere.so run 69 replay t.json p.json && one_line && says "FERRY_EMU=FILE says where the emulator's library lies"; }
no_gpu() { FERRY_EMU= ; [ -e /dev/nvidiactl ] || { run 69 replay t.json p.json --driver cuda && one_line && says 'use --driver emulated'; }; }
no_bytes() { run 2 replay t.json p.json --verify --bytes none && one_line && says '--verify looks at bytes'; }
no_plan() { run 3 replay t.json /nowhere.json && one_line && says '/nowhere.json: cannot be opened'; }
not_a_plan() { run 3 replay t.json t.json && one_line; }
full() { run 3 replay t.json p.json --chrome /nowhere/c.json && says '/nowhere/c.json'; }

named() { # the file, by each command that refuses it
  sed 's/"runs"/"runz"/' p.json >broken.json
  for it in replay "replay --compute real" doctor; do
    run 1 $it t.json broken.json && says 'ferry: broken.json: /placement/stays/' || return 1
  done
}
no_tensors() { # a step of ops alone
  printf '%s' '{"format": "ferry-trace/1", "tensors": [], "ops": [{"ns": 5}, {}]}' >bare.json
  run 0 solve bare.json -d titanx-pascal -b 1MiB -q -o bare.plan && run 0 replay bare.json bare.plan
}
no_name() { run 3 solve t.json -b 60% -o "" && one_line && says '"": cannot be created'; }
claim "a trace without tensors is replayed" no_tensors
claim "a file without a name is told before the search" no_name
claim "on the virtual clock all six figures are equal" equal
claim "the report is JSON and the same in every run" same
claim "the report counts steps, differences and wrong words" report
claim "as many steps as are asked for are run" exact_length
claim "verifying ends where steps repeat, and not before the fourth" few_verified
claim "bytes are verified and nothing races" verified
claim "threads on the real clock carry the same bytes" real
claim "a Chrome trace is written, compressed by its name" chrome
claim "a plan that is refused is named" named
claim "doctor says what a plan takes" doctor
claim "doctor compares it with the limit on locked memory" doctor_locked
claim "doctor wants the plan's own trace" doctor_half
claim "a plan for another trace is refused" other_trace
claim "less device memory than told is one line" smaller
claim "nor need there be any" all_missing
claim "the fastest link that a device file may have is emulated" fastest
claim "a link so slow that its copies end nowhere is told in a line" slowest
claim "the link of a device without memory is refused" no_memory
claim "refused pinning is one line" unpinned
claim "a copy that fails is one line" broken
claim "a copy that is left out leaves wrong bytes" lost
claim "the race checker counts the copies" lost_seen_early
claim "a wait that is left out is told as the order that is missing" wait_lost
claim "waits that others imply are not made, and nothing races" implied
claim "an unknown fault gets the list" no_fault
claim "a missing emulator is told with its remedy" no_emulator
claim "a missing GPU is told with its remedy" no_gpu
claim "verifying without bytes is refused" no_bytes
claim "a missing plan is named" no_plan
claim "a trace is no plan" not_a_plan
claim "a Chrome trace that cannot be written is an error" full
finish
