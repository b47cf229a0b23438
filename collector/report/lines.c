/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.c - merges the sampled stacks of a run by line and by stack. */
#include "collector/report/lines.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/dirs.h"
#include "common/rows.h"

static double ran_of(const struct lines *l, const struct line_stack *row)
{
	const struct line_ran *r = &l->ran[row->worker->place];
	uint64_t clocks = r->cpu_ns + r->runqueue_ns;

	return clocks ? (double)r->cpu_ns / (double)clocks : 1;
}

static void add_bytes(struct line_sum *to, const uint64_t *samples, const uint64_t *bytes,
		      const double *variance)
{
	for (unsigned int i = 0; i < CREMA_LINES_BYTES; i++) {
		to->byte_samples[i] += samples[i];
		to->bytes[i] += bytes[i];
		to->byte_variance[i] += variance[i];
	}
}

static void add_waits(struct line_sum *to, const uint64_t *waits, const uint64_t *ns)
{
	for (unsigned int i = 0; i < CREMA_TIMES; i++) {
		to->waits[i] += waits[i];
		to->waited_ns[i] += ns[i];
	}
}

struct line_waits line_sum_waits(const struct line_sum *s)
{
	struct line_waits sum = {0, 0};

	for (unsigned int i = 0; i < CREMA_TIMES; i++) {
		sum.waits += s->waits[i];
		sum.ns += s->waited_ns[i];
	}
	return sum;
}

static void add_large(struct line_sum *to, bool known, const int64_t *n)
{
	to->large_known = to->large_known || known;
	for (unsigned int i = 0; i < CREMA_LINES_LARGE; i++)
		to->large[i] += n[i];
}

static void add_large_part(struct line_sum *to, const struct line_stack *row)
{
	int64_t n[CREMA_LINES_LARGE];

	for (unsigned int i = 0; i < CREMA_LINES_LARGE; i++)
		n[i] = row_line_large[i].kind == LARGE_PEAK && row->peak &&
				       row->peak->epoch != row->n.large_epoch
			       ? 0
			       : row->n.large[i];
	add_large(to, row->worker->lines.large_bytes != 0, n);
}

void lines_add_part(const struct lines *l, const struct line_stack *row, struct line_sum *to)
{
	double ran = ran_of(l, row);

	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++) {
		double s = (double)row->n.ns[i] / 1e9;

		to->samples += row->n.samples[i];
		to->class_samples[i] += row->n.samples[i];
		to->seconds += s;
		to->class_s[i] += i == CREMA_T_cpu ? s * ran : s;
		if (i == CREMA_T_cpu)
			to->class_s[CREMA_T_runqueue] += s * (1 - ran);
	}
	to->held_samples += row->n.held_samples;
	to->held_s += (double)row->n.held_ns / 1e9;
	add_bytes(to, row->n.byte_samples, row->n.bytes, row->n.byte_variance);
	add_waits(to, row->n.waits, row->n.waited_ns);
	add_large_part(to, row);
}

void line_sum_add(struct line_sum *to, const struct line_sum *s)
{
	to->samples += s->samples;
	to->seconds += s->seconds;
	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++) {
		to->class_samples[i] += s->class_samples[i];
		to->class_s[i] += s->class_s[i];
	}
	to->held_samples += s->held_samples;
	to->held_s += s->held_s;
	add_bytes(to, s->byte_samples, s->bytes, s->byte_variance);
	add_waits(to, s->waits, s->waited_ns);
	add_large(to, s->large_known, s->large);
}

struct line_sum line_sum_bytes(const struct line_sum *s)
{
	struct line_sum bytes = {.samples = 0};

	add_bytes(&bytes, s->byte_samples, s->bytes, s->byte_variance);
	add_waits(&bytes, s->waits, s->waited_ns);
	add_large(&bytes, s->large_known, s->large);
	return bytes;
}

double line_bytes_error(const struct line_sum *s, enum crema_lines_byte kind)
{
	double n = (double)s->byte_samples[kind],
	       gap = n > 0 ? sqrt(s->byte_variance[kind] / n) : 0;

	/* How far the truth may be above n counts, 97.5 %; what it may be below is less. */
	return gap * (1.96 * sqrt(n + 1) + 1.92);
}

uint32_t lines_user_at(const struct line_list *list, uint32_t from)
{
	while (from < list->depth && !list->place[from]->user)
		from++;
	return from;
}

