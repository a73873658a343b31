# SPDX-License-Identifier: GPL-3.0-or-later
# Tests: programs with libcheck, and scripts; tests/count adds up what their logs say.
# A program without _SOURCES is made of NAME.c, and one without _LDADD is linked with these: a test, a
# bench or a fuzzer is one line in its list. What several of them share stands in libtesting.a, of which
# a program gets what it calls.
AM_DEFAULT_SOURCE_EXT = .c
LDADD = libtesting.a $(CORE_LIBS) $(CHECK_LIBS)
check_LIBRARIES = libtesting.a
libtesting_a_SOURCES = \
  tests/bench/any_cell.c \
  tests/bench/any_cell.h \
  tests/bench/bench.c \
  tests/bench/bench.h \
  tests/bench/papers/paper.c \
  tests/bench/papers/paper.h \
  tests/bench/solve_cases.c \
  tests/bench/solve_cases.h \
  tests/best_inner.h \
  tests/best_least.c \
  tests/best_plan.c \
  tests/best_plan.h \
  tests/best_run.c \
  tests/best_write.c \
  tests/brute_run.c \
  tests/brute_run.h \
  tests/curve_case.c \
  tests/curve_case.h \
  tests/emu_calls.c \
  tests/emu_calls.h \
  tests/emu_case.c \
  tests/emu_case.h \
  tests/every_beside.c \
  tests/every_beside.h \
  tests/every_case.c \
  tests/every_case.h \
  tests/every_entry.c \
  tests/every_way.c \
  tests/every_way.h \
  tests/fixed.c \
  tests/fixed.h \
  tests/fixed_drops.c \
  tests/fixed_drops.h \
  tests/flow_case.c \
  tests/flow_case.h \
  tests/forger.c \
  tests/forger.h \
  tests/forger_proof.c \
  tests/forger_proof.h \
  tests/fuzz.h \
  tests/g10.c \
  tests/g10.h \
  tests/golden_machine.c \
  tests/golden_machine.h \
  tests/import_bytes.c \
  tests/import_bytes.h \
  tests/import_case.c \
  tests/import_case.h \
  tests/import_fuzz.c \
  tests/import_fuzz.h \
  tests/import_texts.h \
  tests/keep_kth.c \
  tests/keep_kth.h \
  tests/more_pair.c \
  tests/more_pair.h \
  tests/op_bench.c \
  tests/op_bench.h \
  tests/op_cases.c \
  tests/op_cases.h \
  tests/plain_conv.c \
  tests/plain_conv.h \
  tests/planned_case.c \
  tests/planned_case.h \
  tests/policy_case.c \
  tests/policy_case.h \
  tests/policy_paper.c \
  tests/policy_paper.h \
  tests/random_case.c \
  tests/random_case.h \
  tests/random_maker.h \
  tests/random_moves.c \
  tests/random_orders.c \
  tests/random_places.c \
  tests/random_streams.c \
  tests/random_streams.h \
  tests/random_wishes.c \
  tests/random_wishes.h \
  tests/rank_case.c \
  tests/rank_case.h \
  tests/real_case.c \
  tests/real_case.h \
  tests/ref_machine.c \
  tests/ref_machine.h \
  tests/ref_order.c \
  tests/ref_order.h \
  tests/ref_rewrite.c \
  tests/ref_rewrite.h \
  tests/ref_simulate.c \
  tests/ref_simulate.h \
  tests/same_trace.c \
  tests/same_trace.h \
  tests/small_nets.c \
  tests/small_nets.h \
  tests/solve_fuzz.c \
  tests/solve_fuzz.h \
  tests/suite.h \
  tests/synthetic.c \
  tests/synthetic.h \
  tests/test_driver_abi.c \
  tests/test_libraries_abi.c \
  tests/tiny_case.c \
  tests/tiny_case.h \
  tests/tiny_cut.c \
  tests/train_case.c \
  tests/train_case.h \
  tests/walk_run.c \
  tests/walk_run.h \
  tests/zoo_case.c \
  tests/zoo_case.h

# In this order: the longest first.
long_programs = \
  tests/test_more \
  tests/test_library
