// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The kernel side of direct markers: one program a marker, each timestamp, copy, count, submit.
 *
 * A program filters by process, counts the hit, has the descriptors that the hit names copied out once
 * (TMK_REC_DESCRIBE), and submits one record. All the rest (pairing, naming, order) is user space's.
 *
 * Order: a record's time is read after its place in the ring was reserved. So once a reader has seen
 * the clock at T and then consumed a ring up to its producer position, no record of that ring with a
 * time before T is still to come. The tide (capture_abi.h) rests on this.
 *
 * Nothing here needs BTF, CO-RE or a helper younger than the ring buffer itself (5.8).
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "capture_abi.h"

/* Set by the loader before load. */
const volatile __u32 ring_mask;	 /* number of rings - 1; a power of two */
const volatile __u64 wake_bytes; /* fill level at which the reader is woken, once a crossing */

#define DESCRIBED_SLOTS 4096
#define DESCRIBE_SMALL 232 /* bytes of strings that the small record holds: most descriptors */

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

/*
 * tgid → incarnation. The loader hands out multiples of 256; the low byte counts exec calls. Preallocated:
 * for a tracing program with any other hash, kernels before 6.1 print a warning and taint themselves, and
 * real-time ones refuse it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

/*
 * The same by the low bits of the tgid, since a hash look-up is a tenth of a hit: tgid << 32 | incarnation,
 * 0 where no target has these bits, or any other value where several do and the hash must say.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TMK_TARGET_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} target_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tmk_cpu_counters);
} counters SEC(".maps");

/*
 * Which descriptors were described: a direct-mapped cache of keys. A collision of slots only describes
 * twice. The incarnation fills the top bits of a key, so that no process can pass for another.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DESCRIBED_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} described SEC(".maps");

struct describe_small {
	struct tmk_rec_describe r;
	struct tmk_desc d;
	char strings[DESCRIBE_SMALL];
};

struct describe_large {
	struct tmk_rec_describe r;
	struct tmk_desc d;
	char strings[TMK_STRINGS_MAX];
};

struct hit {
	__u64 pid_tgid;
	__u32 incarnation;
	__u32 cpu;
	struct tmk_cpu_counters *counters;
	void *ring;
};

/* 0: not a target. */
static __always_inline __u32 incarnation_of(__u32 tgid)
{
	__u32 slot = tgid & (TMK_TARGET_SLOTS - 1);
	__u64 *cached = bpf_map_lookup_elem(&target_slots, &slot);
	__u32 *incarnation;

	if (!cached || !*cached)
		return 0;
	if (*cached >> 32 == tgid)
		return (__u32)*cached;
	incarnation = bpf_map_lookup_elem(&targets, &tgid);
	return incarnation ? *incarnation : 0;
}

static __always_inline bool hit_open(struct hit *h, __u32 kind)
{
	__u32 slot;

	h->pid_tgid = bpf_get_current_pid_tgid();
	h->incarnation = incarnation_of(h->pid_tgid >> 32);
	if (!h->incarnation)
		return false;

	h->cpu = bpf_get_smp_processor_id();
	h->counters = bpf_map_lookup_elem(&counters, &h->cpu);
	if (!h->counters)
		return false;
	__sync_fetch_and_add(&h->counters->hits[kind], 1);

	slot = h->cpu & ring_mask;
	h->ring = bpf_map_lookup_elem(&rings, &slot);
	return h->ring;
}

static __always_inline void rec_fill(struct tmk_rec *r, const struct hit *h, __u32 kind,
				     __u32 bytes)
{
	r->bytes = bytes;
	r->kind = kind;
	r->source = TMK_SOURCE_MARKER;
	r->incarnation = h->incarnation;
	r->tgid = h->pid_tgid >> 32;
	r->tid = (__u32)h->pid_tgid;
	r->time = bpf_ktime_get_ns();
}