const struct line_place *lines_user_place(const struct line_list *list, uint32_t from)
{
	uint32_t at = lines_user_at(list, from);

	return at < list->depth ? list->place[at] : NULL;
}

bool lines_same(const struct line_place *a, const struct line_place *b)
{
	return a == b || (a && b && a->file == b->file && a->line == b->line);
}

static bool same_row(const void *item, const void *key)
{
	return lines_same(((const struct line_row *)item)->place, key);
}

static int take_line(struct lines *l, const struct line_stack *row)
{
	const struct line_place *place = lines_user_place(row->list, 0);
	uint64_t hash = place ? hash_pair((uintptr_t)place->file, place->line) : 1;
	struct line_row *r = table_find(&l->row_table, hash, same_row, place);
	uint64_t samples = 0;

	if (!r) {
		r = TABLE_NEW(&l->row_table, hash, &l->arena, &l->rows);
		if (!r)
			return -ENOMEM;
		r->place = place;
	}
	lines_add_part(l, row, &r->sum);
	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++)
		samples += row->n.samples[i];
	if (samples > r->most_samples || !r->most) {
		r->most_samples = samples;
		r->most = row->list;
	}
	return 0;
}

static bool same_stack(const void *item, const void *key)
{
	const struct line_stack_row *a = item, *b = key;

	return a->prefix == b->prefix && a->dataset == b->dataset && a->why == b->why &&
	       a->pool == b->pool && a->outside == b->outside && a->list == b->list;
}

static int take_stack(struct lines *l, const struct line_stack *row)
{
	struct line_stack_row key = {.prefix = row->prefix,
				     .why = row->why,
				     .dataset = row->dataset,
				     .pool = row->pool,
				     .outside = row->outside,
				     .list = row->list};
	uint64_t hash = hash_pair(
		hash_pair((uintptr_t)key.prefix ^ (uintptr_t)key.why, (uintptr_t)key.dataset),
		(uintptr_t)key.list ^ key.pool ^ key.outside << 1);
	struct line_stack_row *r = table_find(&l->stack_table, hash, same_stack, &key);
	const struct line_stack **part;

	if (!r) {
		r = TABLE_NEW(&l->stack_table, hash, &l->arena, &l->stacks);
		if (!r)
			return -ENOMEM;
		*r = key;
	}
	lines_add_part(l, row, &r->sum);
	part = ARRAY_NEW(&r->parts);
	if (!part)
		return -ENOMEM;
	*part = row;
	return 0;
}

static void count_why(struct lines *l, const struct line_stack *row, uint64_t samples)
{
	l->cut += row->n.cut;
	if (!row->why)
		return;
	l->torn += !strcmp(row->why, "torn") ? samples : 0;
	l->none += !strcmp(row->why, "none") ? samples : 0;
	l->full += !strcmp(row->why, "full") ? samples : 0;
	for (unsigned int i = 0; i < CREMA_TIMES; i++) {
		l->stackless.waits += row->n.waits[i];
		l->stackless.ns += row->n.waited_ns[i];
	}
}

/* Of pool threads and threads without a task, a line has the bytes, the long waits and the time
 * that it held the lock: the task's own thread has the time. */
static int take_timeless(struct lines *l, const struct line_stack *row)
{
	struct line_stack timeless = *row;
	uint64_t any = row->n.held_samples + row->n.large_changes;

	timeless.n.cut = timeless.n.clock_cpu_ns = timeless.n.clock_runqueue_ns = 0;
	memset(timeless.n.samples, 0, sizeof(timeless.n.samples));
	memset(timeless.n.ns, 0, sizeof(timeless.n.ns));
	for (unsigned int i = 0; i < CREMA_LINES_BYTES; i++)
		any += row->n.byte_samples[i];
	for (unsigned int i = 0; i < CREMA_TIMES; i++)
		any += row->n.waits[i];
	return any ? take_line(l, &timeless) : 0;
}

static int take(struct lines *l, const struct line_stack *row)
{
	struct line_sum *sum = row->pool ? &l->pool : &l->all;
	uint64_t before = sum->samples;
	int rc;

	l->clockless = l->clockless || !row->worker->lines.clocks;
	lines_add_part(l, row, sum);
	count_why(l, row, sum->samples - before);
	l->held_samples += row->n.held_samples;
	l->held_s += (double)row->n.held_ns / 1e9;
	rc = take_stack(l, row);
	if (rc)
		return rc;
	return row->pool || row->outside ? take_timeless(l, row) : take_line(l, row);
}

