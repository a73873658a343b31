# SPDX-License-Identifier: GPL-3.0-or-later
# The public library: shared, static, its header and its manual.
noinst_LIBRARIES += libpublic.a
libpublic_a_SOURCES = \
  library/fleet.c \
  library/inner.c \
  library/inner.h \
  library/plan.c \
  library/trace.c \
  library/walk.c

include_HEADERS = ferry.h
pkgconfig_DATA = ferry.pc

EXTRA_DIST += \
  library/README.md \
  library/exports.map \
  library/man.awk

# It offers what library/exports.map names. A change that breaks programs raises LIBRARY_SONAME.
LIBRARY_SONAME = libferry.so.0
LIBRARY_FILE = $(LIBRARY_SONAME).0.0
$(LIBRARY_FILE): libpublic.a libcore.a library/exports.map
	$(AM_V_CCLD)$(SHARED) -Wl,-soname,$(LIBRARY_SONAME) -Wl,--version-script,"$(srcdir)/library/exports.map" -o $@ \
	  -Wl,--whole-archive libpublic.a -Wl,--no-whole-archive $(CORE_LIBS)
libferry.so: $(LIBRARY_FILE)
	$(AM_V_at)ln -sf $(LIBRARY_FILE) $(LIBRARY_SONAME) && ln -sf $(LIBRARY_FILE) $@
# The archive is made of the same objects, as one in which only the public names are to be seen.
libferry.a: libpublic.a libcore.a
	$(AM_V_GEN)$(LD) -r -o libferry-all.o --whole-archive libpublic.a --no-whole-archive libcore.a && \
	  $(OBJCOPY) -w --keep-global-symbol='ferry_*' libferry-all.o && rm -f $@ && $(AR) crs $@ libferry-all.o && rm -f libferry-all.o

# ferry.h is the manual of the library.
man3/made: ferry.h library/man.awk
	$(AM_V_GEN)rm -rf man3 && $(MKDIR_P) man3 && \
	  awk -v version=$(PACKAGE_VERSION) -v date=$(RELEASE_DATE) -f $(srcdir)/library/man.awk $(srcdir)/ferry.h >man3/ferry.3 && \
	  for it in $$(awk -v names=1 -f $(srcdir)/library/man.awk $(srcdir)/ferry.h); do echo '.so man3/ferry.3' >man3/$$it.3; done && touch $@
BUILT_LAST += libferry.so libferry.a man3/made
CLEANFILES += libferry.so $(LIBRARY_SONAME) $(LIBRARY_FILE) libferry.a libferry-all.o
