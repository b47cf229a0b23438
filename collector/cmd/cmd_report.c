/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_report.c - `crema report`: tables on the terminal, or any of the ways in export/. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/cmd/command.h"
#include "collector/export/draft.h"
#include "collector/export/export.h"
#include "collector/print/render.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/log.h"
#include "common/options.h"

/* Says what the report could not: one line each. */
static int say_notice(const struct report_notice *n)
{
	if (*n->torn)
		log_line("%s", n->torn);
	if (*n->coffea)
		log_line("%s", n->coffea);
	if (*n->taskvine)
		log_line("%s", n->taskvine);
	return n->coffea_unreadable || n->taskvine_unreadable ? STATUS_FAILED : STATUS_DONE;
}

static bool has_exports(const struct options *o)
{
	size_t i;

	for (i = 0; i < export_way_count; i++) {
		if (o->value[export_ways[i].option])
			return true;
	}
	return false;
}

/* All that was asked for; of what fails the first is said, the others are tried still. */
static int use_exports(const struct report *r, void *arg, struct buf *why)
{
	const struct options *o = arg;
	struct buf line = BUF_INIT;
	int rc = 0, err;
	size_t i;

	for (i = 0; i < export_way_count; i++) {
		if (!o->value[export_ways[i].option])
			continue;
		err = export_ways[i].write(r, o->value[export_ways[i].option], rc ? &line : why);
		rc = rc ? rc : err;
	}
	buf_release(&line);
	return rc;
}

/* Of a dropped run there is JSON only. */
static int use_dropped(const struct dropped_run *d, void *arg, struct buf *why)
{
	const struct options *o = arg;
	struct draft out;
	size_t i;

	for (i = 0; i < export_way_count; i++) {
		if (o->value[export_ways[i].option] && export_ways[i].option != OPT_json)
			return report_dropped_refuse(d, why);
	}
	if (o->value[OPT_coffea_report] || o->value[OPT_taskvine_log])
		return report_dropped_refuse(d, why);
	draft_init(&out, o->value[OPT_json]);
	report_dropped_json(d, &out.sink);
	return draft_end(&out, why);
}

/* Seconds > 0 and below `most`, 0 if the option was not given: false (and a line) for what is none.
 */
static bool seconds_of(const struct options *o, enum option_id id, double most, double *seconds)
{
	const char *text = o->value[id];
	char *end = NULL;

	*seconds = text ? strtod(text, &end) : 0;
	if (!text || (end != text && !*end && *seconds > 0 && *seconds < most))
		return true;
	log_line("%s: '%s' is no number of seconds", option_table[id].flag, text);
	return false;
}

static bool client_block(const struct options *o, struct report_request *req)
{
	if (!seconds_of(o, OPT_client_wall, 1e9, &req->client_wall) ||
	    !seconds_of(o, OPT_client_start, 1e11, &req->client_start))
		return false;
	if (req->client_start > 0 && !(req->client_wall > 0)) {
		log_line("--client-start needs --client-wall, the length of the client's block");
		return false;
	}
	return true;
}

static int write_report(const struct options *o, const char *dir)
{
	bool list = options_on(o, OPT_list);
	struct draft out;
	struct report_notice notice;
	struct report_request req = {
		.dir = dir,
		.run = o->value[OPT_run],
		.list = list,
		.json = o->value[OPT_json] != NULL,
		.all_metrics = options_on(o, OPT_all_metrics),
		.colour = command_colour(),
		.taskvine_log = o->value[OPT_taskvine_log],
		.coffea_report = o->value[OPT_coffea_report],
		.now_ns = clock_real_ns(),
		.notice = &notice,
		.use = !list && has_exports(o) ? use_exports : NULL,
		.use_dropped = !list && has_exports(o) ? use_dropped : NULL,
		.use_arg = (void *)o,
	};
	struct buf why = BUF_INIT;
	int rc, status = STATUS_DONE;

	if (!command_read_whole(o, &req.whole_bytes))
		return STATUS_USAGE;
	if (!client_block(o, &req))
		return STATUS_USAGE;
	draft_init(&out, list && req.json ? o->value[OPT_json] : "-");
	req.flush = out.sink.flush;
	req.flush_arg = &out;
	rc = report_render(&req, req.use ? &why : &out.buf);
	if (!rc)
		status = say_notice(&notice);
	if (rc && !req.use) {
		/* what is in the buffer is the line that says why */
		buf_add(&why, out.buf.data, out.buf.len);
		draft_drop(&out);
		if (rc == -EPIPE)
			rc = 0;
	} else if (!rc) {
		rc = draft_end(&out, &why);
	}
	if (rc) {
		log_line("%.*s", (int)why.len, (const char *)why.data);
		status = STATUS_FAILED;
	}
	buf_release(&why);
	return status;
}

static int cmd_report_run(int argc, char **argv)
{
	struct options o;
	char dir[PATH_MAX];
	int rc, status;

	if (!command_options(&cmd_report, &o, false, argc, argv, &status))
		return status;
	rc = dirs_state(dir, sizeof(dir), o.value[OPT_dir]);
	if (rc) {
		log_line("cannot find the state directory: %s; name it with --dir", log_error(rc));
		return STATUS_FAILED;
	}
	return write_report(&o, dir);
}

const struct command cmd_report = {
	.name = "report",
	.usage = "report [OPTION...]",
	.summary = "print what the tasks of a run really did",
	.scope = SCOPE_REPORT,
	.run = cmd_report_run,
};
