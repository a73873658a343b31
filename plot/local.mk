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
  plot/assets/answer.js \
  plot/assets/curve.js \
  plot/assets/figures.js \
  plot/assets/layers.js \
  plot/assets/life.js \
  plot/assets/model.js \
  plot/assets/page.css \
  plot/assets/page.html \
  plot/assets/paint.js \
  plot/assets/service.js \
  plot/assets/start.js \
  plot/assets/tabs.js \
  plot/assets/timeline.js \
  plot/assets/words.js \
  plot/embed.sh

# The page's script is one file made of its parts, in this order.
PAGE_PARTS = plot/assets/words.js plot/assets/model.js plot/assets/layers.js plot/assets/paint.js \
  plot/assets/timeline.js plot/assets/life.js plot/assets/curve.js plot/assets/answer.js \
  plot/assets/tabs.js plot/assets/service.js plot/assets/start.js
plot/page.js: $(PAGE_PARTS)
	$(AM_V_GEN)$(MKDIR_P) plot && (echo '"use strict"; {'; cd $(srcdir) && cat $(PAGE_PARTS); echo '}') > $@.new && mv $@.new $@
# The page as C arrays.
plot/assets.inc: plot/embed.sh plot/page.js plot/assets/figures.js plot/assets/page.css plot/assets/page.html
	$(AM_V_GEN)bash $(srcdir)/plot/embed.sh $(srcdir)/plot/assets/figures.js $(srcdir)/plot/assets/page.css \
	  $(srcdir)/plot/assets/page.html plot/page.js > $@.new && mv $@.new $@
plot/assets.$(OBJEXT): plot/assets.inc
CLEANFILES += plot/assets.inc plot/page.js
