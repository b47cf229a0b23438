/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * summary.c - the first screen of a report: at most 30 lines on what ran, how fast, what held it
 * back and what to change.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collector/emit/emit_text.h"
#include "collector/findings/findings.h"
#include "collector/print/print.h"
#include "collector/print/time_bar.h"

#define SCREEN_LINES 30
#define MOST_FINDINGS 3
static char *metric_text(const struct facts *f, const char *id, char *out)
{
	return human(metric_value(f, id), metric_unit(metric_find(id)->unit)->as, out);
}

__attribute__((format(printf, 3, 4))) static void add(char *line, size_t size, const char *fmt, ...)
{
	size_t n = strlen(line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + n, size - n, fmt, ap);
	va_end(ap);
}

/* "23 tasks measured, none failed; 2 workers, 1 thread each" */
static void put_what(const struct report *r, struct sink *s)
{
	const struct facts *f = r->facts;
	struct value threads = metric_cores_per_worker(f);
	char line[400] = "", number[HUMAN_BYTES];
	size_t n = r->run->workers.n;

	add(line, sizeof(line), "%s task%s measured",
	    human(value_uint(f->tasks.attempts), AS_COUNT, number), plural(f->tasks.attempts));
	if (f->wasted.attempts)
		add(line, sizeof(line), ", %zu attempt%s failed or repeated", f->wasted.attempts,
		    plural(f->wasted.attempts));
	if (r->run->running)
		add(line, sizeof(line), ", %zu running", r->run->running);
	if (!f->wasted.attempts && !r->run->running)
		add(line, sizeof(line), ", none failed");
	add(line, sizeof(line), "; %s worker%s", human(value_uint(n), AS_COUNT, number), plural(n));
	if (threads.type != VALUE_NULL)
		add(line, sizeof(line), ", %s thread%s%s", human(threads, AS_IS, number),
		    value_number(threads, NULL) == 1 ? "" : "s", n == 1 ? "" : " each");
	text_paragraph(s, "  ", "%s", line);
	report_company(r->run, s);
	if (r->run->others.n)
		text_paragraph(s, "  ", "%zu other run%s close to it: crema report --list",
			       r->run->others.n, plural(r->run->others.n));
}

static char *frequency(struct value hz, char *out)
{
	if (value_number(hz, NULL) < 1000)
		return human(hz, AS_HZ, out);
	return human(value_ratio(hz, value_uint(1000), 1), AS_KHZ, out);
}

/* The largest part of the client's wall time, if it is neither short nor the tasks at work. */
static void put_client(const struct wall *w, struct sink *s)
{
	char all[HUMAN_BYTES], part[HUMAN_BYTES];
	struct value v;

	if (!w || !wall_matters(w))
		return;
	v = w->part[w->largest];
	text_paragraph(s, "  ", "client: %s%s%s, %s (%.0f %%) %s", w->ended ? "" : "at least ",
		       human(value_real(w->seconds), AS_SECONDS, all), w->ended ? " in all" : "",
		       human(v, AS_SECONDS, part), v.v.d / w->seconds * 100,
		       wall_parts[w->largest].words);
}

static void put_speed(const struct report *r, struct sink *s, bool colour)
{
	const struct facts *f = r->facts;
	char lead[HUMAN_BYTES], events[HUMAN_BYTES], chunks[HUMAN_BYTES], wall[HUMAN_BYTES],
		core[HUMAN_BYTES];
	struct value tasks = metric_num_tasks(f);

	table_section(s, colour, "How fast");
	metric_text(f, "wall_time", wall);
	if (!f->chunks.attempts) {
		human(value_ratio(tasks, metric_wall_time(f), 1), AS_IS, lead);
		text_paragraph(s, "  ", "%s tasks/s: %s tasks in %s", lead,
			       human(tasks, AS_COUNT, events), wall);
		return;
	}
	text_paragraph(
		s, "  ", "%s: %s events in %s chunks took %s; %s per thread",
		frequency(value_ratio(metric_event_rate_wall_khz(f), value_uint(1), 1e3), lead),
		metric_text(f, "total_events", events), metric_text(f, "num_chunks", chunks), wall,
		frequency(metric_event_rate_core_hz(f), core));
}

/* The line of a layer: its name, bytes and rate. */
static void put_layer(struct grid *g, const struct facts *f, const char *label, const char *bytes,
		      const char *rate, bool always)
{
	struct value v = metric_value(f, bytes);

	if (!always && v.type != VALUE_NULL && !(value_number(v, NULL) > 0))
		return;
	grid_text(g, label);
	grid_value(g, v, AS_BYTES);
	if (rate)
		grid_value(g, metric_value(f, rate), AS_MBS);
	grid_end_row(g);
}

