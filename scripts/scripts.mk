# SPDX-License-Identifier: BSD-2-Clause
#
# The targets that are more than building: demo, lint, bench, install. Each first lets scripts/setup.sh
# see to the packages that it needs.

.PHONY: demo
demo:
	@scripts/setup.sh build
	@+$(MAKE) -s $(JOBS) --no-print-directory all
	@scripts/demo.sh $(B)

# --- lint
.PHONY: lint check-clang
lint:
	@scripts/setup.sh lint
	@+$(MAKE) -s --no-print-directory $(SKELS) $(B)/bench/empty.skel.h
	@scripts/lint.sh $(B)
	@+$(MAKE) --no-print-directory check-clang

# The whole tree, tests included, also builds without a warning with the other compiler.
check-clang:
	@scripts/setup.sh lint
	@+$(MAKE) -s $(JOBS) --no-print-directory B=$(B)-clang CC=clang CXX=clang++ test-programs bench-programs
	@echo "lint: builds with clang, no warning"

# --- bench
BENCH_SRCS = $(filter-out %.bpf.c,$(wildcard tests/bench/*.c))
BENCH_BINS = $(BENCH_SRCS:tests/bench/%.c=$(B)/bench/%)

$(B)/bench/%: tests/bench/%.c $(B)/libtickmark.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $< -o $@ $(B)/libtickmark.a $(ALL_LDFLAGS) -lpthread

# The yardstick: an empty program on the very sites that the tracer attaches to, by the same means.
$(B)/bench/empty.skel.h: tests/bench/empty.bpf.c
	@mkdir -p $(@D)
	$(CLANG) -g -O2 -target bpf -mcpu=v2 -D__TARGET_ARCH_$(ARCH) -Wall -Wextra -Werror -Ivmlinux \
		-c $< -o $(@D)/empty.bpf.o
	(echo '/* NOLINTBEGIN */' && $(BPFTOOL) gen skeleton $(@D)/empty.bpf.o name empty_bpf && \
		echo '/* NOLINTEND */') >$@.tmp
	mv $@.tmp $@

$(B)/bench/empty_uprobe: tests/bench/empty_uprobe.c $(B)/bench/empty.skel.h $(CORE_OBJS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -I$(@D) $< -o $@ $(CORE_OBJS) $(ALL_LDFLAGS) $(TRACER_LIBS)

$(B)/bench/assemble: tests/bench/assemble.c $(CORE_OBJS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $< -o $@ $(CORE_OBJS) $(ALL_LDFLAGS) $(TRACER_LIBS)

.PHONY: bench bench-programs
bench-programs: all $(BENCH_BINS)

bench:
	@scripts/bench/setup-peers.sh $(B)
	@+$(MAKE) -s $(JOBS) --no-print-directory bench-programs
	@$(PYTHON) scripts/bench/bench.py --build $(B)

# --- install
HEADERS = $(wildcard include/tickmark/*.h)
INSTALL ?= install
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig

.PHONY: install uninstall
install: $(B)/tickmark $(B)/libtickmark.so $(B)/libtickmark.a
	$(INSTALL) -d '$(DESTDIR)$(BINDIR)' '$(DESTDIR)$(LIBDIR)' '$(DESTDIR)$(PKGCONFIGDIR)' \
		'$(DESTDIR)$(INCLUDEDIR)/tickmark'
	$(INSTALL) -m 0755 $(B)/tickmark '$(DESTDIR)$(BINDIR)/tickmark'
	$(INSTALL) -m 0644 $(B)/libtickmark.so.$(SOVERSION) $(B)/libtickmark.a '$(DESTDIR)$(LIBDIR)'
	ln -sf libtickmark.so.$(SOVERSION) '$(DESTDIR)$(LIBDIR)/libtickmark.so'
	$(INSTALL) -m 0644 $(HEADERS) '$(DESTDIR)$(INCLUDEDIR)/tickmark'
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@VERSION@|$(VERSION)|' user/marker/tickmark.pc.in >'$(DESTDIR)$(PKGCONFIGDIR)/tickmark.pc'
	chmod 0644 '$(DESTDIR)$(PKGCONFIGDIR)/tickmark.pc'
	$(if $(DESTDIR),,-ldconfig 2>/dev/null)

uninstall:
	rm -f '$(DESTDIR)$(BINDIR)/tickmark' '$(DESTDIR)$(LIBDIR)'/libtickmark.so.$(SOVERSION) \
		'$(DESTDIR)$(LIBDIR)/libtickmark.so' '$(DESTDIR)$(LIBDIR)/libtickmark.a' \
		'$(DESTDIR)$(PKGCONFIGDIR)/tickmark.pc' $(HEADERS:include/%='$(DESTDIR)$(INCLUDEDIR)/%')
	-rmdir '$(DESTDIR)$(INCLUDEDIR)/tickmark' 2>/dev/null
