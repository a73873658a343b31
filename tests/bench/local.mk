# SPDX-License-Identifier: GPL-3.0-or-later
# Long runs: each list has programs or scripts that print a table and JSON lines.
BENCHES = \
  tests/bench/bench_ablation \
  tests/bench/bench_any \
  tests/bench/bench_best \
  tests/bench/bench_bound \
  tests/bench/bench_clock \
  tests/bench/bench_every \
  tests/bench/bench_growth \
  tests/bench/bench_mix \
  tests/bench/bench_more \
  tests/bench/bench_ops \
  tests/bench/bench_replay \
  tests/bench/bench_solve \
  tests/bench/bench_speed \
  tests/bench/import_kineto

# Daemons with other programs beside them: once, not under each compiler. A test that lacks its program
# says so, and is passed over.
# In this order: the longest first.
END_TO_END = \
  tests/torch_long.sh \
  tests/package.sh \
  tests/container.sh \
  tests/service_page.sh \
  tests/service_postgres.sh \
  tests/service_slurm.sh \
  tests/torch_run.sh
# The daemon's threads, and those of a search, under ThreadSanitizer, in a build that has it: a race ends ferry with 66.
tsan: all tests/test_accept tests/test_store
	@grep -q -- '-fsanitize=thread' Makefile || { echo "configure with --enable-sanitizers=thread first" >&2; exit 1; }
	@$(AM_TESTS_ENVIRONMENT) list='tests/test_accept tests/test_store tests/service.sh tests/cases.sh'; $(run_each)
.PHONY: tsan

SOAKS = \
  tests/soak_forger
LONG_TESTS = \
  tests/service_soak.sh

PAPERS = \
  tests/bench/papers/alvaro \
  tests/bench/papers/autoswap \
  tests/bench/papers/exact \
  tests/bench/papers/g10 \
  tests/bench/papers/greedy \
  tests/bench/papers/matrix \
  tests/bench/papers/meng \
  tests/bench/papers/swapadvisor \
  tests/bench/papers/tflms \
  tests/bench/papers/tvdnn \
  tests/bench/papers/vdnn

FUZZERS_ALL = \
  tests/fuzz_device \
  tests/fuzz_import_chakra \
  tests/fuzz_import_json \
  tests/fuzz_import_pickle \
  tests/fuzz_import_text \
  tests/fuzz_plan \
  tests/fuzz_solve \
  tests/fuzz_trace
tests_fuzz_trace_LDFLAGS = $(FUZZ_LDFLAGS)
tests_fuzz_device_LDFLAGS = $(FUZZ_LDFLAGS)
tests_fuzz_plan_LDFLAGS = $(FUZZ_LDFLAGS)
tests_fuzz_solve_LDFLAGS = $(FUZZ_LDFLAGS)
tests_fuzz_import_chakra_LDFLAGS = $(FUZZ_LDFLAGS)
tests_fuzz_import_json_LDFLAGS = $(FUZZ_LDFLAGS)
tests_fuzz_import_pickle_LDFLAGS = $(FUZZ_LDFLAGS)
tests_fuzz_import_text_LDFLAGS = $(FUZZ_LDFLAGS)
EXTRA_PROGRAMS += $(BENCHES) $(SOAKS) $(PAPERS)
CLEANFILES += $(EXTRA_PROGRAMS) $(FUZZERS_ALL)
EXTRA_DIST += $(END_TO_END) $(LONG_TESTS)
EXTRA_DIST += \
  tests/bench/against.py \
  tests/bench/hosts.sh \
  tests/bench/house.sh \
  tests/bench/made_log.py \
  tests/bench/measure.sh \
  tests/bench/measured.sh \
  tests/bench/papers/collect.sh \
  tests/bench/papers/results.sh \
  tests/bench/run_overhead.sh \
  tests/bench/run_recorded.sh \
  tests/bench/service.py

# What `make check` says of the planner, with more cases; bench_best has the rest.
PLANNER_TESTS = tests/test_flow tests/test_flow_drops tests/test_layout tests/test_prove \
  tests/test_bound tests/test_curve tests/test_search_policies tests/test_solve_more tests/test_sections tests/test_mix tests/test_mix_random \
  tests/test_replay_zoo
