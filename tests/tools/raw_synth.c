// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes a large raw capture, for measuring `tickmark convert`:
 *
 *	raw_synth FILE OPERATIONS
 *
 * One process, one session, four threads that each run OPERATIONS / 4 operations of 12 sites, with an
 * inner operation in every fourth one, read from two rings with a tide every 20 ms of captured time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/raw.h"

#define SITES 12
#define THREADS 4
#define OP_NS 4000 /* from one begin to the next of a thread */
#define TIDE_NS 20000000
#define START_NS 1000000000ull

static struct tmk_raw_writer *raw;

static void put(const void *rec)
{
	int err = tmk_raw_writer_put(raw, rec);

	if (err) {
		fprintf(stderr, "raw_synth: %s\n", strerror(-err));
		exit(1);
	}
}

static struct tmk_rec head(uint8_t kind, size_t bytes, uint32_t tid, uint64_t time)
{
	return (struct tmk_rec){ .bytes = (uint16_t)bytes,
				 .kind = kind,
				 .incarnation = tid ? 1 : 0,
				 .tgid = tid ? 4242 : 0,
				 .tid = tid,
				 .time = time };
}

/* `text`: each string followed by '\n'. */
static void describe(uint64_t object, uint16_t kind, const char *text)
{
	_Alignas(8) char buf[4096] = { 0 };
	struct tmk_rec_describe *r = (struct tmk_rec_describe *)buf;
	struct tmk_desc *d = (struct tmk_desc *)(r + 1);
	size_t n = strlen(text);

	r->h = head(TMK_REC_DESCRIBE, (sizeof(*r) + sizeof(*d) + n + 7) & ~7ul, 4242, START_NS);
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
	put(buf);
}

static void describe_all(void)
{
	static const char *const ops[SITES] = { "matmul", "add",    "softmax", "layer_norm",
						"gelu",	  "embed",  "qkv",     "attention",
						"mlp",	  "concat", "sample",  "forward" };
	struct tmk_rec_process p = { .h = head(TMK_REC_PROCESS, sizeof(p), 4242, START_NS),
				     .ns_pid = 4242,
				     .comm = "synth" };
	char text[256];

	put(&p);
	describe(0x1000, TMK_DESC_SESSION, "Gpt::forward\ninfer\nrelease\n");
	for (int i = 0; i < SITES; i++) {
		snprintf(text, sizeof(text), "operation:infer:Gpt::forward:%d\n%s\nx\nw_%s\n", i,
			 ops[i], ops[i]);
		describe(0x2000 + (uint64_t)i * 64, TMK_DESC_SITE, text);
		snprintf(text, sizeof(text), "%s_out\n", ops[i]);
		describe(0x4000 + (uint64_t)i * 64, TMK_DESC_NAME, text);
	}
}

static void begin(uint64_t token, uint32_t tid, uint64_t time)
{
	struct tmk_rec_op_begin r = { .h = head(TMK_REC_OP_BEGIN, sizeof(r), tid, time),
				      .session_id = 1,
				      .site = 0x2000 + token % SITES * 64,
				      .token = token,
				      .step = token / 1000,
				      .stream = tid };

	put(&r);
}

static void end(uint64_t token, uint32_t tid, uint64_t time)
{
	struct tmk_rec_op_end r = { .h = head(TMK_REC_OP_END, sizeof(r), tid, time),
				    .session_id = 1,
				    .token = token,
				    .step = token / 1000,
				    .output = 0x4000 + token % SITES * 64 };

	put(&r);
}

/* What one ring holds of operations [from, to): those of two of the threads, in the order of time. */
static void ring_write(uint64_t from, uint64_t to, unsigned int ring)
{
	for (uint64_t i = from; i < to; i++) {
		uint32_t thread = i % THREADS;
		uint64_t at = START_NS + i * (OP_NS / THREADS);
		uint32_t tid = 5000 + thread;

		if (thread / 2 != ring)
			continue;
		/* Every fourth of a thread spans the next one of that thread. */
		if (i / THREADS % 4 == 1 && i >= THREADS) {
			begin(i + 1, tid, at);
			end(i + 1, tid, at + 700 + i % 97);
			end(i + 1 - THREADS, tid, at + 800);
		} else {
			begin(i + 1, tid, at);
			if (i / THREADS % 4 != 0 || i + THREADS >= to)
				end(i + 1, tid, at + 900 + i % 89);
		}
	}
}

int main(int argc, char **argv)
{
	uint64_t n = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t batch = (uint64_t)TIDE_NS / (OP_NS / THREADS) / (4 * THREADS) * (4 * THREADS);
	struct tmk_rec_end last = { .h = head(TMK_REC_END, sizeof(last), 0, 0),
				    .status = TMK_CAPTURE_DETACHED,
				    .start_ns = START_NS,
				    .hit_cost_ns = 300 };
	int err;

	if (!n) {
		fprintf(stderr, "usage: raw_synth FILE OPERATIONS\n");
		return 2;
	}
	n = (n + 4 * THREADS - 1) / (4 * THREADS) * (4 * THREADS);
	err = tmk_raw_writer_open(&raw, argv[1], "raw_synth");
	if (err) {
		fprintf(stderr, "raw_synth: %s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	describe_all();
	for (uint64_t from = 0; from < n; from += batch) {
		uint64_t to = from + batch < n ? from + batch : n;
		struct tmk_rec_tide tide = { .h = head(TMK_REC_TIDE, sizeof(tide), 0,
						       START_NS + to * (OP_NS / THREADS) - 1) };

		ring_write(from, to, 0);
		ring_write(from, to, 1);
		put(&tide);
	}
	last.h.time = last.mono_end_ns = START_NS + n * (OP_NS / THREADS) + OP_NS;
	last.hits[TMK_REC_OP_BEGIN] = last.delivered[TMK_REC_OP_BEGIN] = n;
	last.hits[TMK_REC_OP_END] = last.delivered[TMK_REC_OP_END] = n;
	put(&last);
	err = tmk_raw_writer_close(raw);
	if (err)
		fprintf(stderr, "raw_synth: %s: %s\n", argv[1], strerror(-err));
	return !!err;
}