/*
 * A wake-up costs more than the rest of a hit, so the reader polls, and is woken only where a ring
 * fills: about when the fill level passes wake_bytes, looked at every WAKE_EVERY hits.
 */
#define WAKE_EVERY 32
#define WAKE_SPAN 65536

static __always_inline __u64 wake_flags(const struct hit *h, __u32 kind)
{
	if (h->counters->hits[kind] & (WAKE_EVERY - 1))
		return BPF_RB_NO_WAKEUP;
	if (bpf_ringbuf_query(h->ring, BPF_RB_AVAIL_DATA) - wake_bytes >= WAKE_SPAN)
		return BPF_RB_NO_WAKEUP;
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline __u64 described_key(const struct hit *h, __u64 object, __u64 serial)
{
	__u64 name = (object ^ serial * 0x9e3779b97f4a7c15ULL) * 0xd6e8feb86659fd93ULL;

	return (__u64)h->incarnation << 40 | name >> 24;
}

static __always_inline __u32 describe_bytes(__u64 strings)
{
	return (sizeof(struct tmk_rec_describe) + sizeof(struct tmk_desc) + strings + 7) & ~7U;
}

/* Reads and submits one descriptor; returns whether it was read whole. */
static __noinline bool describe_slow(struct hit *h, __u64 object, __u64 session_id)
{
	struct tmk_desc d;
	struct describe_small *s;
	struct describe_large *l;
	__u64 bytes;

	if (bpf_probe_read_user(&d, sizeof(d), (void *)object))
		goto failed;
	bytes = d.bytes;
	if (d.magic != TMK_DESC_MAGIC || bytes > TMK_STRINGS_MAX)
		goto failed;

	if (bytes <= DESCRIBE_SMALL) {
		s = bpf_ringbuf_reserve(h->ring, sizeof(*s), 0);
		if (!s)
			goto lost;
		if (bpf_probe_read_user(s->strings, bytes, (void *)(object + sizeof(d)))) {
			bpf_ringbuf_discard(s, BPF_RB_NO_WAKEUP);
			goto failed;
		}
		rec_fill(&s->r.h, h, TMK_REC_DESCRIBE, describe_bytes(bytes));
		s->r.object = object;
		s->r.session_id = session_id;
		s->d = d;
		bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
		return true;
	}

	l = bpf_ringbuf_reserve(h->ring, sizeof(*l), 0);
	if (!l)
		goto lost;
	if (bpf_probe_read_user(l->strings, bytes, (void *)(object + sizeof(d)))) {
		bpf_ringbuf_discard(l, BPF_RB_NO_WAKEUP);
		goto failed;
	}
	rec_fill(&l->r.h, h, TMK_REC_DESCRIBE, describe_bytes(bytes));
	l->r.object = object;
	l->r.session_id = session_id;
	l->d = d;
	bpf_ringbuf_submit(l, BPF_RB_NO_WAKEUP);
	return true;

failed:
	__sync_fetch_and_add(&h->counters->describe_failed, 1);
	return false;
lost:
	__sync_fetch_and_add(&h->counters->describe_lost, 1);
	return false;
}

/* `session_id` is part of a session's name only: sites and names are the same in every session. */
static __always_inline void describe(struct hit *h, __u64 object, __u64 session_id, bool is_session)
{
	__u64 key = described_key(h, object, is_session ? session_id : 0);
	__u32 slot = (key ^ key >> 40) & (DESCRIBED_SLOTS - 1);
	__u64 *seen = bpf_map_lookup_elem(&described, &slot);

	if (!seen || *seen == key)
		return;
	if (describe_slow(h, object, session_id))
		*seen = key;
}

static __always_inline void session_hit(struct pt_regs *ctx, __u32 kind)
{
	struct tmk_rec_session *r;
	struct hit h;

	if (!hit_open(&h, kind))
		return;
	describe(&h, PT_REGS_PARM2(ctx), PT_REGS_PARM1(ctx), true);
	r = bpf_ringbuf_reserve(h.ring, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&h.counters->ring_full[kind], 1);
		return;
	}
	rec_fill(&r->h, &h, kind, sizeof(*r));
	r->session_id = PT_REGS_PARM1(ctx);
	bpf_ringbuf_submit(r, wake_flags(&h, kind));
}

