/* SPDX-License-Identifier: BSD-3-Clause */
/* render.c - renders the report of one run, or the list of runs, from a directory. */
#include "collector/print/render.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/findings/findings.h"
#include "collector/runs/read_runs.h"
#include "collector/print/list.h"
#include "collector/print/print.h"
#include "collector/report/code_names.h"
#include "common/dirs.h"
#include "common/log.h"

#define NOTHING_YET "nothing was measured%s%s%s yet; try: crema run -- python your_analysis.py"

static void note_torn(const struct model *m, struct report_notice *notice)
{
	const struct torn_file *t = m->torn.v;
	char more[64] = "";

	if (!m->torn.n || !notice)
		return;
	if (m->torn.n > 1)
		snprintf(more, sizeof(more), " (and %zu more files)", m->torn.n - 1);
	if (t->error)
		snprintf(notice->torn, sizeof(notice->torn), "cannot read '%s': %s%s", t->name,
			 log_error(t->error), more);
	else if (t->newer)
		snprintf(notice->torn, sizeof(notice->torn),
			 "'%s' was written by a newer crema: use that version to read it; this one "
			 "does not report what it does not know%s",
			 t->name, more);
	else
		snprintf(notice->torn, sizeof(notice->torn),
			 "'%s' %s: %" PRIu64 " bytes skipped, the rest is reported%s", t->name,
			 t->truncated ? "ends inside a frame" : "is damaged", t->bytes_skipped,
			 more);
}

/* From the first directory that has one. */
static void find_wall(const struct report_request *req, const struct facts *f, struct wall *w)
{
	const char *const *more = req->more;
	bool found = wall_find(w, req->dir, f);

	for (; !found && more && *more; more++)
		found = wall_find(w, *more, f);
}

/* Takes the client's activity, and the names of its code, from its record: 0 or -ENOMEM. */
static int take_wall(const struct report_request *req, struct model *m, const struct facts *f,
		     struct wall *w)
{
	if (!req->client_record) {
		find_wall(req, f, w);
	} else if (wall_read(w, req->client_record, f) && req->notice) {
		snprintf(req->notice->client, sizeof(req->notice->client), "%s", w->line);
		req->notice->client_unreadable = true;
	}
	return w->code ? code_names_set(m, w->code) : 0;
}

/* Reads the logs of TaskVine and coffea that the request names; a notice has what is wrong with
 * them. */
static void read_logs(const struct report_request *req, struct run *run, struct report *r,
		      struct taskvine_log *taskvine, struct coffea_report *coffea)
{
	struct report_notice *notice = req->notice;
	bool bad;

	if (req->taskvine_log) {
		bad = taskvine_log_read(taskvine, req->taskvine_log) != 0;
		taskvine_log_match(taskvine, run);
		r->taskvine = taskvine;
		if (notice) {
			snprintf(notice->taskvine, sizeof(notice->taskvine), "%s", taskvine->line);
			notice->taskvine_unreadable = bad;
		}
	}
	if (req->coffea_report) {
		bad = coffea_report_read(coffea, req->coffea_report) != 0;
		coffea_report_compare(coffea, r->facts);
		r->coffea = coffea;
		if (notice) {
			snprintf(notice->coffea, sizeof(notice->coffea), "%s", coffea->line);
			notice->coffea_unreadable = bad;
		}
	}
}

/* Gathers the run's data and passes it to the output. */
static int render_run(const struct report_request *req, struct run *run, struct model *m,
		      struct sink *s)
{
	struct taskvine_log taskvine;
	struct coffea_report coffea;
	struct findings findings;
	struct report report;
	struct wall wall;
	struct facts facts;
	struct json j;
	int rc;

	if (req->client_start > 0)
		run_take_block(run, req->client_start, req->client_start + req->client_wall);
	rc = facts_build(&facts, run);
	if (rc)
		goto out_facts;
	if (req->client_wall > 0)
		facts_client_wall(&facts, req->client_wall);
	rc = take_wall(req, m, &facts, &wall);
	if (rc)
		goto out_wall;
	rc = report_gather(&report, run, &facts);
	if (rc)
		goto out;
	report.wall = wall.read ? &wall : NULL;
	read_logs(req, run, &report, &taskvine, &coffea);
	rc = findings_collect(&report, &findings);
	if (rc)
		goto out_logs;
	report.findings = &findings;
	if (req->use) {
		rc = req->use(&report, req->use_arg, s->out);
	} else if (req->json) {
		emit_init(&j, s);
		report_json(&report, &j);
	} else if (req->all_metrics) {
		report_tables_metrics(&report, s, req->colour);
	} else if (req->tables) {
		report_tables(&report, req->tables, s, req->colour);
	} else {
		report_summary(&report, req, s, req->colour);
	}
	findings_release(&findings);
out_logs:
	if (report.taskvine)
		taskvine_log_release(&taskvine);
out:
	report_release(&report);
out_wall:
	wall_release(&wall);
out_facts:
	facts_release(&facts);
	return rc;
}

static int write_end(struct sink *s, int rc, struct buf *out)
{
	if (!rc)
		rc = sink_end(s);
	return rc ? report_fail(out, rc, "cannot write the report: %s", log_error(rc)) : 0;
}

static int render_list(const struct report_request *req, const struct report_list *list,
		       const struct model *m, struct buf *out)
{
	struct sink s = {
		.out = out, .flush = req->flush, .arg = req->flush_arg, .width = req->width};

	if (req->json)
		report_list_json(list, m, &s);
	else
		report_list_text(list, m, &s, req->colour);
	return write_end(&s, 0, out);
}

