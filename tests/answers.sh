#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Answers that people and scripts rely on: what the last line covers, one number for what a step
# needs, curves that agree with single plans, exit statuses, interrupts.
. "$(dirname "$0")/rules/common.bash"
scratch
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }

number() { grep -oE "\"$1\": ?-?[0-9]+" "${2:-out}" | head -n 1 | grep -oE -- '-?[0-9]+$'; }
says() { grep -qE -- "$1" out || { echo "not said: $1"; cat out; return 1; }; }
complains() { grep -qE -- "$1" err || { echo "not said: $1"; cat err; return 1; }; }
last() { tail -n 1 out | grep -qE -- "$1" || { echo "not the last line: $1"; tail -n 3 out; return 1; }; }

"$ferry" zoo -q resnet18 --batch 32 --image 128 --depth-divisor 2 -d v100 -o net.json || exit 1
"$ferry" zoo -q alexnet --batch 64 --image 96 --width-divisor 2 -d v100 -o alex.json || exit 1
sed 's/"confidence": *"exact"/"confidence": "approximate: sizes"/' net.json >guess.json

covers() { # what is said of any plan is true of it: with more allowed a plan is below that bound
  run 0 solve net.json -b 50% --swap-only --limit 20000 -o swaps.json && last 'above what any plan that only swaps can reach; --recompute auto( or --sections auto)? may do better$' || return 1
  tail -n 1 out >swaps.said
  run 0 solve net.json -b 50% --swap-only --limit 20000 --json && says '"option": ?"--recompute auto"' || return 1
  local bound other
  bound=$(number lower_bound_ns) other=$(number lower_bound_ns <(sed '/"others"/,$!d' out))
  run 0 solve net.json -b 50% --limit 20000 -o drops.json && tail -n 1 out >drops.said &&
    [ "$(number step_ns drops.json)" -lt "$bound" ] && [ "$(number step_ns drops.json)" -ge "$other" ]
}
silent() { # where compute is reached no other option is named
  run 0 solve net.json && last '^[0-9.]+ m?s in .*, and no plan is faster$'
}
same_words() { # explain closes as solve did
  local how
  for how in swaps drops; do
    run 0 explain net.json $how.json && tail -n 1 out | diff $how.said - || return 1
  done
}
one_need() { # in what info names nothing moves, all commands show it, and percentages are of it
  local file needs
  for file in net.json alex.json guess.json; do
    run 0 info $file --json && needs=$(number bytes <(sed '/"needs"/,$!d' out)) && run 0 info $file -b "${needs}B" &&
      run 1 info $file -b $((needs - 1))B && run 0 solve $file -b "${needs}B" --json -o all.json || return 1
    [ "$(number moves)" = 0 ] && [ $(($(number peak_bytes) + $(number reserve_bytes))) -le "$needs" ] || { echo "$file: $needs"; cat out; return 1; }
    run 0 solve $file --json && [ "$(number moves)" = 0 ] && [ "$(number peak_bytes)" -le "$needs" ] || return 1
    run 0 curve $file --points 2 --limit 1 --json && [ "$(number needs_bytes)" = "$needs" ] || return 1
    run 0 compare $file -b 100% --policies lru --json && [ "$(number needs_bytes <(sed 's/"rows".*//' out))" = "$needs" ] || return 1
    run 0 solve $file -b 100% --json && [ $(($(number budget_bytes) + $(number reserve_bytes))) = "$needs" ] || return 1
  done
  run 0 solve net.json -o all.json && local taken=$(tail -n 1 out | grep -oE '[0-9.]+ [KMG]iB') && run 0 explain net.json all.json && says "^it takes $taken of"
}
smallest() { # the budget that is named has its reserve, and works when it is pasted back
  local file least
  for file in net.json alex.json guess.json; do
    run 1 solve $file -b 40MiB && complains '; ask for [0-9.]+ MiB' || return 1
    least=$(grep -oE 'ask for [0-9.]+ MiB' err | cut -c9-)
    run 0 solve $file -b "$least" --limit 1000 || { echo "$file: $least"; cat err; return 1; }
  done
}
below() { # a byte less is proved to be too little, since memory is taken in whole granules
  local how
  cat >below.json <<'END'
{ "format": "ferry-trace/1", "name": "below",
  "tensors": [ { "bytes": 3145728, "kind": "parameter" }, { "bytes": 3145728, "kind": "parameter" }, { "bytes": 2097152, "kind": "activation" } ],
  "ops": [ { "ns": 1000000, "reads": [0], "writes": [2] }, { "ns": 1000000, "reads": [1] }, { "ns": 1000000, "reads": [2] } ] }
END
  for how in "" --swap-only "--recompute auto --order as-is"; do
    run 0 solve below.json -d v100 -b 6MiB $how && run 1 solve below.json -d v100 -b 6291455B $how && complains 'in 5.99 MiB; ask for 6.00 MiB' || return 1
  done
}
neighbours() { # a point is as good as the plan of that budget alone, however many stand beside it
  python3 "$srcdir/tests/answers.py" "$ferry" net.json alex.json
}
wide() { # marked in table, JSON and TSV
  run 0 curve alex.json --budget 60%,80%,100% --limit 1 --json || return 1
  python3 - <<'END' || return 1
import json
points = json.load (open ("out"))["points"]
assert all (p["wide"] == (p["gap"] > 0.02) for p in points if p["predicted"]), points
assert any (p["wide"] for p in points), points
END
  run 0 curve alex.json --budget 60%,80%,100% --limit 1 && says '%\*' && says '^\* more than 2 % above the bound'
}
units() { # a number alone is offered both ways
  local how
  for how in "solve net.json --gap 0.5" "solve net.json -b 22" "solve net.json --host 5" "solve net.json --noise 10" "solve net.json --reserve 3" \
    "min-memory net.json -s 20" "max-batch vgg16 -d v100 -s 20" "whatif net.json --link 50" "whatif net.json -b 22" "curve net.json -b 50%,3" \
    "compare net.json -b 3" "solve net.json -p g10 --policy-opt line=0.9" "pack net.json --arrive net@5" "info net.json -b 6"; do
    run 2 $how && complains 'has no (unit|%): is it [0-9.]+.* or [0-9.]+.*\?$' && [ "$(wc -l <err)" = 1 ] || { echo "$how"; return 1; }
  done
  run 2 solve net.json --gap 0.5 && complains 'is it 0.5% or 50%\?'
}
profile() { # a profile is read as import would read it, and says so
  local raw
  printf 'nothing that is known\n' >nothing.txt
  run 3 info nothing.txt || return 1
  [ -n "${FERRY_REAL_TRACES:-}" ] || return 0
  raw=$(ls "$FERRY_REAL_TRACES"/kineto/resnet50*.gz | head -n 1)
  run 0 import "$raw" -o read.json; run 0 info read.json -q --json && cp out imported && run 0 info "$raw" --json && complains 'is a profile .*: read as .ferry import' && diff imported out &&
    run 0 info "$raw" -b 80GiB && { says '^fits' || return 1; }
}
unscaled() { # an op that does not say what it calculates scales as its own time suggests, and that is said
  python3 - <<'END'
import json
t = json.load (open ("net.json"))
for o in t["ops"]: o.pop ("compute", None)
t["source"]["kind"] = "kineto"
json.dump (t, open ("bare.json", "w"))
END
  run 0 whatif bare.json --from v100 -d a100-40,h200 -b 100% --limit 100 && complains 'do not say what they calculate, 100.0 % of the step' && [ "$(grep -cE ' -[0-9.]+ %' out)" = 0 ] && run 0 whatif bare.json --from v100 -d v100 --limit 100 || return 1
  python3 - <<'END'
import json
flops = lambda bf16, memory: {"fp32_flops": bf16 // 8, "bf16_flops": bf16, "memory_bytes_per_s": memory}
for name, bf16, memory in (("slow", 10**12, 10**9), ("fast", 4 * 10**12, 2 * 10**9)):
    json.dump ({"format": "ferry-device/1", "name": name, "memory_bytes": 1 << 30, "granule_bytes": 512, "host_bytes": 1 << 30, "roofline": flops (bf16, memory),
                "link": {"d2h_bytes_per_s": 10**9, "h2d_bytes_per_s": 10**9}}, open (name + ".json", "w"))
json.dump ({"format": "ferry-trace/1", "tensors": [{"bytes": 10**6}, {"bytes": 1000}],
            "ops": [{"ns": 1900000, "writes": [0]}, {"ns": 8000000, "reads": [0], "writes": [1]}]}, open ("guess2.json", "w"))
END
  run 0 whatif guess2.json --from slow.json -d fast.json -b 100% --json && [ "$(number baseline_ns)" = $((1900000 / 2 + 8000000 / 4)) ] # memory, arithmetic
}
statuses() { # 0 with a plan, 4 only where a gap was asked for, 1 where nothing fits
  run 0 solve net.json -b 40% --limit 1 && run 4 solve net.json -b 40% --swap-only --gap 0.01% --limit 1 && run 0 solve net.json -b 40% --gap 1000% --limit 1 &&
    run 1 solve net.json -b 20MiB && run 1 solve net.json -b 20MiB --gap 0 && run 1 solve net.json -b 90MiB --host 1MiB --gap 0 --limit 1 --placement granules && complains 'none is ruled out; ask for' && run 1 curve net.json --budget 20MiB,30MiB && says 'no plan fits' && run 1 whatif net.json -d v100 --budget 20MiB &&
    says 'no plan fits' && run 0 curve net.json --budget 20MiB,60% --limit 1000 && run 0 whatif net.json -d v100 --budget 20MiB,60% --limit 1000
}
interrupted() { # SIGNAL COMMAND...: asked early, it ends soon with status 130 and what it has
  python3 - "$ferry" "$@" <<'END'
import os, signal, subprocess, sys, time
p = subprocess.Popen ([sys.argv[1]] + sys.argv[3:], stdout=open ("out", "w"), stderr=open ("err", "w"),
                      preexec_fn=lambda: signal.signal (signal.SIGINT, signal.SIG_IGN if "BEHIND" in os.environ else signal.SIG_DFL))
slow = 3 if "-fsanitize" in os.environ.get ("COMPILE_FLAGS", "") else 1  # a sanitizer takes three times as long
def spent ():  # of a processor, that a busy machine does not lengthen it
    try:
        fields = open (f"/proc/{p.pid}/stat").read ().rsplit (")", 1)[1].split ()
        return (int (fields[11]) + int (fields[12])) / os.sysconf ("SC_CLK_TCK")
    except OSError:
        return 0
began = time.monotonic ()
while spent () < 0.4 * slow and time.monotonic () < began + 1:  # those with -j work elsewhere
    time.sleep (0.02)
before = spent ()
p.send_signal (getattr (signal, "SIG" + sys.argv[2]))
_, status, used = os.wait4 (p.pid, 0)
after = used.ru_utime + used.ru_stime - before
# An idle machine needs 0.7 s at most; two programs on one core make it longer. With -j all work of children is in it.
most = (20 if "-j" in sys.argv or "--jobs" in sys.argv else 2) * slow
assert after < most, f"{after} s of work after the interrupt"
sys.exit (os.waitstatus_to_exitcode (status) & 255)
END
}
large() { [ -e large.json ] || "$ferry" zoo -q densenet121 --batch 64 -d v100 -o large.json; }
stops() {
  local how status
  large || return 1
  for how in "INT solve large.json -b 40% -o kept.json" "TERM solve large.json -b 40% --order as-is -o kept.json" "INT solve large.json -b 40% --swap-only -o kept.json" \
    "INT compare large.json --budget 40%,50% -j 2" "INT compare large.json --budget 40%,50% --svg drawn.svg" "TERM curve large.json" "INT whatif large.json -d v100,p100,m40 --budget 30%,40%,50% --jobs 2" \
    "INT max-batch densenet121 -d v100 -b 8GiB" "TERM min-memory large.json" "INT pack large.json large.json -d v100"; do
    status=0
    interrupted $how || status=$?
    [ $status = 130 ] && complains 'interrupted; what was known by then is written' && [ -s out ] || { echo "$how: $status"; cat err; return 1; }
    case $how in
      *solve*) says '^found by.*interrupted' && run 0 check large.json kept.json || return 1 ;;
      *max-batch* | *min-memory* | *pack*) ;; # that something is said was asked above
      *compare*) says 'interrupted: a better plan may be found' || return 1 ;;
      *) says 'not reached' || return 1 ;;
    esac
  done
}
behind() { # a script's job in the background ignores interrupts, and so do its children
  local status=0
  large && { BEHIND=1 interrupted TERM whatif large.json -d v100,p100,m40 --budget 30%,40%,50% --jobs 2 || status=$?; } && [ $status = 130 ] && says 'not reached'
}
twice() { # the second ends at once
  large && python3 - "$ferry" <<'END'
import signal, subprocess, sys, time
for args in (["solve", "large.json", "-b", "40%"], ["compare", "large.json", "--budget", "40%,50%", "-j", "2"]):
    p = subprocess.Popen ([sys.argv[1]] + args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          preexec_fn=lambda: signal.signal (signal.SIGINT, signal.SIG_DFL))
    time.sleep (1.0)
    p.send_signal (signal.SIGINT)
    time.sleep (0.02)
    if p.poll () is None:
        p.send_signal (signal.SIGINT)
    assert p.wait (5) in (-2, 130), p.returncode
END
}

claim "the last line says of which plans it speaks, and what may do better" covers
claim "nothing is offered where no plan is faster" silent
claim "explain closes with solve's words and gap" same_words
claim "what a step needs is one number everywhere" one_need
claim "the smallest budget that is named works" smallest
claim "a byte below the smallest budget nothing fits, whatever is allowed" below
claim "no point of a curve, grid or comparison is worse than solve's plan" neighbours
claim "points far from their bound are marked" wide
claim "a number without a unit is refused with both readings" units
claim "a profile that was not imported is read as import would" profile
claim "times that do not say what they are of scale by a guess, which is said" unscaled
claim "exit statuses are what scripts expect" statuses
claim "an interrupt ends every long command with what it has" stops
claim "a request to end reaches the children of a job in the background" behind
claim "a second interrupt ends at once" twice
finish
