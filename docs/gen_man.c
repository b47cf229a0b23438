/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gen_man.c - the man pages: crema(1) and one page for each command, from the tables of commands
 *and options and the texts in man/.
 *
 *	gen_man SOURCE-FOLDER OUTPUT-FOLDER
 *
 * A text's paragraphs are divided by empty lines; one that is indented is shown as it is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/cmd/command.h"
#include "version.h"

static const char *source, *output;

/* roff's own characters: a leading dot or quote, backslashes, and minus signs that people copy. */
static void put(FILE *f, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", f);
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", f);
		else if (*text == '-')
			fputs("\\-", f);
		else
			fputc(*text, f);
	}
}

static void put_texts(FILE *f, const char *page)
{
	char path[1024], line[1024];
	int shown = 0;
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s.txt", source, page);
	in = fopen(path, "r");
	if (!in) {
		fprintf(stderr, "gen_man: cannot read '%s': each command has a text\n", path);
		exit(1);
	}
	while (fgets(line, sizeof(line), in)) {
		if (*line == '\n') {
			fputs(shown ? ".EE\n.RE\n.PP\n" : ".PP\n", f);
			shown = 0;
			continue;
		}
		if (*line == ' ' && !shown) {
			fputs(".RS\n.EX\n", f);
			shown = 1;
		}
		put(f, shown ? line + strspn(line, " ") : line);
	}
	if (shown)
		fputs(".EE\n.RE\n", f);
	fclose(in);
}

static void put_option(FILE *f, const struct option *o)
{
	fputs(".TP\n.B ", f);
	put(f, o->flag);
	if (o->argument[0]) {
		fputs(" \\fI", f);
		put(f, o->argument);
		fputs("\\fR", f);
	}
	fputc('\n', f);
	put(f, o->help);
	if (o->default_text[0] && strcmp(o->default_text, "off") != 0) {
		fputs(" (default: ", f);
		put(f, o->default_text);
		fputc(')', f);
	}
	if (o->env[0]) {
		fputs("; environment: ", f);
		put(f, o->env);
	}
	fputs(".\n", f);
}

static void put_variable(FILE *f, const struct option *o)
{
	fputs(".TP\n.B ", f);
	put(f, o->env);
	fputs("=\\fI", f);
	put(f, o->argument);
	fputs("\\fR\n", f);
	put(f, o->help);
	fputs(" (default: ", f);
	put(f, o->default_text);
	fputs(").\n", f);
}

static FILE *begin(const char *page, const char *summary, const char *usage)
{
	char path[1024];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.1", output, page);
	f = fopen(path, "w");
	if (!f) {
		fprintf(stderr, "gen_man: cannot write '%s'\n", path);
		exit(1);
	}
	fprintf(f, ".TH %s 1 \"\" \"crema %s\"\n.SH NAME\n%s \\- ", page, CREMA_VERSION, page);
	put(f, summary);
	fputs("\n.SH SYNOPSIS\n.B crema\n", f);
	put(f, usage);
	fputs("\n.SH DESCRIPTION\n", f);
	put_texts(f, page);
	return f;
}

static void end(FILE *f)
{
	if (ferror(f) || fclose(f)) {
		fprintf(stderr, "gen_man: cannot write to '%s'\n", output);
		exit(1);
	}
}

static void command_page(const struct command *c)
{
	char page[64];
	FILE *f;
	int i;

	snprintf(page, sizeof(page), "crema-%s", c->name);
	f = begin(page, c->summary, c->usage);
	fputs(".SH OPTIONS\n", f);
	for (i = 0; i < OPTIONS; i++) {
		if (option_table[i].flag[0] && (option_table[i].scope & c->scope))
			put_option(f, &option_table[i]);
	}
	fputs(".SH EXAMPLES\n.EX\n", f);
	put(f, c->examples);
	fputs(".EE\n.SH SEE ALSO\n.BR crema (1)\n", f);
	end(f);
}

static void main_page(void)
{
	const struct command *const *c;
	FILE *f = begin("crema", "measure where a Dask analysis spends time and I/O",
			"COMMAND [OPTION...]");
	int i;

	fputs(".SH COMMANDS\n", f);
	for (c = command_table; *c; c++) {
		fprintf(f, ".TP\n.BR crema\\-%s (1)\n", (*c)->name);
		put(f, (*c)->summary);
		fputc('\n', f);
	}
	fputs(".SH ENVIRONMENT OF WORKERS\n", f);
	for (i = 0; i < OPTIONS; i++) {
		if (option_table[i].scope == SCOPE_WORKER)
			put_variable(f, &option_table[i]);
	}
	fputs(".SH EXIT STATUS\n0: success. 1: failure; a line gives the reason. 2: wrong usage.\n"
	      ".BR crema\\-run (1)\nexits with the status of its command.\n",
	      f);
	end(f);
}

int main(int argc, char **argv)
{
	const struct command *const *c;

	if (argc != 3) {
		fprintf(stderr, "usage: %s SOURCE-FOLDER OUTPUT-FOLDER\n", argv[0]);
		return 2;
	}
	source = argv[1];
	output = argv[2];
	main_page();
	for (c = command_table; *c; c++)
		command_page(*c);
	return 0;
}
