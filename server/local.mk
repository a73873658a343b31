# SPDX-License-Identifier: GPL-3.0-or-later
# The service: built where its libraries are wanted.
SERVER_FILES = \
  server/api/admit.c \
  server/api/advice.c \
  server/api/advice.h \
  server/api/advise.c \
  server/api/api.h \
  server/api/cards.c \
  server/api/cards.h \
  server/api/csv.c \
  server/api/csv.h \
  server/api/embedded.c \
  server/api/embedded.h \
  server/api/events.c \
  server/api/jobs.c \
  server/api/k8s.c \
  server/api/metrics.c \
  server/api/misc.c \
  server/api/patch.c \
  server/api/patch.h \
  server/api/pods.c \
  server/api/pods.h \
  server/api/results.c \
  server/api/routes.c \
  server/api/routes.def \
  server/api/routes.h \
  server/api/traces.c \
  server/ask/asked.c \
  server/ask/asked.h \
  server/ask/call_line.c \
  server/ask/length.c \
  server/ask/together.c \
  server/ask/together.h \
  server/client/client.c \
  server/client/client.h \
  server/client/inner.h \
  server/client/jobs.c \
  server/http/accept.c \
  server/http/accept.h \
  server/http/answers.c \
  server/http/answers.h \
  server/http/desk.c \
  server/http/desk.h \
  server/http/door.h \
  server/http/http.c \
  server/http/http.h \
  server/http/links.c \
  server/http/links.h \
  server/http/listen.c \
  server/http/listen.h \
  server/http/replies.c \
  server/http/upload.c \
  server/http/upload.h \
  server/http/watchdog.c \
  server/http/watchdog.h \
  server/protocol/claims.h \
  server/protocol/kinds.c \
  server/protocol/kinds.def \
  server/protocol/kinds.h \
  server/protocol/members.def \
  server/protocol/message.c \
  server/protocol/message.h \
  server/protocol/meter.c \
  server/protocol/meter.h \
  server/protocol/problems.def \
  server/service/folder.c \
  server/service/folder.h \
  server/service/metrics.def \
  server/service/service.c \
  server/service/service.h \
  server/service/tokens.c \
  server/store/files.c \
  server/store/inner.h \
  server/store/jobs.c \
  server/store/placed.c \
  server/store/postgres.c \
  server/store/sql.h \
  server/store/sqlite.c \
  server/store/states.def \
  server/store/store.c \
  server/store/store.h \
  server/store/sweep.c \
  server/store/traces.c \
  server/work/crew.c \
  server/work/crew.h \
  server/work/ended.c \
  server/work/spare.c \
  server/work/spare.h \
  server/work/work.c \
  server/work/work.h

# What the service shows and tells of itself, as C arrays.
SERVER_ASSETS = \
  server/openapi.json
server/api/embedded.inc: plot/embed.sh $(SERVER_ASSETS)
	$(AM_V_GEN)$(MKDIR_P) server/api && (cd $(srcdir) && bash plot/embed.sh $(SERVER_ASSETS)) > $@.new && mv $@.new $@
server/api/embedded.$(OBJEXT): server/api/embedded.inc
CLEANFILES += server/api/embedded.inc

if HAVE_SERVER
noinst_LIBRARIES += libserver.a
libserver_a_SOURCES = $(SERVER_FILES)
SERVER_LIBS = libserver.a
SERVER_FOREIGN = $(CURL_LIBS) $(MICROHTTPD_LIBS) $(SQLITE_LIBS) $(PQ_LIBS)
endif
EXTRA_DIST += $(SERVER_ASSETS)
EXTRA_DIST += \
  server/README.md \
  server/api/README.md \
  server/ask/README.md \
  server/client/README.md \
  server/http/README.md \
  server/metrics.md \
  server/protocol/README.md \
  server/service/README.md \
  server/store/README.md \
  server/work/README.md
