/* SPDX-License-Identifier: BSD-3-Clause */
/* wall.c - see wall.h. */
#include "collector/report/wall.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/dirs.h"
#include "common/log.h"

#define FORMAT 1
#define RECORD_MAX_BYTES (16 << 20)
#define FULL_SHARE 0.9 /* of the maximum number of tasks at a time */
#define MATTERS_SHARE 0.2
#define MATTERS_SECONDS 1.0

const struct wall_part_name wall_parts[WALL_PARTS] = {
#define WALL_PART(id, words, mark, help) {#id, words, mark, help},
#include "wall_parts.def"
};

static const enum wall_part of_waits[] = {WALL_workers, WALL_schedule, WALL_ramp,  WALL_steady,
					  WALL_tail,	WALL_merge,    WALL_gather};
#define PIECES (sizeof(of_waits) / sizeof(*of_waits))

/* When the pieces of waits end, UTC; the last one never ends. */
struct phases {
	double end[PIECES];
	double worker, first, last; /* the first worker; tasks */
};

struct edge {
	double at;
	int step;
};

static int by_time(const void *pa, const void *pb)
{
	const struct edge *a = pa, *b = pb;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->step - b->step; /* an end comes before a start */
}

/* Ramp-up ends when 9/10 of the maximum is first reached; the tail begins when it is last left. */
static void find_full(struct phases *p, const struct edge *v, size_t n)
{
	int running = 0, most = 0, full;
	size_t i;

	for (i = 0; i < n; i++) {
		running += v[i].step;
		most = running > most ? running : most;
	}
	full = (int)ceil(most * FULL_SHARE);
	for (i = 0, running = 0; i < n; i++) {
		running += v[i].step;
		if (running >= full && v[i].step > 0 && isnan(p->end[2]))
			p->end[2] = v[i].at;
		if (running == full - 1 && v[i].step < 0)
			p->end[3] = v[i].at;
	}
}

/* 0, -ENOENT if no task has a known time, -ENOMEM. */
static int find_phases(struct phases *p, const struct facts *f)
{
	const struct run *r = f->run;
	const struct attempt *a;
	struct edge *edges;
	double begin, end;
	size_t i, n = 0;

	for (i = 0; i < PIECES; i++)
		p->end[i] = (double)NAN;
	p->worker = p->first = p->last = (double)NAN;
	edges = calloc(r->attempts.n * 2 + 1, sizeof(*edges));
	if (!edges)
		return -ENOMEM;
	for (i = 0; i < r->attempts.n; i++) {
		a = r->attempts.v[i];
		begin = attempt_begin(a);
		end = attempt_end(a);
		if (isnan(begin) || isnan(end) || attempt_class(f, a) == TASK_PREPROCESSING)
			continue;
		p->first = fmin(p->first, begin);
		p->last = fmax(p->last, end);
		if (attempt_class(f, a) == TASK_MERGE)
			continue;
		edges[n++] = (struct edge){begin, 1};
		edges[n++] = (struct edge){end, -1};
		p->end[4] = fmax(p->end[4], end);
	}
	qsort(edges, n, sizeof(*edges), by_time);
	find_full(p, edges, n);
	free(edges);
	for (i = 0; i < r->workers.n; i++)
		p->worker = fmin(p->worker, r->workers.v[i]->first);
	p->end[0] = fmin(p->worker, p->first);
	p->end[1] = p->first;
	p->end[5] = p->last;
	p->end[6] = INFINITY;
	return n ? 0 : -ENOENT;
}

static void add(struct wall *w, enum wall_part part, double seconds)
{
	if (w->part[part].type != VALUE_NULL)
		w->part[part].v.d += seconds;
}

/* Cuts a wait, UTC by the collector's clock. */
static void cut(struct wall *w, const struct phases *p, double begin, double end)
{
	double at = begin;
	size_t i;

	for (i = 0; i < PIECES && at < end; i++) {
		if (p->end[i] <= at)
			continue;
		add(w, of_waits[i], fmin(p->end[i], end) - at);
		at = fmin(p->end[i], end);
	}
}

