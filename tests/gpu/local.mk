# SPDX-License-Identifier: GPL-3.0-or-later
# On a machine with a GPU.
ON_A_GPU = \
  tests/gpu/copies \
  tests/gpu/experiments
EXTRA_PROGRAMS += $(ON_A_GPU)
tests_gpu_copies_LDADD = $(CORE_LIBS)
tests_gpu_experiments_LDADD = $(CORE_LIBS)
EXTRA_DIST += \
  tests/gpu/README.md \
  tests/gpu/check.sh \
  tests/gpu/ladder.sh \
  tests/gpu/pack.sh \
  tests/gpu/pytorch.py \
  tests/gpu/run.sh \
  tests/gpu/torch.sh \
  tests/gpu/torch_ladder.py \
  tests/gpu/torch_nets.py \
  tests/gpu/torch_rows.py \
  tests/gpu/torch_run.py \
  tests/gpu/torch_run.sh \
  tests/gpu/torch_ways.py \
  tests/gpu/train.rows \
  tests/gpu/train.sh \
  tests/gpu/train_small.rows \
  tests/gpu/where.py \
  tests/gpu/where.sh

# On a machine with a GPU; gpu-pack elsewhere, and check.sh of what it makes there.
GPU_RESULTS = $(abs_srcdir)/data/gpu
gpu-pack: all $(UNGUARDED)
	@MAKE='$(MAKE)' bash $(srcdir)/tests/gpu/pack.sh . gpu-pack
gpu-check: gpu-pack
	@bash gpu-pack/check.sh '$(GPU_RESULTS)'
# PyTorch under a budget, by ferry run and by ferry_torch, beside what else needs less memory.
gpu-torch: all
	@FERRY=$(abs_builddir)/ferry bash $(srcdir)/tests/gpu/torch_run.sh '$(GPU_RESULTS)/torch-run.json'
	@FERRY=$(abs_builddir)/ferry bash $(srcdir)/tests/gpu/torch.sh '$(GPU_RESULTS)'
.PHONY: gpu-pack gpu-check gpu-torch