static void add_worker(struct lines *l, const struct worker *w)
{
	const struct lines_told *t = &w->lines;
	size_t i;

	if (!t->known || !t->state) {
		l->unknown++;
		return;
	}
	for (i = 0; i < l->states && strcmp(l->state[i].state, t->state); i++)
		;
	if (i < LINES_STATES) {
		l->states += i == l->states;
		l->state[i].state = t->state;
		l->state[i].workers++;
	} else {
		l->unknown++;
	}
	l->agent_cpu_ns += t->cpu_ns;
	if (t->large_bytes && (!l->large_workers++ || t->large_bytes < l->large_bytes))
		l->large_bytes = t->large_bytes;
	l->large_refused += value_number(w->totals.large_refused, NULL);
	l->large_refused_bytes += value_number(w->totals.large_refused_bytes, NULL);
	l->beyond = l->beyond || t->cut;
}

static uint64_t bytes_of(const struct line_row *r)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < CREMA_LINES_BYTES; i++)
		sum += r->sum.bytes[i];
	for (unsigned int i = 0; i < CREMA_LINES_LARGE; i++)
		sum += row_line_large[i].kind == LARGE_SUM ? 0 : (uint64_t)r->sum.large[i];
	return sum;
}

static int by_line_time(const void *pa, const void *pb)
{
	const struct line_row *a = *(struct line_row *const *)pa;
	const struct line_row *b = *(struct line_row *const *)pb;

	if (!a->place != !b->place) /* rows without a line come last */
		return a->place ? -1 : 1;
	if (a->sum.seconds != b->sum.seconds)
		return a->sum.seconds > b->sum.seconds ? -1 : 1;
	return bytes_of(a) > bytes_of(b) ? -1 : bytes_of(a) < bytes_of(b);
}

/* Its largest share of the time, of the bytes of a kind, of long waits, or of memory. */
static double largest_share(const struct line_stack_row *r, const struct line_sum *all)
{
	double share = all->seconds > 0 ? r->sum.seconds / all->seconds : 0;
	uint64_t waited = line_sum_waits(&r->sum).ns;

	if (waited)
		share = fmax(share, (double)waited / (double)line_sum_waits(all).ns);
	for (unsigned int i = 0; i < CREMA_LINES_BYTES; i++)
		if (r->sum.bytes[i])
			share = fmax(share, (double)r->sum.bytes[i] / (double)all->bytes[i]);
	for (unsigned int i = 0; i < CREMA_LINES_LARGE; i++)
		if (r->sum.large[i] > 0)
			share = fmax(share, (double)r->sum.large[i] / (double)all->large[i]);
	return share;
}

static int by_share(const void *pa, const void *pb)
{
	double a = (*(struct line_stack_row *const *)pa)->share;
	double b = (*(struct line_stack_row *const *)pb)->share;

	return a > b ? -1 : a < b;
}

static void sort_stacks(struct lines *l)
{
	struct line_sum all = l->all;

	line_sum_add(&all, &l->pool);
	for (size_t i = 0; i < l->stacks.n; i++)
		l->stacks.v[i]->share = largest_share(l->stacks.v[i], &all);
	if (l->stacks.n)
		qsort(l->stacks.v, l->stacks.n, sizeof(*l->stacks.v), by_share);
}

static int take_rows(struct lines *l, const struct run *run)
{
	const struct model *m = run->model;
	const struct line_stack *row;
	int rc = 0;

	for (size_t i = 0; i < m->lines.rows.n; i++) {
		row = m->lines.rows.v[i];
		if (!run_has_row(run, row->worker, row->span))
			continue;
		l->ran[row->worker->place].cpu_ns += row->n.clock_cpu_ns;
		l->ran[row->worker->place].runqueue_ns += row->n.clock_runqueue_ns;
	}
	for (size_t i = 0; i < m->lines.rows.n && !rc; i++) {
		row = m->lines.rows.v[i];
		if (run_has_row(run, row->worker, row->span))
			rc = take(l, row);
	}
	return rc;
}

