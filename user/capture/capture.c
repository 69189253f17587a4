// SPDX-License-Identifier: BSD-2-Clause
/*
 * Feeds one stream of records to the raw file and the assembler. See capture.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/capture.h"

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void failure_keep(struct tmk_capture *c, int err)
{
	if (err && !c->err)
		c->err = err;
}

int tmk_capture_record(void *capture, const struct tmk_rec *rec, size_t len)
{
	struct tmk_capture *c = capture;
	int err;

	if (c->raw && !c->raw_err) {
		c->raw_err = tmk_raw_writer_put(c->raw, rec);
		failure_keep(c, c->raw_err);
	}
	if (rec->kind == TMK_REC_EXEC && c->on_exec)
		c->on_exec(c->ctx, rec->tgid, rec->incarnation);
	err = tmk_assembler_feed(c->assembler, rec, len);
	if (err == -EINVAL)
		return err;
	failure_keep(c, err);
	return 0;
}

/* A record of our own making: never refused. */
static int own_record(struct tmk_capture *c, const struct tmk_rec *rec)
{
	failure_keep(c, tmk_capture_record(c, rec, rec->bytes));
	return c->err;
}

void tmk_capture_start(struct tmk_capture *c)
{
	c->end.start_ns = clock_ns(CLOCK_MONOTONIC);
	c->end.real_start_ns = clock_ns(CLOCK_REALTIME);
}

void tmk_capture_stop(struct tmk_capture *c)
{
	c->end.mono_end_ns = clock_ns(CLOCK_MONOTONIC);
	c->end.real_end_ns = clock_ns(CLOCK_REALTIME);
}

static void header_fill(struct tmk_rec *h, unsigned char kind, size_t bytes,
			const struct tmk_target *t)
{
	memset(h, 0, sizeof(*h));
	h->bytes = bytes;
	h->kind = kind;
	h->time = clock_ns(CLOCK_MONOTONIC);
	if (t) {
		h->incarnation = t->incarnation;
		h->tgid = h->tid = t->process.pid;
	}
}

int tmk_capture_process(struct tmk_capture *c, const struct tmk_target *t)
{
	struct tmk_rec_process r;

	memset(&r, 0, sizeof(r));
	header_fill(&r.h, TMK_REC_PROCESS, sizeof(r), t);
	r.start_ticks = t->process.start_ticks;
	r.ns_pid = t->process.ns_pid;
	memcpy(r.comm, t->process.comm, sizeof(r.comm));
	memcpy(r.exe, t->process.exe, sizeof(r.exe));
	return own_record(c, &r.h);
}

static int session_tell(struct tmk_capture *c, const struct tmk_target *t, uint64_t address)
{
	struct tmk_rec_describe *r;
	struct tmk_desc *desc;
	size_t len;

	/* An entry may be stale or a lie: then there is nothing to tell. */
	if (tmk_process_read_desc(&t->process, address, &desc))
		return 0;
	if (desc->kind != TMK_DESC_SESSION) {
		free(desc);
		return 0;
	}
	len = (sizeof(*r) + sizeof(*desc) + desc->bytes + 7) & ~(size_t)7;
	r = calloc(1, len);
	if (!r) {
		free(desc);
		return -ENOMEM;
	}
	header_fill(&r->h, TMK_REC_DESCRIBE, len, t);
	r->object = address;
	r->session_id = desc->serial;
	memcpy(r + 1, desc, sizeof(*desc) + desc->bytes);
	/* The content is the process's own, and may be refused. */
	tmk_capture_record(c, &r->h, len);
	free(r);
	free(desc);
	return c->err;
}

int tmk_capture_sessions(struct tmk_capture *c, const struct tmk_target *t)
{
	int err = 0;

	for (size_t i = 0; i < t->process.n_objects; i++) {
		struct tmk_switch sw;

		if (tmk_process_read_switch(&t->process, &t->process.objects[i], &sw))
			continue;
		for (size_t k = 0; k < TMK_REGISTRY_SESSIONS && !err; k++) {
			if (sw.sessions[k])
				err = session_tell(c, t, sw.sessions[k]);
		}
	}
	return err;
}

static int tide_tell(struct tmk_capture *c, uint64_t tide)
{
	struct tmk_rec_tide r;

	header_fill(&r.h, TMK_REC_TIDE, sizeof(r), NULL);
	r.h.time = tide;
	r.lost = tmk_rings_lost(c->rings);
	return own_record(c, &r.h);
}

int tmk_capture_read(struct tmk_capture *c)
{
	uint64_t tide;
	int err = tmk_rings_consume(c->rings, &tide);

	failure_keep(c, err);
	return tide ? tide_tell(c, tide) : c->err;
}

int tmk_capture_gone(struct tmk_capture *c, const struct tmk_target *t, bool known, int status)
{
	struct tmk_rec_gone r;

	header_fill(&r.h, TMK_REC_GONE, sizeof(r), t);
	r.known = known;
	r.status = status;
	return own_record(c, &r.h);
}

/* A program that was running when its probe went away may still be writing; it needs no second. */
static bool books_balance(struct tmk_capture *c)
{
	const struct timespec pause = { 0, 1000000 };

	for (int tries = 0; tries < 1000; tries++) {
		uint64_t tide;

		failure_keep(c, tmk_rings_consume(c->rings, &tide));
		if (tmk_rings_account(c->rings, &c->end))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

int tmk_capture_finish(struct tmk_capture *c, enum tmk_capture_status status, uint64_t hit_cost_ns)
{
	bool balanced = books_balance(c);

	tide_tell(c, clock_ns(CLOCK_MONOTONIC));
	header_fill(&c->end.h, TMK_REC_END, sizeof(c->end), NULL);
	c->end.status = balanced && !c->err ? status : TMK_CAPTURE_FAILED;
	c->end.h.time = c->end.mono_end_ns;
	c->end.hit_cost_ns = hit_cost_ns;
	own_record(c, &c->end.h);
	return c->err ? c->err : balanced ? 0 : -EPROTO;
}
