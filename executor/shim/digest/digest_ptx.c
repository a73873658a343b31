/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernels for a GPU, as text that its driver compiles; any driver that the shim takes knows
   this version.  tests/ptx.py runs it and compares it with digest.c. */
#include "executor/shim/digest/digest.h"

#define MIX                                    \
  "  xor.b64 %x, %w, %key;\n"                  \
  "  shr.u64 %t, %x, 30;\n"                    \
  "  xor.b64 %x, %x, %t;\n"                    \
  "  mul.lo.u64 %x, %x, 0xbf58476d1ce4e5b9;\n" \
  "  shr.u64 %t, %x, 27;\n"                    \
  "  xor.b64 %x, %x, %t;\n"                    \
  "  mul.lo.u64 %x, %x, 0x94d049bb133111eb;\n" \
  "  shr.u64 %t, %x, 31;\n"                    \
  "  xor.b64 %x, %x, %t;\n"                    \
  "  add.u64 %sum, %sum, %x;\n"

/* Adds the sum of the thread that is `lanes` further on. */
#define FROM_LANE(lanes)                                        \
  "  cvt.u32.u64 %lo, %sum;\n"                                  \
  "  shr.u64 %t, %sum, 32;\n"                                   \
  "  cvt.u32.u64 %hi, %t;\n"                                    \
  "  shfl.sync.down.b32 %lo, %lo, " lanes ", 31, 0xffffffff;\n" \
  "  shfl.sync.down.b32 %hi, %hi, " lanes ", 31, 0xffffffff;\n" \
  "  cvt.u64.u32 %t, %hi;\n"                                    \
  "  shl.b64 %t, %t, 32;\n"                                     \
  "  cvt.u64.u32 %x, %lo;\n"                                    \
  "  or.b64 %t, %t, %x;\n"                                      \
  "  add.u64 %sum, %sum, %t;\n"

