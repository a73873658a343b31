/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The two kernels for a GPU, as text that its driver compiles: nothing of CUDA is needed to build
   ferry.  The layouts of kernel_operand, mismatch and the pattern are those of kernels.h. */
#include "executor/kernels/kernels.h"

_Static_assert(offsetof (kernel_operand, at) == 0, "the text below counts on it");
_Static_assert(offsetof (kernel_operand, bytes) == 8, "the text below counts on it");
_Static_assert(offsetof (kernel_operand, offset) == 16, "the text below counts on it");
_Static_assert(offsetof (kernel_operand, version) == 24, "the text below counts on it");
_Static_assert(offsetof (kernel_operand, per_step) == 32, "the text below counts on it");
_Static_assert(offsetof (kernel_operand, tensor) == 40, "the text below counts on it");
_Static_assert(offsetof (kernel_operand, mode) == 44, "the text below counts on it");
_Static_assert(offsetof (mismatch, count) == 0, "the text below counts on it");
_Static_assert(offsetof (mismatch, op) == 8, "the text below counts on it");
_Static_assert(offsetof (mismatch, step) == 16, "the text below counts on it");
_Static_assert(offsetof (mismatch, tensor) == 24, "the text below counts on it");
_Static_assert(offsetof (mismatch, offset) == 32, "the text below counts on it");
_Static_assert(sizeof (kernel_operand) == 48, "the text below counts on it");

#define HEAD ".version 7.0\n.target sm_52\n.address_size 64\n"

/* Every block spins until `ns` after its own start. */
#define SPIN                           \
  "spin:\n"                            \
  "  mov.u64 %now, %globaltimer;\n"    \
  "  sub.u64 %now, %now, %start;\n"    \
  "  setp.lt.u64 %again, %now, %ns;\n" \
  "  @%again bra spin;\n"              \
  "  ret;\n"                           \
  "}\n"

#define WAIT                                          \
  ".visible .entry ferry_wait (.param .u64 p_ns) {\n" \
  "  .reg .u64 %start, %now, %ns;\n"                  \
  "  .reg .pred %again;\n"                            \
  "  mov.u64 %start, %globaltimer;\n"                 \
  "  ld.param.u64 %ns, [p_ns];\n" SPIN

/* word (tensor, version, i) = (((tensor + 1) x A + version x B) ^ i) x C */
#define WORD(seed, index, to)                \
  "  xor.b64 " to ", " seed ", " index ";\n" \
  "  mul.lo.u64 " to ", " to ", 0x2545f4914f6cdd1d;\n"