int lines_gather(struct lines *l, const struct run *run)
{
	int rc;

	memset(l, 0, sizeof(*l));
	l->ran = calloc(run->model->workers.n + 1, sizeof(*l->ran));
	rc = l->ran ? take_rows(l, run) : -ENOMEM;
	for (size_t i = 0; i < run->workers.n; i++)
		add_worker(l, run->workers.v[i]);
	if (l->rows.n)
		qsort(l->rows.v, l->rows.n, sizeof(*l->rows.v), by_line_time);
	sort_stacks(l);
	l->all.large_known = l->pool.large_known = l->large_workers != 0;
	return rc;
}

void lines_release(struct lines *l)
{
	for (size_t i = 0; i < l->stacks.n; i++)
		free(l->stacks.v[i]->parts.v);
	free(l->rows.v);
	free(l->stacks.v);
	free(l->ran);
	table_release(&l->row_table);
	table_release(&l->stack_table);
	arena_release(&l->arena);
}

bool lines_waits_missing(const struct lines *l, const struct run *run, struct line_waits *out)
{
	struct line_waits in_rows = line_sum_waits(&l->all), pool = line_sum_waits(&l->pool);
	bool known = false;

	*out = (struct line_waits){0, 0};
	for (size_t i = 0; i < run->workers.n; i++) {
		const struct blocked_totals *t = &run->workers.v[i]->totals.blocked;

		known = known || t->known;
		for (unsigned int k = 0; k < CREMA_TIMES && t->known; k++) {
			out->waits += t->calls[k];
			out->ns += t->ns[k];
		}
	}
	in_rows.waits += pool.waits;
	in_rows.ns += pool.ns;
	/* During a run the totals may be older than the rows. */
	out->waits -= out->waits < in_rows.waits ? out->waits : in_rows.waits;
	out->ns -= out->ns < in_rows.ns ? out->ns : in_rows.ns;
	return known;
}

double lines_error(double share, uint64_t samples)
{
	return samples ? 1.96 * sqrt(share * (1 - share) / (double)samples) : NAN;
}

double lines_share(const struct lines *l, const struct line_sum *s)
{
	return l->all.seconds > 0 ? s->seconds / l->all.seconds : 0;
}

static double seconds_in(const struct line_sum *s, unsigned int class)
{
	return class < LINE_CLASSES_TOLD ? s->class_s[class] : s->seconds;
}

const struct line_row *lines_hottest(const struct lines *l, unsigned int class, uint64_t least,
				     double *share)
{
	const struct line_row *most = NULL, *r;
	uint64_t n;

	for (size_t i = 0; i < l->rows.n; i++) {
		r = l->rows.v[i];
		if (r->place &&
		    (!most || seconds_in(&r->sum, class) > seconds_in(&most->sum, class)))
			most = r;
	}
	if (!most || !(seconds_in(&most->sum, class) > 0))
		return NULL;
	n = class < LINE_CLASSES_TOLD ? most->sum.class_samples[class] : most->sum.samples;
	*share = seconds_in(&most->sum, class) / seconds_in(&l->all, class);
	return n >= least ? most : NULL;
}

const struct line_row *lines_holder(const struct lines *l, uint64_t least, double *share)
{
	const struct line_row *most = NULL, *r;

	for (size_t i = 0; i < l->rows.n; i++) {
		r = l->rows.v[i];
		if (!most || r->sum.held_s > most->sum.held_s)
			most = r;
	}
	if (!most || !most->place || !most->sum.held_samples || most->sum.held_samples < least)
		return NULL;
	*share = most->sum.held_s / l->held_s;
	return most;
}

double lines_unheld(const struct lines *l)
{
	double rest =
		l->all.class_s[CREMA_T_gil_wait] + l->pool.class_s[CREMA_T_gil_wait] - l->held_s;

	return fabs(rest) < 1e-9 ? 0 : rest; /* sums of nanoseconds, in another order */
}

const char *line_thread_name(const struct line_stack_row *r)
{
	return r->outside ? "outside" : r->pool ? "pool" : "own";
}

const char *lines_text(const struct line_place *p, char out[LINES_TEXT])
{
	snprintf(out, LINES_TEXT, "%.300s:%llu %.150s", p->file ? p->file : "?",
		 (unsigned long long)p->line, p->function ? p->function : "?");
	return out;
}

const char *lines_name(const struct line_place *p, char out[192])
{
	const char *base = dirs_base(p->file, "?");

	if (p->line)
		snprintf(out, 192, "%.80s:%llu %.80s", base, (unsigned long long)p->line,
			 p->function ? p->function : "?");
	else
		snprintf(out, 192, "%.80s %.90s", base, p->function ? p->function : "?");
	return out;
}
