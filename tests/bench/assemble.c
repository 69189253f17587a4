// SPDX-License-Identifier: BSD-2-Clause
/*
 * What it costs to rebuild windows, without reading and writing:
 *
 *	assemble WINDOWS OPERATIONS STREAMS OPEN
 *
 * feeds the assembler WINDOWS windows of OPERATIONS operations each, on STREAMS streams in turn, with OPEN
 * of them open at a time, and says how many operations there were in how many nanoseconds. Fails where the
 * windows do not hold what they should.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "assemble/assemble.h"

#define STEP_NS 100
#define TIDE_EVERY 4096u
enum { SITE = 0x2000, NAME = 0x3000, SITES = 12 };

struct seen {
	uint64_t windows, closed, inside, operations;
};

static int on_op(void *self, const struct tmk_op_view *v)
{
	(void)v;
	((struct seen *)self)->operations++;
	return 0;
}

static int on_window(void *self, const struct tmk_window_view *v)
{
	struct seen *s = self;

	s->windows++;
	s->closed += v->w.has_duration;
	s->inside += v->w.operations;
	return 0;
}

static const struct tmk_sink_ops count_ops = { .name = "count",
					       .on_op = on_op,
					       .on_window = on_window };

static struct tmk_assembler *assembler;
static uint64_t now = 1000000000, fed;

static void feed(void *rec)
{
	struct tmk_rec *h = rec;
	int err;

	h->incarnation = 1;
	h->tgid = 4242;
	h->tid = 4243;
	h->time = now += STEP_NS;
	err = tmk_assembler_feed(assembler, h, h->bytes);
	if (!err && ++fed % TIDE_EVERY == 0) {
		struct tmk_rec_tide tide = {
			.h = { .bytes = sizeof(tide), .kind = TMK_REC_TIDE, .time = now }
		};

		err = tmk_assembler_feed(assembler, &tide.h, sizeof(tide));
	}
	if (err) {
		fprintf(stderr, "assemble: %s\n", strerror(-err));
		exit(1);
	}
}

/* `text`: each string followed by '\n'. */
static void describe(uint64_t object, uint16_t kind, const char *text)
{
	_Alignas(8) char buf[1024] = { 0 };
	struct tmk_rec_describe *r = (struct tmk_rec_describe *)buf;
	struct tmk_desc *d = (struct tmk_desc *)(r + 1);
	size_t n = strlen(text);

	r->h.bytes = (uint16_t)((sizeof(*r) + sizeof(*d) + n + 7) & ~7ul);
	r->h.kind = TMK_REC_DESCRIBE;
	r->object = object;
	r->session_id = 1;
	d->magic = TMK_DESC_MAGIC;
	d->kind = kind;
	d->bytes = (uint32_t)n;
	d->serial = kind == TMK_DESC_SESSION;
	for (size_t i = 0; i < n; i++) {
		d->strings[i] = text[i] == '\n' ? '\0' : text[i];
		d->count += text[i] == '\n';
	}
	feed(buf);
}

static void describe_all(void)
{
	char text[64];

	describe(0x1000, TMK_DESC_SESSION, "Gpt::forward\ninfer\nrelease\n");
	describe(NAME, TMK_DESC_NAME, "step\n");
	for (int i = 0; i < SITES; i++) {
		snprintf(text, sizeof(text), "operation:%d\nop%d\n", i, i);
		describe(SITE + (uint64_t)i * 64, TMK_DESC_SITE, text);
	}
}

static void window(uint8_t kind, uint64_t id, uint64_t stream, uint64_t detail)
{
	struct tmk_rec_window r = { .h = { .bytes = sizeof(r), .kind = kind },
				    .session_id = 1,
				    .name = NAME,
				    .id = id | TMK_WINDOW_NAMED,
				    .opened_on = stream,
				    .detail = detail };

	feed(&r);
}

static void operation(uint64_t token, uint64_t stream)
{
	struct tmk_rec_op_begin b = { .h = { .bytes = sizeof(b), .kind = TMK_REC_OP_BEGIN },
				      .session_id = 1,
				      .site = SITE + token % SITES * 64,
				      .token = token | TMK_TOKEN_NAMED,
				      .stream = stream };
	struct tmk_rec_op_end e = { .h = { .bytes = sizeof(e), .kind = TMK_REC_OP_END },
				    .session_id = 1,
				    .token = token | TMK_TOKEN_NAMED };

	feed(&b);
	feed(&e);
}

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void windows_feed(uint64_t windows, uint64_t operations, uint64_t streams, uint64_t open)
{
	uint64_t token = 0;

	for (uint64_t i = 0; i < windows + open - 1; i++) {
		if (i < windows) {
			window(TMK_REC_WINDOW_START, i, i % streams, 0);
			for (uint64_t k = 0; k < operations; k++)
				operation(++token, i % streams);
		}
		if (i + 1 >= open)
			window(TMK_REC_WINDOW_END, i + 1 - open, (i + 1 - open) % streams,
			       TMK_WINDOW_CLOSED);
	}
}

int main(int argc, char **argv)
{
	uint64_t n[4] = { 0 }, start, inside;
	struct seen seen = { 0 };
	struct tmk_sink sink = { &count_ops, &seen };
	struct tmk_rec_end end = { .h = { .bytes = sizeof(end), .kind = TMK_REC_END },
				   .status = TMK_CAPTURE_DETACHED };

	for (int i = 0; i < 4 && argc == 5; i++)
		n[i] = strtoull(argv[i + 1], NULL, 10);
	if (!n[0] || !n[1] || !n[2] || !n[3]) {
		fprintf(stderr, "usage: assemble WINDOWS OPERATIONS STREAMS OPEN\n");
		return 2;
	}
	if (tmk_assembler_new(&assembler, &sink, 1))
		return 1;
	describe_all();
	start = clock_ns();
	windows_feed(n[0], n[1], n[2], n[3]);
	end.h.time = now;
	if (tmk_assembler_feed(assembler, &end.h, sizeof(end)))
		return 1;
	start = clock_ns() - start;
	tmk_assembler_free(assembler);
	/* On one stream, a window also holds what was going on in those that were opened after it. */
	inside = n[0] * n[1] * (n[2] == 1 ? n[3] : 1);
	if (n[2] == 1 && n[3] > 1)
		inside -= n[1] * n[3] * (n[3] - 1) / 2;
	if (seen.windows != n[0] || seen.closed != n[0] || seen.operations != n[0] * n[1] ||
	    ((n[2] == 1 || n[3] <= n[2]) && seen.inside != inside)) {
		fprintf(stderr,
			"assemble: %" PRIu64 " windows, %" PRIu64 " closed, %" PRIu64
			" operations, %" PRIu64 " inside\n",
			seen.windows, seen.closed, seen.operations, seen.inside);
		return 1;
	}
	printf("%" PRIu64 " %" PRIu64 "\n", seen.operations, start);
	return 0;
}