#define TOUCH                                                                                      \
  ".visible .entry ferry_touch (.param .u64 p_operands, .param .u64 p_count, .param .u64 "         \
  "p_step,\n"                                                                                      \
  "    .param .u64 p_ns, .param .u64 p_op, .param .u64 p_found) {\n"                               \
  "  .reg .u64 %start, %now, %ns, %x, %count, %step, %op, %found, %at, %bytes, %offset;\n"         \
  "  .reg .u64 %version, %per, %seed, %next, %t, %i, %stride, %left, %index, %want, %got, %p;\n"   \
  "  .reg .u64 %n, %m, %old, %tensor, %byte;\n"                                                    \
  "  .reg .u32 %thread, %block, %width, %grid, %mode, %bit;\n"                                     \
  "  .reg .pred %again, %done, %whole, %reads, %writes, %fills, %bad, %first, %more;\n"            \
  "  mov.u64 %start, %globaltimer;\n"                                                              \
  "  ld.param.u64 %x, [p_operands];\n"                                                             \
  "  ld.param.u64 %count, [p_count];\n"                                                            \
  "  ld.param.u64 %step, [p_step];\n"                                                              \
  "  ld.param.u64 %ns, [p_ns];\n"                                                                  \
  "  ld.param.u64 %op, [p_op];\n"                                                                  \
  "  ld.param.u64 %found, [p_found];\n"                                                            \
  "  mov.u32 %thread, %tid.x;\n"                                                                   \
  "  mov.u32 %block, %ctaid.x;\n"                                                                  \
  "  mov.u32 %width, %ntid.x;\n"                                                                   \
  "  mov.u32 %grid, %nctaid.x;\n"                                                                  \
  "  mul.wide.u32 %stride, %width, %grid;\n"                                                       \
  "  shl.b64 %stride, %stride, 3;\n"                                                               \
  "next_operand:\n"                                                                                \
  "  setp.eq.u64 %done, %count, 0;\n"                                                              \
  "  @%done bra spin;\n"                                                                           \
  "  ld.u64 %at, [%x];\n"                                                                          \
  "  ld.u64 %bytes, [%x+8];\n"                                                                     \
  "  ld.u64 %offset, [%x+16];\n"                                                                   \
  "  ld.u64 %version, [%x+24];\n"                                                                  \
  "  ld.u64 %per, [%x+32];\n"                                                                      \
  "  ld.u32 %bit, [%x+40];\n"                                                                      \
  "  ld.u32 %mode, [%x+44];\n"                                                                     \
  "  cvt.u64.u32 %tensor, %bit;\n"                                                                 \
  "  mad.lo.u64 %version, %step, %per, %version;\n"                                                \
  "  add.u64 %t, %tensor, 1;\n"                                                                    \
  "  mul.lo.u64 %t, %t, 0x9e3779b97f4a7c15;\n"                                                     \
  "  mad.lo.u64 %seed, %version, 0xd1342543de82ef95, %t;\n"                                        \
  "  add.u64 %next, %seed, 0xd1342543de82ef95;\n"                                                  \
  "  and.b32 %bit, %mode, 1;\n"                                                                    \
  "  setp.ne.u32 %reads, %bit, 0;\n"                                                               \
  "  and.b32 %bit, %mode, 2;\n"                                                                    \
  "  setp.ne.u32 %writes, %bit, 0;\n"                                                              \
  "  and.b32 %bit, %mode, 4;\n"                                                                    \
  "  setp.ne.u32 %fills, %bit, 0;\n"                                                               \
  "  mad.wide.u32 %i, %block, %width, 0;\n"                                                        \
  "  cvt.u64.u32 %t, %thread;\n"                                                                   \
  "  add.u64 %i, %i, %t;\n"                                                                        \
  "  shl.b64 %i, %i, 3;\n"                                                                         \
  "next_word:\n"                                                                                   \
  "  setp.ge.u64 %done, %i, %bytes;\n"                                                             \
  "  @%done bra operand_done;\n"                                                                   \
  "  add.u64 %index, %offset, %i;\n"                                                               \
  "  shr.u64 %index, %index, 3;\n"                                                                 \
  "  add.u64 %p, %at, %i;\n"                                                                       \
  "  sub.u64 %left, %bytes, %i;\n"                                                                 \
  "  setp.ge.u64 %whole, %left, 8;\n"                                                              \
  "  @!%whole bra tail;\n" WORD (                                                                  \
      "%seed", "%index",                                                                           \
      "%want") "  @%fills st.u64 [%p], %want;\n"                                                   \
               "  @!%reads bra word_write;\n"                                                      \
               "  ld.u64 %got, [%p];\n"                                                            \
               "  setp.ne.u64 %bad, %got, %want;\n"                                                \
               "  @%bad bra report;\n"                                                             \
               "word_write:\n"                                                                     \
               "  @!%writes bra word_done;\n" WORD (                                               \
                   "%next", "%index",                                                              \
                   "%want") "  st.u64 [%p], %want;\n"                                              \
                            "  bra word_done;\n"                                                   \
                            "report:\n"                                                            \
                            "  atom.add.u64 %old, [%found], 1;\n"                                  \
                            "  setp.ne.u64 %first, %old, 0;\n"                                     \
                            "  @%first bra reported;\n"                                            \
                            "  shl.b64 %byte, %index, 3;\n"                                        \
                            "  st.u64 [%found+8], %op;\n"                                          \
                            "  st.u64 [%found+16], %step;\n"                                       \
                            "  st.u64 [%found+24], %tensor;\n"                                     \
                            "  st.u64 [%found+32], %byte;\n"                                       \
                            "reported:\n"                                                          \
                            "  @%whole bra word_write;\n"                                          \
                            "  bra tail_write;\n" /* the last word of a tensor, byte by byte */    \
                            "tail:\n" WORD ("%seed", "%index",                                     \
                                            "%want") "  mov.u64 %n, 0;\n"                          \
                                                     "  mov.u64 %m, %want;\n"                      \
                                                     "tail_fill:\n"                                \
                                                     "  @!%fills bra tail_read;\n"                 \
                                                     "  add.u64 %t, %p, %n;\n"                     \
                                                     "  st.u8 [%t], %m;\n"                         \
                                                     "  shr.u64 %m, %m, 8;\n"                      \
                                                     "  add.u64 %n, %n, 1;\n"                      \
                                                     "  setp.lt.u64 %more, %n, %left;\n"           \
                                                     "  @%more bra tail_fill;\n"                   \
                                                     "tail_read:\n"                                \
                                                     "  @!%reads bra tail_write;\n"                \
                                                     "  mov.u64 %n, 0;\n"                          \
                                                     "  mov.u64 %m, %want;\n"                      \
                                                     "tail_compare:\n"                             \
                                                     "  add.u64 %t, %p, %n;\n"                     \
                                                     "  ld.u8 %got, [%t];\n"                       \
                                                     "  and.b64 %byte, %m, 255;\n"                 \
                                                     "  setp.ne.u64 %bad, %got, %byte;\n"          \
                                                     "  @%bad bra report;\n"                       \
                                                     "  shr.u64 %m, %m, 8;\n"                      \
                                                     "  add.u64 %n, %n, 1;\n"                      \
                                                     "  setp.lt.u64 %more, %n, %left;\n"           \
                                                     "  @%more bra tail_compare;\n"                \
                                                     "tail_write:\n"                               \
                                                     "  @!%writes bra word_done;\n" WORD (         \
                                                         "%next", "%index",                        \
                                                         "%m") "  mov.u64 %n, 0;\n"                \
                                                               "tail_store:\n"                     \
                                                               "  add.u64 %t, %p, %n;\n"           \
                                                               "  st.u8 [%t], %m;\n"               \
                                                               "  shr.u64 %m, %m, 8;\n"            \
                                                               "  add.u64 %n, %n, 1;\n"            \
                                                               "  setp.lt.u64 %more, %n, %left;\n" \
                                                               "  @%more bra tail_store;\n"        \
                                                               "word_done:\n"                      \
                                                               "  add.u64 %i, %i, %stride;\n"      \
                                                               "  bra next_word;\n"                \
                                                               "operand_done:\n"                   \
                                                               "  add.u64 %x, %x, 48;\n"           \
                                                               "  sub.u64 %count, %count, 1;\n"    \
                                                               "  bra next_operand;\n" SPIN

const char *const kernels_ptx = HEAD WAIT TOUCH;
