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

int options_parse(struct options *o, unsigned scope, int argc, char **argv)
{
	int i, rc;

	memset(o, 0, sizeof(*o));
	rc = from_environment(o, scope);
	if (rc)
		return rc;
	for (i = 1; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
		const char *equals = strchr(argv[i], '=');
		size_t n = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);
		int id;

		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		id = strcmp(argv[i], "-h") == 0 ? (int)OPT_help : find(scope, argv[i], n);
		if (id == OPTIONS) {
			log_line("unknown option '%s'; --help lists what there is", argv[i]);
			return -EINVAL;
		}
		if (!option_table[id].argument[0]) {
			if (equals) {
				log_line("option '%.*s' takes no value", (int)n, argv[i]);
				return -EINVAL;
			}
			o->value[id] = "on";
		} else if (equals || i + 1 < argc) {
			rc = take(o, id, option_table[id].flag, equals ? equals + 1 : argv[++i]);
			if (rc)
				return rc;
		} else {
			log_line("option '%s' needs a value: %s", argv[i],
				 option_table[id].argument);
			return -EINVAL;
		}
	}
	o->rest = i < argc ? i : argc;
	return 0;
}

const char *options_get(const struct options *o, enum option_id id)
{
	return o->value[id] ? o->value[id] : option_table[id].default_text;
}

bool options_on(const struct options *o, enum option_id id)
{
	return crema_switch(options_get(o, id), 0) == 1;
}

void options_help(FILE *out, unsigned scope, const char *usage)
{
	fputs(usage, out);
	fputs("\noptions:\n", out);
	for (int i = 0; i < OPTIONS; i++) {
		const struct option *op = &option_table[i];
		char left[64];

		if (!op->flag[0] || !(op->scope & scope))
			continue;
		snprintf(left, sizeof(left), "%s%s%s", op->flag, op->argument[0] ? " " : "",
			 op->argument);
		fprintf(out, "  %-24s %s", left, op->help);
		if (op->argument[0] && op->default_text[0])
			fprintf(out, " (default: %s)", op->default_text);
		if (op->env[0])
			fprintf(out, " [%s]", op->env);
		fputc('\n', out);
	}
}
