# SPDX-License-Identifier: BSD-2-Clause
#
# Programs of other languages, and of C in all the ways of linking that change how a program finds the
# library's data. test_lang.py runs them; make test-lang builds and runs just these.

LANG_DIR = $(B)/tests/lang
LANG_WARN = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-align -Wundef -Werror
LANG_SHARED = -L$(B) -ltickmark -Wl,-rpath,$(abspath $(B))
LANG_ARCHIVE = $(B)/libtickmark.a -lpthread

# Compiler flags and libraries of each way.
LANG_WAYS = shared archive nopie-shared nopie-archive debug-shared gc
shared_FLAGS = -fPIE -pie -O2
shared_LIBS = $(LANG_SHARED)
archive_FLAGS = -fPIE -pie -O2
archive_LIBS = $(LANG_ARCHIVE)
nopie-shared_FLAGS = -fno-pie -no-pie -O2
nopie-shared_LIBS = $(LANG_SHARED)
nopie-archive_FLAGS = -fno-pie -no-pie -Os
nopie-archive_LIBS = $(LANG_ARCHIVE)
debug-shared_FLAGS = -O0 -g
debug-shared_LIBS = $(LANG_SHARED)
gc_FLAGS = -O2 -ffunction-sections -fdata-sections -Wl,--gc-sections -s
gc_LIBS = $(LANG_ARCHIVE)

# A sanitizer's run time cannot be linked statically.
ifeq ($(SAN),)
LANG_WAYS += static static-pie
static_FLAGS = -static -fno-pie -O2
static_LIBS = $(LANG_ARCHIVE)
static-pie_FLAGS = -static-pie -fPIE -O2
static-pie_LIBS = $(LANG_ARCHIVE)
endif

define LANG_RULES
$(LANG_DIR)/c-$(1): tests/lang/user.c $(wildcard include/tickmark/*.h) $(B)/libtickmark.so $(B)/libtickmark.a
	@mkdir -p $$(@D)
	$(CC) -std=c11 $(LANG_WARN) -Wstrict-prototypes -Wmissing-prototypes -Iinclude $(SAN) $$($(1)_FLAGS) \
		$$< -o $$@ $$($(1)_LIBS)

$(LANG_DIR)/cxx-$(1): tests/lang/user.cc $(wildcard include/tickmark/*.h) $(B)/libtickmark.so $(B)/libtickmark.a
	@mkdir -p $$(@D)
	$(CXX) -std=c++17 $(LANG_WARN) -Wold-style-cast -Iinclude $(SAN) $$($(1)_FLAGS) $$< -o $$@ $$($(1)_LIBS)
endef
$(foreach way,$(LANG_WAYS),$(eval $(call LANG_RULES,$(way))))

LANG_PROGRAMS = $(LANG_WAYS:%=$(LANG_DIR)/c-%) $(LANG_WAYS:%=$(LANG_DIR)/cxx-%) \
	$(LANG_DIR)/plugin_host $(LANG_DIR)/plugin-shared.so $(LANG_DIR)/plugin-archive.so

$(LANG_DIR)/plugin-shared.so: tests/lang/user.c $(B)/libtickmark.so
	@mkdir -p $(@D)
	$(CC) -std=c11 -Iinclude $(SAN) -O2 -fPIC -shared $< -o $@ $(LANG_SHARED)

$(LANG_DIR)/plugin-archive.so: tests/lang/user.c $(B)/libtickmark.a
	@mkdir -p $(@D)
	$(CC) -std=c11 -Iinclude $(SAN) -O2 -fPIC -shared $< -o $@ $(LANG_ARCHIVE)

$(LANG_DIR)/plugin_host: tests/lang/plugin_host.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $< -o $@ $(ALL_LDFLAGS) -ldl

# Rust where there is a compiler; its linker knows nothing of a sanitizer in the library.
ifneq ($(shell command -v rustc 2>/dev/null),)
ifeq ($(SAN),)
# Whether a panic may pass through functions of C (1.71).
RUST_CFG := $(shell rustc --version | awk '{ split($$2, v, "."); new = v[1] > 1; \
	if (new || v[2] >= 71) print "--cfg c_unwind"; \
	if (new || v[2] >= 80) print "--check-cfg \"cfg(c_unwind)\"" }')
LANG_PROGRAMS += $(LANG_DIR)/rust-shared $(LANG_DIR)/rust-archive

$(LANG_DIR)/rust-shared: tests/lang/user.rs $(B)/libtickmark.so
	@mkdir -p $(@D)
	env -u MAKEFLAGS -u MFLAGS rustc --edition 2021 -D warnings $(RUST_CFG) -O $< -o $@ -L native=$(B) -l dylib=tickmark \
		-C link-arg=-Wl,-rpath,$(abspath $(B))

$(LANG_DIR)/rust-archive: tests/lang/user.rs $(B)/libtickmark.a
	@mkdir -p $(@D)
	env -u MAKEFLAGS -u MFLAGS rustc --edition 2021 -D warnings $(RUST_CFG) -O $< -o $@ -L native=$(B) -l static=tickmark
endif
endif

TEST_PROGRAMS += $(LANG_PROGRAMS)

.PHONY: test-lang
test-lang: $(LANG_PROGRAMS)
	@TMK_BUILD=$(abspath $(B)) PYTHONDONTWRITEBYTECODE=1 python3 -m pytest -q -ra -c tests/pytest.ini tests/lang