SEC("uprobe.multi")
int session_open(struct pt_regs *ctx)
{
	session_hit(ctx, TMK_REC_SESSION_OPEN);
	return 0;
}

SEC("uprobe.multi")
int session_finish(struct pt_regs *ctx)
{
	session_hit(ctx, TMK_REC_SESSION_FINISH);
	return 0;
}

SEC("uprobe.multi")
int op_begin(struct pt_regs *ctx)
{
	struct tmk_rec_op_begin *r;
	struct hit h;

	if (!hit_open(&h, TMK_REC_OP_BEGIN))
		return 0;
	describe(&h, PT_REGS_PARM2(ctx), PT_REGS_PARM1(ctx), true);
	describe(&h, PT_REGS_PARM3(ctx), PT_REGS_PARM1(ctx), false);
	r = bpf_ringbuf_reserve(h.ring, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&h.counters->ring_full[TMK_REC_OP_BEGIN], 1);
		return 0;
	}
	rec_fill(&r->h, &h, TMK_REC_OP_BEGIN, sizeof(*r));
	r->session_id = PT_REGS_PARM1(ctx);
	r->site = PT_REGS_PARM3(ctx);
	r->token = PT_REGS_PARM4(ctx);
	r->step = PT_REGS_PARM5(ctx);
	r->stream = PT_REGS_PARM6(ctx);
	bpf_ringbuf_submit(r, wake_flags(&h, TMK_REC_OP_BEGIN));
	return 0;
}

SEC("uprobe.multi")
int op_end(struct pt_regs *ctx)
{
	struct tmk_rec_op_end *r;
	struct hit h;

	if (!hit_open(&h, TMK_REC_OP_END))
		return 0;
	describe(&h, PT_REGS_PARM2(ctx), PT_REGS_PARM1(ctx), true);
	if (PT_REGS_PARM5(ctx))
		describe(&h, PT_REGS_PARM5(ctx), PT_REGS_PARM1(ctx), false);
	r = bpf_ringbuf_reserve(h.ring, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&h.counters->ring_full[TMK_REC_OP_END], 1);
		return 0;
	}
	rec_fill(&r->h, &h, TMK_REC_OP_END, sizeof(*r));
	r->session_id = PT_REGS_PARM1(ctx);
	r->token = PT_REGS_PARM3(ctx);
	r->step = PT_REGS_PARM4(ctx);
	r->output = PT_REGS_PARM5(ctx);
	bpf_ringbuf_submit(r, wake_flags(&h, TMK_REC_OP_END));
	return 0;
}

SEC("uprobe.multi")
int edge(struct pt_regs *ctx)
{
	struct tmk_rec_edge *r;
	struct hit h;

	if (!hit_open(&h, TMK_REC_EDGE))
		return 0;
	describe(&h, PT_REGS_PARM2(ctx), PT_REGS_PARM1(ctx), true);
	describe(&h, PT_REGS_PARM3(ctx), PT_REGS_PARM1(ctx), false);
	r = bpf_ringbuf_reserve(h.ring, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&h.counters->ring_full[TMK_REC_EDGE], 1);
		return 0;
	}
	rec_fill(&r->h, &h, TMK_REC_EDGE, sizeof(*r));
	r->session_id = PT_REGS_PARM1(ctx);
	r->site = PT_REGS_PARM3(ctx);
	r->token = PT_REGS_PARM4(ctx);
	r->step = PT_REGS_PARM5(ctx);
	r->duration_ns = PT_REGS_PARM6(ctx);
	bpf_ringbuf_submit(r, wake_flags(&h, TMK_REC_EDGE));
	return 0;
}

