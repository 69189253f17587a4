/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening to libtickmark without a tracer and without root: raises the semaphore by hand and writes a
 * jump over the marker functions of this program, which its own notes name, so that each hit is recorded
 * here with its arguments. For unit tests; each includes it once.
 */
#ifndef TICKMARK_TESTS_MARKER_HOOK_H
#define TICKMARK_TESTS_MARKER_HOOK_H

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/elf_notes.h"
#include "capture_abi.h"
#include "tickmark/tickmark.h"

#define HITS_KEPT 4096

struct hit {
	unsigned int kind; /* enum tmk_rec_kind */
	uint64_t arg[6];
};

static struct hit hits[HITS_KEPT];
static unsigned int n_hits;	  /* atomic */
static void (*hit_watcher)(void); /* called at each hit */

static void hit_record(unsigned int kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		       uint64_t e, uint64_t f)
{
	unsigned int i = __atomic_fetch_add(&n_hits, 1, __ATOMIC_RELAXED);

	if (i < HITS_KEPT)
		hits[i] = (struct hit){ kind, { a, b, c, d, e, f } };
	if (hit_watcher)
		hit_watcher();
}

#define HOOK(name, kind)                                                                         \
	static void name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) \
	{                                                                                        \
		hit_record(kind, a, b, c, d, e, f);                                              \
	}
HOOK(hook_session_open, TMK_REC_SESSION_OPEN)
HOOK(hook_session_finish, TMK_REC_SESSION_FINISH)
HOOK(hook_op_begin, TMK_REC_OP_BEGIN)
HOOK(hook_op_end, TMK_REC_OP_END)
HOOK(hook_edge, TMK_REC_EDGE)
HOOK(hook_window_start, TMK_REC_WINDOW_START)
HOOK(hook_window_end, TMK_REC_WINDOW_END)
HOOK(hook_window_resolve, TMK_REC_WINDOW_RESOLVE)

static inline struct tmk_switch *the_switch(void)
{
	return (struct tmk_switch *)(uintptr_t)tmk_switch_address();
}

static inline void listen_start(void)
{
	__atomic_store_n(&n_hits, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&the_switch()->direct, 1, __ATOMIC_RELAXED);
}

static inline void listen_stop(void)
{
	__atomic_store_n(&the_switch()->direct, 0, __ATOMIC_RELAXED);
}

/* Where a file offset of this executable is mapped to be run; 0 = nowhere. */
static uint64_t executable_address(uint64_t offset)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096], self[2048];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	uint64_t found = 0;

	self[len > 0 ? len : 0] = '\0';
	while (maps && fgets(line, sizeof(line), maps)) {
		uint64_t start, end, at;
		char perms[8];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64, &start, &end, perms,
			   &at) == 4 &&
		    perms[2] == 'x' && strstr(line, self) && offset >= at &&
		    offset - at < end - start)
			found = start + (offset - at);
	}
	if (maps)
		fclose(maps);
	return found;
}

static int jump_write(int memory, uint64_t at, uintptr_t to)
{
	uint64_t address = to;
#if defined(__x86_64__) /* mov $to, %r11; jmp *%r11 */
	unsigned char code[13] = { 0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3 };

	memcpy(code + 2, &address, 8);
#else /* ldr x16, .+8; br x16; the address */
	unsigned char code[16] = { 0x50, 0x00, 0x00, 0x58, 0x00, 0x02, 0x1f, 0xd6 };

	memcpy(code + 8, &address, 8);
#endif
	if (pwrite(memory, code, sizeof(code), (off_t)at) != (ssize_t)sizeof(code))
		return -1;
	__builtin___clear_cache((char *)(uintptr_t)at, (char *)(uintptr_t)at + sizeof(code));
	return 0;
}

/* A cmocka group set-up. */
static int hooks_install(void **state)
{
	static const struct {
		unsigned int kind;
		void (*hook)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
	} hooks[] = {
		{ TMK_REC_SESSION_OPEN, hook_session_open },
		{ TMK_REC_SESSION_FINISH, hook_session_finish },
		{ TMK_REC_OP_BEGIN, hook_op_begin },
		{ TMK_REC_OP_END, hook_op_end },
		{ TMK_REC_EDGE, hook_edge },
		{ TMK_REC_WINDOW_START, hook_window_start },
		{ TMK_REC_WINDOW_END, hook_window_end },
		{ TMK_REC_WINDOW_RESOLVE, hook_window_resolve },
	};
	struct tmk_marker_notes notes;
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	int err = self < 0 || memory < 0 || tmk_notes_read(self, &notes) != 1;

	(void)state;
	for (size_t i = 0; !err && i < sizeof(hooks) / sizeof(hooks[0]); i++) {
		uint64_t at = notes.kind[hooks[i].kind].n == 1
				      ? executable_address(notes.kind[hooks[i].kind].offset[0])
				      : 0;

		err = !at || jump_write(memory, at, (uintptr_t)hooks[i].hook);
	}
	if (err)
		fprintf(stderr, "the markers of this program were not found in its notes\n");
	close(self);
	close(memory);
	return err;
}

static inline const struct tmk_desc *desc_at(uint64_t address)
{
	return (const struct tmk_desc *)(uintptr_t)address;
}

#endif /* TICKMARK_TESTS_MARKER_HOOK_H */
