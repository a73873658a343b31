# SPDX-License-Identifier: GPL-3.0-or-later
# These files the launcher has too.
libcore_a_SOURCES += \
  executor/shim/digest/digest.c \
  executor/shim/digest/digest.h \
  executor/shim/digest/digest_ptx.c \
  executor/shim/step/answer.c \
  executor/shim/step/answer.h \
  executor/shim/step/block.h \
  executor/shim/step/crossing.c \
  executor/shim/step/period.c \
  executor/shim/step/period.h
EXTRA_DIST += \
  executor/shim/README.md \
  executor/shim/again/README.md \
  executor/shim/calls/README.md \
  executor/shim/digest/README.md \
  executor/shim/entry/README.md \
  executor/shim/entry/abis.def \
  executor/shim/entry/exports.def \
  executor/shim/entry/tables.sh \
  executor/shim/follow/README.md \
  executor/shim/memory/README.md \
  executor/shim/record/README.md \
  executor/shim/rules.md \
  executor/shim/state/README.md \
  executor/shim/step/README.md

# A library in front of the driver, in a program that is profiled or run under a budget: its SONAME is the
# driver's. Its stubs are written for one architecture.
SHIM_FILES = \
  executor/shim/again/again.c \
  executor/shim/again/again.h \
  executor/shim/again/pairs.c \
  executor/shim/again/pairs.h \
  executor/shim/again/repeat.c \
  executor/shim/again/repeat.h \
  executor/shim/again/trial.c \
  executor/shim/calls/calls.h \
  executor/shim/calls/capture.c \
  executor/shim/calls/capture.h \
  executor/shim/calls/context.c \
  executor/shim/calls/copies.c \
  executor/shim/calls/functions.c \
  executor/shim/calls/graphs.c \
  executor/shim/calls/graphs.h \
  executor/shim/calls/life.c \
  executor/shim/calls/memory.c \
  executor/shim/calls/nodes.c \
  executor/shim/calls/ops.c \
  executor/shim/calls/owner.c \
  executor/shim/calls/owner.h \
  executor/shim/calls/ranks.c \
  executor/shim/calls/values.c \
  executor/shim/calls/waits.c \
  executor/shim/digest/kernels.c \
  executor/shim/digest/kernels.h \
  executor/shim/entry/refused.def \
  executor/shim/entry/resolve.c \
  executor/shim/entry/slots.h \
  executor/shim/entry/trampolines.c \
  executor/shim/follow/asking.c \
  executor/shim/follow/asking.h \
  executor/shim/follow/follow.c \
  executor/shim/follow/follow.h \
  executor/shim/follow/following.h \
  executor/shim/follow/learn.c \
  executor/shim/follow/learn.h \
  executor/shim/follow/plans.c \
  executor/shim/follow/plans.h \
  executor/shim/memory/area.c \
  executor/shim/memory/chunks.c \
  executor/shim/memory/clean.c \
  executor/shim/memory/clean.h \
  executor/shim/memory/memory.h \
  executor/shim/memory/pinned.c \
  executor/shim/memory/residency.c \
  executor/shim/memory/share.c \
  executor/shim/memory/share.h \
  executor/shim/memory/vacant.c \
  executor/shim/record/again_ops.c \
  executor/shim/record/again_ops.h \
  executor/shim/record/audit.c \
  executor/shim/record/audit.h \
  executor/shim/record/cupti.c \
  executor/shim/record/cupti.def \
  executor/shim/record/cupti.h \
  executor/shim/record/cupti_types.h \
  executor/shim/record/last.c \
  executor/shim/record/last.h \
  executor/shim/record/order.c \
  executor/shim/record/order.h \
  executor/shim/record/record.c \
  executor/shim/record/record.h \
  executor/shim/record/words.c \
  executor/shim/record/words.h \
  executor/shim/state/guard.h \
  executor/shim/state/shim.h \
  executor/shim/state/state.c \
  executor/shim/state/wraps.def \
  executor/shim/state/wraps.h
if HAVE_SHIM
noinst_LIBRARIES += libshim.a
libshim_a_SOURCES = $(SHIM_FILES)
libferry-shim.so: libshim.a libcore.a
	$(AM_V_CCLD)$(SHARED) -Wl,-soname,libcuda.so.1 -Wl,-z,noexecstack -o $@ \
	  -Wl,--whole-archive libshim.a -Wl,--no-whole-archive libcore.a -ldl -lpthread
MODULES += libferry-shim.so
endif