programs_under_test = \
  tests/test_arena \
  tests/test_bound \
  tests/test_bound_range \
  tests/test_cards \
  tests/test_check \
  tests/test_check_brute \
  tests/test_compute \
  tests/test_corpus \
  tests/test_crossing \
  tests/test_curve \
  tests/test_digest \
  tests/test_driver \
  tests/test_dtr \
  tests/test_emu_clock \
  tests/test_emu_graph \
  tests/test_emu_memory \
  tests/test_emu_order \
  tests/test_emu_race \
  tests/test_error \
  tests/test_every \
  tests/test_every_beside \
  tests/test_file \
  tests/test_files \
  tests/test_flow \
  tests/test_flow_drops \
  tests/test_forger \
  tests/test_g10 \
  tests/test_group \
  tests/test_ilp \
  tests/test_import \
  tests/test_import_chakra \
  tests/test_import_corpus \
  tests/test_import_pickle \
  tests/test_import_stream \
  tests/test_interior \
  tests/test_interpret \
  tests/test_json \
  tests/test_kept \
  tests/test_kernels \
  tests/test_layout \
  tests/test_libraries \
  tests/test_link \
  tests/test_metamorphic \
  tests/test_mix \
  tests/test_mix_random \
  tests/test_narrow \
  tests/test_noise \
  tests/test_one_arena \
  tests/test_ops \
  tests/test_ops_exact \
  tests/test_order \
  tests/test_pack \
  tests/test_parts \
  tests/test_passing \
  tests/test_peaks \
  tests/test_period \
  tests/test_plot \
  tests/test_policies \
  tests/test_policy_knapsack \
  tests/test_policy_orders \
  tests/test_policy_rules \
  tests/test_prove \
  tests/test_random \
  tests/test_ranks \
  tests/test_real_et \
  tests/test_real_files \
  tests/test_real_kineto \
  tests/test_ref_simulate \
  tests/test_replay \
  tests/test_replay_bugs \
  tests/test_replay_lost \
  tests/test_replay_ranks \
  tests/test_replay_real \
  tests/test_replay_zoo \
  tests/test_rewrite_twice \
  tests/test_round \
  tests/test_same_places \
  tests/test_sandbox \
  tests/test_schedule \
  tests/test_seams \
  tests/test_search_policies \
  tests/test_sections \
  tests/test_segments \
  tests/test_sha256 \
  tests/test_shim_abi \
  tests/test_shim_digest \
  tests/test_simulate \
  tests/test_solve \
  tests/test_solve_best \
  tests/test_solve_corpus \
  tests/test_solve_more \
  tests/test_summary \
  tests/test_term \
  tests/test_torch_notes \
  tests/test_train \
  tests/test_tuning \
  tests/test_units \
  tests/test_waits \
  tests/test_walk \
  tests/test_works \
  tests/test_zoo \
  tests/test_zoo_ops
if HAVE_SERVER
programs_under_test += \
  tests/test_accept \
  tests/test_answers \
  tests/test_store \
  tests/test_streams \
  tests/test_watchdog
tests_test_accept_LDADD = libserver.a $(LDADD) $(SERVER_FOREIGN)
tests_test_watchdog_LDADD = libserver.a $(LDADD) $(SERVER_FOREIGN)
tests_test_answers_LDADD = libserver.a $(LDADD) $(SERVER_FOREIGN)
tests_test_store_LDADD = libserver.a $(LDADD) $(SERVER_FOREIGN)
endif
tests_test_library_LDADD = libferry.so $(CHECK_LIBS) -lpthread
tests_test_library_LDFLAGS = -Wl,-rpath,'$$ORIGIN/..'
EXTRA_tests_test_libraries_DEPENDENCIES = tests/fake_cublas.so tests/fake_cudnn.so

# The longest first: at the end others would wait for one.
check_PROGRAMS = $(long_programs) $(programs_under_test)
TESTS = $(long_programs) $(scripts_under_test) $(programs_under_test) $(rules_under_test)
TEST_EXTENSIONS = .sh
# A test that hangs is ended, and fails.
TEST_SECONDS = 2400
LOG_COMPILER = timeout -k 10 $(TEST_SECONDS)
SH_LOG_COMPILER = timeout -k 10 $(TEST_SECONDS) bash
# A test's time limit is a guard against hangs; on a busy machine, with sanitizers, all is slower.
AM_TESTS_ENVIRONMENT = \
  CK_TIMEOUT_MULTIPLIER=$${CK_TIMEOUT_MULTIPLIER:-8}; export CK_TIMEOUT_MULTIPLIER; \
  srcdir='$(abs_srcdir)'; builddir='$(abs_builddir)'; datadir='$(abs_srcdir)/data'; \
  CC='$(CC)'; MAKE='$(MAKE)'; prefix='$(prefix)'; \
  COMPILE_FLAGS='$(DEFS) "-I$(abs_builddir)" "-I$(abs_srcdir)" $(AM_CPPFLAGS) $(CPPFLAGS) $(FERRY_CFLAGS) $(CFLAGS)'; \
  FERRY_DATADIR="$$datadir"; FERRY_EMU='$(abs_builddir)/libferry-emu.so'; \
  export srcdir builddir CC MAKE prefix COMPILE_FLAGS FERRY_DATADIR FERRY_EMU;

