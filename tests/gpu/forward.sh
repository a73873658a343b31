#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Two questions to a GPU and PyTorch: can an unmodified program be given its memory by a library in front
# of the driver (equal losses, step time within 2 %), and does that library see every call (CUPTI's counts
# beside its own)?
#   forward.sh OUT.json           asks them; 77 where there is no PyTorch, no driver or no compiler
#   forward.sh --build REAL OUT   only builds the library in front of the driver REAL
set -u
here=$(cd "$(dirname "$0")" && pwd)

build() { # REAL OUT
  local work status=0
  work=$(mktemp -d)
  nm -D --defined-only "$1" | sed 's/@.*//' | awk '$2 ~ /^[TWi]$/ && $3 ~ /^(cu|emu)[A-Za-z]/ { print $3 }' | sort -u >"$work/names"
  [ -s "$work/names" ] || { echo "forward.sh: $1 exports nothing" >&2; return 77; }
  awk '{ printf "NAME (%d, %s)\n", NR - 1, $1 }' "$work/names" >"$work/forward_names.h"
  printf '#define FORWARD_NAMES %d\n#define FORWARD_EXTRA 512\n' "$(wc -l <"$work/names")" >"$work/forward_table.h"
  { cat "$work/names"; seq 0 511 | sed 's/^/forward_extra_/'; } | awk '
    { name[NR - 1] = $1 }
    END {
      print ".text"
      for (i = 0; i < NR; i++)
        printf ".globl %s\n.type %s, @function\n%s:\n  lock incq forward_counts+%d(%%rip)\n  jmp *forward_slots+%d(%%rip)\n", name[i], name[i], name[i], 8 * i, 8 * i
      printf ".bss\n.balign 8\n.globl forward_counts\n.hidden forward_counts\nforward_counts: .zero %d\n.globl forward_slots\n.hidden forward_slots\nforward_slots: .zero %d\n", 8 * NR, 8 * NR
      print ".section .data.rel.ro, \"aw\"\n.balign 8\n.globl forward_entries\n.hidden forward_entries\nforward_entries:"
      for (i = 0; i < NR; i++)
        print "  .quad " name[i]
      print ".section .note.GNU-stack, \"\", @progbits"
    }' >"$work/forward.s"
  ${CC:-gcc} -shared -fPIC -O1 -D_GNU_SOURCE -w -I"$work" -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -o "$2" \
    "$here/forward.c" "$work/forward.s" -ldl -lpthread || status=77
  rm -rf "$work"
  return $status
}
if [ "${1:-}" = --build ]; then
  build "$2" "$3"
  exit
fi

out=$1
real=$(ldconfig -p 2>/dev/null | awk '$1 == "libcuda.so.1" { print $NF; exit }')
for it in ${LD_LIBRARY_PATH//:/ } /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu; do
  [ -n "$real" ] || { [ -e "$it/libcuda.so.1" ] && real=$it/libcuda.so.1; }
done
[ -n "$real" ] || { echo "forward.sh: no driver: skipped"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build "$(realpath "$real")" "$work/libcuda.so.1" || exit 77
ln -s libcuda.so.1 "$work/libcuda.so"
cupti=$(python3 -c 'import glob, os, sys
paths = [p for d in sys.path for p in glob.glob(os.path.join(d, "nvidia", "**", "libcupti.so.1[0-9]"), recursive=True)]
print((paths + glob.glob("/usr/local/cuda/**/libcupti.so.1[0-9]", recursive=True) + [""])[0])')
export PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync PYTORCH_ALLOC_CONF=backend:cudaMallocAsync
export FERRY_DETERMINISTIC=1 CUBLAS_WORKSPACE_CONFIG=:4096:8
behind() { # REPORT COMMAND...
  FORWARD_REAL=$(realpath "$real") FORWARD_REPORT=$1 LD_PRELOAD=$work/libcuda.so.1 \
    LD_LIBRARY_PATH=$work${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout 150 "${@:2}"
}
for it in "resnet50 32" "gpt2 2"; do
  name=${it% *}
  # shellcheck disable=SC2086
  timeout 150 python3 "$here/pytorch.py" train $it 12 >"$work/$name.plain" 2>"$work/err"
  status=$?
  [ $status != 77 ] || { cat "$work/err"; exit 77; }
  [ $status = 0 ] || tail -n 3 "$work/err"
  # shellcheck disable=SC2086
  FORWARD_SERVE=1 behind "$work/$name.report" python3 "$here/pytorch.py" train $it 12 >"$work/$name.served" 2>"$work/$name.err" ||
    tail -n 3 "$work/$name.err"
  # shellcheck disable=SC2086
  FORWARD_AUDIT=$cupti behind "$work/$name.audit" python3 "$here/pytorch.py" train $it 3 >/dev/null 2>"$work/$name.audit.err" ||
    tail -n 3 "$work/$name.audit.err"
done
python3 - "$work" >"$out" <<'END'
import json, os, sys
work, rows = sys.argv[1], []
def read(name):
    try:
        with open(os.path.join(work, name)) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}
for name in ("resnet50", "gpt2"):
    plain, served = read(name + ".plain"), read(name + ".served")
    report, audit = read(name + ".report"), read(name + ".audit")
    ours, theirs = audit.get("calls", {}), audit.get("cupti", {})
    total = {}
    for key, n in ours.items():  # other versions of an entry are known by its bare name
        total[key.replace("@other", "")] = total.get(key.replace("@other", ""), 0) + n
    differing = {k: [total.get(k, 0), n] for k, n in theirs.items() if total.get(k, 0) != n}
    rows.append({
        "audit_differences": differing, "audit_entries": len(theirs),
        "error": "" if served else "the program failed behind the library",
        "network": name, "report": report,
        "same_losses": bool(plain) and plain.get("losses") == served.get("losses"),
        "step_ns": plain.get("step_ns"), "step_ns_served": served.get("step_ns")})
print(json.dumps({"command": "forward.sh", "rows": rows}, indent=1, sort_keys=True))
sys.exit(0 if all(r["same_losses"] for r in rows) else 1)
END
