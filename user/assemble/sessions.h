/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes (one entry an incarnation, i.e. one image of one process) and the sessions they opened.
 * A process is forgotten when it is gone; a session is kept to the end of the capture, for its closing
 * line, but found by its id only while its process lives.
 */
#ifndef TICKMARK_ASSEMBLE_SESSIONS_H
#define TICKMARK_ASSEMBLE_SESSIONS_H

#include "assemble/budget.h"
#include "assemble/desc.h"
#include "assemble/pair.h"
#include "assemble/windows.h"
#include "base/hash.h"

#define TMK_SESSIONS_MAX 4096u
#define TMK_PROCESSES_MAX 65536u

enum tmk_session_state {
	TMK_SESSION_RUNNING = 0,
	TMK_SESSION_FINISHED,
	TMK_SESSION_GONE, /* its process ended, or replaced its image, without finishing it */
};

struct tmk_session_entry {
	struct tmk_session_view view;
	struct tmk_session_totals totals; /* `unpaired` is pairs.unpaired until the end */
	struct tmk_pair_owner pairs;
	struct tmk_window_owner windows;
	enum tmk_session_state state;
	uint32_t incarnation;
	uint32_t next; /* of the same process: index + 1, 0 ends the list */
	uint64_t n;    /* the counter: operations begun and edges, so far */
	char comm[17];
	struct tmk_str *features;
	char strings[];
};

struct tmk_process {
	uint32_t incarnation; /* 0: a free slot */
	uint32_t tgid, ns_pid;
	uint32_t age;	   /* order of appearance */
	uint32_t names;	   /* list, cf. tmk_names_add() */
	uint32_t sessions; /* index + 1 of the one that appeared last */
	char comm[17];
};

struct tmk_sessions {
	struct tmk_seed seed;
	struct tmk_budget *budget;
	struct tmk_index by_incarnation, by_tgid; /* processes */
	struct tmk_index by_id;			  /* sessions of live processes */
	struct tmk_process *processes;
	uint32_t n_processes, n_live_processes, cap_processes, free_process; /* slot + 1 */
	uint32_t next_age;
	struct tmk_session_entry **entries;
	uint32_t n, cap;
	struct tmk_session_entry *last; /* found last: mostly the next one, too */
};

void tmk_sessions_init(struct tmk_sessions *t, struct tmk_budget *budget,
		       const struct tmk_seed *seed);
void tmk_sessions_free(struct tmk_sessions *t);

struct tmk_process *tmk_process_find(struct tmk_sessions *t, uint32_t incarnation);

/* Finds or adds. Returns 0, -ENOSPC when there are too many, or -ENOMEM. Valid until the next call. */
int tmk_process_get(struct tmk_sessions *t, uint32_t incarnation, uint32_t tgid,
		    struct tmk_process **out);

/*
 * An incarnation of `tgid` that appeared before the process `newer` did (NULL: any), to be ended
 * because of it; NULL when there is none.
 */
struct tmk_process *tmk_process_older(struct tmk_sessions *t, uint32_t tgid,
				      const struct tmk_process *newer);

/* Forgets a process; its sessions are found no more. The names are the caller's to drop. */
void tmk_process_drop(struct tmk_sessions *t, struct tmk_process *p);

/* NULL where no descriptor of it has come, or where its process is gone. */
struct tmk_session_entry *tmk_session_find(struct tmk_sessions *t, uint32_t incarnation,
					   uint64_t session_id);

/* Keeps a session. Returns 0 (also for one that is known), -ENOSPC or -ENOMEM. */
int tmk_session_add(struct tmk_sessions *t, struct tmk_process *p, uint64_t session_id,
		    const struct tmk_desc_view *d);

#endif /* TICKMARK_ASSEMBLE_SESSIONS_H */
