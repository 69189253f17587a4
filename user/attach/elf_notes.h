/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which tickmark markers an ELF file carries, and where: read from its .note.stapsdt notes.
 *
 * The file is untrusted. Says nothing about processes; see process.h.
 */
#ifndef TICKMARK_ATTACH_ELF_NOTES_H
#define TICKMARK_ATTACH_ELF_NOTES_H

#include <stdint.h>

#include "capture_abi.h"

#define TMK_MARKER_SITES_MAX 4 /* places of one marker in one file; one is normal */

struct tmk_marker_notes {
	/* By enum tmk_rec_kind: file offsets of the first nop of each marker body. */
	struct {
		unsigned int n;
		uint64_t offset[TMK_MARKER_SITES_MAX];
	} kind[TMK_REC_MARKERS];
	unsigned int n_markers;	   /* kinds that have at least one place */
	unsigned int n_foreign;	   /* notes of ours that this version does not know, left alone */
	uint64_t semaphore_offset; /* file offset; 0 = none */
	uint64_t semaphore_vaddr;  /* as linked */
	uint64_t text_vaddr;	   /* link-time address of the segment that holds the markers… */
	uint64_t text_offset;	   /* …and its file offset: together they give a mapping's bias */
	char build_id[41];	   /* hexadecimal, "" = none */
};

/*
 * Reads the notes of the file open at `fd`. Returns 1 when it has markers, 0 when it has none (also
 * when it is no ELF file of this machine), or a negative errno.
 */
int tmk_notes_read(int fd, struct tmk_marker_notes *out);

#endif /* TICKMARK_ATTACH_ELF_NOTES_H */