static void forget_waits(struct wall *w)
{
	size_t i;

	for (i = 0; i < PIECES; i++)
		w->part[of_waits[i]] = value_null();
	w->part[WALL_other] = value_null();
}

/* [[begin, end, when something was sent before it or null], ...], relative to the record's
 * begin. */
static void take_waits(struct wall *w, const json_t *waits, double ahead, const struct facts *f)
{
	double begin, end, zero = w->begin + ahead;
	bool sent_later = false;
	struct phases p;
	const json_t *row, *sent;
	size_t i;

	if (isnan(ahead) || find_phases(&p, f)) {
		forget_waits(w);
		return;
	}
	for (i = 0; i < json_array_size(waits); i++) {
		row = json_array_get(waits, i);
		begin = zero + json_number_value(json_array_get(row, 0));
		end = zero + json_number_value(json_array_get(row, 1));
		sent = json_array_get(row, 2);
		sent_later |= json_is_number(sent) && zero + json_number_value(sent) > p.last;
		if (end <= p.first || (begin >= p.last && sent_later))
			add(w, WALL_other, end - begin);
		else
			cut(w, &p, begin, end);
	}
	if (isnan(p.worker))
		w->part[WALL_workers] = w->part[WALL_schedule] = value_null();
}

static bool has_run(const json_t *keys, const struct facts *f)
{
	const struct run *r = f->run;
	size_t i, n = 0, all = json_array_size(keys);
	uint64_t *hash = calloc(all + 1, sizeof(*hash));
	bool has = false;

	for (i = 0; hash && i < all; i++) {
		const char *text = json_string_value(json_array_get(keys, i));

		hash[n] = text ? strtoull(text, NULL, 16) : 0;
		n += hash[n] != 0;
	}
	if (n)
		qsort(hash, n, sizeof(*hash), run_key_order);
	for (i = 0; n && !has && i < r->attempts.n; i++)
		has = bsearch(&r->attempts.v[i]->key_hash, hash, n, sizeof(*hash), run_key_order);
	free(hash);
	return has;
}

static void take_unseen(struct wall *w, json_t *unseen)
{
	const char *name;
	json_t *why;
	size_t i, n;

	json_object_foreach(unseen, name, why)
	{
		n = strlen(w->unseen);
		if (json_is_string(why) && !strstr(w->unseen, json_string_value(why)))
			snprintf(w->unseen + n, sizeof(w->unseen) - n, "%s%s", n ? "; " : "",
				 json_string_value(why));
		if (!strcmp(name, "wait"))
			forget_waits(w);
		for (i = 0; i < WALL_PARTS; i++) {
			if (!strcmp(name, wall_parts[i].id))
				w->part[i] = value_null();
		}
	}
}

static void sum_up(struct wall *w)
{
	double most = 0;
	size_t i;

	w->rest = w->seconds;
	for (i = 0; i < WALL_PARTS; i++) {
		if (w->part[i].type == VALUE_NULL)
			continue;
		w->rest -= w->part[i].v.d;
		if (w->part[i].v.d > most) {
			most = w->part[i].v.d;
			w->largest = (enum wall_part)i;
		}
	}
}

