/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gen_completion.c - completion for bash, zsh and fish from the tables of commands, options and
 * tables of the report.
 *
 *	gen_completion bash|zsh|fish
 */
#include <stdio.h>
#include <string.h>

#include "collector/cmd/command.h"
#include "collector/print/render.h"

/* What comes after an option. */
enum follows {
	FOLLOWS_NOTHING,
	FOLLOWS_FILE,
	FOLLOWS_FOLDER,
	FOLLOWS_RUN,
	FOLLOWS_TABLES,
	FOLLOWS_ANY
};

static enum follows follows(const struct option *o)
{
	if (!o->argument[0])
		return FOLLOWS_NOTHING;
	if (!strcmp(o->id, "run"))
		return FOLLOWS_RUN;
	if (!strcmp(o->id, "show"))
		return FOLLOWS_TABLES;
	return strstr(o->argument, "FILE")  ? FOLLOWS_FILE
	       : strstr(o->argument, "DIR") ? FOLLOWS_FOLDER
					    : FOLLOWS_ANY;
}

static bool of_command(const struct option *o, const struct command *c)
{
	return o->flag[0] && (o->scope & c->scope);
}

static void commands(const char *before, const char *after)
{
	const struct command *const *c;

	for (c = command_table; *c; c++)
		printf("%s%s%s", before, (*c)->name, after);
}

static void tables(const char *before, const char *after)
{
	for (int i = 0; i < REPORT_TABLES; i++)
		printf("%s%s%s", before, report_table_names[i].name, after);
}

/* Text between single quotes of any of the shells; `also` is escaped by a backslash. */
static void quoted(const char *text, const char *also)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			printf(strchr(also, *text) ? "\\%c" : "%c", *text);
	}
}

#define RUNS "crema report --list 2>/dev/null | grep -oE \"[0-9]+-[0-9]+-[0-9a-f]+\""

static void bash_options(enum follows kind, const char *body)
{
	size_t n = 0;

	for (int i = 0; i < OPTIONS; i++) {
		if (option_table[i].flag[0] && follows(&option_table[i]) == kind)
			printf("%s%s", n++ ? "|" : "\t", option_table[i].flag);
	}
	printf(") %s ;;\n", body);
}

static void bash(void)
{
	const struct command *const *c;

	puts("# bash completion for crema; made from its tables of commands and options");
	puts("_crema() {\n\tlocal word=$2 before=$3 options=");
	puts("\tif [ \"$COMP_CWORD\" = 1 ]; then");
	printf("\t\tmapfile -t COMPREPLY < <(compgen -W 'help version");
	commands(" ", "");
	puts("' -- \"$word\")\n\t\treturn\n\tfi");
	puts("\t[[ $word == -* ]] || case $before in");
	bash_options(FOLLOWS_FILE, "mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return");
	bash_options(FOLLOWS_FOLDER, "mapfile -t COMPREPLY < <(compgen -d -- \"$word\"); return");
	bash_options(FOLLOWS_RUN, "mapfile -t COMPREPLY < <(compgen -W \"last $(" RUNS
				  ")\" -- \"$word\"); return");
	printf("\t--show) local done=; [[ $word != *,* ]] || done=${word%%,*},\n\t\tmapfile -t "
	       "COMPREPLY < <(compgen -P \"$done\" -W 'all");
	tables(" ", "");
	puts("' -- \"${word##*,}\"); return ;;");
	bash_options(FOLLOWS_ANY, "return");
	puts("\tesac\n\tcase ${COMP_WORDS[1]} in");
	for (c = command_table; *c; c++) {
		printf("\t%s) options='", (*c)->name);
		for (int i = 0; i < OPTIONS; i++) {
			if (of_command(&option_table[i], *c))
				printf("%s ", option_table[i].flag);
		}
		puts("' ;;");
	}
	printf("\thelp) options='");
	commands("", " ");
	puts("' ;;\n\tesac");
	puts("\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")");
	puts("\t[ \"${COMP_WORDS[1]}\" != run ] || [ \"${#COMPREPLY[@]}\" != 0 ] || mapfile -t "
	     "COMPREPLY "
	     "< <(compgen -c -- \"$word\")\n}");
	puts("complete -o default -F _crema crema");
}

