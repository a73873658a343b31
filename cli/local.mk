# SPDX-License-Identifier: GPL-3.0-or-later
# The program.
bin_PROGRAMS = ferry
ferry_SOURCES = \
  cli/call/answers.c \
  cli/call/call.c \
  cli/call/call.h \
  cli/call/command.h \
  cli/call/targets.c \
  cli/check.c \
  cli/commands.def \
  cli/compare/answer.c \
  cli/compare/compare.c \
  cli/compare/comparison.h \
  cli/compare/question.c \
  cli/compare/show.c \
  cli/completion.c \
  cli/demo.c \
  cli/examples.def \
  cli/explain/closing.c \
  cli/explain/closing.h \
  cli/explain/cuts.c \
  cli/explain/cuts.h \
  cli/explain/drops.c \
  cli/explain/drops.h \
  cli/explain/explain.c \
  cli/explain/order.c \
  cli/explain/order.h \
  cli/explain/places.c \
  cli/explain/places.h \
  cli/explain/policy.c \
  cli/explain/policy.h \
  cli/explain/prices.c \
  cli/explain/prices.h \
  cli/figures/columns.c \
  cli/figures/columns.h \
  cli/figures/host_table.c \
  cli/figures/host_table.h \
  cli/figures/picture_files.c \
  cli/figures/picture_files.h \
  cli/figures/pictures.c \
  cli/figures/pictures.h \
  cli/figures/plan_figure.c \
  cli/figures/plan_figure.h \
  cli/figures/plan_step.c \
  cli/figures/plan_step.h \
  cli/figures/ranks_figure.c \
  cli/figures/ranks_figure.h \
  cli/figures/step_timeline.c \
  cli/figures/step_timeline.h \
  cli/files/convert.c \
  cli/files/export.c \
  cli/files/import.c \
  cli/files/rewrite.c \
  cli/files/zoo.c \
  cli/help.c \
  cli/help.h \
  cli/info.c \
  cli/inputs/beside.c \
  cli/inputs/beside.h \
  cli/inputs/devices.c \
  cli/inputs/devices.h \
  cli/inputs/drivers.c \
  cli/inputs/drivers.h \
  cli/inputs/effort.c \
  cli/inputs/effort.h \
  cli/inputs/executors.c \
  cli/inputs/executors.h \
  cli/inputs/hosts.c \
  cli/inputs/hosts.h \
  cli/inputs/inputs.c \
  cli/inputs/inputs.h \
  cli/inputs/planner.c \
  cli/inputs/planner.h \
  cli/inputs/policies.c \
  cli/inputs/policies.h \
  cli/inputs/progress.c \
  cli/inputs/progress.h \
  cli/inputs/rank_jobs.c \
  cli/inputs/rank_jobs.h \
  cli/inputs/rewriting.c \
  cli/inputs/rewriting.h \
  cli/inputs/starts.c \
  cli/inputs/starts.h \
  cli/inputs/stopping.c \
  cli/inputs/stopping.h \
  cli/inputs/tunings.c \
  cli/inputs/tunings.h \
  cli/inputs/zoo_options.c \
  cli/inputs/zoo_options.h \
  cli/list_devices.c \
  cli/list_hosts.c \
  cli/main.c \
  cli/man.c \
  cli/plot.c \
  cli/prove.c \
  cli/remote/advise.c \
  cli/remote/jobs.c \
  cli/remote/plan.c \
  cli/remote/remote.h \
  cli/remote/solve.c \
  cli/remote/step.c \
  cli/remote/submit.c \
  cli/remote/work.c \
  cli/replay/doctor.c \
  cli/replay/link.c \
  cli/replay/replay.c \
  cli/replay/replay_real.c \
  cli/replay/replay_real.h \
  cli/run/emulated.c \
  cli/run/emulated.h \
  cli/run/profile.c \
  cli/run/program.c \
  cli/run/program.h \
  cli/run/run.c \
  cli/run/run_chrome.c \
  cli/run/run_chrome.h \
  cli/run/run_html.c \
  cli/run/run_html.h \
  cli/run/run_last.c \
  cli/run/run_last.h \
  cli/run/run_link.c \
  cli/run/run_link.h \
  cli/run/run_report.c \
  cli/run/run_report.h \
  cli/run/run_step.c \
  cli/run/run_step.h \
  cli/run/share.c \
  cli/run/share.h \
  cli/run/share_rooms.c \
  cli/run/share_rooms.h \
  cli/service/network.c \
  cli/service/network.h \
  cli/service/ranks.c \
  cli/service/ranks.h \
  cli/service/serve.c \
  cli/service/token.c \
  cli/service/waiting.c \
  cli/service/waiting.h \
  cli/service/worker.c \
  cli/simulate.c \
  cli/solve.c \
  cli/solve_policy.c \
  cli/solve_policy.h \
  cli/solve_ranks.c \
  cli/solve_ranks.h \
  cli/torch_path.c \
  cli/version.c \
  cli/whatif/cells.c \
  cli/whatif/curve.c \
  cli/whatif/jobs.c \
  cli/whatif/jobs.h \
  cli/whatif/max_batch.c \
  cli/whatif/merge.c \
  cli/whatif/min_memory.c \
  cli/whatif/node.c \
  cli/whatif/node.h \
  cli/whatif/offline.c \
  cli/whatif/offline.h \
  cli/whatif/offline_figures.c \
  cli/whatif/offline_figures.h \
  cli/whatif/pack.c \
  cli/whatif/pack.h \
  cli/whatif/pack_events.c \
  cli/whatif/pack_host.c \
  cli/whatif/rank_rows.c \
  cli/whatif/rank_rows.h \
  cli/whatif/ranks.c \
  cli/whatif/ranks.h \
  cli/whatif/stages.c \
  cli/whatif/stages.h \
  cli/whatif/whatif.c \
  cli/whatif/whatif.h
ferry_LDADD = $(SERVER_LIBS) $(CORE_LIBS) $(SERVER_FOREIGN)

EXTRA_DIST += \
  cli/README.md \
  cli/call/README.md \
  cli/compare/README.md \
  cli/explain/README.md \
  cli/figures/README.md \
  cli/files/README.md \
  cli/inputs/README.md \
  cli/remote/README.md \
  cli/replay/README.md \
  cli/run/README.md \
  cli/service/README.md \
  cli/whatif/README.md

# What was built: the commit of a checkout, or that of the release.
cli/commit.h: FORCE
	$(AM_V_at)$(MKDIR_P) cli && { commit=$$(cd $(srcdir) && git describe --always --dirty --abbrev=10 2>/dev/null || cat COMMIT 2>/dev/null); \
	  echo "#define FERRY_COMMIT \"$$commit\""; } >$@.new && { cmp -s $@.new $@ && rm -f $@.new || mv $@.new $@; }
FORCE:
cli/version.$(OBJEXT): cli/commit.h
CLEANFILES += cli/commit.h
dist-hook:
	(cd $(srcdir) && git describe --always --abbrev=10 2>/dev/null || cat COMMIT 2>/dev/null) >$(distdir)/COMMIT || true

# The program prints its own manual pages and its completion, from its tables of commands and options.
man/made: ferry$(EXEEXT)
	$(AM_V_GEN)rm -rf man && $(MKDIR_P) man && ./ferry$(EXEEXT) man --all man && \
	  for it in bash zsh fish; do ./ferry$(EXEEXT) completion $$it >man/completion.$$it || exit 1; done && touch $@
BUILT_LAST += man/made