bool wall_take(struct wall *w, const char *text, size_t n, const struct facts *f, bool own)
{
	json_t *root = json_loadb(text, n, 0, NULL), *v;
	size_t i;

	memset(w, 0, sizeof(*w));
	w->begin = json_number_value(json_object_get(root, "begin_utc"));
	w->seconds = json_number_value(json_object_get(root, "wall"));
	w->read = json_integer_value(json_object_get(root, "format")) == FORMAT && w->seconds > 0 &&
		  w->begin > 0 && (!own || has_run(json_object_get(root, "keys"), f));
	w->ended = !json_is_false(json_object_get(root, "ended"));
	for (i = 0; w->read && i < WALL_PARTS; i++) {
		v = json_object_get(json_object_get(root, "seconds"), wall_parts[i].id);
		w->part[i] = value_real(json_number_value(v));
	}
	if (w->read) {
		v = json_object_get(root, "clock_ahead");
		take_waits(w, json_object_get(root, "waits"),
			   json_is_number(v) ? json_number_value(v) : (double)NAN, f);
		take_unseen(w, json_object_get(root, "unseen"));
		if (!json_is_number(v))
			snprintf(w->unseen + strlen(w->unseen),
				 sizeof(w->unseen) - strlen(w->unseen),
				 "%sthe client's clock relative to the collector's is not known",
				 *w->unseen ? "; " : "");
		sum_up(w);
		w->code = json_incref(json_object_get(root, "code"));
	}
	json_decref(root);
	return w->read;
}

void wall_release(struct wall *w)
{
	json_decref(w->code);
	w->code = NULL;
}

static int read_file(const char *path, struct buf *b)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : buf_read(b, fd, RECORD_MAX_BYTES);

	if (fd >= 0)
		close(fd);
	return rc;
}

int wall_read(struct wall *w, const char *path, const struct facts *f)
{
	struct buf b = BUF_INIT;
	int rc = read_file(path, &b);

	memset(w, 0, sizeof(*w));
	if (rc)
		snprintf(w->line, sizeof(w->line), "cannot read '%.300s': %s", path, log_error(rc));
	else if (!wall_take(w, (const char *)b.data, b.len, f, false)) {
		snprintf(w->line, sizeof(w->line), "'%.300s' is not a client's record", path);
		rc = -EBADMSG;
	}
	buf_release(&b);
	return rc;
}

/* A record's name is its begin, UTC in seconds, and it was last written after the run had begun:
 * only these are read. */
static bool may_have(const char *folder, const char *name, const struct run *r, char path[PATH_MAX])
{
	struct stat st;

	return strstr(name, ".json") && atof(name) > 0 && atof(name) <= r->stop &&
	       !dirs_join(path, PATH_MAX, folder, name) && !stat(path, &st) &&
	       (double)st.st_mtime + 1 >= r->start;
}

bool wall_find(struct wall *w, const char *dir, const struct facts *f)
{
	char folder[PATH_MAX], path[PATH_MAX];
	struct buf b = BUF_INIT;
	struct dirent *e;
	DIR *d;

	memset(w, 0, sizeof(*w));
	if (dirs_join(folder, sizeof(folder), dir, "clients"))
		return false;
	d = opendir(folder);
	while (d && !w->read && (e = readdir(d))) {
		buf_clear(&b);
		if (may_have(folder, e->d_name, f->run, path) && !read_file(path, &b))
			wall_take(w, (const char *)b.data, b.len, f, true);
	}
	if (d)
		closedir(d);
	buf_release(&b);
	return w->read;
}

bool wall_matters(const struct wall *w)
{
	double most = value_number(w->part[w->largest], NULL);

	return w->read && w->largest != WALL_steady && most >= MATTERS_SECONDS &&
	       most >= MATTERS_SHARE * w->seconds;
}

void wall_json(const struct wall *w, struct json *j, const char *name)
{
	size_t i;

	if (!w) {
		emit_value(j, name, value_null());
		return;
	}
	emit_object(j, name);
	emit_value(j, "wall_seconds", value_real(w->seconds));
	emit_value(j, "ended", value_bool(w->ended));
	emit_value(j, "start", value_real(w->begin));
	emit_object(j, "parts");
	for (i = 0; i < WALL_PARTS; i++)
		emit_value(j, wall_parts[i].id, w->part[i]);
	emit_end(j);
	emit_value(j, "rest_seconds", value_real(w->rest));
	emit_value(j, "largest", value_text(wall_parts[w->largest].id));
	emit_value(j, "unseen", value_text(*w->unseen ? w->unseen : NULL));
	emit_end(j);
}
