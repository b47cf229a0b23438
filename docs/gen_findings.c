/* SPDX-License-Identifier: BSD-3-Clause */
/* gen_findings.c - prints docs/findings.md from contract/findings.def. */
#include <stdio.h>
#include <string.h>

struct check {
	const char *id, *severity;
	double limit[2];
	const char *looks_at, *when, *advice;
};

#define FINDING(id, severity, first, second, looks_at, when, advice)                               \
	{#id, #severity, {first, second}, looks_at, when, advice},

static const struct check table[] = {
#include "findings.def"
};

static const char *const head =
	"# Findings\n"
	"\n"
	"Made from `contract/findings.def` by `make docs`; do not edit.\n"
	"\n"
	"`crema report` begins with what there is to remark about a run: sentences with numbers, "
	"the\n"
	"highest severity first, and advice to each. `crema report --json -` has them under "
	"`findings`,\n"
	"each with its evidence: the numbers of the sentence, by the names of their metrics.\n"
	"`findings_checked` says how many checks were made, how many had nothing to look at in "
	"the run\n"
	"(no chunks, no servers), and which could not be made because an input is unknown. An "
	"unknown\n"
	"input never gives a finding.\n"
	"\n"
	"A gain (\"would save\") is worked out from this run's own numbers only; where these do "
	"not tell,\n"
	"none is printed.\n"
	"\n"
	"- **high**: results, numbers or workers are at risk\n"
	"- **warning**: costs time or bytes that the advice can save\n"
	"- **note**: helps to read the numbers\n"
	"\n"
	"| finding | severity | speaks when | looks at | advice |\n"
	"|---|---|---|---|---|\n";

static void put_severity(const char *name)
{
	for (; *name; name++)
		putchar(*name | 0x20);
}

/* A threshold as the check has it: whole numbers with commas. */
static void put_limit(double limit)
{
	char digits[32];
	size_t i, n;

	snprintf(digits, sizeof(digits), "%.10g", limit);
	n = strspn(digits, "0123456789");
	for (i = 0; digits[i]; i++) {
		if (i && i < n && (n - i) % 3 == 0)
			putchar(',');
		putchar(digits[i]);
	}
}

/* %1 and %2 become the thresholds; a table cell must not hold a bar. */
static void put_cell(const struct check *c, const char *text)
{
	for (; *text; text++) {
		if (*text == '%' && (text[1] == '1' || text[1] == '2')) {
			put_limit(c->limit[*++text - '1']);
			continue;
		}
		if (*text == '|')
			putchar('\\');
		putchar(*text);
	}
}

int main(void)
{
	const struct check *c;
	size_t i;

	fputs(head, stdout);
	for (i = 0; i < sizeof(table) / sizeof(*table); i++) {
		c = &table[i];
		printf("| `%s` | ", c->id);
		put_severity(c->severity);
		fputs(" | ", stdout);
		put_cell(c, c->when);
		fputs(" | ", stdout);
		put_cell(c, c->looks_at);
		fputs(" | ", stdout);
		put_cell(c, c->advice);
		puts(" |");
	}
	return fflush(stdout) || ferror(stdout);
}
