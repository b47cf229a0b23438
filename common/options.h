/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - command lines and environment by contract/options.def.
 *
 * An option's value is its flag's, else its environment variable's (if not empty), else unset.
 * Values point into argv and the environment: nothing is owned. Called once at start.
 */
#ifndef CREMA_COMMON_OPTIONS_H
#define CREMA_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

enum option_id {
#define OPTION(id, scope, flag, env, argument, default_text, help) OPT_##id,
#include "options.def"
#undef OPTION
	OPTIONS
};

#define SCOPE_WORKER 1u
#define SCOPE_COLLECT 2u
#define SCOPE_REPORT 4u
#define SCOPE_RUN 8u
#define SCOPE_TOP 16u
#define SCOPE_TOKEN 32u
#define SCOPE_DOCTOR 128u
#define SCOPE_STUCK 256u
#define SCOPE_VIEW 1024u
#define SCOPE_SERVE (SCOPE_COLLECT | SCOPE_VIEW)
#define SCOPE_PAGE (SCOPE_SERVE | SCOPE_TOP | SCOPE_STUCK | SCOPE_DOCTOR | SCOPE_TOKEN)
#define SCOPE_NAMES (SCOPE_WORKER | SCOPE_RUN | SCOPE_COLLECT)
#define SCOPE_NAMED (SCOPE_WORKER | SCOPE_RUN)
#define SCOPE_COMPARE 64u
#define SCOPE_READ (SCOPE_REPORT | SCOPE_COMPARE)
#define SCOPE_SEVERAL (SCOPE_READ | SCOPE_VIEW)
#define SCOPE_JOURNAL (SCOPE_SEVERAL | SCOPE_COLLECT)
#define SCOPE_QUIET (SCOPE_RUN | SCOPE_REPORT | SCOPE_COMPARE)
#define SCOPE_FOLLOW 512u
#define SCOPE_ALL 2047u

struct option {
	const char *id;
	unsigned scope;		  /* SCOPE_* bits */
	const char *flag;	  /* "--name" or "" */
	const char *env;	  /* "CREMA_NAME" or "" */
	const char *argument;	  /* "" = a switch */
	const char *default_text; /* for people; a value only if it reads as one */
	const char *help;
};

extern const struct option option_table[OPTIONS];

/* Stands for a value that was left out ("[FILE]"): compare the pointer. */
extern const char options_left_out[];

#define OPTIONS_MORE 63

struct options {
	const char *value[OPTIONS]; /* NULL: unset; of a switch "on" or "off" */
	/* If its flag may be repeated: the first one's value is in `value`, the others' are here,
	 * NULL at the end. */
	const char *more[OPTIONS_MORE + 1];
	unsigned int repeated; /* how many were given */
	int rest; /* index in argv of the first argument that is not an option: parsing moves
		   * these after the options ("--" skipped). For `crema run` the first one ends
		   * them. */
};

/*
 * Parses argv[1...] until the first argument that does not begin with '-' (or "-" alone), or past
 * "--". "--flag VALUE" and "--flag=VALUE" are the same. If the value may be left out, a word that
 * begins with '-' and is longer is not taken as the value. 0; or -EINVAL after one line on stderr
 * (unknown option, missing or unwanted value, a switch that is neither on nor off): the caller
 * exits with status 2.
 */
int options_parse(struct options *o, unsigned scope, int argc, char **argv);
/* Checks the environment only, for programs without a command line: -EINVAL after one line for each
 * switch that is neither on nor off. */
int options_check_environment(unsigned scope);
/* The value, or the table's default text if unset. */
const char *options_get(const struct options *o, enum option_id id);
bool options_on(const struct options *o, enum option_id id);
/* Prints usage (a whole text, ends in a newline) and the options of the scope, wrapped at
 * `columns`; rarely needed ones only with `all`. */
void options_help(FILE *out, unsigned scope, const char *usage, unsigned int columns, bool all);
/* The word of `words` (NULL at its end) that the user may have meant by `text`, or NULL. */
const char *options_nearest(const char *text, size_t n, const char *const *words);

#endif
