#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A kind of op without flops, operands (its bytes), a way back, or a function does not compile or link:
# rows that lack one are tried.
. "$(dirname "$0")/common.bash"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/trace"
eval "flags=(${COMPILE_FLAGS:--I. -std=gnu11})" # their quotes are the shell's

with() { # ROW: the table with one row more
  sed '/^#undef SHAPE/,$d' trace/compute.def >"$work/trace/compute.def"
  printf '%s\n#undef SHAPE\n#undef COMPUTE\n' "$1" >>"$work/trace/compute.def"
}
compiles() { # FILE
  ${CC:-cc} -I"$work" "${flags[@]}" -c "$1" -o "$work/out.o" 2>"$work/err"
}
whole='COMPUTE (odd_fwd, map, ITEMS, PLAIN, FORWARD (relu_bwd), 0, OPERAND (READ, x, ITEM, DATA, s->size) OPERAND (WRITE, y, ITEM, DATA, s->size))'

complete() {
  with "$whole"
  compiles trace/compute.c || { echo "a complete row does not compile"; cat "$work/err"; }
}
refused() { # ROW
  with "$1"
  ! compiles trace/compute.c || echo "compiles: $1"
}
without_flops() { refused "${whole/ 0, OPERAND (READ/ OPERAND (READ}"; }
without_operands() { refused "${whole%%, OPERAND*})"; }
without_way() { refused "${whole/FORWARD (relu_bwd), /}"; }
without_backward() { refused "${whole/FORWARD (relu_bwd)/FORWARD ()}"; }
with_unknown_backward() { refused "${whole/relu_bwd/odd_bwd}"; }
without_rate() { refused "${whole/PLAIN, /}"; }
without_shape() { refused "${whole/map/odd}"; }
without_function() {
  with "$whole"
  compiles executor/ops/ops.c || { cat "$work/err"; return; }
  [ "$(nm "$work/out.o" | grep -c ' U op_odd_fwd$')" = 1 ] || echo "executor/ops/ops.c does not want op_odd_fwd"
}

claim "a complete row compiles" complete
claim "a row without flops does not compile" without_flops
claim "a row without operands does not compile" without_operands
claim "a row without a way back does not compile" without_way
claim "a forward without a backward does not compile" without_backward
claim "a backward must be a kind" with_unknown_backward
claim "a row without a rate does not compile" without_rate
claim "a row without a shape does not compile" without_shape
claim "a row without a function does not link" without_function
finish