static void zsh_option(const struct option *o)
{
	printf("\t\t'%s[", o->flag);
	quoted(o->help, "[]:\\");
	fputs("]", stdout);
	switch (follows(o)) {
	case FOLLOWS_NOTHING:
		break;
	case FOLLOWS_FILE:
		fputs(":file:_files", stdout);
		break;
	case FOLLOWS_FOLDER:
		fputs(":folder:_files -/", stdout);
		break;
	case FOLLOWS_RUN:
		fputs(":run:{compadd last ${(f)\"$(" RUNS ")\"}}", stdout);
		break;
	case FOLLOWS_TABLES:
		fputs(":tables:_values -s , table all", stdout);
		tables(" ", "");
		break;
	default:
		fputs(":", stdout);
		quoted(o->argument, "[]:\\");
		fputs(": ", stdout);
	}
	puts("' \\");
}

static void zsh(void)
{
	const struct command *const *c;

	puts("#compdef crema\n# made from crema's tables of commands and options");
	puts("_crema() {\n\tlocal -a commands=(");
	for (c = command_table; *c; c++) {
		printf("\t\t'%s:", (*c)->name);
		quoted((*c)->summary, ":\\");
		puts("'");
	}
	puts("\t\t'help:how to use a command'\n\t\t'version:the version'\n\t)");
	puts("\tif (( CURRENT == 2 )); then\n\t\t_describe command commands\n\t\treturn\n\tfi");
	puts("\tlocal command=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $command in");
	for (c = command_table; *c; c++) {
		printf("\t%s) _arguments \\\n", (*c)->name);
		for (int i = 0; i < OPTIONS; i++) {
			if (of_command(&option_table[i], *c))
				zsh_option(&option_table[i]);
		}
		puts((*c)->scope == SCOPE_RUN ? "\t\t'*::command:_normal' ;;"
					      : "\t\t'*: :_default' ;;");
	}
	puts("\thelp) _describe command commands ;;\n\tesac\n}\n_crema \"$@\"");
}

static void fish_option(const struct command *c, const struct option *o)
{
	printf("complete -c crema -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->flag + 2);
	switch (follows(o)) {
	case FOLLOWS_FILE:
	case FOLLOWS_FOLDER:
		fputs(" -F", stdout);
		break;
	case FOLLOWS_RUN:
		fputs(" -x -a 'last (" RUNS ")'", stdout);
		break;
	case FOLLOWS_TABLES:
		fputs(" -x -a 'all", stdout);
		tables(" ", "");
		fputs("'", stdout);
		break;
	case FOLLOWS_ANY:
		fputs(" -x", stdout);
		break;
	default:
		break;
	}
	fputs(" -d '", stdout);
	for (const char *p = o->help; *p; p++)
		printf(*p == '\'' || *p == '\\' ? "\\%c" : "%c", *p);
	puts("'");
}

static void fish(void)
{
	const struct command *const *c;

	puts("# fish completion for crema; made from its tables of commands and options");
	for (c = command_table; *c; c++) {
		printf("complete -c crema -f -n __fish_use_subcommand -a %s -d '", (*c)->name);
		for (const char *p = (*c)->summary; *p; p++)
			printf(*p == '\'' || *p == '\\' ? "\\%c" : "%c", *p);
		puts("'");
	}
	puts("complete -c crema -f -n __fish_use_subcommand -a 'help version'");
	for (c = command_table; *c; c++) {
		for (int i = 0; i < OPTIONS; i++) {
			if (of_command(&option_table[i], *c))
				fish_option(*c, &option_table[i]);
		}
	}
	puts("complete -c crema -n '__fish_seen_subcommand_from run' -x -a "
	     "'(__fish_complete_subcommand)'");
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "bash"))
		bash();
	else if (argc == 2 && !strcmp(argv[1], "zsh"))
		zsh();
	else if (argc == 2 && !strcmp(argv[1], "fish"))
		fish();
	else
		return 2;
	return fflush(stdout) ? 1 : 0;
}
