// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target that lies: it has tickmark's markers, but not its library, and fires them with whatever could
 * hurt a tracer. Prints "ready", waits for one, fires everything ROUNDS times, and ends.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "marker/marker_asm.h"
#include "tickmark/marker_abi.h"

#define ROUNDS 50
#define KERNEL_ADDRESS 0xffffffff81000000ull
#define NON_CANONICAL 0x8000000000000000ull

__attribute__((section(".probes"))) struct tmk_switch hostile_switch = {
	.registry_magic = TMK_REGISTRY_MAGIC,
	/* A registry of lies, for whoever reads it before the first mark. */
	.sessions = { 1, KERNEL_ADDRESS, NON_CANONICAL, UINT64_MAX, (uintptr_t)4096 },
};

TMK_MARKER(hostile_session_finish, session_finish, hostile_switch, TMK_MARKER_ARGS_2);
TMK_MARKER(hostile_op_begin, op_begin, hostile_switch, TMK_MARKER_ARGS_6);
TMK_MARKER(hostile_op_end, op_end, hostile_switch, TMK_MARKER_ARGS_5);
TMK_MARKER(hostile_edge, edge, hostile_switch, TMK_MARKER_ARGS_6);

struct big {
	uint32_t magic;
	uint16_t kind, flags;
	uint32_t bytes, count;
	uint64_t serial;
	char strings[TMK_STRINGS_MAX];
};

static struct big session = { TMK_DESC_MAGIC, TMK_DESC_SESSION, 0, 0, 0, 1, "" };
/* Says that it has four thousand million strings. */
static struct big absurd = { TMK_DESC_MAGIC, TMK_DESC_SESSION, 0xffff, 4, 0xffffffff, 2, "a\0b" };
static struct big sites[16];
static unsigned int n_sites;

/* A descriptor whose header says what it likes about the bytes behind it. */
static uint64_t site(uint16_t kind, uint16_t flags, uint32_t bytes, uint32_t count,
		     const void *strings, size_t len)
{
	struct big *b = &sites[n_sites++];

	b->magic = TMK_DESC_MAGIC;
	b->kind = kind;
	b->flags = flags;
	b->bytes = bytes;
	b->count = count;
	memcpy(b->strings, strings, len);
	return (uintptr_t)b;
}

/* A descriptor at the very end of a page, with strings that begin where nothing is mapped. */
static uint64_t site_at_the_edge(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct big head = { TMK_DESC_MAGIC, TMK_DESC_SITE, 0, 100, 2, 0, "" };

	if (at == MAP_FAILED || munmap(at + page, page))
		return 0;
	memcpy(at + page - 24, &head, 24);
	return (uintptr_t)(at + page - 24);
}

static void session_describe(void)
{
	static const char strings[] =
		"\033[31mred\033]0;title\007\0weird\nphase\0\xff\xfe\xc0\x80\0rest";

	session.bytes = sizeof(strings);
	session.count = 4;
	session.flags = TMK_DESC_HAS_ANALYSIS_ID;
	memcpy(session.strings, strings, sizeof(strings));
}

int main(void)
{
	static const char escapes[] = "id\0\033[2J\033[Hclear\r\n\x9b"
				      "31m\0in\x00put";
	static const char invalid[] = "\xed\xa0\x80\0\xf4\x90\x80\x80\xc0\xaf\xff";
	static char endless[TMK_STRINGS_MAX];
	uint64_t s = (uintptr_t)&session, good[8], bad[8];
	uint64_t token = 1;
	unsigned int n_good = 0, n_bad = 0;

	memset(endless, 'A', sizeof(endless));
	session_describe();
	good[n_good++] = site(TMK_DESC_SITE, 0, sizeof(escapes), 4, escapes, sizeof(escapes));
	good[n_good++] = site(TMK_DESC_SITE, 0xffff, sizeof(invalid), 2, invalid, sizeof(invalid));
	good[n_good++] = site(TMK_DESC_SITE, 0, sizeof(endless), 2, endless, sizeof(endless));
	good[n_good++] = site(TMK_DESC_SITE, 0, 4, 0xffffffff, "a\0b", 4);
	good[n_good++] = site(TMK_DESC_SITE, 0, 0, 0, "", 1);
	good[n_good++] = site(0xffff, 0, 4, 2, "a\0b", 4);
	bad[n_bad++] = site(TMK_DESC_SITE, 0, 1 << 20, 2, "a\0b", 4);
	bad[n_bad++] = site(TMK_DESC_SITE, 0, 0xffffffff, 2, "a\0b", 4);
	bad[n_bad++] = site_at_the_edge();
	bad[n_bad++] = 1;
	bad[n_bad++] = KERNEL_ADDRESS;
	bad[n_bad++] = NON_CANONICAL;
	bad[n_bad++] = (uintptr_t)endless; /* no magic */

	puts("ready");
	fflush(stdout);
	while (!__atomic_load_n(&hostile_switch.direct, __ATOMIC_RELAXED))
		usleep(1000);
	usleep(300000);

	for (int round = 0; round < ROUNDS; round++) {
		for (unsigned int i = 0; i < n_good + n_bad; i++, token++) {
			uint64_t where = i < n_good ? good[i] : bad[i - n_good];

			hostile_op_begin(1, s, where, token, UINT64_MAX, UINT64_MAX);
			hostile_op_end(1, s, token, 0, i % 2 ? where : 0, 0);
			hostile_edge(1, s, where, token, 3, UINT64_MAX);
		}
		/* Never begun, ended before, and begun twice. */
		hostile_op_end(1, s, 0xdeadbeef00000000ull + round, 0, 0, 0);
		hostile_op_end(1, s, token - 1, 0, 0, 0);
		hostile_op_begin(1, s, good[0], 0x7000000000000000ull, 0, 0);
		hostile_op_begin(1, s, good[0], 0x7000000000000000ull, 0, 0);
		/* Sessions that are none. */
		hostile_op_begin(2, (uintptr_t)&absurd, good[0], 1, 0, 0);
		hostile_op_begin(1000 + round, 1, good[0], 1, 0, 0);
		hostile_op_begin(2000 + round, KERNEL_ADDRESS, good[0], 1, 0, 0);
		hostile_session_finish(3000 + round, (uintptr_t)endless, 0, 0, 0, 0);
	}
	return 0;
}
