/* SPDX-License-Identifier: BSD-3-Clause */
/* options_help.c - what --help prints, and what a mistyped word may have meant. */
#include <string.h>

#include "common/options.h"

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

/* Letters to add, leave out, change or swap. */
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
	best = n < 5 ? 2 : 3; /* further off is another word */
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