static __always_inline void window_hit(struct pt_regs *ctx, __u32 kind)
{
	struct tmk_rec_window *r;
	struct hit h;

	if (!hit_open(&h, kind))
		return;
	describe(&h, PT_REGS_PARM2(ctx), PT_REGS_PARM1(ctx), true);
	describe(&h, PT_REGS_PARM3(ctx), PT_REGS_PARM1(ctx), false);
	r = bpf_ringbuf_reserve(h.ring, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&h.counters->ring_full[kind], 1);
		return;
	}
	rec_fill(&r->h, &h, kind, sizeof(*r));
	r->session_id = PT_REGS_PARM1(ctx);
	r->name = PT_REGS_PARM3(ctx);
	r->id = PT_REGS_PARM4(ctx);
	r->opened_on = PT_REGS_PARM5(ctx);
	r->detail = PT_REGS_PARM6(ctx);
	bpf_ringbuf_submit(r, wake_flags(&h, kind));
}

SEC("uprobe.multi")
int window_start(struct pt_regs *ctx)
{
	window_hit(ctx, TMK_REC_WINDOW_START);
	return 0;
}

SEC("uprobe.multi")
int window_end(struct pt_regs *ctx)
{
	window_hit(ctx, TMK_REC_WINDOW_END);
	return 0;
}

SEC("uprobe.multi")
int window_resolve(struct pt_regs *ctx)
{
	struct tmk_rec_window_resolve *r;
	struct hit h;

	if (!hit_open(&h, TMK_REC_WINDOW_RESOLVE))
		return 0;
	describe(&h, PT_REGS_PARM2(ctx), PT_REGS_PARM1(ctx), true);
	r = bpf_ringbuf_reserve(h.ring, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&h.counters->ring_full[TMK_REC_WINDOW_RESOLVE], 1);
		return 0;
	}
	rec_fill(&r->h, &h, TMK_REC_WINDOW_RESOLVE, sizeof(*r));
	r->session_id = PT_REGS_PARM1(ctx);
	r->id = PT_REGS_PARM3(ctx);
	r->opened_on = PT_REGS_PARM4(ctx);
	r->duration_ns = PT_REGS_PARM5(ctx);
	r->how = PT_REGS_PARM6(ctx);
	bpf_ringbuf_submit(r, wake_flags(&h, TMK_REC_WINDOW_RESOLVE));
	return 0;
}

/*
 * A traced process replaced its image: every address that it named before means something else now.
 * The new incarnation is in force before the new image runs its first instruction.
 */
SEC("raw_tracepoint/sched_process_exec")
int process_exec(void *ctx __attribute__((unused)))
{
	struct hit h = { .pid_tgid = bpf_get_current_pid_tgid() };
	__u32 tgid = h.pid_tgid >> 32, slot;
	__u32 *incarnation = bpf_map_lookup_elem(&targets, &tgid);
	__u64 *cached;
	struct tmk_rec *r;

	if (!incarnation)
		return 0;
	h.incarnation = (*incarnation & ~0xffU) | ((*incarnation + 1) & 0xff);
	*incarnation = h.incarnation;
	slot = tgid & (TMK_TARGET_SLOTS - 1);
	cached = bpf_map_lookup_elem(&target_slots, &slot);
	if (cached && *cached >> 32 == tgid)
		*cached = (__u64)tgid << 32 | h.incarnation;
	slot = bpf_get_smp_processor_id() & ring_mask;
	h.ring = bpf_map_lookup_elem(&rings, &slot);
	if (!h.ring)
		return 0;
	r = bpf_ringbuf_reserve(h.ring, sizeof(*r), 0);
	if (!r)
		return 0;
	rec_fill(r, &h, TMK_REC_EXEC, sizeof(*r));
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
