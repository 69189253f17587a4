// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads the tickmark markers of one ELF file with libelf. See elf_notes.h.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "attach/elf_notes.h"
#include "base/marker_name.h"

#define NT_STAPSDT 3

#if defined(__x86_64__)
#define ELF_MACHINE EM_X86_64
static const char *const arg_regs[] = { "8@%rdi", "8@%rsi", "8@%rdx", "8@%rcx", "8@%r8", "8@%r9" };
#elif defined(__aarch64__)
#define ELF_MACHINE EM_AARCH64
static const char *const arg_regs[] = { "8@x0", "8@x1", "8@x2", "8@x3", "8@x4", "8@x5" };
#else
#error "tickmark knows x86-64 and arm64"
#endif

/* How many arguments each marker has, by kind. */
static const unsigned char n_args[TMK_REC_MARKERS] = {
	[TMK_REC_SESSION_OPEN] = 2, [TMK_REC_SESSION_FINISH] = 2, [TMK_REC_OP_BEGIN] = 6,
	[TMK_REC_OP_END] = 5,	    [TMK_REC_EDGE] = 6,		  [TMK_REC_WINDOW_START] = 6,
	[TMK_REC_WINDOW_END] = 6,   [TMK_REC_WINDOW_RESOLVE] = 6,
};

/* One note, its strings pointing into the file's data. */
struct sdt_note {
	uint64_t pc, base, semaphore;
	const char *provider, *name, *args;
};

/* Takes a NUL-ended string from *p, which ends before `end`; NULL if there is no NUL. */
static const char *string_take(const char **p, const char *end)
{
	const char *s = *p;
	const char *nul = memchr(s, 0, end - s);

	if (!nul)
		return NULL;
	*p = nul + 1;
	return s;
}

static bool note_parse(struct sdt_note *n, const char *desc, size_t len)
{
	const char *end = desc + len;
	uint64_t words[3];

	if (len < sizeof(words))
		return false;
	memcpy(words, desc, sizeof(words));
	n->pc = words[0];
	n->base = words[1];
	n->semaphore = words[2];
	desc += sizeof(words);
	n->provider = string_take(&desc, end);
	n->name = n->provider ? string_take(&desc, end) : NULL;
	n->args = n->name ? string_take(&desc, end) : NULL;
	return n->args;
}

/* The BPF programs read the argument registers, so a marker that says anything else is not ours. */
static bool args_known(unsigned int kind, const char *args)
{
	char want[64] = "";

	for (unsigned int i = 0; i < n_args[kind]; i++) {
		if (i)
			strcat(want, " ");
		strcat(want, arg_regs[i]);
	}
	return !strcmp(want, args);
}

struct segments {
	size_t n;
	struct {
		uint64_t vaddr, offset, filesz;
	} load[32];
};

static int segments_read(Elf *elf, struct segments *s)
{
	size_t n;
	GElf_Phdr ph;

	s->n = 0;
	if (elf_getphdrnum(elf, &n))
		return -EINVAL;
	for (size_t i = 0; i < n && s->n < 32; i++) {
		if (!gelf_getphdr(elf, i, &ph))
			return -EINVAL;
		if (ph.p_type != PT_LOAD)
			continue;
		s->load[s->n].vaddr = ph.p_vaddr;
		s->load[s->n].offset = ph.p_offset;
		s->load[s->n].filesz = ph.p_filesz;
		s->n++;
	}
	return 0;
}

/* False where no file byte backs the address. */
static bool offset_of(const struct segments *s, uint64_t vaddr, uint64_t *offset, size_t *segment)
{
	for (size_t i = 0; i < s->n; i++) {
		if (vaddr < s->load[i].vaddr || vaddr - s->load[i].vaddr >= s->load[i].filesz)
			continue;
		*offset = s->load[i].offset + (vaddr - s->load[i].vaddr);
		*segment = i;
		return true;
	}
	return false;
}

