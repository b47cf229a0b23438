/* SPDX-License-Identifier: BSD-3-Clause */
/* gen_options.c - docs/options.md from contract/options.def. */
#include <stdio.h>

#include "collector/cmd/command.h"

/* A '|' would end the cell. */
static void put(const char *text)
{
	for (; *text; text++)
		printf(*text == '|' ? "\\%c" : "%c", *text);
}

static void row(const struct option *o)
{
	printf("| %s%s", o->flag[0] ? "`" : "", o->flag);
	if (o->flag[0] && o->argument[0]) {
		putchar(' ');
		put(o->argument);
	}
	printf("%s | %s%s%s | ", o->flag[0] ? "`" : "", o->env[0] ? "`" : "", o->env,
	       o->env[0] ? "`" : "");
	put(o->default_text);
	printf(" | ");
	put(o->help);
	printf(" |\n");
}

static void head(const char *title)
{
	printf("\n## %s\n\n| option | environment | default | meaning |\n|---|---|---|---|\n",
	       title);
}

int main(void)
{
	const struct command *const *c;
	char title[80];
	int i;

	printf("# Options\n\nGenerated from `contract/options.def`. A flag takes precedence over "
	       "its environment "
	       "variable.\n");
	head("Workers: environment only");
	for (i = 0; i < OPTIONS; i++) {
		if (option_table[i].scope == SCOPE_WORKER)
			row(&option_table[i]);
	}
	for (c = command_table; *c; c++) {
		snprintf(title, sizeof(title), "`crema %s`", (*c)->name);
		head(title);
		for (i = 0; i < OPTIONS; i++) {
			if ((option_table[i].scope & (*c)->scope) &&
			    (option_table[i].flag[0] || option_table[i].env[0]))
				row(&option_table[i]);
		}
	}
	return 0;
}
