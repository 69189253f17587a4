// SPDX-License-Identifier: BSD-2-Clause
/*
 * The command line: one table of options, and the checks of their values.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "pool.h"

enum option_id {
	OPT_TEXT = 256,
	OPT_STEPS,
	OPT_THREADS,
	OPT_PROMPT,
	OPT_TOKENS,
	OPT_SERVE,
	OPT_ANSWER_EVERY,
	OPT_CANCEL_EVERY,
	OPT_TRACE,
	OPT_SELF_CLOCK,
	OPT_SEED,
	OPT_LAYERS,
	OPT_DIM,
	OPT_HEADS,
	OPT_CONTEXT,
	OPT_BATCH,
	OPT_HELP,
};

static const struct option table[] = {
	{ "text", required_argument, NULL, OPT_TEXT },
	{ "steps", required_argument, NULL, OPT_STEPS },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "prompt", required_argument, NULL, OPT_PROMPT },
	{ "tokens", required_argument, NULL, OPT_TOKENS },
	{ "serve", no_argument, NULL, OPT_SERVE },
	{ "answer-every", required_argument, NULL, OPT_ANSWER_EVERY },
	{ "cancel-every", required_argument, NULL, OPT_CANCEL_EVERY },
	{ "trace", required_argument, NULL, OPT_TRACE },
	{ "self-clock", required_argument, NULL, OPT_SELF_CLOCK },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "layers", required_argument, NULL, OPT_LAYERS },
	{ "dim", required_argument, NULL, OPT_DIM },
	{ "heads", required_argument, NULL, OPT_HEADS },
	{ "context", required_argument, NULL, OPT_CONTEXT },
	{ "batch", required_argument, NULL, OPT_BATCH },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static const char help[] =
	"Usage: transformer [OPTION]...\n"
	"Trains a small transformer on a text, then continues prompts. Every operation is\n"
	"marked with libtickmark.\n"
	"\n"
	"Examples:\n"
	"  transformer                                train on the GPL, then talk like it\n"
	"  transformer --text book.txt --steps 2000   train longer on another text\n"
	"  transformer --prompt 'You may ' --tokens 80\n"
	"  echo 'The licensee ' | transformer --steps 100 --serve\n"
	"  transformer --trace run.jsonl              also write run.jsonl and run.infer.jsonl\n"
	"  transformer --steps 100000 & tickmark record -p $! -d 10 -o run.jsonl\n"
	"\n"
	"  --text FILE        what to learn (default /usr/share/common-licenses/GPL-3)\n"
	"  --steps N          training steps (default 300)\n"
	"  --prompt TEXT      continue this; may be given several times\n"
	"  --tokens N         bytes of each continuation (default 200)\n"
	"  --serve            answer each line of stdin with one line, until its end\n"
	"  --answer-every N   continue the next prompt after every N training steps, too\n"
	"                     (default 0: only when it has learned)\n"
	"  --cancel-every N   give up every Nth prompt half way (default 0: none)\n"
	"  --threads N        worker threads (default: one for each CPU, 2 to 4)\n"
	"  --seed N           of all that is random (default 1); the results do not depend\n"
	"                     on the number of threads\n"
	"  --trace FILE       write the training's trace to FILE, the answers' to FILE with\n"
	"                     .infer before its extension, with no tracer\n"
	"  --self-clock FILE  time every operation with the program's own clock too, and\n"
	"                     write the sums to FILE as JSON\n"
	"  --layers N         blocks (default 4)\n"
	"  --dim N            width, a multiple of --heads (default 64)\n"
	"  --heads N          attention heads (default 4)\n"
	"  --context N        tokens that the model sees (default 64)\n"
	"  --batch N          sequences of a training step (default 8)\n"
	"  --help             this text\n"
	"\n"
	"SIGTERM and SIGINT end it after the present step, with every file whole.\n"
	"Exit status: 0 done or told to stop, 1 failed, 2 wrong usage.\n";

static size_t default_threads(void)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus < 2 ? 2 : cpus > 4 ? 4 : (size_t)cpus;
}

/* A decimal number within bounds, and nothing behind it. */
static int parse_number(const char *name, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(optarg, &end, 10);
	if (optarg[0] >= '0' && optarg[0] <= '9' && !*end && !errno && *value >= min &&
	    *value <= max)
		return 0;
	fprintf(stderr,
		"transformer: --%s '%s': not a number from %" PRIu64 " to %" PRIu64
		"; see --help\n",
		name, optarg, min, max);
	return -EINVAL;
}

