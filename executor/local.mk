# SPDX-License-Identifier: GPL-3.0-or-later
# The driver, its emulator, and what carries a plan out.
libcore_a_SOURCES += \
  executor/calculate/calculate.c \
  executor/calculate/calculate.h \
  executor/calculate/cuda.c \
  executor/calculate/cuda.h \
  executor/calculate/emulated.c \
  executor/calculate/interpret.c \
  executor/calculate/interpret.h \
  executor/calculate/ptx.c \
  executor/driver/consts.def \
  executor/driver/driver.c \
  executor/driver/driver.def \
  executor/driver/driver.h \
  executor/driver/host.c \
  executor/driver/host.h \
  executor/driver/symbols.c \
  executor/driver/symbols.h \
  executor/driver/types.h \
  executor/emu/link.c \
  executor/emu/link.h \
  executor/gpu/host.c \
  executor/gpu/host_bf16.c \
  executor/gpu/kernel_ops.c \
  executor/gpu/kernel_ops.h \
  executor/gpu/kernel_work.c \
  executor/gpu/kernel_work.h \
  executor/kernels/kernels.c \
  executor/kernels/kernels.h \
  executor/kernels/kernels_ptx.c \
  executor/libraries/cublas.c \
  executor/libraries/cublas.def \
  executor/libraries/cublas.h \
  executor/libraries/cublas_consts.def \
  executor/libraries/cublas_types.h \
  executor/libraries/cudnn.c \
  executor/libraries/cudnn.def \
  executor/libraries/cudnn.h \
  executor/libraries/cudnn_consts.def \
  executor/libraries/cudnn_types.h \
  executor/libraries/libraries.c \
  executor/libraries/libraries.h \
  executor/link/inner.h \
  executor/link/link.c \
  executor/link/link.h \
  executor/link/shared.c \
  executor/ops/attention.c \
  executor/ops/bf16.h \
  executor/ops/bind.c \
  executor/ops/bind.h \
  executor/ops/blas.c \
  executor/ops/blas.h \
  executor/ops/conv.c \
  executor/ops/feed.c \
  executor/ops/feed.h \
  executor/ops/inner.h \
  executor/ops/loss.c \
  executor/ops/map.c \
  executor/ops/norm.c \
  executor/ops/ops.c \
  executor/ops/ops.h \
  executor/ops/pool.c \
  executor/ops/products.c \
  executor/ops/recurrent.c \
  executor/ops/rows.c \
  executor/ops/update.c \
  executor/replay/bytes.c \
  executor/replay/calls.c \
  executor/replay/collectives.c \
  executor/replay/replay.c \
  executor/replay/replay.h \
  executor/replay/report.c \
  executor/replay/run.c \
  executor/replay/run.h \
  executor/replay/script.c \
  executor/replay/script.h \
  executor/replay/steady.c \
  executor/replay/steady.h \
  executor/replay/team.c \
  executor/room/room.c \
  executor/room/room.h \
  executor/room/room_between.c \
  executor/room/views.c \
  executor/room/views.h \
  executor/train.c \
  executor/train.h \
  executor/watch/answer.c \
  executor/watch/answer.h \
  executor/watch/granules.c \
  executor/watch/granules.h \
  executor/watch/seen.c \
  executor/watch/steps.c \
  executor/watch/steps.h \
  executor/watch/unroll.c \
  executor/watch/unroll.h

