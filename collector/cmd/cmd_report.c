/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_report.c - `crema report`: tables on the terminal, or any of the ways in export/. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/cmd/command.h"
#include "collector/cmd/pager.h"
#include "collector/export/atomic_file.h"
#include "collector/export/export.h"
#include "collector/print/render.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/log.h"
#include "common/options.h"

/* Prints the report's notices, one line each. */
static int say_notice(const struct report_notice *n)
{
	if (*n->torn)
		log_line("%s", n->torn);
	if (*n->coffea)
		log_line("%s", n->coffea);
	if (*n->taskvine)
		log_line("%s", n->taskvine);
	if (*n->client)
		log_line("%s", n->client);
	return n->client_unreadable || n->coffea_unreadable || n->taskvine_unreadable
		       ? STATUS_FAILED
		       : STATUS_DONE;
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

/* The path for a way: the given one, else one from the run's id. */
static const char *path_of(const struct options *o, const struct export_way *way, const char *run,
			   char *own, size_t size)
{
	const char *given = o->value[way->option], *mark = strstr(way->name, "%s");

	if (given != options_left_out)
		return given;
	if (mark)
		snprintf(own, size, "%.*s%s%s", (int)(mark - way->name), way->name, run, mark + 2);
	else
		snprintf(own, size, "%s", way->name);
	return own;
}

/* Makes all requested exports; reports the first failure, but still tries the others. */
static int use_exports(const struct report *r, void *arg, struct buf *why)
{
	const struct options *o = arg;
	const struct export_way *way;
	struct buf line = BUF_INIT;
	char own[128];
	const char *path;
	int rc = 0, err;
	size_t i;

	for (i = 0; i < export_way_count; i++) {
		way = &export_ways[i];
		if (!o->value[way->option])
			continue;
		path = path_of(o, way, r->run->id, own, sizeof(own));
		err = way->write(r, path, rc ? &line : why);
		rc = rc ? rc : err;
		if (!err)
			command_wrote(o, path);
	}
	buf_release(&line);
	return rc;
}

static const char *json_path(const struct options *o)
{
	return o->value[OPT_json] == options_left_out ? "-" : o->value[OPT_json];
}

/* For a dropped run there is only JSON. */
static int use_dropped(const struct dropped_run *d, void *arg, struct buf *why)
{
	const struct options *o = arg;
	struct atomic_file out;
	size_t i;

	for (i = 0; i < export_way_count; i++) {
		if (o->value[export_ways[i].option] && export_ways[i].option != OPT_json)
			return report_dropped_refuse(d, why);
	}
	if (o->value[OPT_coffea_report] || o->value[OPT_taskvine_log])
		return report_dropped_refuse(d, why);
	atomic_file_init(&out, json_path(o));
	report_dropped_json(d, &out.sink);
	return atomic_file_end(&out, why);
}

/* Seconds > 0 and below `most`, 0 if the option was not given: false (and a line) if invalid. */
static bool seconds_of(const struct options *o, enum option_id id, double most, double *seconds)
{
	const char *text = o->value[id];
	char *end = NULL;

	*seconds = text ? strtod(text, &end) : 0;
	if (!text || (end != text && !*end && *seconds > 0 && *seconds < most))
		return true;
	log_line("%s: '%s' is not a number of seconds", option_table[id].flag, text);
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

/* --full and --show as bits: false (and a line) for an unknown table. */
static bool tables_of(const struct options *o, uint64_t *tables)
{
	const char *list = o->value[OPT_show];
	char why[REPORT_LINE_BYTES];

	*tables = options_on(o, OPT_full) ? REPORT_ALL_TABLES : 0;
	if (!list)
		return true;
	*tables |= report_tables_named(list, why, sizeof(why));
	if (!*tables || !report_tables_named(list, why, sizeof(why))) {
		log_line("--show: %s", why);
		return false;
	}
	return true;
}

/* Text or JSON on standard output, or the list of runs as JSON in a file. */
static int write_out(struct report_request *req, const char *path, struct buf *why)
{
	bool paged = !req->json && pager_wanted();
	struct atomic_file out;
	int rc;

	atomic_file_init(&out, path);
	if (!paged) {
		req->flush = out.sink.flush;
		req->flush_arg = &out;
	}
	rc = report_render(req, &out.buf);
	if (rc) {
		/* the buffer holds the line with the reason */
		buf_add(why, out.buf.data, out.buf.len);
		atomic_file_drop(&out);
		return rc == -EPIPE ? 0 : rc;
	}
	if (paged) {
		rc = pager_write(&out.buf);
		buf_clear(&out.buf);
		if (rc)
			report_fail(why, rc, "cannot write to the terminal: %s", log_error(rc));
		atomic_file_drop(&out);
		return rc;
	}
	return atomic_file_end(&out, why);
}

static int write_report(const struct options *o, const char *dir)
{
	bool list = options_on(o, OPT_list);
	struct report_notice notice;
	struct report_request req = {
		.dir = dir,
		.more = o->more,
		.run = o->value[OPT_run],
		.usual_dir = !o->value[OPT_dir],
		.list = list,
		.json = o->value[OPT_json] != NULL,
		.all_metrics = options_on(o, OPT_all_metrics),
		.width = command_width(),
		.colour = command_colour(),
		.taskvine_log = o->value[OPT_taskvine_log],
		.coffea_report = o->value[OPT_coffea_report],
		.client_record = o->value[OPT_client_record],
		.now_ns = clock_real_ns(),
		.notice = &notice,
		.use = !list && has_exports(o) ? use_exports : NULL,
		.use_dropped = !list && has_exports(o) ? use_dropped : NULL,
		.use_arg = (void *)o,
	};
	struct buf why = BUF_INIT;
	int rc, status;

	if (!command_read_whole(o, &req.whole_bytes) || !tables_of(o, &req.tables) ||
	    !client_block(o, &req))
		return STATUS_USAGE;
	if (req.use)
		rc = report_render(&req, &why);
	else
		rc = write_out(&req, list && req.json ? json_path(o) : "-", &why);
	if (!rc) {
		status = say_notice(&notice);
	} else {
		if (why.len)
			log_line("%.*s", (int)why.len, (const char *)why.data);
		else /* there was no memory for the line either */
			log_line("cannot read '%s': %s", dir, log_error(rc));
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
		log_line("cannot find the state directory: %s; give it with --dir", log_error(rc));
		return STATUS_FAILED;
	}
	return write_report(&o, dir);
}

const struct command cmd_report = {
	.name = "report",
	.usage = "report [OPTION...]",
	.summary = "print a run: speed, time, bytes, findings",
	.examples = "  crema report                         the last run on one screen\n"
		    "  crema report --show files,codecs     two of its tables\n"
		    "  crema report --html                  the page, into run-ID.html\n"
		    "  crema report --json | jq .metrics\n",
	.scope = SCOPE_REPORT,
	.run = cmd_report_run,
};
