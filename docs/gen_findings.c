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

static const struct {
	const char *words, *advice;
} habits[] = {
#define HABIT(function, file, words, advice) {words, advice},
#include "findings.def"
};

static const struct {
	const char *scheme, *advice;
} services[] = {
#define SERVICE(scheme, advice) {#scheme, advice},
#include "findings.def"
};

static const char *const services_head =
	"\n"
	"**Servers that compute** their answers: `network_wait` gives this advice if tasks waited "
	"longest for one, and `slow_server` compares them only with each other.\n"
	"\n"
	"| scheme | advice |\n"
	"|---|---|\n";

static const char *const habits_head =
	"\n"
	"**Habits** that `hot_line` knows: library functions that are slow if tasks call them "
	"often.\n"
	"\n"
	"| habit | advice |\n"
	"|---|---|\n";

static const char *const head =
	"# Findings\n"
	"\n"
	"Generated from `contract/findings.def` by `make docs`; do not edit.\n"
	"\n"
	"A finding is one sentence with numbers, what it costs, and advice. `crema report` prints "
	"the findings of a run,\n"
	"highest severity first. `crema report --json -` has them under `findings`, each with its "
	"evidence: the numbers of\n"
	"the sentence under the names of their metrics. `findings_checked` counts the checks that "
	"were made, those that did\n"
	"not apply to the run (no chunks, no servers), and names those that could not be made "
	"because an input is unknown.\n"
	"An unknown input never produces a finding.\n"
	"\n"
	"**Cost.** Findings of the same severity are ranked by the seconds of the run's wall time "
	"that they explain\n"
	"(`cost_seconds` of `of_seconds`). Every moment of the run is divided equally among the "
	"tasks that run then, and a\n"
	"task's share is divided in proportion to its own CPU and waits. Threads without a task "
	"cost their idle time divided\n"
	"by the number of threads. An unknown cost is null; `cost_at_least` marks a lower bound. "
	"Costs can overlap: a\n"
	"straggler's cost includes its waits.\n"
	"\n"
	"**Overlap.** If two findings describe the same problem, only the specific one is "
	"reported; "
	"the other is listed in\n"
	"`findings_left_out` with `left_out_for`. A warning that costs less than 5 % of the wall "
	"time is a note.\n"
	"\n"
	"**Line.** Findings about CPU and waits name the line of your code with most sampled time "
	"of "
	"that class, its share with\n"
	"the 95 % error, and the samples; with fewer than 30 samples no line is named.\n\n"
	"**Gain.** `gain` and `gain_seconds` are what following the advice would save, computed "
	"from this run's own numbers;\n"
	"null if they are not sufficient. [findings-tried.md](findings-tried.md) compares gains "
	"with runs that took the advice.\n"
	"\n"
	"- **high**: results, numbers or workers are at risk\n"
	"- **warning**: costs time or bytes that the advice can save\n"
	"- **note**: helps to interpret the numbers\n"
	"\n"
	"| finding | severity | condition | inputs | advice |\n"
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
	fputs(services_head, stdout);
	for (i = 0; i < sizeof(services) / sizeof(*services); i++)
		printf("| `%s` | %s |\n", services[i].scheme, services[i].advice);
	fputs(habits_head, stdout);
	for (i = 0; i < sizeof(habits) / sizeof(*habits); i++) {
		if (!i || strcmp(habits[i].words, habits[i - 1].words) != 0)
			printf("| %s | %s |\n", habits[i].words, habits[i].advice);
	}
	return fflush(stdout) || ferror(stdout);
}