static void put_bytes(const struct report *r, struct sink *s, bool colour)
{
	const struct facts *f = r->facts;
	bool chunks = f->chunks.attempts > 0;
	char ratio[HUMAN_BYTES], label[80];
	struct grid g;

	table_section(s, colour, "Bytes");
	grid_init(&g, s, colour);
	grid_columns(&g, "<", ">", ">", NULL);
	if (chunks)
		put_layer(&g, f, "requested, as coffea counts", "total_bytes_read_coffea",
			  "overall_rate_mbs", true);
	put_layer(&g, f, "read from files", "read_bytes", "read_rate_mbs", true);
	put_layer(&g, f, "mapped", "mapped_bytes", NULL, false);
	put_layer(&g, f, "from storage", "disk_read_bytes", "storage_read_rate_mbs", true);
	put_layer(&g, f, "from the network", "network_read_bytes", "network_read_rate_mbs", false);
	snprintf(label, sizeof(label), "decompressed (%s)",
		 metric_text(f, "compression_ratio", ratio));
	if (chunks)
		put_layer(&g, f, label, "bytes_read_uncompressed", "decompressed_rate_mbs", true);
	grid_print(&g);
}

static void count_note(void *arg, const char *line)
{
	(void)line;
	++*(size_t *)arg;
}

/* What is missing, in one line. Agents report what they refused: unknown if one has reported
 * nothing, and known up to the last message of one that went silent. */
static void put_completeness(const struct report *r, struct sink *s)
{
	const struct model *m = r->run->model;
	const struct {
		struct value n;
		const char *one, *more;
	} missing[] = {
		{r->records_lost, "record lost", "records lost"},
		{r->totals.records_refused, "record refused", "records refused"},
		{r->totals.tasks_refused, "task refused", "tasks refused"},
		{value_uint(m->missing), "journal missing", "journals missing"},
		{value_uint(m->torn.n - m->missing), "damaged file", "damaged files"},
		{value_uint(m->records_bad), "unreadable record", "unreadable records"},
	};
	char line[400] = "", since[16];
	bool known, all_known = true;
	size_t i, notes = 0;
	double n;

	for (i = 0; i < sizeof(missing) / sizeof(*missing); i++) {
		n = value_number(missing[i].n, &known);
		all_known &= known;
		if (n > 0)
			add(line, sizeof(line), "%s%.0f %s",
			    *line	? ", "
			    : r->silent ? "at least "
					: "",
			    n, n == 1 ? missing[i].one : missing[i].more);
	}
	if (!all_known)
		add(line, sizeof(line), "%sunknown whether workers dropped records or tasks",
		    *line ? "; " : "");
	else if (!*line && r->silent)
		add(line, sizeof(line), "no record lost until %s UTC, then unknown",
		    report_silent_since(r, since));
	else if (!*line)
		add(line, sizeof(line), "no record lost");
	report_notes(r, count_note, &notes);
	if (notes)
		add(line, sizeof(line), "; %zu note%s", notes, plural(notes));
	sink_puts(s, "\n");
	text_paragraph(s, "Completeness: ", "%s", line);
}

/* The command that shows more of this run. A directory may be too long for a line. */
static void put_more(const struct report *r, const struct report_request *req, struct sink *s)
{
	const char *files = r->files.n ? "files" : "workers";
	bool named = req->usual_dir && req->run && !runs_means_last(req->run);

	text_paragraph(s, "more: ", "%s%s%s --full | --show %s,completeness | --html",
		       req->usual_dir ? "crema report" : "the same command with",
		       named ? " --run " : "", named ? r->run->id : "", files);
}

void report_summary(const struct report *r, const struct report_request *req, struct sink *sink,
		    bool colour)
{
	struct buf top = BUF_INIT, bottom = BUF_INIT;
	struct sink above = {.out = &top, .width = sink->width};
	struct sink below = {.out = &bottom, .width = sink->width};
	size_t lines;

	report_title(r, &above, colour);
	put_what(r, &above);
	put_speed(r, &above, colour);
	put_client(r->wall, &above);
	time_bar_print(r->facts, &above, colour);
	put_bytes(r, &below, colour);
	put_completeness(r, &below);
	put_more(r, req, &below);
	/* The advice gets the remaining room. */
	lines = buf_lines(&top) + buf_lines(&bottom);
	sink_put(sink, (const char *)top.data, top.len);
	if (r->findings)
		findings_brief(r->findings, MOST_FINDINGS,
			       lines < SCREEN_LINES ? SCREEN_LINES - lines : 0, sink, colour);
	sink_put(sink, (const char *)bottom.data, bottom.len);
	if (!sink->error)
		sink->error = above.error ? above.error : below.error;
	buf_release(&top);
	buf_release(&bottom);
}
