# SPDX-License-Identifier: BSD-2-Clause
#
# make            builds build/tickmark, build/libtickmark.{so,a} and the examples
# make demo       the main job: installs what is missing, attaches to a running transformer
# make test       all tests: unit, replay, live (root)
# make lint asan bench install

VERSION = 0.1.0
SOVERSION = 0
CC ?= gcc
CXX ?= g++
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/bin/bpftool) bpftool)
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR ?= $(PREFIX)/bin
B ?= build

ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
WARN = -Wall -Wextra -Werror
OPT ?= -O2 -g
ALL_CFLAGS = -std=gnu11 $(WARN) $(OPT) $(SAN) -Iinclude -Iuser -I$(B) -D_GNU_SOURCE \
	-DTMK_VERSION='"$(VERSION)"' -MMD -MP $(CFLAGS)
ALL_LDFLAGS = $(SAN) $(LDFLAGS)
TRACER_LIBS = $(shell pkg-config --libs libbpf libelf zlib 2>/dev/null || echo -lbpf -lelf -lz) -lpthread -lm

# The marker library: libc only, usable from any program.
LIB_SRCS = $(wildcard user/marker/*.c user/stream/*.c) user/runtime3/line.c \
	user/runtime3/json.c user/runtime3/window_counts.c user/base/buf.c \
	user/base/out_file.c
LIB_OBJS = $(LIB_SRCS:%.c=$(B)/lib/%.o)

# The tracer: one folder a stage.
CORE_SRCS = $(wildcard user/base/*.c user/runtime3/*.c user/attach/*.c user/capture/*.c \
	user/stream/*.c user/assemble/*.c user/sink/*.c)
CORE_OBJS = $(CORE_SRCS:%.c=$(B)/obj/%.o)
CMD_OBJS = $(patsubst %.c,$(B)/obj/%.o,$(wildcard user/cmd/*.c))

BPF_SRCS = $(wildcard bpf/*.bpf.c)
SKELS = $(BPF_SRCS:bpf/%.bpf.c=$(B)/%.skel.h)

.PHONY: all
all: $(B)/tickmark $(B)/libtickmark.so $(B)/libtickmark.a examples

# --- the marker library
$(B)/lib/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -fPIC -fvisibility=hidden -fexceptions -c $< -o $@

$(B)/libtickmark.so.$(SOVERSION): $(LIB_OBJS)
	$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libtickmark.so.$(SOVERSION) -Wl,-z,defs -o $@ $^ -lpthread

$(B)/libtickmark.so: $(B)/libtickmark.so.$(SOVERSION)
	ln -sf $(<F) $@

# One relocatable object with everything internal made local: no name of ours can clash. But for the
# weak ones: those name sections that are shared with other objects (COMDAT: the base of the notes, the
# reference to the personality), and a linker that drops our copy or theirs must find the one it keeps
# by that name.
$(B)/libtickmark.a: $(LIB_OBJS)
	ld -r -o $(B)/lib/libtickmark.o $^
	readelf -sW $(B)/lib/libtickmark.o | awk '$$5 == "GLOBAL" && $$6 == "HIDDEN" { print $$8 }' \
		>$(B)/lib/libtickmark.hidden
	objcopy --localize-symbols=$(B)/lib/libtickmark.hidden $(B)/lib/libtickmark.o
	rm -f $@
	ar rcs $@ $(B)/lib/libtickmark.o

# --- BPF
.SECONDARY: $(BPF_SRCS:bpf/%.bpf.c=$(B)/%.bpf.o) $(SKELS)
$(B)/%.bpf.o: bpf/%.bpf.c include/capture_abi.h include/tickmark/marker_abi.h $(wildcard vmlinux/*.h bpf/*.h)
	@mkdir -p $(@D)
	$(CLANG) -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_$(ARCH) -Wall -Wextra -Werror \
		-Ivmlinux -Iinclude -c $< -o $@.tmp
	$(BPFTOOL) gen object $@ $@.tmp
	rm -f $@.tmp

$(B)/%.skel.h: $(B)/%.bpf.o
	(echo '/* NOLINTBEGIN */' && $(BPFTOOL) gen skeleton $< name $*_bpf && echo '/* NOLINTEND */') >$@.tmp
	mv $@.tmp $@

# --- the tracer
$(B)/obj/%.o: %.c | $(SKELS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

$(B)/tickmark: $(CORE_OBJS) $(CMD_OBJS)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(TRACER_LIBS)

# --- examples
.PHONY: examples
examples: $(B)/transformer $(B)/transformer-static

include tests/tests.mk
include examples/examples.mk
include scripts/scripts.mk

.PHONY: clean
clean:
	rm -rf $(B)

# (Below release/ it is cargo that keeps such files.)
-include $(shell find $(B) -name release -prune -o -type f -name '*.d' -print 2>/dev/null)
