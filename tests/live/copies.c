// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program with two copies of the library: the one it was linked with, and the shared one that it loads
 * as a plugin would. Each opens a session of its own and makes operations, interleaved, after a tracer
 * attached. The argument is the path of the shared library.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "tickmark/tickmark.h"

#define OPERATIONS 100

TMK_SITE(linked, "", "linked");
TMK_SITE(loaded, "", "loaded");

/* The calls of one copy. */
struct copy {
	int (*open)(struct tmk_session **out, const char *path, const struct tmk_config *config);
	struct tmk_op (*begin)(struct tmk_session *s, const struct tmk_desc *site);
	int (*end)(struct tmk_session *s, struct tmk_op op, const char *output);
	int (*finish)(struct tmk_session *s);
	int (*enabled)(void);
	struct tmk_session *session;
	struct tmk_op op;
};

static int copy_load(struct copy *c, const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		fprintf(stderr, "copies: %s\n", dlerror());
		return -1;
	}
	*(void **)&c->open = dlsym(library, "tmk_session_open");
	*(void **)&c->begin = dlsym(library, "tmk_op_begin");
	*(void **)&c->end = dlsym(library, "tmk_op_end");
	*(void **)&c->finish = dlsym(library, "tmk_session_finish");
	*(void **)&c->enabled = dlsym(library, "tmk_enabled");
	return c->open && c->begin && c->end && c->finish && c->enabled ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct tmk_config first = tmk_config_train("Linked"), second = tmk_config_train("Loaded");
	struct copy a = { .open = tmk_session_open, .finish = tmk_session_finish };
	struct copy b = { 0 };

	if (argc != 2 || copy_load(&b, argv[1]) || a.open(&a.session, NULL, &first) ||
	    b.open(&b.session, NULL, &second))
		return 2;
	puts("ready");
	fflush(stdout);
	while (!tmk_enabled() || !b.enabled())
		usleep(1000);
	usleep(300000);
	for (int i = 0; i < OPERATIONS; i++) {
		a.op = tmk_op_begin(a.session, &linked);
		b.op = b.begin(b.session, &loaded);
		tmk_op_end(a.session, a.op, NULL);
		b.end(b.session, b.op, NULL);
	}
	return a.finish(a.session) || b.finish(b.session);
}