rules_under_test = \
  tests/rules/calls.sh \
  tests/rules/data.sh \
  tests/rules/docs.sh \
  tests/rules/doors.sh \
  tests/rules/exports.sh \
  tests/rules/format.sh \
  tests/rules/functions.sh \
  tests/rules/headers.sh \
  tests/rules/layers.sh \
  tests/rules/links.sh \
  tests/rules/lists.sh \
  tests/rules/results.sh \
  tests/rules/rooms.sh \
  tests/rules/session.sh \
  tests/rules/spdx.sh \
  tests/rules/table.sh \
  tests/rules/texts.sh \
  tests/rules/words.sh

# In this order: the longest first.
long_under_test = \
  tests/answers.sh \
  tests/allowed.sh \
  tests/schema_answers.sh \
  tests/gpu_check.sh \
  tests/options.sh \
  tests/latency.sh \
  tests/second.sh

# In this order: the longest first.
scripts_under_test = \
  tests/service.sh \
  tests/run_remade.sh \
  tests/torch.sh \
  tests/run.sh \
  tests/run_player.sh \
  tests/service_killed.sh \
  tests/run_guards.sh \
  tests/what_if.sh \
  tests/rewriting.sh \
  tests/cases.sh \
  tests/run_together.sh \
  tests/solve.sh \
  tests/cli.sh \
  tests/run_learned.sh \
  tests/run_ranks.sh \
  tests/run_graphs.sh \
  tests/run_hostile.sh \
  tests/orders.sh \
  tests/faults.sh \
  tests/run_cupti.sh \
  tests/run_perturbed.sh \
  tests/dev.sh \
  tests/digest.sh \
  tests/gpu.sh \
  tests/gpu_data.sh \
  tests/installed.sh \
  tests/pictures.sh \
  tests/profiles.sh \
  tests/ptx.sh \
  tests/replay.sh \
  tests/replay_killed.sh \
  tests/run_corners.sh \
  tests/run_shared.sh \
  tests/real_solve.sh \
  tests/schemas.sh \
  tests/slurm_scripts.sh \
  tests/targets.sh \
  tests/service_fuzz.sh \
  tests/service_openapi.sh \
  tests/terminal.sh \
  tests/torch_pip.sh \
  tests/train.sh \
  tests/service_flood.sh \
  tests/walk.sh \
  tests/ranks.sh \
  tests/streams.sh \
  tests/import_streams.sh \
  tests/gpu_where.sh \
  tests/today.sh \
  tests/host_refusals.sh

EXTRA_DIST += \
  $(long_under_test) \
  $(rules_under_test) \
  $(scripts_under_test) \
  tests/import_streams.py \
  tests/made_step.awk \
  tests/second/ranks.py \
  tests/second/streams.py \
  tests/torch/budgets.py \
  tests/torch/budgets_claims.py \
  tests/torch/capture_claims.py \
  tests/torch/compile_claims.py \
  tests/torch/habit_claims.py \
  tests/torch/home_claims.py \
  tests/torch/inductor_claims.py \
  tests/torch/instructions.py \
  tests/torch/lean.py \
  tests/torch/lean_claims.py \
  tests/torch/python.bash \
  tests/torch/rank.py \
  tests/torch/together_claims.py \
  tests/torch/updates_claims.py \
  tests/torch/used_claims.py \
  tests/walk.py