const char *const digest_ptx =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry ferry_digest (.param .u64 p_at, .param .u64 p_bytes, .param .u64 p_out) {\n"
    "  .reg .u64 %at, %bytes, %out, %i, %stride, %words, %w, %x, %t, %key, %step, %sum, %n;\n"
    "  .reg .u64 %ahead;\n"
    "  .reg .u32 %thread, %block, %width, %grid, %lo, %hi, %lane;\n"
    "  .reg .pred %is;\n"
    "  ld.param.u64 %at, [p_at];\n"
    "  ld.param.u64 %bytes, [p_bytes];\n"
    "  ld.param.u64 %out, [p_out];\n"
    "  mov.u32 %thread, %tid.x;\n"
    "  mov.u32 %block, %ctaid.x;\n"
    "  mov.u32 %width, %ntid.x;\n"
    "  mov.u32 %grid, %nctaid.x;\n"
    "  mul.wide.u32 %i, %block, %width;\n"
    "  cvt.u64.u32 %t, %thread;\n"
    "  add.u64 %i, %i, %t;\n"
    "  mul.wide.u32 %stride, %width, %grid;\n"
    "  shr.u64 %words, %bytes, 3;\n"
    "  add.u64 %t, %i, 1;\n"
    "  mul.lo.u64 %key, %t, 0x9e3779b97f4a7c15;\n"
    "  mul.lo.u64 %step, %stride, 0x9e3779b97f4a7c15;\n"
    "  shl.b64 %t, %i, 3;\n"
    "  add.u64 %at, %at, %t;\n"
    "  shl.b64 %ahead, %stride, 3;\n"
    "  mov.u64 %sum, 0;\n"
    "next:\n"
    "  setp.ge.u64 %is, %i, %words;\n"
    "  @%is bra end;\n"
    "  ld.global.u64 %w, [%at];\n" MIX "  add.u64 %i, %i, %stride;\n"
    "  add.u64 %key, %key, %step;\n"
    "  add.u64 %at, %at, %ahead;\n"
    "  bra next;\n"
    "end:\n" /* the thread behind the last word has what is left */
    "  and.b64 %n, %bytes, 7;\n"
    "  setp.eq.u64 %is, %n, 0;\n"
    "  @%is bra sum_up;\n"
    "  setp.ne.u64 %is, %i, %words;\n"
    "  @%is bra sum_up;\n"
    "  mov.u64 %w, 0;\n"
    "byte:\n"
    "  sub.u64 %n, %n, 1;\n"
    "  add.u64 %t, %at, %n;\n"
    "  ld.global.u8 %x, [%t];\n"
    "  shl.b64 %w, %w, 8;\n"
    "  or.b64 %w, %w, %x;\n"
    "  setp.ne.u64 %is, %n, 0;\n"
    "  @%is bra byte;\n" MIX "sum_up:\n" FROM_LANE ("16") FROM_LANE ("8") FROM_LANE ("4")
        FROM_LANE ("2") FROM_LANE (
            "1") "  and.b32 %lane, %thread, 31;\n"
                 "  setp.ne.u32 %is, %lane, 0;\n"
                 "  @%is bra done;\n"
                 "  red.global.add.u64 [%out], %sum;\n"
                 "done:\n"
                 "  ret;\n"
                 "}\n"
                 ".visible .entry ferry_copy_unless (.param .u64 p_from, .param .u64 p_to, .param "
                 ".u64 p_bytes,\n"
                 "    .param .u64 p_a, .param .u64 p_b, .param .u64 p_told) {\n"
                 "  .reg .u64 %from, %to, %bytes, %i, %stride, %words, %t, %p, %w, %n, %told;\n"
                 "  .reg .u32 %thread, %block, %width, %grid;\n"
                 "  .reg .pred %is;\n"
                 "  ld.param.u64 %p, [p_a];\n"
                 "  ld.global.u64 %w, [%p];\n"
                 "  ld.param.u64 %p, [p_b];\n"
                 "  ld.global.u64 %t, [%p];\n"
                 "  setp.eq.u64 %is, %w, %t;\n"
                 "  @%is bra done;\n"
                 "  ld.param.u64 %from, [p_from];\n"
                 "  ld.param.u64 %to, [p_to];\n"
                 "  ld.param.u64 %bytes, [p_bytes];\n"
                 "  ld.param.u64 %told, [p_told];\n"
                 "  mov.u32 %thread, %tid.x;\n"
                 "  mov.u32 %block, %ctaid.x;\n"
                 "  mov.u32 %width, %ntid.x;\n"
                 "  mov.u32 %grid, %nctaid.x;\n"
                 "  mul.wide.u32 %i, %block, %width;\n"
                 "  cvt.u64.u32 %t, %thread;\n"
                 "  add.u64 %i, %i, %t;\n"
                 "  mul.wide.u32 %stride, %width, %grid;\n"
                 "  shr.u64 %words, %bytes, 3;\n"
                 "  setp.ne.u64 %is, %i, 0;\n"
                 "  @%is bra next;\n"
                 "  mov.u64 %w, 1;\n"
                 "  st.global.u64 [%told], %w;\n"
                 "next:\n"
                 "  setp.ge.u64 %is, %i, %words;\n"
                 "  @%is bra end;\n"
                 "  shl.b64 %t, %i, 3;\n"
                 "  add.u64 %p, %from, %t;\n"
                 "  ld.global.u64 %w, [%p];\n"
                 "  add.u64 %p, %to, %t;\n"
                 "  st.global.u64 [%p], %w;\n"
                 "  add.u64 %i, %i, %stride;\n"
                 "  bra next;\n"
                 "end:\n"
                 "  setp.ne.u64 %is, %i, %words;\n"
                 "  @%is bra done;\n"
                 "  and.b64 %n, %bytes, 7;\n"
                 "byte:\n"
                 "  setp.eq.u64 %is, %n, 0;\n"
                 "  @%is bra done;\n"
                 "  sub.u64 %n, %n, 1;\n"
                 "  shl.b64 %t, %i, 3;\n"
                 "  add.u64 %t, %t, %n;\n"
                 "  add.u64 %p, %from, %t;\n"
                 "  ld.global.u8 %w, [%p];\n"
                 "  add.u64 %p, %to, %t;\n"
                 "  st.global.u8 [%p], %w;\n"
                 "  bra byte;\n"
                 "done:\n"
                 "  ret;\n"
                 "}\n";
