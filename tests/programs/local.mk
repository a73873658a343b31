# SPDX-License-Identifier: GPL-3.0-or-later
# Programs that know nothing of ferry, and their kernels as a module of the emulated device.
PROGRAMS_OF_USERS = \
  tests/programs/conv \
  tests/programs/corners \
  tests/programs/graphs \
  tests/programs/habits \
  tests/programs/images \
  tests/programs/lstm \
  tests/programs/mlp \
  tests/programs/player \
  tests/programs/questions \
  tests/programs/refused
EXTRA_PROGRAMS += $(PROGRAMS_OF_USERS)
check_LIBRARIES += tests/programs/libgpu.a
tests_programs_libgpu_a_SOURCES = \
  tests/programs/gpu.c \
  tests/programs/gpu.h \
  tests/programs/habits.def \
  tests/programs/habits.h \
  tests/programs/habits_ends.c \
  tests/programs/habits_kept.c \
  tests/programs/habits_lists.c \
  tests/programs/habits_streams.c
USERS_LIBS = tests/programs/libgpu.a -ldl -lpthread
tests_programs_conv_LDADD = $(USERS_LIBS)
tests_programs_corners_LDADD = $(USERS_LIBS)
tests_programs_graphs_LDADD = $(USERS_LIBS)
tests_programs_habits_LDADD = $(USERS_LIBS)
tests_programs_lstm_LDADD = $(USERS_LIBS)
tests_programs_images_LDADD = $(USERS_LIBS)
tests_programs_mlp_LDADD = $(USERS_LIBS)
tests_programs_player_LDADD = tests/programs/libgpu.a $(CORE_LIBS)
tests_programs_player_LDFLAGS = -rdynamic
tests_programs_questions_LDADD = $(USERS_LIBS)
tests_programs_refused_LDADD = $(USERS_LIBS)

tests/programs/kernels.so: tests/programs/kernels.h
tests/programs/player_kernels.so: tests/programs/player.h
# The library in front of the driver, of which a test leaves one guard out.
if HAVE_SHIM
EXTRA_LIBRARIES += tests/programs/libunguarded.a
tests_programs_libunguarded_a_SOURCES = $(SHIM_FILES)
tests_programs_libunguarded_a_CPPFLAGS = $(AM_CPPFLAGS) -DFERRY_UNGUARDED
tests/programs/libferry-shim.so: tests/programs/libunguarded.a libcore.a
	$(AM_V_CCLD)$(SHARED) -Wl,-soname,libcuda.so.1 -Wl,-z,noexecstack -o $@ \
	  -Wl,--whole-archive tests/programs/libunguarded.a -Wl,--no-whole-archive libcore.a -ldl -lpthread
UNGUARDED = tests/programs/libferry-shim.so
endif
# Made before any test runs: scripts that made them side by side would take each other's files away.
USERS_CODE = $(PROGRAMS_OF_USERS) tests/programs/kernels.so tests/programs/player_kernels.so $(UNGUARDED)
EXTRA_DIST += \
  tests/programs/kernels.c \
  tests/programs/kernels.cu \
  tests/programs/kernels.h \
  tests/programs/player.h \
  tests/programs/player_kernels.c
# One behind the other: both would make the same archives.
programs: all
	@$(MAKE) $(AM_MAKEFLAGS) $(USERS_CODE) tests/fake_cupti.so
soak: run-perturbed
run-perturbed: programs
	@$(AM_TESTS_ENVIRONMENT) FERRY_STEPS=4000 bash $(srcdir)/tests/run_perturbed.sh
soak: run-shared
run-shared: programs
	@$(AM_TESTS_ENVIRONMENT) FERRY_STARTS=200 bash $(srcdir)/tests/run_shared.sh
soak: run-remade
run-remade: programs
	@$(AM_TESTS_ENVIRONMENT) FERRY_PROGRAMS=1000 bash $(srcdir)/tests/run_remade.sh
.PHONY: programs run-perturbed run-remade run-shared
