# SPDX-License-Identifier: BSD-2-Clause
#
# Tests in layers: unit (C, no root), replay (pytest, no root), live (pytest, root and BPF).
# make test runs them all, make test-unit, test-replay and test-live one each; tests/run.py adds up.

UNIT_SRCS = $(wildcard tests/unit/test_*.c)
UNIT_BINS = $(UNIT_SRCS:tests/unit/%.c=$(B)/tests/%)

$(B)/tests/test_%: tests/unit/test_%.c $(CORE_OBJS) $(B)/libtickmark.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Itests $< -o $@ $(CORE_OBJS) $(B)/libtickmark.a $(ALL_LDFLAGS) -lcmocka $(TRACER_LIBS)

# Programs that live tests trace: each once with the library inside, once with the shared one.
LIVE_SRCS = $(wildcard tests/live/*.c)
LIVE_BINS = $(LIVE_SRCS:tests/live/%.c=$(B)/tests/live/%) $(LIVE_SRCS:tests/live/%.c=$(B)/tests/live/%-shared)

$(B)/tests/live/%: tests/live/%.c $(B)/libtickmark.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $< -o $@ $(B)/libtickmark.a $(ALL_LDFLAGS) -lpthread

$(B)/tests/live/%-shared: tests/live/%.c $(B)/libtickmark.so
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $< -o $@ -L$(B) -ltickmark -Wl,-rpath,$(abspath $(B)) $(ALL_LDFLAGS) -lpthread

# Programs that make what tests and measurements read.
TOOL_SRCS = $(wildcard tests/tools/*.c)
TOOL_BINS = $(TOOL_SRCS:tests/tools/%.c=$(B)/tests/tools/%)

$(B)/tests/tools/%: tests/tools/%.c $(CORE_OBJS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $< -o $@ $(CORE_OBJS) $(ALL_LDFLAGS) $(TRACER_LIBS)

# Users of the library in other languages and kinds of link; fills TEST_PROGRAMS.
include tests/lang/lang.mk

.PHONY: test-programs
test-programs: all $(UNIT_BINS) $(LIVE_BINS) $(TOOL_BINS) $(B)/bench/target $(TEST_PROGRAMS)

# The distribution's own Python is the one that has its pytest.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
TEST_LAYERS = unit replay live
# Set where the first call has no jobs of its own to hand out.
JOBS = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

.PHONY: test test-unit test-replay test-live
test:
	@scripts/setup.sh test
	@+$(MAKE) -s $(JOBS) --no-print-directory test-programs
	@$(PYTHON) tests/run.py --build $(B) $(TEST_LAYERS)

test-unit test-replay test-live:
	@+$(MAKE) --no-print-directory test TEST_LAYERS=$(@:test-%=%)

# Library, tracer and tests under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer.
# (Instrumented code misleads two of gcc's warnings.)
ASAN_FLAGS = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer \
	-Wno-stringop-overread -Wno-maybe-uninitialized
ASAN_LAYERS ?= unit replay live

.PHONY: asan
asan:
	@scripts/setup.sh asan
	@+$(MAKE) -s $(JOBS) --no-print-directory B=$(B)-asan SAN='$(ASAN_FLAGS)' OPT='-O1 -g' test-programs
	@ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1 \
		UBSAN_OPTIONS=print_stacktrace=1 \
		$(PYTHON) tests/run.py --build $(B)-asan $(ASAN_LAYERS)
