/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - command lines, environment and --help from contract/options.def. */
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

/* Scopes that accept it several times. */
static const unsigned repeated[OPTIONS] = {
#define OPTION(id, scope, flag, env, argument, default_text, help)
#define REPEATED(id, scope) [OPT_##id] = SCOPE_OF(scope),
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

static int take_again(struct options *o, unsigned scope, int id, const char *value)
{
	if (!(repeated[id] & scope) || !o->repeated++)
		return take(o, id, option_table[id].flag, value);
	if (o->repeated > OPTIONS_MORE + 1) {
		log_line("%s: given more than %d times", option_table[id].flag, OPTIONS_MORE + 1);
		return -EINVAL;
	}
	o->more[o->repeated - 2] = value;
	return 0;
}

/* The value of the flag argv[*at], which may be the next word. */
static int take_flag(struct options *o, unsigned scope, int id, const char *equals, char **argv,
		     int *at, int argc)
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
		return take_again(o, scope, id, equals + 1);
	if (op->argument[0] == '[' && !is_value(next)) {
		o->value[id] = options_left_out;
		return 0;
	}
	if (!next) {
		log_line("option '%s' needs a value: %s", op->flag, op->argument);
		return -EINVAL;
	}
	++*at;
	return take_again(o, scope, id, next);
}

static void move_to_end(char **argv, int n)
{
	char *first = argv[0];

	memmove(argv, argv + 1, (size_t)(n - 1) * sizeof(*argv));
	argv[n - 1] = first;
}

int options_parse(struct options *o, unsigned scope, int argc, char **argv)
{
	int i, rc, words = 0;

	memset(o, 0, sizeof(*o));
	rc = from_environment(o, scope);
	for (i = 1; !rc && i < argc - words; i++) {
		if (is_value(argv[i])) {
			if (scope == SCOPE_RUN)
				break;
			move_to_end(argv + i, argc - i);
			i--;
			words++;
			continue;
		}
		const char *equals = strchr(argv[i], '=');
		size_t n = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);
		int id;

		if (strcmp(argv[i], "--") == 0) {
			for (int last = argc - words - ++i; last > 0; last--)
				move_to_end(argv + i, argc - i);
			break;
		}
		id = strcmp(argv[i], "-h") == 0	  ? (int)OPT_help
		     : strcmp(argv[i], "-V") == 0 ? (int)OPT_version
						  : find(scope, argv[i], n);
		rc = id == OPTIONS ? unknown(scope, argv[i], n)
				   : take_flag(o, scope, id, equals, argv, &i, argc - words);
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

/* True if it is rarely needed: --help omits it. */
static bool option_advanced(enum option_id id)
{
	return advanced[id];
}

#define INDENT 26
#define LEAST_COLUMNS 60
#define MOST_COLUMNS 110
#define LONGEST_WORD 40

/* Wrapped at spaces; the line has `at` columns already. */
static void put(FILE *out, const char *text, size_t *at, size_t columns)
{
	size_t n;

	for (; *text; text += n) {
		text += strspn(text, " ");
		n = strcspn(text, " ");
		if (*at > INDENT && *at + 1 + n > columns) {
			fprintf(out, "\n%*s", INDENT, "");
			*at = INDENT;
		}
		if (*at > INDENT) {
			fputc(' ', out);
			++*at;
		}
		fwrite(text, 1, n, out);
		*at += n;
	}
}

static void put_option(FILE *out, const struct option *o, size_t columns)
{
	char left[80], text[160];
	size_t at = INDENT;

	snprintf(left, sizeof(left), "  %s%s%s", o->flag, o->argument[0] ? " " : "", o->argument);
	if (strlen(left) >= INDENT)
		fprintf(out, "%s\n%*s", left, INDENT, "");
	else
		fprintf(out, "%-*s", INDENT, left);
	put(out, o->help, &at, columns);
	if (o->argument[0] && o->default_text[0]) {
		snprintf(text, sizeof(text), "(default: %s)", o->default_text);
		put(out, text, &at, columns);
	}
	if (o->env[0]) {
		snprintf(text, sizeof(text), "[%s]", o->env);
		put(out, text, &at, columns);
	}
	fputc('\n', out);
}

/* A command's own options, then those that all commands have. */
void options_help(FILE *out, unsigned scope, const char *usage, unsigned int columns, bool all)
{
	size_t n = columns ? columns : 80;
	bool shared, hidden = false;
	int i, pass;

	n = n < LEAST_COLUMNS ? LEAST_COLUMNS : n > MOST_COLUMNS ? MOST_COLUMNS : n;
	fputs(usage, out);
	fputs("\noptions:\n", out);
	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < OPTIONS; i++) {
			shared = option_table[i].scope == SCOPE_ALL;
			if (!option_table[i].flag[0] || !(option_table[i].scope & scope) ||
			    shared != (pass == 1))
				continue;
			hidden = hidden || option_advanced((enum option_id)i);
			if (all || !option_advanced((enum option_id)i))
				put_option(out, &option_table[i], n - 1);
		}
	}
	if (hidden && !all)
		fputs("\n--help-all also shows rarely needed options.\n", out);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Number of letters to add, remove, change or swap. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t d[3][LONGEST_WORD + 1] = {{0}}, i, k;

	for (k = 0; k <= nb; k++)
		d[0][k] = k;
	for (i = 1; i <= na; i++) {
		size_t *now = d[i % 3], *last = d[(i + 2) % 3], *before = d[(i + 1) % 3];

		now[0] = i;
		for (k = 1; k <= nb; k++) {
			now[k] = least(last[k - 1] + (a[i - 1] != b[k - 1]),
				       1 + least(last[k], now[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				now[k] = least(now[k], before[k - 2] + 1);
		}
	}
	return d[na % 3][nb];
}

const char *options_nearest(const char *text, size_t n, const char *const *words)
{
	const char *found = NULL;
	size_t best, d, length;

	if (n > LONGEST_WORD)
		return NULL;
	best = n < 5 ? 2 : 3; /* a larger distance means another word */
	for (; *words; words++) {
		length = strlen(*words);
		if (length > LONGEST_WORD)
			continue;
		d = distance(text, n, *words, length);
		if (d < best || (!found && n > 3 && !strncmp(text, *words, n))) {
			best = d < best ? d : best;
			found = *words;
		}
	}
	return found;
}
