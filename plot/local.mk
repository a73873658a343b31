# SPDX-License-Identifier: GPL-3.0-or-later
# Pictures and tables of a plan.
libcore_a_SOURCES += \
  plot/assets.c \
  plot/assets.h \
  plot/chrome.c \
  plot/chrome.h \
  plot/figure.h \
  plot/html.c \
  plot/html.h \
  plot/pen.c \
  plot/pen.h \
  plot/scale.c \
  plot/scale.h \
  plot/svg.c \
  plot/svg.h \
  plot/svg_bars.c \
  plot/svg_inner.h \
  plot/svg_lanes.c \
  plot/svg_series.c \
  plot/table.c \
  plot/table.h \
  plot/term.c \
  plot/term.h \
  plot/term_curve.c \
  plot/term_inner.h \
  plot/tones.def \
  plot/tsv.c \
  plot/tsv.h

EXTRA_DIST += \
  plot/README.md \
  plot/assets/page.css \
  plot/assets/page.js \
  plot/embed.sh

# The page's style and script as C arrays.
plot/assets.inc: plot/embed.sh plot/assets/page.css plot/assets/page.js
	$(AM_V_GEN)$(MKDIR_P) plot && bash $(srcdir)/plot/embed.sh $(srcdir)/plot/assets/page.css \
	  $(srcdir)/plot/assets/page.js > $@.new && mv $@.new $@
plot/assets.$(OBJEXT): plot/assets.inc
CLEANFILES += plot/assets.inc