EXTRA_DIST += \
  executor/README.md \
  executor/calculate/README.md \
  executor/driver/README.md \
  executor/emu/README.md \
  executor/emu/rules.md \
  executor/gpu/README.md \
  executor/kernels/README.md \
  executor/libraries/README.md \
  executor/link/README.md \
  executor/ops/README.md \
  executor/ops/arithmetic.md \
  executor/replay/README.md \
  executor/room/README.md \
  executor/torch/README.md \
  executor/torch/examples/cnn.py \
  executor/torch/examples/gpt.py \
  executor/torch/examples/lstm.py \
  executor/torch/examples/unet.py \
  executor/torch/ferry_torch/__init__.py \
  executor/torch/ferry_torch/again.py \
  executor/torch/ferry_torch/arena.py \
  executor/torch/ferry_torch/batches.py \
  executor/torch/ferry_torch/calls.py \
  executor/torch/ferry_torch/capture.py \
  executor/torch/ferry_torch/card.py \
  executor/torch/ferry_torch/clock.py \
  executor/torch/ferry_torch/compiled.py \
  executor/torch/ferry_torch/early.py \
  executor/torch/ferry_torch/errors.py \
  executor/torch/ferry_torch/fit.py \
  executor/torch/ferry_torch/floor.py \
  executor/torch/ferry_torch/follow.py \
  executor/torch/ferry_torch/follower.py \
  executor/torch/ferry_torch/held.py \
  executor/torch/ferry_torch/integrations.py \
  executor/torch/ferry_torch/joint.py \
  executor/torch/ferry_torch/lanes.py \
  executor/torch/ferry_torch/memory.py \
  executor/torch/ferry_torch/modules.py \
  executor/torch/ferry_torch/outside.py \
  executor/torch/ferry_torch/pieces.py \
  executor/torch/ferry_torch/plan.py \
  executor/torch/ferry_torch/record.py \
  executor/torch/ferry_torch/recorder.py \
  executor/torch/ferry_torch/report.py \
  executor/torch/ferry_torch/saved.py \
  executor/torch/ferry_torch/scratch.py \
  executor/torch/ferry_torch/slots.py \
  executor/torch/ferry_torch/spill.py \
  executor/torch/ferry_torch/storages.py \
  executor/torch/ferry_torch/timing.py \
  executor/torch/ferry_torch/tool.py \
  executor/torch/ferry_torch/trace.py \
  executor/torch/ferry_torch/updates.py \
  executor/torch/ferry_torch/valve.py \
  executor/torch/ferry_torch/watch.py \
  executor/torch/ferry_torch/whole.py \
  executor/torch/ferry_torch/writer.py \
  executor/torch/pyproject.toml \
  executor/watch/README.md

# The GPU's kernels, which are also compiled as C. nvcc makes texts for a driver of them: where ferry is
# configured --with-cuda, which builds them in, and for `make check`.
KERNEL_FILES = \
  executor/gpu/attention.cu \
  executor/gpu/columns.h \
  executor/gpu/conv.cu \
  executor/gpu/device.h \
  executor/gpu/geometry.h \
  executor/gpu/kernels.cu \
  executor/gpu/loss.cu \
  executor/gpu/map.cu \
  executor/gpu/norm.cu \
  executor/gpu/pool.cu \
  executor/gpu/products.cu \
  executor/gpu/recurrent.cu \
  executor/gpu/rotary.cu \
  executor/gpu/rows.cu \
  executor/gpu/tile.h \
  executor/gpu/update.cu
EXTRA_DIST += $(KERNEL_FILES)
PTX = executor/gpu/fp32.ptx executor/gpu/bf16.ptx
$(PTX): $(KERNEL_FILES) executor/gpu/kernel_work.h executor/ops/bf16.h trace/compute.def
	$(AM_V_GEN)$(MKDIR_P) executor/gpu && case $@ in *bf16.ptx) type=-DKERNEL_BF16=1 ;; *) type= ;; esac && \
	  '$(NVCC)' -ptx -arch=compute_75 -diag-suppress 177 $$type -I$(srcdir) -o $@.new $(srcdir)/executor/gpu/kernels.cu && mv $@.new $@
if WITH_PTX
executor/calculate/ptx.$(OBJEXT): $(PTX)
endif
CLEANFILES += $(PTX)

# The emulated driver is a library of its own, opened by path like the real one.
noinst_LIBRARIES += libemu.a
libemu_a_SOURCES = \
  executor/emu/alloc.c \
  executor/emu/capture.c \
  executor/emu/code.c \
  executor/emu/command.c \
  executor/emu/context.c \
  executor/emu/copy.c \
  executor/emu/core.h \
  executor/emu/device.c \
  executor/emu/emu.h \
  executor/emu/errors.def \
  executor/emu/event.c \
  executor/emu/exec.c \
  executor/emu/execute.c \
  executor/emu/graph.c \
  executor/emu/graph.h \
  executor/emu/host.c \
  executor/emu/machine.c \
  executor/emu/memory.c \
  executor/emu/names.c \
  executor/emu/pinned.c \
  executor/emu/pointers.c \
  executor/emu/pool.c \
  executor/emu/race.c \
  executor/emu/race.h \
  executor/emu/real.c \
  executor/emu/space.c \
  executor/emu/stream.c \
  executor/emu/table.c \
  executor/emu/virtual.c \
  executor/emu/vmm.c
libferry-emu.so: libemu.a libcore.a
	$(AM_V_CCLD)$(SHARED) -Wl,-soname,$@ -o $@ -Wl,--whole-archive libemu.a -Wl,--no-whole-archive $(CORE_LIBS)
MODULES = libferry-emu.so

include executor/shim/local.mk
BUILT_LAST += $(MODULES)
CLEANFILES += $(MODULES)
