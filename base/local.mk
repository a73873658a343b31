# SPDX-License-Identifier: GPL-3.0-or-later
# What every layer may use.
libcore_a_SOURCES += \
  base/arena.c \
  base/arena.h \
  base/child.h \
  base/chrome_event.c \
  base/chrome_event.h \
  base/clock.h \
  base/coding.h \
  base/coding_gzip.c \
  base/coding_zstd.c \
  base/dear.h \
  base/error.c \
  base/error.def \
  base/error.h \
  base/file.c \
  base/file.h \
  base/json.c \
  base/json.h \
  base/json_load.c \
  base/json_load.h \
  base/log.c \
  base/log.h \
  base/order.h \
  base/parts.c \
  base/parts.h \
  base/passing.c \
  base/passing.h \
  base/patience.h \
  base/random.c \
  base/random.h \
  base/roster.c \
  base/roster.h \
  base/sandbox.c \
  base/sandbox.h \
  base/sha256.c \
  base/sha256.h \
  base/table.c \
  base/table.h \
  base/units.c \
  base/units.h \
  base/utf8.c \
  base/utf8.h

EXTRA_DIST += \
  base/README.md
