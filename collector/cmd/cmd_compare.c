/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_compare.c - `crema compare`: compares several runs. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/cmd/command.h"
#include "collector/compare/compare.h"
#include "collector/export/atomic_file.h"
#include "collector/print/render.h"
#include "common/dirs.h"
#include "common/log.h"
#include "common/options.h"

static int write_page(const struct comparison *c, const struct options *o, struct buf *why)
{
	const char *path = o->value[OPT_html];
	struct atomic_file out;
	char own[64];
	int rc;

	if (path == options_left_out) {
		snprintf(own, sizeof(own), "compare-%s-%s.html", c->run[0].run->id,
			 c->run[1].run->id);
		path = own;
	}
	atomic_file_init(&out, path);
	compare_page(c, &out.sink);
	rc = atomic_file_end(&out, why);
	if (!rc)
		command_wrote(o, path);
	return rc;
}

static int compare(const struct options *o, const char *dir, char **names, size_t n,
		   uint64_t whole_bytes)
{
	const char *path = o->value[OPT_json], *to;
	struct buf why = BUF_INIT;
	struct comparison c;
	struct atomic_file out;
	struct json j;
	int rc = compare_load(&c, names, n, &(struct compare_source){dir, o->more, whole_bytes},
			      &why);

	if (!rc) {
		rc = compare_judge(&c);
		if (rc)
			report_fail(&why, rc, "cannot compare: %s", log_error(rc));
	}
	if (!rc && o->value[OPT_html])
		rc = write_page(&c, o, &why);
	if (!rc && (path || !o->value[OPT_html])) {
		to = !path || path == options_left_out ? "-" : path;
		atomic_file_init(&out, to);
		if (path) {
			emit_init(&j, &out.sink);
			compare_json(&c, &j, NULL);
		} else {
			compare_text(&c, &out.sink, command_colour());
		}
		rc = atomic_file_end(&out, &why);
		if (!rc)
			command_wrote(o, to);
	}
	if (rc)
		log_line("%.*s", (int)why.len, (const char *)why.data);
	compare_release(&c);
	buf_release(&why);
	return rc ? STATUS_FAILED : STATUS_DONE;
}

static int cmd_compare_run(int argc, char **argv)
{
	struct options o;
	char dir[PATH_MAX];
	uint64_t whole_bytes;
	int rc, status;

	if (!command_options(&cmd_compare, &o, true, argc, argv, &status))
		return status;
	if (argc - o.rest < 2) {
		log_line("compare needs at least two runs; 'crema report --list' shows them");
		return command_usage(&cmd_compare);
	}
	if (o.value[OPT_html] && argc - o.rest != 2) {
		log_line("compare --html takes two runs");
		return command_usage(&cmd_compare);
	}
	if (!command_read_whole(&o, &whole_bytes))
		return STATUS_USAGE;
	rc = dirs_state(dir, sizeof(dir), o.value[OPT_dir]);
	if (rc) {
		log_line("cannot find the state directory: %s; give it with --dir", log_error(rc));
		return STATUS_FAILED;
	}
	return compare(&o, dir, argv + o.rest, (size_t)(argc - o.rest), whole_bytes);
}

const struct command cmd_compare = {
	.name = "compare",
	.usage = "compare [OPTION...] RUN RUN...\n"
		 "       RUN: a run of --dir by name or part of its id; DIR: the last run there; "
		 "DIR:RUN",
	.summary = "compare runs: time, bytes, scaling, chunk sizes",
	.examples = "  crema compare 20261121-193045-8f8c last\n"
		    "  crema compare --json - RUN RUN | jq .runs\n"
		    "  crema compare BEFORE AFTER --html\n",
	.scope = SCOPE_COMPARE,
	.run = cmd_compare_run,
};