long-planner: $(PLANNER_TESTS)
	@$(AM_TESTS_ENVIRONMENT) for it in flow=20000 flow_drops=20000 layout=3 prove=3000 bound=3000 curve=500 search_policies=500 solve_more=600 \
	  sections=10000 mix=2 mix_random=200 replay_zoo=2; do \
	  echo "== tests/test_$${it%=*}, $${it#*=} cases"; \
	  FERRY_CASES=$${it#*=} CK_TIMEOUT_MULTIPLIER=60 tests/test_$${it%=*} || exit 1; done

run_each = failed=; for it in $$list; do echo "== $$it"; \
    case $$it in *.sh) bash $(srcdir)/$$it ;; *) ./$$it ;; esac || failed="$$failed $$it"; done; \
    test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }
bench: all $(BENCHES) long-planner
	@$(AM_TESTS_ENVIRONMENT) list='$(BENCHES)'; $(run_each)
# The tables of docs/measured.md. MEASURED: which of them, such as "solve mix".
measured: all $(BENCHES)
	@$(AM_TESTS_ENVIRONMENT) bash $(srcdir)/tests/bench/measure.sh $(MEASURED)
soak: all $(SOAKS)
	@$(AM_TESTS_ENVIRONMENT) list='$(SOAKS) $(LONG_TESTS)'; $(run_each)
	@$(AM_TESTS_ENVIRONMENT) SECOND_STEPS=500 bash $(srcdir)/tests/second.sh
	@$(AM_TESTS_ENVIRONMENT) FERRY_CASES=3000 bash $(srcdir)/tests/ranks.sh
papers: all $(PAPERS)
	@$(AM_TESTS_ENVIRONMENT) bash $(srcdir)/tests/bench/papers/collect.sh $(PAPERS)

# A fuzzer writes what it finds into the first folder it is given: the build's, never the corpus. What it
# says goes to fuzz/NAME.out: shown are how many runs it did or, of one that stops, its last lines. One that
# stops stops no other.
FUZZ_SECONDS = 60
FUZZ_RUNS = $(FUZZERS_ALL:=.run)
if FUZZERS
EXTRA_PROGRAMS += $(FUZZERS_ALL)
fuzz: $(FUZZERS_ALL)
	@$(MAKE) $(AM_MAKEFLAGS) -k $(FUZZ_RUNS)
$(FUZZ_RUNS): $(FUZZERS_ALL)
	@it=$(@:.run=) && name=$${it##*/fuzz_} && $(MKDIR_P) fuzz/$$name && if ./$$it -max_total_time=$(FUZZ_SECONDS) \
	  -timeout=10 -print_final_stats=1 -artifact_prefix=fuzz/$$name. fuzz/$$name $(srcdir)/tests/corpus/$$name \
	  >fuzz/$$name.out 2>&1; then echo "== $$it"; grep -a '^Done' fuzz/$$name.out; \
	  else echo "== $$it stopped"; grep -av 'NEW\|REDUCE\|# Uses:' fuzz/$$name.out | tail -n 60; exit 1; fi
else
fuzz:
	@echo "configure with CC=clang --enable-fuzzers first" >&2; exit 1
endif
.PHONY: bench measured soak papers fuzz $(FUZZ_RUNS) long-planner

# Every small network in every way and every budget.
train-all: all tests/test_train tests/test_kernels tests/test_libraries tests/test_interpret
	@$(AM_TESTS_ENVIRONMENT) for it in train kernels libraries interpret; do FERRY_SOAK=1 tests/test_$$it || exit 1; done
bench: train-all
.PHONY: train-all

bench: run-overhead bench-service
bench-service: all
	@$(AM_TESTS_ENVIRONMENT) python3 $(srcdir)/tests/bench/service.py || test $$? = 77
.PHONY: bench-service
run-overhead: programs
	@$(AM_TESTS_ENVIRONMENT) bash $(srcdir)/tests/bench/run_overhead.sh
run-recorded: programs
	@$(AM_TESTS_ENVIRONMENT) bash $(srcdir)/tests/bench/run_recorded.sh
.PHONY: run-recorded
.PHONY: run-overhead
