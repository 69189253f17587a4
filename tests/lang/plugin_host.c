// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that knows nothing of libtickmark and loads user.c as a plugin, which does:
 *
 *	plugin_host PLUGIN FILE
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int (*plugin_main)(int, char **);
	void *plugin = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

	if (!plugin) {
		fprintf(stderr, "plugin_host: %s\n", argc == 3 ? dlerror() : "usage: PLUGIN FILE");
		return 2;
	}
	*(void **)&plugin_main = dlsym(plugin, "main");
	return plugin_main ? plugin_main(2, argv + 1) : 2;
}