static void note_add(struct tmk_marker_notes *out, const struct sdt_note *n,
		     const struct segments *segments, uint64_t shift)
{
	uint64_t pc, semaphore;
	size_t text, data;
	unsigned int kind;

	for (kind = 0; kind < TMK_REC_MARKERS; kind++) {
		const char *name = tmk_marker_name(kind);

		if (name && !strcmp(name, n->name))
			break;
	}
	if (kind == TMK_REC_MARKERS || !args_known(kind, n->args) || !n->semaphore ||
	    !offset_of(segments, n->pc + shift, &pc, &text) ||
	    !offset_of(segments, n->semaphore + shift, &semaphore, &data) ||
	    out->kind[kind].n == TMK_MARKER_SITES_MAX ||
	    (out->semaphore_offset && out->semaphore_offset != semaphore)) {
		out->n_foreign++;
		return;
	}
	out->semaphore_offset = semaphore;
	out->semaphore_vaddr = n->semaphore + shift;
	out->text_vaddr = segments->load[text].vaddr;
	out->text_offset = segments->load[text].offset;
	if (!out->kind[kind].n)
		out->n_markers++;
	out->kind[kind].offset[out->kind[kind].n++] = pc;
}

static void notes_scan(Elf_Data *data, const struct segments *segments, uint64_t sdt_base,
		       struct tmk_marker_notes *out)
{
	size_t pos = 0, next, name_at, desc_at;
	GElf_Nhdr nh;

	for (; (next = gelf_getnote(data, pos, &nh, &name_at, &desc_at)); pos = next) {
		const char *bytes = data->d_buf;
		struct sdt_note n;

		if (nh.n_type != NT_STAPSDT || nh.n_namesz != 8 ||
		    memcmp(bytes + name_at, "stapsdt", 8))
			continue;
		if (!note_parse(&n, bytes + desc_at, nh.n_descsz) ||
		    strcmp(n.provider, TMK_PROVIDER))
			continue;
		/* Where a tool moved the segments (prelink), the base section moved with them. */
		note_add(out, &n, segments, sdt_base && n.base ? sdt_base - n.base : 0);
	}
}

static void build_id_scan(Elf_Data *data, char hex[41])
{
	size_t pos = 0, next, name_at, desc_at;
	GElf_Nhdr nh;

	for (; (next = gelf_getnote(data, pos, &nh, &name_at, &desc_at)); pos = next) {
		const unsigned char *bytes = data->d_buf;

		if (nh.n_type != NT_GNU_BUILD_ID || nh.n_namesz != 4 ||
		    memcmp(bytes + name_at, "GNU", 4))
			continue;
		for (size_t i = 0; i < nh.n_descsz && i < 20; i++)
			sprintf(hex + 2 * i, "%02x", bytes[desc_at + i]);
		return;
	}
}

static uint64_t sdt_base_find(Elf *elf, size_t shstrndx)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn))) {
		const char *name;

		if (!gelf_getshdr(scn, &sh))
			continue;
		name = elf_strptr(elf, shstrndx, sh.sh_name);
		if (name && !strcmp(name, ".stapsdt.base"))
			return sh.sh_addr;
	}
	return 0;
}

static int sections_scan(Elf *elf, const struct segments *segments, struct tmk_marker_notes *out)
{
	Elf_Scn *scn = NULL;
	size_t shstrndx;
	uint64_t base;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(elf, &shstrndx))
		return 0;
	base = sdt_base_find(elf, shstrndx);
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name;
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_NOTE)
			continue;
		name = elf_strptr(elf, shstrndx, sh.sh_name);
		data = elf_getdata(scn, NULL);
		if (!name || !data || !data->d_buf)
			continue;
		if (!strcmp(name, ".note.stapsdt"))
			notes_scan(data, segments, base, out);
		else if (!strcmp(name, ".note.gnu.build-id"))
			build_id_scan(data, out->build_id);
	}
	return 0;
}

int tmk_notes_read(int fd, struct tmk_marker_notes *out)
{
	struct segments segments;
	GElf_Ehdr eh;
	Elf *elf;
	int err = 0;

	memset(out, 0, sizeof(*out));
	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOTSUP;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return 0;
	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh) || eh.e_machine != ELF_MACHINE ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64)
		goto cleanup;
	if (segments_read(elf, &segments) || !segments.n)
		goto cleanup;
	err = sections_scan(elf, &segments, out);
cleanup:
	elf_end(elf);
	return err ? err : out->n_markers > 0;
}