EXTRA_DIST += \
  tests/README.md \
  tests/answers.py \
  tests/canonical.py \
  tests/cases \
  tests/corpus \
  tests/count \
  tests/example \
  tests/plans.sh \
  tests/plans.txt \
  tests/plot \
  tests/ptx.py \
  tests/rules/common.bash \
  tests/rules/functions.awk \
  tests/rules/rooms.bash \
  tests/rules/sentences.awk \
  tests/rules/texts.list \
  tests/run.bash \
  tests/schemas.py \
  tests/second/agree.py \
  tests/second/compare.py \
  tests/second/made.py \
  tests/second/observed.py \
  tests/second/plain.py \
  tests/second/read.py \
  tests/service \
  tests/service_hour.sh \
  tests/spdx.sh \
  tests/today \
  tests/torch/again_claims.py \
  tests/torch/common.py \
  tests/torch/data_claims.py \
  tests/torch/early_claims.py \
  tests/torch/examples.py \
  tests/torch/fit_claims.py \
  tests/torch/follow_claims.py \
  tests/torch/guard_claims.py \
  tests/torch/known_nets.py \
  tests/torch/lanes_claims.py \
  tests/torch/nets.py \
  tests/torch/observed_claims.py \
  tests/torch/outside_claims.py \
  tests/torch/overhead.py \
  tests/torch/page_claims.py \
  tests/torch/record_claims.py \
  tests/torch/rows_claims.py \
  tests/torch/run.py \
  tests/torch/spill_claims.py \
  tests/torch/tool_claims.py \
  tests/torch/trap_claims.py

# With those beside other programs, and the scripts that plan for long, whose code shorter tests run too.
check-all:
	@$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(END_TO_END) $(long_under_test) $(TESTS)'
end-to-end:
	@$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(END_TO_END)'
# What may say something else of another build, such as one with sanitizers: not the rules, which read the
# sources, and not the tests that run no code of ours in C, or only what other tests run too.
same_of_every_build = tests/dev.sh tests/gpu_data.sh tests/gpu_where.sh tests/host_refusals.sh tests/installed.sh \
  tests/orders.sh tests/ptx.sh tests/run_guards.sh \
  tests/ranks.sh tests/real_solve.sh tests/rewriting.sh tests/schemas.sh tests/service_openapi.sh \
  tests/slurm_scripts.sh tests/test_more tests/torch_pip.sh tests/what_if.sh
check-built:
	@$(MAKE) $(AM_MAKEFLAGS) check check_DATA='$(FAKES_MADE) $(USERS_CODE)' \
	  TESTS='$(filter-out $(same_of_every_build) $(rules_under_test), $(TESTS))'
# From an unpacked tarball: one of each kind that reads what is beside it. That nothing is missing
# there its list of files tells.
tried_from_tarball = tests/rules/docs.sh tests/rules/layers.sh tests/cli.sh tests/installed.sh tests/pictures.sh \
  tests/replay.sh tests/schemas.sh tests/train.sh tests/test_files tests/test_import_corpus tests/test_kernels \
  tests/test_policies tests/test_solve_corpus tests/test_zoo_ops
distcheck-some:
	@$(MAKE) $(AM_MAKEFLAGS) distcheck TESTS='$(tried_from_tarball)' check_DATA='$(FAKES_MADE)' \
	  check_PROGRAMS='$(filter-out %.sh,$(tried_from_tarball))'
.PHONY: check-all check-built distcheck-some end-to-end

# The machine model against its reference, with as many cases as one wants.
LONG_CASES = 2000
long-machine: tests/test_simulate tests/test_rewrite_twice tests/test_metamorphic
	@$(AM_TESTS_ENVIRONMENT) for it in tests/test_simulate tests/test_rewrite_twice tests/test_metamorphic; \
	  do FERRY_CASES=$(LONG_CASES) ./$$it || exit 1; done
.PHONY: long-machine

installcheck-local:
	CC='$(CC)' prefix='$(DESTDIR)$(prefix)' bash $(srcdir)/tests/example/build.sh \
	  '$(DESTDIR)$(bindir)' '$(DESTDIR)$(libdir)'

# Libraries that stand in for others, opened by path, and an allocator that fails once, for tests/faults.sh.
FAKES = \
  tests/fail_nth.c \
  tests/fake_cublas.c \
  tests/fake_cudnn.c \
  tests/fake_cupti.c \
  tests/fakes.h
FAKES_MADE = tests/fail_nth.so tests/fake_cublas.so tests/fake_cudnn.so tests/fake_cupti.so
$(FAKES_MADE): tests/fakes.h
.c.so:
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(SHARED) $(DEFS) -I. $(AM_CPPFLAGS) $(CPPFLAGS) -o $@ $< -lm -ldl
check_DATA = $(FAKES_MADE) $(USERS_CODE)
if HAVE_CUDA
check_DATA += $(PTX)
endif
EXTRA_DIST += $(FAKES)
CLEANFILES += $(FAKES_MADE) $(USERS_CODE)