int report_no_run(const struct model *m, const char *which, const char *dir, struct buf *out)
{
	const struct dropped_run *dropped = dropped_find(m, which);
	const struct run_fits *f = &m->fits;

	which = which ? which : "last";
	if (dropped)
		return report_dropped_refuse(dropped, out);
	if (f->n > 1 && !strcmp(f->which, which))
		return report_fail(out, -ENOENT, "'%s' matches %zu runs: %s, %s%s%s%s", which, f->n,
				   f->ids[0], f->ids[1], f->n > 2 ? ", " : "", f->ids[2],
				   f->n > RUN_FITS ? " ..." : "");
	return report_fail(out, -ENOENT, "no run '%s' in '%s' ('crema report --list' shows them)",
			   which, dir);
}

static int render(const struct report_request *req, struct run *run, struct model *m,
		  struct buf *out)
{
	char dirs[REPORT_LINE_BYTES / 2];
	const struct dropped_run *dropped;
	struct sink s = {
		.out = out, .flush = req->flush, .arg = req->flush_arg, .width = req->width};
	int rc = 0;

	dropped = run ? NULL : dropped_find(m, req->run);
	if (dropped && req->use_dropped)
		return req->use_dropped(dropped, req->use_arg, out);
	if (dropped && (req->use || req->coffea_report || req->taskvine_log))
		return report_dropped_refuse(dropped, out);
	if (!run && !dropped)
		return report_no_run(m, req->run,
				     dirs_text(dirs, sizeof(dirs), req->dir, req->more), out);
	if (run)
		rc = render_run(req, run, m, &s);
	else
		report_dropped(dropped, req, &s);
	if (req->use)
		return rc;
	return write_end(&s, rc, out);
}

/* Damaged files or a worker's notes may explain why there are none. */
static int no_run(struct buf *out, const struct model *m, const char *dir)
{
	const char *note = NULL, *damaged = NULL;
	const struct torn_file *file;
	size_t i;

	for (i = 0; i < m->torn.n; i++) {
		file = &m->torn.v[i];
		/* a file may end in half a frame while it is written */
		if (!damaged &&
		    (file->error || (file->bytes_skipped && (file->no_header || !file->truncated))))
			damaged = file->name;
		if (file->newer)
			return report_fail(out, -ENOENT,
					   "no run in '%s': '%s' was written by a newer crema; use "
					   "that version to read it",
					   dir, file->name);
	}
	for (i = 0; i < m->workers.n && !note; i++) {
		if (m->workers.v[i]->notes.n)
			note = m->workers.v[i]->notes.v[0];
	}
	if (damaged)
		return report_fail(out, -ENOENT, "no run in '%s': '%s' in it is damaged", dir,
				   damaged);
	return report_fail(out, -ENOENT,
			   "no run in '%s' yet: its frame files contain no tasks%s%s%s", dir,
			   note ? " (a worker reports: " : "", note ? note : "", note ? ")" : "");
}

/* Reads everything that the request needs: 0 or -errno. */
static int read_runs(const struct report_request *req, struct model *m, struct runs *runs,
		     struct report_list *list, struct run **run)
{
	struct runs_source source = {.dir = req->dir,
				     .more = req->more,
				     .now_ns = req->now_ns,
				     .whole_bytes = req->whole_bytes,
				     .by_totals = true,
				     .pass_over = req->pass_over};
	int rc;

	if (req->client_start > 0) {
		source.block_from_ns = (uint64_t)(req->client_start * 1e9);
		source.block_to_ns = (uint64_t)((req->client_start + req->client_wall) * 1e9);
	}
	if (req->list)
		rc = runs_read_each(m, runs, &source, report_list_take, list);
	else
		rc = runs_read(m, runs, &source, &req->run, run, 1);
	if (rc < 0)
		return rc;
	note_torn(m, req->notice);
	if (req->list)
		list->n = runs->n; /* the reading may have started over */
	return 0;
}

/* jansson reports a text that it had no memory for like one that is not JSON. One thread at a time
 * makes a report. */
static bool json_refused;

static void *json_memory(size_t n)
{
	void *p = malloc(n);

	json_refused = json_refused || !p;
	return p;
}

int report_render(const struct report_request *req, struct buf *out)
{
	struct model m;
	struct runs runs;
	struct report_list list = {0};
	char dirs[REPORT_LINE_BYTES / 2];
	struct run *run = NULL;
	int rc;

	dirs_text(dirs, sizeof(dirs), req->dir, req->more);

	if (req->notice)
		memset(req->notice, 0, sizeof(*req->notice));
	/* Returns large temporary arrays to the system: else the peak is the sum of them. */
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	json_refused = false;
	json_set_alloc_funcs(json_memory, free);
	model_init(&m);
	memset(&runs, 0, sizeof(runs));
	rc = read_runs(req, &m, &runs, &list, &run);
	if (rc == -ENOENT && req->usual_dir)
		report_fail(out, rc, NOTHING_YET, "", "", "");
	else if (rc)
		report_fail(out, rc, "cannot read '%s': %s", m.dir ? m.dir : req->dir,
			    log_error(rc));
	else if (!m.files_read && !m.dropped.n)
		rc = req->usual_dir ? report_fail(out, -ENOENT, NOTHING_YET, "", "", "")
				    : report_fail(out, -ENOENT, NOTHING_YET, " in '", dirs, "'");
	else if (!runs.n && !m.dropped.n && !m.left_out)
		rc = no_run(out, &m, dirs);
	else
		rc = req->list ? render_list(req, &list, &m, out) : render(req, run, &m, out);
	if (json_refused)
		rc = report_fail(out, -ENOMEM, "cannot read '%s': %s", dirs, log_error(-ENOMEM));
	free(list.v);
	runs_release(&runs);
	model_release(&m);
	return rc;
}
