// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads what a tracer needs to know about one process from /proc. See process.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "attach/process.h"

/* A process may map as many files as it likes; past this many it is searched no further. */
#define SEARCHED_MAX 4096
#define OBJECTS_MAX 64

static int proc_read(pid_t pid, const char *name, char *out, size_t cap)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, out, cap - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return n;
	out[n] = 0;
	return 0;
}

static int stat_read(struct tmk_process *p)
{
	char text[1024];
	char *end;
	int err = proc_read(p->pid, "stat", text, sizeof(text));

	if (err)
		return err;
	/* The command may hold anything, ")" too: what follows the last one is safe. */
	end = strrchr(text, ')');
	if (!end ||
	    sscanf(end + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
		   "%*d %" SCNu64,
		   &p->start_ticks) != 1)
		return -EPROTO;
	return 0;
}

static int status_read(struct tmk_process *p)
{
	char text[4096];
	const char *line;
	int err = proc_read(p->pid, "status", text, sizeof(text));

	if (err)
		return err;
	line = strstr(text, "\nUid:");
	if (line)
		p->uid = strtoul(line + 5, NULL, 10);
	p->ns_pid = p->pid;
	line = strstr(text, "\nNSpid:");
	if (line) {
		char *end = (char *)line + 7;

		/* One pid a namespace, the innermost last. */
		while (*end && *end != '\n') {
			long v = strtol(end, &end, 10);

			if (v > 0)
				p->ns_pid = v;
			end += strspn(end, "\t ");
		}
	}
	return 0;
}

int tmk_process_init(struct tmk_process *p, pid_t pid)
{
	char path[32];
	ssize_t n;
	int err;

	memset(p, 0, sizeof(*p));
	p->pid = pid;
	err = stat_read(p);
	if (!err)
		err = status_read(p);
	if (!err)
		err = proc_read(pid, "comm", p->comm, sizeof(p->comm));
	if (err)
		return err;
	p->comm[strcspn(p->comm, "\n")] = 0;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, p->exe, sizeof(p->exe) - 1);
	p->exe[n > 0 ? n : 0] = 0;
	return 0;
}

static bool searched_before(const struct tmk_process *p, dev_t dev, ino_t ino)
{
	/* From the end: the mappings of one file lie side by side. */
	for (size_t i = p->n_searched; i-- > 0;) {
		if (p->searched[i].dev == dev && p->searched[i].ino == ino)
			return true;
	}
	return false;
}

static int searched_add(struct tmk_process *p, dev_t dev, ino_t ino)
{
	struct tmk_file_id *grown;

	if (p->n_searched % 64 == 0) {
		grown = reallocarray(p->searched, p->n_searched + 64, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		p->searched = grown;
	}
	p->searched[p->n_searched].dev = dev;
	p->searched[p->n_searched++].ino = ino;
	return 0;
}

struct mapping {
	uint64_t start, end, offset;
	dev_t dev;
	ino_t ino;
	const char *path;
};

static bool mapping_parse(char *line, struct mapping *m)
{
	unsigned int major, minor;
	uint64_t ino;
	char perms[8];
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &m->start,
		   &m->end, perms, &m->offset, &major, &minor, &ino, &at) < 7)
		return false;
	m->dev = makedev(major, minor);
	m->ino = ino;
	m->path = at ? line + at : "";
	line[strcspn(line, "\n")] = 0;
	return ino && perms[2] == 'x';
}

static int object_add(struct tmk_process *p, const struct mapping *m)
{
	struct tmk_object *grown, *o;
	int fd, err;

	grown = reallocarray(p->objects, p->n_objects + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->objects = grown;
	o = &p->objects[p->n_objects];
	memset(o, 0, sizeof(*o));
	o->dev = m->dev;
	o->ino = m->ino;
	snprintf(o->open_path, sizeof(o->open_path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
		 p->pid, m->start, m->end);
	fd = open(o->open_path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		/* Unmapped again meanwhile: nothing to attach to. */
		return errno == ENOENT ? 0 : -errno;
	err = tmk_notes_read(fd, &o->notes);
	if (err > 0) {
		o->bias = m->start - (o->notes.text_vaddr + m->offset - o->notes.text_offset);
		o->path = strdup(m->path);
		if (o->path)
			p->n_objects++;
		else
			err = -ENOMEM;
	}
	close(fd);
	return err;
}

int tmk_process_scan(struct tmk_process *p)
{
	size_t before = p->n_objects;
	char path[32], *line = NULL;
	size_t cap = 0;
	int err = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", p->pid);
	maps = fopen(path, "re");
	if (!maps)
		return errno == ENOENT ? -ESRCH : -errno;
	while (err >= 0 && getline(&line, &cap, maps) > 0) {
		struct mapping m;

		if (!mapping_parse(line, &m) || searched_before(p, m.dev, m.ino))
			continue;
		if (p->n_searched == SEARCHED_MAX || p->n_objects == OBJECTS_MAX)
			break;
		err = searched_add(p, m.dev, m.ino);
		if (!err)
			err = object_add(p, &m);
	}
	/* A process that ends while its maps are read gives an error or a short list. */
	if (err >= 0 && ferror(maps))
		err = -ESRCH;
	free(line);
	fclose(maps);
	return err < 0 ? err : (int)(p->n_objects - before);
}

void tmk_process_free(struct tmk_process *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_objects; i++)
		free(p->objects[i].path);
	free(p->objects);
	free(p->searched);
	p->objects = NULL;
	p->searched = NULL;
	p->n_objects = p->n_searched = 0;
}

static int memory_read(const struct tmk_process *p, uint64_t address, void *out, size_t len)
{
	struct iovec local = { out, len };
	struct iovec remote = { (void *)(uintptr_t)address, len };
	ssize_t n = process_vm_readv(p->pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

int tmk_process_read_switch(const struct tmk_process *p, const struct tmk_object *o,
			    struct tmk_switch *out)
{
	int err = memory_read(p, o->bias + o->notes.semaphore_vaddr, out, sizeof(*out));

	if (err)
		return err;
	if (out->registry_magic != TMK_REGISTRY_MAGIC)
		memset(out->sessions, 0, sizeof(out->sessions));
	return 0;
}

int tmk_process_read_desc(const struct tmk_process *p, uint64_t address, struct tmk_desc **out)
{
	struct tmk_desc head, *d;
	int err = memory_read(p, address, &head, sizeof(head));

	if (err)
		return err;
	if (head.magic != TMK_DESC_MAGIC || head.bytes > TMK_STRINGS_MAX)
		return -EINVAL;
	d = malloc(sizeof(*d) + head.bytes);
	if (!d)
		return -ENOMEM;
	/* The length stays the one that was checked, whatever the process writes there meanwhile. */
	*d = head;
	err = memory_read(p, address + sizeof(head), d->strings, head.bytes);
	if (err) {
		free(d);
		return err;
	}
	*out = d;
	return 0;
}