static int parse_size(const char *name, size_t min, size_t max, size_t *value)
{
	uint64_t number;
	int err = parse_number(name, min, max, &number);

	if (!err)
		*value = (size_t)number;
	return err;
}

static int parse_threads(const char *name, unsigned int *threads)
{
	size_t number = *threads;
	int err = parse_size(name, 1, POOL_THREADS_MAX, &number);

	*threads = (unsigned int)number;
	return err;
}

/* `name` is the option's as the table has it. */
static int parse_option(struct options *o, int id, const char *name)
{
	switch (id) {
	case OPT_TEXT:
		o->text = optarg;
		return 0;
	case OPT_STEPS:
		return parse_number(name, 0, 1000000000, &o->steps);
	case OPT_THREADS:
		return parse_threads(name, &o->threads);
	case OPT_PROMPT:
		o->prompts[o->n_prompts++] = optarg;
		return 0;
	case OPT_TOKENS:
		return parse_size(name, 0, 1000000, &o->tokens);
	case OPT_SERVE:
		o->serve = true;
		return 0;
	case OPT_ANSWER_EVERY:
		return parse_number(name, 0, 1000000000, &o->answer_every);
	case OPT_CANCEL_EVERY:
		return parse_number(name, 0, 1000000000, &o->cancel_every);
	case OPT_TRACE:
		o->trace = optarg;
		return 0;
	case OPT_SELF_CLOCK:
		o->self_clock = optarg;
		return 0;
	case OPT_SEED:
		return parse_number(name, 0, UINT64_MAX, &o->seed);
	case OPT_LAYERS:
		return parse_size(name, 1, 64, &o->layers);
	case OPT_DIM:
		return parse_size(name, 1, 4096, &o->dim);
	case OPT_HEADS:
		return parse_size(name, 1, 256, &o->heads);
	case OPT_CONTEXT:
		return parse_size(name, 1, 4096, &o->context);
	case OPT_BATCH:
		return parse_size(name, 1, 4096, &o->batch);
	}
	return -EINVAL;
}

/*
 * getopt_long() leaves a short option in optopt and has then perhaps not stepped over its word; there is
 * none here, so a short one is always wrong. Of a long one, the word is the last that was stepped over.
 */
static void say_bad_option(int id, char **argv)
{
	const char *word = argv[optind - 1];

	if (optopt > 0 && optopt < OPT_TEXT)
		fprintf(stderr, "transformer: -%c: no such option; see --help\n", optopt);
	else if (id == ':')
		fprintf(stderr, "transformer: %s: needs a value; see --help\n", word);
	else if (optopt)
		fprintf(stderr, "transformer: %s: takes no value; see --help\n", word);
	else
		fprintf(stderr, "transformer: %s: no such option; see --help\n", word);
}

static int check(const struct options *o, int argc, char **argv)
{
	if (optind < argc) {
		fprintf(stderr,
			"transformer: '%s': not an option; a prompt is given with --prompt\n",
			argv[optind]);
		return -EINVAL;
	}
	if (o->dim % o->heads) {
		fprintf(stderr,
			"transformer: --dim %zu: not a multiple of --heads %zu; choose another\n",
			o->dim, o->heads);
		return -EINVAL;
	}
	return 0;
}

enum options_result options_parse(struct options *o, int argc, char **argv)
{
	int id, index = 0;

	*o = (struct options){
		.text = "/usr/share/common-licenses/GPL-3",
		.steps = 300,
		.threads = (unsigned int)default_threads(),
		.tokens = 200,
		.seed = 1,
		.layers = 4,
		.dim = 64,
		.heads = 4,
		.context = 64,
		.batch = 8,
		.prompts = calloc((size_t)argc + 1, sizeof(*o->prompts)),
	};
	if (!o->prompts) {
		fprintf(stderr, "transformer: out of memory\n");
		return OPTIONS_BAD;
	}

	opterr = 0;
	while ((id = getopt_long(argc, argv, ":", table, &index)) != -1) {
		if (id == OPT_HELP) {
			fputs(help, stdout);
			return OPTIONS_HELP;
		}
		if (id < OPT_TEXT) {
			say_bad_option(id, argv);
			return OPTIONS_BAD;
		}
		if (parse_option(o, id, table[index].name))
			return OPTIONS_BAD;
	}
	return check(o, argc, argv) ? OPTIONS_BAD : OPTIONS_RUN;
}

void options_free(struct options *o)
{
	free(o->prompts);
	o->prompts = NULL;
}
