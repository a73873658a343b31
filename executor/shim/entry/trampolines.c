/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An entry for every symbol of the driver: a jump through a slot.  A slot begins as the address of
   a stub that keeps all that may carry an argument, asks for the slots to be filled, and goes on;
   so nothing happens before the first call. */
#include "executor/shim/entry/slots.h"

#if !defined __x86_64__
#error "the stubs are written for x86-64"
#endif

/* One statement, so that the compiler cannot put anything between its lines. */
/* clang-format off */
__asm__ (
  "  .text\n"
  "  .set shim_count, 0\n"
  "  .macro EXPORTED_ name\n"
  "  .globl \\name\n"
  "  .type \\name, @function\n"
  "  .balign 16\n"
  "\\name:\n"
  "  endbr64\n"
  "  jmp *shim_slots+8*shim_count(%rip)\n"
  "  .size \\name, .-\\name\n"
  "77:\n"
  "  pushq $shim_count\n"
  "  jmp shim_stub\n"
  "  .pushsection .data.shim, \"aw\"\n"
  "  .quad 77b\n"
  "  .popsection\n"
  "  .set shim_count, shim_count + 1\n"
  "  .endm\n"
  "  .pushsection .data.shim, \"aw\"\n"
  "  .balign 8\n"
  "  .globl shim_slots\n"
  "  .hidden shim_slots\n"
  "shim_slots:\n"
  "  .popsection\n"
  "shim_stub:\n"
  "  pushq %rax\n  pushq %rdi\n  pushq %rsi\n  pushq %rdx\n  pushq %rcx\n  pushq %r8\n  pushq %r9\n"
  "  subq $136, %rsp\n"
  "  movups %xmm0, (%rsp)\n  movups %xmm1, 16(%rsp)\n  movups %xmm2, 32(%rsp)\n"
  "  movups %xmm3, 48(%rsp)\n  movups %xmm4, 64(%rsp)\n  movups %xmm5, 80(%rsp)\n"
  "  movups %xmm6, 96(%rsp)\n  movups %xmm7, 112(%rsp)\n"
  "  movq 192(%rsp), %rdi\n"
  "  call shim_resolve\n"
  "  movq %rax, %r11\n"
  "  movups (%rsp), %xmm0\n  movups 16(%rsp), %xmm1\n  movups 32(%rsp), %xmm2\n"
  "  movups 48(%rsp), %xmm3\n  movups 64(%rsp), %xmm4\n  movups 80(%rsp), %xmm5\n"
  "  movups 96(%rsp), %xmm6\n  movups 112(%rsp), %xmm7\n"
  "  addq $136, %rsp\n"
  "  popq %r9\n  popq %r8\n  popq %rcx\n  popq %rdx\n  popq %rsi\n  popq %rdi\n  popq %rax\n"
  "  addq $8, %rsp\n"
  "  jmp *%r11\n"
#define EXPORTED(name) "  EXPORTED_ " #name "\n"
#include "executor/shim/entry/exports.def"
#undef EXPORTED
);
/* clang-format on */

const char *const shim_names[] = {
#define EXPORTED(name) #name,
#include "executor/shim/entry/exports.def"
#undef EXPORTED
};
const int shim_exports = sizeof shim_names / sizeof *shim_names;
