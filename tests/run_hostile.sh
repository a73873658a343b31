#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the shim meets in other programs: it does nothing in them, or says in one line why it cannot.
. "$(dirname "$0")/run.bash"

never() { # COMMAND...: not a program of the GPU; it works, and ferry says so
  local status=0
  "$ferry" run --driver emulated --budget 1MiB -- "$@" >out 2>err || status=$?
  [ "$status" = 1 ] && grep -q 'never called the driver' err && [ "$(grep -c . err)" = 1 ] || { echo "status $status"; cat err; return 1; }
}
shell() { never bash -c 'x=$(echo hi | cat); test "$x" = hi && echo well' && grep -q well out; }
versioned() { command -v git >/dev/null || { echo "no git"; return 77; }; never git --version && grep -q version out; }
scripted() { command -v python3 >/dev/null || { echo "no python3"; return 77; }; never python3 -c 'import subprocess; print(subprocess.check_output(["echo", "hi"]))' && grep -q hi out; }
early() { # STATUS COMMAND...: it ends before it calls the driver; its status is passed on
  local want=$1 status=0
  shift
  "$ferry" run --driver emulated --budget 1MiB -- "$@" >out 2>err || status=$?
  [ "$status" = "$want" ] && grep -q "ended with status $want.* never called the driver" err && [ "$(grep -c . err)" = 1 ] || { echo "status $status"; cat err; return 1; }
}
fails_early() { early 7 bash -c 'exit 7' && early 137 bash -c 'kill -KILL $$'; }
files() { # named before the program runs; a plan that cannot be kept is followed all the same
  local mlp=("$programs/mlp" "$kernels" 16)
  for it in --plan --keep-plan --keep-trace --report --chrome; do
    run 3 run --driver emulated --budget 1200KiB "$it" "$work/none/such" -- "${mlp[@]}" && grep -q "none/such: cannot be" err && [ ! -s out ] || { cat out err; return 1; }
  done
  plain mlp "${mlp[@]}"
  run 3 run --driver emulated --wait --budget 1200KiB --report mlp.json --keep-plan /dev/full -- "${mlp[@]}" && cmp mlp.plain out &&
    grep -q '/dev/full: cannot be written' err && [ "$(figure planned_steps mlp)" -ge 10 ] || { cat err; return 1; }
}
preloaded() { # without the launcher's variables the library is only there
  LD_PRELOAD=$builddir/libferry-shim.so bash -c 'echo well' >out 2>err && grep -q well out && [ ! -s err ]
}
in_shell() { # a program of the GPU behind two others
  plain mlp "$programs/mlp" "$kernels" 6 && under mlp --budget 1200KiB -- bash -c "env '$programs/mlp' '$kernels' 6" && cmp mlp.plain mlp.out
}
static() {
  printf 'int main (void) { return 0; }\n' >static.c && ${CC:-cc} -static -o static static.c 2>/dev/null || return 77
  local status=0
  "$ferry" run --driver emulated --budget 1MiB -- ./static >out 2>err || status=$?
  [ "$status" = 2 ] && grep -q 'is a static program' err || { echo "status $status"; cat err; return 1; }
}
setuid() {
  cp "$(type -P true)" mine && chmod u+s mine || return 77
  local status=0
  "$ferry" run --driver emulated --budget 1MiB -- ./mine >out 2>err || status=$?
  [ "$status" = 2 ] && grep -q 'setuid' err || { echo "status $status"; cat err; return 1; }
}
# A driver that is opened with a folder in its name is another object than the one that the shim holds.
by_path() {
  mkdir elsewhere && cp "$FERRY_EMU" elsewhere/libcuda.so.1
  cat >by_path.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main (int argc, char **argv) {
  void *far = dlopen (argv[argc - 1], RTLD_NOW), *near = dlopen ("libcuda.so.1", RTLD_NOW);
  unsigned (*init) (unsigned), (*retain) (void **, int), (*current) (void *), (*alloc) (unsigned long long *, size_t);
  void *context;
  unsigned long long at;
  if (!far || !near)
    return 9;
  *(void **)&init = dlsym (near, "cuInit"), *(void **)&retain = dlsym (near, "cuDevicePrimaryCtxRetain");
  *(void **)&current = dlsym (near, "cuCtxSetCurrent"), *(void **)&alloc = dlsym (near, "cuMemAlloc_v2");
  if (init (0) || retain (&context, 0) || current (context))
    return 8;
  printf ("%u\n", alloc (&at, 1 << 17));
  return 0;
}
END
  ${CC:-cc} -o by_path by_path.c -ldl || return 77
  under by_path --budget 1MiB -- ./by_path "$work/elsewhere/libcuda.so.1"
  grep -q 'a second driver library is loaded (.*elsewhere/libcuda.so.1): calls through it would not be seen' by_path.err || { cat by_path.err; return 1; }
}
# A namespace of its own would be a way past the budget.
by_namespace() {
  cat >by_namespace.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main (void) {
  void *near = dlopen ("libcuda.so.1", RTLD_NOW), *far = dlmopen (LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
  unsigned (*init) (unsigned), (*again) (unsigned);
  if (!near || !far)
    return 9;
  *(void **)&init = dlsym (near, "cuInit"), *(void **)&again = dlsym (far, "cuInit");
  unsigned first = init (0);
  printf ("%u %u\n", first, again (0));
  return 0;
}
END
  ${CC:-cc} -o by_namespace by_namespace.c -ldl || return 77
  under by_namespace --budget 1MiB -- ./by_namespace && [ "$(cat by_namespace.out)" = "0 801" ] &&
    grep -q 'a second copy of the shim is loaded (dlmopen)' by_namespace.err || { cat by_namespace.out by_namespace.err; return 1; }
}
# Direct entries, and the memory that the program is told of.
direct() {
  cat >direct.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main (void) {
  void *d = dlopen ("libcuda.so", RTLD_NOW);
  unsigned (*init) (unsigned), (*retain) (void **, int), (*current) (void *), (*alloc) (unsigned long long *, size_t), (*info) (size_t *, size_t *), (*none) (void);
  void *context;
  unsigned long long a, b;
  size_t rest, total;
  if (!d)
    return 9;
  *(void **)&init = dlsym (d, "cuInit"), *(void **)&retain = dlsym (d, "cuDevicePrimaryCtxRetain");
  *(void **)&current = dlsym (d, "cuCtxSetCurrent"), *(void **)&alloc = dlsym (d, "cuMemAlloc_v2");
  *(void **)&info = dlsym (d, "cuMemGetInfo_v2"), *(void **)&none = dlsym (d, "cuGraphicsMapResources");
  if (init (0) || retain (&context, 0) || current (context) || alloc (&a, 1 << 20) || alloc (&b, 1 << 20) || info (&rest, &total))
    return 8;
  printf ("%zu %zu %u %u\n", total >> 20, rest >> 20, alloc (&a, 5 << 20), none ());
  return 0;
}
END
  ${CC:-cc} -o direct direct.c -ldl || return 77
  under direct --budget 2MiB --host 6MiB -- ./direct || { cat direct.err; return 1; }
  [ "$(cat direct.out)" = "8 6 2 500" ] || { cat direct.out; return 1; }
}
# Memory of another context is another device's, or another owner's.
contexts() {
  cat >contexts.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main (void) {
  void *d = dlopen ("libcuda.so.1", RTLD_NOW);
  unsigned (*init) (unsigned), (*retain) (void **, int), (*current) (void *), (*create) (void **, unsigned, int), (*alloc) (unsigned long long *, size_t);
  void *first, *second;
  unsigned long long at;
  if (!d)
    return 9;
  *(void **)&init = dlsym (d, "cuInit"), *(void **)&retain = dlsym (d, "cuDevicePrimaryCtxRetain");
  *(void **)&current = dlsym (d, "cuCtxSetCurrent"), *(void **)&create = dlsym (d, "cuCtxCreate_v2");
  *(void **)&alloc = dlsym (d, "cuMemAlloc_v2");
  if (init (0) || retain (&first, 0) || current (first))
    return 8;
  unsigned one = alloc (&at, 1 << 18);
  if (create (&second, 0, 0))
    return 7;
  unsigned two = alloc (&at, 1 << 18);
  current (first);
  printf ("%u %u %u\n", one, two, alloc (&at, 1 << 18));
  return 0;
}
END
  ${CC:-cc} -o contexts contexts.c -ldl || return 77
  under contexts --budget 1MiB -- ./contexts && [ "$(cat contexts.out)" = "0 801 0" ] &&
    grep -q 'a second gpu context allocated memory' contexts.err && grep -q '"refused": true' contexts.json || { cat contexts.out contexts.err; return 1; }
}
# A thread without a context of its own, as PyTorch's backward pass begins: ferry's calls have one all the same.
orphans() {
  cat >orphans.c <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static unsigned (*alloc) (unsigned long long *, size_t, void *), (*release) (unsigned long long, void *), (*now) (void **),
    (*fill) (unsigned long long, unsigned char, size_t, void *);
static void *s;
static unsigned long long at[8];
static void *backward (void *unused) {
  void *mine = &s;
  (void)unused;
  for (int i = 4; i < 8; i++)
    if (alloc (&at[i], 1 << 18, s) || fill (at[i], i, 1 << 18, s))
      return (void *)"an allocation";
  for (int i = 0; i < 8; i++)
    if (fill (at[i] + 1, i, 1, s) || release (at[i], s))
      return (void *)"a fill";
  return now (&mine) || mine ? (void *)"the context stayed" : NULL;
}
int main (void) {
  void *d = dlopen ("libcuda.so.1", RTLD_NOW), *context, *said = NULL;
  unsigned (*init) (unsigned), (*retain) (void **, int), (*current) (void *), (*make) (void **, unsigned);
  pthread_t t;
  if (!d)
    return 9;
  *(void **)&init = dlsym (d, "cuInit"), *(void **)&retain = dlsym (d, "cuDevicePrimaryCtxRetain");
  *(void **)&current = dlsym (d, "cuCtxSetCurrent"), *(void **)&make = dlsym (d, "cuStreamCreate");
  *(void **)&alloc = dlsym (d, "cuMemAllocAsync"), *(void **)&release = dlsym (d, "cuMemFreeAsync");
  *(void **)&fill = dlsym (d, "cuMemsetD8Async"), *(void **)&now = dlsym (d, "cuCtxGetCurrent");
  if (init (0) || retain (&context, 0) || current (context) || make (&s, 0))
    return 8;
  for (int i = 0; i < 4; i++)
    if (alloc (&at[i], 1 << 18, s) || fill (at[i], i, 1 << 18, s))
      return 7;
  pthread_create (&t, NULL, backward, NULL);
  pthread_join (t, &said);
  puts (said ? (char *)said : "good");
  return 0;
}
END
  ${CC:-cc} -o orphans orphans.c -ldl -lpthread || return 77
  under orphans --budget 1MiB -- ./orphans && [ "$(cat orphans.out)" = good ] && [ "$(figure evictions orphans)" -gt 0 ] ||
    { cat orphans.out orphans.err; return 1; }
}
# An op that finds no room is an error to the program, as out of memory is, and what it does next goes on.
goes_on() {
  cat >goes_on.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main (void) {
  void *d = dlopen ("libcuda.so.1", RTLD_NOW), *context, *s;
  unsigned (*init) (unsigned), (*retain) (void **, int), (*current) (void *), (*make) (void **, unsigned), (*alloc) (unsigned long long *, size_t, void *),
      (*release) (unsigned long long, void *), (*copy) (unsigned long long, unsigned long long, size_t, void *), (*sync) (void *), (*fill) (unsigned long long, unsigned char, size_t, void *);
  unsigned long long at[2];
  unsigned char byte = 0;
  unsigned (*out) (void *, unsigned long long, size_t);
  if (!d)
    return 9;
  *(void **)&init = dlsym (d, "cuInit"), *(void **)&retain = dlsym (d, "cuDevicePrimaryCtxRetain");
  *(void **)&current = dlsym (d, "cuCtxSetCurrent"), *(void **)&make = dlsym (d, "cuStreamCreate");
  *(void **)&alloc = dlsym (d, "cuMemAllocAsync"), *(void **)&release = dlsym (d, "cuMemFreeAsync");
  *(void **)&copy = dlsym (d, "cuMemcpyDtoDAsync_v2"), *(void **)&sync = dlsym (d, "cuStreamSynchronize");
  *(void **)&fill = dlsym (d, "cuMemsetD8Async"), *(void **)&out = dlsym (d, "cuMemcpyDtoH_v2");
  if (init (0) || retain (&context, 0) || current (context) || make (&s, 0))
    return 8;
  for (int round = 0; round < 6; round++) {
    size_t bytes = round % 2 ? 500 << 10 : 600 << 10;
    if (alloc (&at[0], bytes, s) || alloc (&at[1], bytes, s) || fill (at[0], 7 + round, bytes, s))
      return 7;
    unsigned r = copy (at[1], at[0], bytes, s);
    if (r == 0 && (out (&byte, at[1] + bytes - 1, 1) || byte != 7 + round))
      return 6;
    printf ("%u ", r);
    if (release (at[0], s) || release (at[1], s) || sync (s))
      return 5;
  }
  return 0;
}
END
  ${CC:-cc} -o goes_on goes_on.c -ldl || return 77
  under goes_on --budget 1MiB -- ./goes_on && [ "$(cat goes_on.out)" = "2 0 2 0 2 0 " ] || { cat goes_on.out goes_on.err; return 1; }
}
# A child of one that has asked the driver for its version only may have the device, and its memory is within the budget.
forked_first() {
  cat >forked_first.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main (void) {
  void *d = dlopen ("libcuda.so.1", RTLD_NOW), *context;
  unsigned (*version) (int *), (*init) (unsigned), (*retain) (void **, int), (*current) (void *), (*alloc) (unsigned long long *, size_t), (*info) (size_t *, size_t *);
  unsigned long long at;
  size_t rest, total;
  int it, status;
  if (!d)
    return 9;
  *(void **)&version = dlsym (d, "cuDriverGetVersion"), *(void **)&init = dlsym (d, "cuInit");
  *(void **)&retain = dlsym (d, "cuDevicePrimaryCtxRetain"), *(void **)&current = dlsym (d, "cuCtxSetCurrent");
  *(void **)&alloc = dlsym (d, "cuMemAlloc_v2"), *(void **)&info = dlsym (d, "cuMemGetInfo_v2");
  if (version (&it))
    return 8;
  pid_t child = fork ();
  if (child > 0)
    return waitpid (child, &status, 0) == child ? WEXITSTATUS (status) : 7;
  if (init (0) || retain (&context, 0) || current (context) || alloc (&at, 1 << 20) || info (&rest, &total))
    return 6;
  printf ("%zu %zu %u\n", total >> 20, rest >> 20, alloc (&at, 5 << 20));
  return 0;
}
END
  ${CC:-cc} -o forked_first forked_first.c -ldl || return 77
  under forked_first --budget 2MiB --host 6MiB -- ./forked_first && [ "$(cat forked_first.out)" = "8 7 2" ] ||
    { cat forked_first.out forked_first.err; return 1; }
}
one_by_one() { # a second has what the first had, once that has ended, however it did
  plain mlp "$programs/mlp" "$kernels" 16 && cat mlp.plain mlp.plain >one.plain &&
    same one --wait --budget 1200KiB -- bash -c "'$programs/mlp' '$kernels' 16; '$programs/habits' '$kernels' 1 leaves >/dev/null; '$programs/mlp' '$kernels' 16" &&
    [ "$(figure planned_steps one)" -ge 20 ] && [ "$(figure entries one)" = 2 ] || { cat one.err; return 1; }
}
orphaned() { # its launcher is killed before it has answered, and its parent is a shell
  local launcher i
  mkdir -p left && rm -f pid over && mkfifo go && plain mlp "$programs/mlp" "$kernels" 16 || return 1
  TMPDIR=$work/left "$ferry" run -q --driver emulated --wait --budget 1200KiB -- \
    bash -c 'echo $$ >pid; read -r <go; timeout 20 "$@" >orphan.out; echo $? >over' - "$programs/mlp" "$kernels" 16 2>orphan.err &
  launcher=$!
  for ((i = 0; i < 2000; i++)); do [ -s pid ] && break; sleep 0.01; done
  kill -STOP "$launcher" && echo >go && kill -KILL "$launcher"
  wait "$launcher" 2>/dev/null
  for ((i = 0; i < 2500; i++)); do [ -s over ] && break; sleep 0.01; done
  [ "$(cat over)" = 0 ] && cmp mlp.plain orphan.out || { cat over orphan.err; return 1; }
}
moved() { # what ferry and the program share is found from another folder too
  local mlp="'$programs/mlp' '$kernels' 16"
  mkdir -p near && plain mlp "$programs/mlp" "$kernels" 16 &&
    TMPDIR=near same mlp --wait --budget 1200KiB -- bash -c "cd /; exec $mlp" && [ "$(figure planned_steps mlp)" -ge 10 ] && [ -z "$(ls -A near)" ] &&
    XDG_RUNTIME_DIR='' TMPDIR=near same mlp --wait --share moved --budget 1200KiB -- bash -c "cd /; exec $mlp" && [ -z "$(ls -A near)" ]
}
spaced() { # the loader takes no path with a space or a colon: a link to it has none, and lies elsewhere
  mkdir 'a b' 'c:d' && cp "$builddir/libferry-shim.so" 'a b' && plain mlp "$programs/mlp" "$kernels" 16 &&
    FERRY_SHIM_LIBRARY='a b/libferry-shim.so' same mlp --wait --budget 1200KiB -- "$programs/mlp" "$kernels" 16 && [ ! -s mlp.err ] &&
    FERRY_SHIM_LIBRARY='a b/libferry-shim.so' TMPDIR='c:d' same mlp --wait --budget 1200KiB -- "$programs/mlp" "$kernels" 16 && [ ! -s mlp.err ] &&
    [ "$(figure planned_steps mlp)" -ge 10 ] && [ -z "$(ls -A 'c:d')" ]
}
only_asking() { # whoever asks how many devices there are, and leaves the work to another, has no memory
  cat >only_asking.c <<'END'
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
int main (int argc, char **argv) {
  void *d = dlopen ("libcuda.so.1", RTLD_NOW);
  unsigned (*init) (unsigned), (*count) (int *);
  int n, status;
  if (!d || argc < 2)
    return 9;
  *(void **)&init = dlsym (d, "cuInit"), *(void **)&count = dlsym (d, "cuDeviceGetCount");
  if (init (0) || count (&n) || n != 1)
    return 8;
  pid_t child = fork ();
  if (child == 0)
    execv (argv[1], argv + 1);
  return waitpid (child, &status, 0) == child ? WEXITSTATUS (status) : 7;
}
END
  ${CC:-cc} -o only_asking only_asking.c -ldl || return 77
  plain mlp "$programs/mlp" "$kernels" 16 && same mlp --wait --budget 1200KiB -- ./only_asking "$programs/mlp" "$kernels" 16 &&
    [ "$(figure planned_steps mlp)" -ge 10 ] || { cat mlp.err; return 1; }
}
two_processes() { # the second that wants the device is told so
  under two --budget 1200KiB -- bash -c "'$programs/mlp' '$kernels' 200 >/dev/null & sleep 0.3; '$programs/mlp' '$kernels' 2; wait"
  grep -q 'wants the gpu too; the budget belongs to' two.err || { cat two.err; return 1; }
}
refuses() { # NAME: the driver is not asked, and the line names the entry
  under refused --budget 1MiB -- "$programs/refused" "$kernels" 1 "$1" && grep -q "^$1: 801$" refused.out &&
    grep -q "($1) is not supported under a budget; " refused.err && grep -q '"refused": true' refused.json || { cat refused.out refused.err; return 1; }
}
no_trace() {
  local status=0
  "$ferry" profile --driver emulated -o no.json -- "$programs/refused" "$kernels" 1 cuStreamBeginCapture >out 2>err || status=$?
  [ "$status" = 1 ] && [ ! -e no.json ] && grep -q 'no trace is written' err
}
not_there() { run 3 run --driver emulated --budget 1MiB -- ./nowhere && grep -q 'nowhere: No such file' err; }
no_budget() { run 2 run --driver emulated -- true && grep -q 'needs --budget' err; }
least_alone() { run 2 run --driver emulated --budget 1MiB --least 1MiB -- true && grep -q -e '--least needs --share' err; }
no_driver() { [ -e /dev/nvidiactl ] && return 77; run 69 run --budget 1MiB -- true && grep -q 'use --driver emulated' err; }
tables() { # what stands in for the toolkit is what it says
  local it header=${CUDA_HOME:-/usr/local/cuda}/include/cuda.h
  grep -q '^#define CUDA_VERSION 13000$' "$header" 2>/dev/null || { echo "no toolkit of CUDA 13.0, which the tables are of"; return 77; }
  for it in exports abis; do
    [ $it = abis ] || ls "${CUDA_HOME:-/usr/local/cuda}"/{lib64,lib,targets/*/lib}/stubs/libcuda.so >/dev/null 2>&1 || continue # a toolkit from PyPI has no stub
    bash "$srcdir/executor/shim/entry/tables.sh" $it "${CUDA_HOME:-/usr/local/cuda}" | diff - "$srcdir/executor/shim/entry/$it.def" || return 1
  done
}

claim "a program that fails before it calls the driver keeps its status" fails_early
claim "files that cannot be had are named before the program runs" files
claim "bash is as before" shell
claim "git is as before" versioned
claim "python without a GPU is as before" scripted
claim "the library alone does nothing" preloaded
claim "a program behind a shell and env is found" in_shell
claim "a static program is refused" static
claim "a program with another user's rights is refused" setuid
claim "a driver opened by its path is seen" by_path
claim "a driver in a namespace of its own is refused" by_namespace
claim "direct calls are served, and told of the host's memory too" direct
claim "memory of a second context is refused" contexts
claim "a thread without a context of its own is served" orphans
claim "behind an op that had no room a program goes on" goes_on
claim "a child that is the first to have the device is served" forked_first
claim "a program that waits for a plan goes on when its launcher is killed" orphaned
claim "a program may go to another folder" moved
claim "ferry may lie in a folder with a space" spaced
claim "one process after another is served" one_by_one
claim "a process that asks for no memory keeps nobody from it" only_asking
claim "two processes are not served from one budget" two_processes
for it in cuGraphAddMemAllocNode cuGraphExecNodeSetParams cuMemAllocManaged cuMemCreate cuIpcGetMemHandle cuGreenCtxCreate \
  cuCtxEnablePeerAccess cuTexObjectCreate cuMemcpyBatchAsync cuMulticastCreate cuArrayCreate \
  cuMemBatchDecompressAsync; do
  claim "$it is refused" refuses $it
done
claim "a profile of what it cannot see is no trace" no_trace
claim "a program that is not there is one line" not_there
claim "a budget must be given" no_budget
claim "a share of nothing is refused" least_alone
claim "no driver is one line" no_driver
claim "the tables are those of CUDA 13.0" tables
finish
