/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - command lines and environment by contract/options.def. */
#include "common/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "switch.h"

#define SCOPE_OF(scope) SCOPE_##scope

const struct option option_table[OPTIONS] = {
#define OPTION(id, scope, flag, env, argument, default_text, help)                                 \
	[OPT_##id] = {#id, SCOPE_OF(scope), flag, env, argument, default_text, help},
#include "options.def"
#undef OPTION
};

static const bool advanced[OPTIONS] = {
#define OPTION(id, scope, flag, env, argument, default_text, help)
#define ADVANCED(id) [OPT_##id] = true,
#include "options.def"
#undef OPTION
};

const char options_left_out[] = "";

/* The option whose flag is the first n bytes of text; OPTIONS = none. */
static int find(unsigned scope, const char *text, size_t n)
{
	for (int i = 0; i < OPTIONS; i++) {
		const struct option *op = &option_table[i];

		if (op->flag[0] && (op->scope & scope) && strlen(op->flag) == n &&
		    memcmp(op->flag, text, n) == 0)
			return i;
	}
	return OPTIONS;
}

static bool is_switch(const struct option *op)
{
	return !op->argument[0] || !strcmp(op->argument, "on|off");
}

/* A switch has one of two words from here on. */
static int take(struct options *o, int id, const char *name, const char *value)
{
	int on = is_switch(&option_table[id]) ? crema_switch(value, 0) : 0;

	if (on < 0) {
		log_line("%s: '%s' is neither on nor off; use " CREMA_SWITCH_WORDS, name, value);
		return -EINVAL;
	}
	o->value[id] = !is_switch(&option_table[id]) ? value : on ? "on" : "off";
	return 0;
}

static int from_environment(struct options *o, unsigned scope)
{
	int rc = 0;

	for (int i = 0; i < OPTIONS; i++) {
		const struct option *op = &option_table[i];
		const char *v = op->env[0] && (op->scope & scope) ? getenv(op->env) : NULL;

		if (v && *v && take(o, i, op->env, v))
			rc = -EINVAL;
	}
	return rc;
}

int options_check_environment(unsigned scope)
{
	struct options ignored;

	return from_environment(&ignored, scope);
}

static int unknown(unsigned scope, const char *text, size_t n)
{
	const char *flags[OPTIONS + 1], *near;
	size_t known = 0;

	for (int i = 0; i < OPTIONS; i++) {
		if (option_table[i].flag[0] && (option_table[i].scope & scope))
			flags[known++] = option_table[i].flag;
	}
	flags[known] = NULL;
	near = options_nearest(text, n, flags);
	if (near)
		log_line("unknown option '%.*s'; did you mean %s?", (int)n, text, near);
	else
		log_line("unknown option '%.*s'; --help lists the options", (int)n, text);
	return -EINVAL;
}

static bool is_value(const char *word)
{
	return word && (word[0] != '-' || !word[1]);
}

/* The value of the flag argv[*at], which may be the next word. */
static int take_flag(struct options *o, int id, const char *equals, char **argv, int *at, int argc)
{
	const struct option *op = &option_table[id];
	const char *next = *at + 1 < argc ? argv[*at + 1] : NULL;

	if (!op->argument[0]) {
		if (equals) {
			log_line("option '%s' takes no value", op->flag);
			return -EINVAL;
		}
		o->value[id] = "on";
		return 0;
	}
	if (equals)
		return take(o, id, op->flag, equals + 1);
	if (op->argument[0] == '[' && !is_value(next)) {
		o->value[id] = options_left_out;
		return 0;
	}
	if (!next) {
		log_line("option '%s' needs a value: %s", op->flag, op->argument);
		return -EINVAL;
	}
	++*at;
	return take(o, id, op->flag, next);
}

int options_parse(struct options *o, unsigned scope, int argc, char **argv)
{
	int i, rc;

	memset(o, 0, sizeof(*o));
	rc = from_environment(o, scope);
	for (i = 1; !rc && i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
		const char *equals = strchr(argv[i], '=');
		size_t n = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);
		int id;

		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		id = strcmp(argv[i], "-h") == 0	  ? (int)OPT_help
		     : strcmp(argv[i], "-V") == 0 ? (int)OPT_version
						  : find(scope, argv[i], n);
		rc = id == OPTIONS ? unknown(scope, argv[i], n)
				   : take_flag(o, id, equals, argv, &i, argc);
	}
	o->rest = i < argc ? i : argc;
	return rc;
}

const char *options_get(const struct options *o, enum option_id id)
{
	return o->value[id] ? o->value[id] : option_table[id].default_text;
}

bool options_on(const struct options *o, enum option_id id)
{
	return crema_switch(options_get(o, id), 0) == 1;
}

bool option_advanced(enum option_id id)
{
	return advanced[id];
}
