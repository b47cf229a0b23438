/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_lines.c - where tasks compute: a line of user code, all lines of one of its functions, or a
 * library function that is slow if used often.
 *
 * It uses samples of the tasks' own threads. A loop in Python is spread over its lines, so the self
 * time of a function, without what it calls, also counts as one place.
 */
#include <math.h>
#include <string.h>

#include "collector/findings/check.h"
#include "common/code_name.h"

struct habit {
	const char *function, *file, *words, *advice;
	enum { PLAIN, LOADING, IMPORTING } kind;
};

static const struct habit habits[] = {
#define HABIT(function, file, words, advice) {#function, file, words, advice, PLAIN},
#define LOADS(function, file, words, advice) {#function, file, words, advice, LOADING},
#define IMPORTS(function, file, words, advice) {#function, file, words, advice, IMPORTING},
#include "findings.def"
};

#define HABITS (sizeof(habits) / sizeof(*habits))

/* Samples that have something in common; `place` is the user's line with most of them. */
struct hot {
	const struct habit *habit; /* NULL: none */
	const struct line_place *place;
	const char *callee;
	bool itself; /* the function's self time */
	double cpu, at_place;
	uint64_t samples;
};

static const struct habit *habit_of(const struct line_place *p)
{
	for (size_t i = 0; i < HABITS; i++) {
		if (p->function && p->file &&
		    !strcmp(code_last_name(p->function), habits[i].function) &&
		    code_ends_with(p->file, habits[i].file))
			return &habits[i];
	}
	return NULL;
}

/* The outermost habit that a line of user code called; *line: that line. */
static const struct habit *habit_in(const struct line_list *list, const struct line_place **line)
{
	const struct habit *found = NULL, *h;
	const struct line_place *caller;

	for (uint32_t i = 0; i < list->depth; i++) {
		h = list->place[i]->user ? NULL : habit_of(list->place[i]);
		caller = h ? lines_user_place(list, i + 1) : NULL;
		if (caller) {
			found = h;
			*line = caller;
		}
	}
	return found;
}

static void count(struct hot *hot, const struct line_stack_row *row, const struct line_place *place)
{
	double cpu = row->sum.class_s[CREMA_T_cpu];

	hot->cpu += cpu;
	hot->samples += row->sum.class_samples[CREMA_T_cpu];
	if (!hot->place || cpu > hot->at_place) { /* from stacks: precise enough to name a line */
		hot->at_place = cpu;
		hot->place = place;
	}
}

static bool counts(const struct line_stack_row *row)
{
	return !row->pool && row->list && row->sum.class_samples[CREMA_T_cpu];
}

static void sum_habits(const struct lines *l, struct hot sum[HABITS])
{
	const struct line_place *line = NULL;
	const struct habit *h;

	memset(sum, 0, HABITS * sizeof(*sum));
	for (size_t i = 0; i < l->stacks.n; i++) {
		h = counts(l->stacks.v[i]) ? habit_in(l->stacks.v[i]->list, &line) : NULL;
		if (!h)
			continue;
		sum[h - habits].habit = h;
		count(&sum[h - habits], l->stacks.v[i], line);
	}
}

/* The hottest habit, or that of imports. */
static struct hot hottest_habit(const struct hot sum[HABITS], bool imports)
{
	struct hot best = {0};

	for (size_t i = 0; i < HABITS; i++) {
		if (sum[i].habit && (sum[i].habit->kind == IMPORTING) == imports &&
		    sum[i].cpu > best.cpu)
			best = sum[i];
	}
	return best;
}

double loading_cpu(const struct lines *l)
{
	struct hot sum[HABITS];
	double cpu = 0;

	if (l->clockless)
		return 0;
	sum_habits(l, sum);
	for (size_t i = 0; i < HABITS; i++)
		cpu += sum[i].habit && sum[i].habit->kind == LOADING ? sum[i].cpu : 0;
	return cpu;
}

static bool same_function(const struct line_place *a, const struct line_place *b)
{
	return a->file == b->file && a->function == b->function;
}

/* Tries only the functions of the hottest lines: one with much self time is among them. */
static struct hot hottest_function(const struct lines *l)
{
	const struct line_place *p, *inner;
	struct hot best = {0};

	for (size_t r = 0; r < l->rows.n && r < 16; r++) {
		struct hot sum = {.itself = true};

		p = l->rows.v[r]->place;
		for (size_t i = 0; p && i < l->stacks.n; i++) {
			if (!counts(l->stacks.v[i]) || !l->stacks.v[i]->list->depth)
				continue;
			inner = l->stacks.v[i]->list->place[0];
			if (inner->user && same_function(inner, p))
				count(&sum, l->stacks.v[i], inner);
		}
		if (sum.cpu > best.cpu)
			best = sum;
	}
	return best;
}

/* The first public name that the line calls in its most frequent stack; NULL: none. */
static const char *callee_of(const struct line_row *row)
{
	const struct line_list *list = row->most;
	const char *name;

	for (uint32_t i = list ? lines_user_at(list, 0) : 0; i-- > 0;) {
		name = list->place[i]->function;
		if (name && !strchr(name, '<') && *code_last_name(name) != '_')
			return code_last_name(name);
	}
	return NULL;
}

static struct hot hottest_line(const struct lines *l)
{
	double share;
	const struct line_row *row = lines_hottest(l, CREMA_T_cpu, REMARK_SAMPLES, &share);

	if (!row)
		return (struct hot){0};
	return (struct hot){.place = row->place,
			    .callee = callee_of(row),
			    .cpu = row->sum.class_s[CREMA_T_cpu],
			    .samples = row->sum.class_samples[CREMA_T_cpu]};
}

static bool enough(const struct hot *hot, double of_cpu, const struct check *c)
{
	return hot->samples >= REMARK_SAMPLES && reaches(hot->cpu, of_cpu, c->first, c->second);
}

/* Prefers a habit over a line, and a line over the function around it. Imports that the check
 * `imports` reports do not count. */
static bool choose(struct hot *hot, const struct lines *l, const struct draft *d)
{
	struct hot sum[HABITS], function = hottest_function(l), import;
	double cpu = l->all.class_s[CREMA_T_cpu];
	size_t tasks = 0;
	bool once;

	sum_habits(l, sum);
	import = hottest_habit(sum, true);
	once = import_seconds(d->kinds, &tasks) * 2 >= import.cpu;
	cpu -= once ? import.cpu : 0;
	*hot = hottest_habit(sum, false);
	if (enough(hot, cpu, d->check))
		return true;
	*hot = import;
	if (!once && enough(hot, cpu, d->check))
		return true;
	*hot = hottest_line(l);
	if (function.cpu > hot->cpu)
		*hot = function;
	return enough(hot, cpu, d->check);
}

static void say_place(struct draft *d, const struct hot *hot, const char *name)
{
	struct line_place function = *hot->place;
	char text[192];

	function.line = 0;
	if (hot->habit) {
		draft_evidence(d, "habit", value_text(hot->habit->words), "");
		draft_sentence_more(d, " in %s, called at %s", hot->habit->words,
				    draft_name(d, name));
	} else if (hot->itself) {
		draft_sentence_more(d, " in the lines of %s itself, most of it in line %s",
				    draft_name(d, lines_name(&function, text)),
				    draft_human(d, value_uint(hot->place->line), AS_COUNT));
	} else {
		draft_sentence_more(d, " at %s", draft_name(d, name));
	}
	if (hot->callee)
		draft_sentence_more(d, ", most of it in its call of %s",
				    draft_name(d, hot->callee));
}

bool draft_habit(struct draft *d, const struct report *r)
{
	const struct lines *l = &r->lines;
	uint64_t all = l->all.class_samples[CREMA_T_cpu];
	struct hot sum[HABITS], hot;
	const char *name;
	double share;

	if (!l->all.samples || l->clockless)
		return false;
	sum_habits(l, sum);
	hot = hottest_habit(sum, false);
	share = hot.cpu / l->all.class_s[CREMA_T_cpu];
	if (hot.samples < REMARK_SAMPLES || share < 0.5)
		return false;
	name = draft_evidence_line(d, hot.place, share, hot.samples, all);
	draft_sentence_more(d, "; %s of it", draft_line_share(d, share, all));
	say_place(d, &hot, name);
	draft_advise(d, "%s", hot.habit->advice);
	return true;
}

/* Whether "FILE:LINE FUNCTION" is in the place's function, or in one around it. Python 3.10 does
 * not report which. */
static bool is_in_function(const struct line_place *p, const char *line)
{
	const char *function = strrchr(line, ' '), *at = p->function;
	size_t n = strlen(p->file), m;

	if (!function || !at || strncmp(line, p->file, n) != 0 || line[n] != ':')
		return false;
	m = strlen(++function);
	while (at) {
		if (!strncmp(at, function, m) && (at[m] == '.' || !at[m]))
			return true;
		at = strchr(at, '.');
		if (at)
			at++;
	}
	return *p->function == '<';
}

/* Whether it computes on what it has read from files, as far as the functions that open some
 * are known. */
static bool reads_files(const struct report *r, const struct hot *hot)
{
	bool known = false;

	if (hot->habit)
		return hot->habit->kind == LOADING;
	for (size_t i = 0; i < r->files.n; i++) {
		const struct opened_lines *o = &r->files.v[i].opened;

		known = known || o->n;
		for (size_t k = 0; hot->place->file && k < o->n; k++)
			if (is_in_function(hot->place, o->v[k].line))
				return true;
	}
	return !known;
}

static void advise(struct draft *d, const struct hot *hot)
{
	if (hot->habit) {
		draft_advise(d, "%s", hot->habit->advice);
		draft_severity(d, FINDING_WARNING);
	} else if (hot->itself) {
		draft_advise(d, "If these lines loop in Python over events or objects, use array "
				"operations or compile the loop with numba.njit.");
	}
}

enum verdict finding_hot_line(const struct report *r, struct draft *d)
{
	const struct lines *l = &r->lines;
	uint64_t all = l->all.class_samples[CREMA_T_cpu];
	double share;
	const char *name;
	struct hot hot;

	if (!l->all.samples)
		return CHECK_IDLE;
	if (l->clockless)
		return draft_unknown(d, "stacks");
	if (!choose(&hot, l, d))
		return CHECK_QUIET;
	share = hot.cpu / l->all.class_s[CREMA_T_cpu];
	draft_evidence(d, "line_cpu_seconds", value_real(hot.cpu), "s");
	name = draft_evidence_line(d, hot.place, share, hot.samples, all);
	draft_sentence(d, "%s of the sampled CPU of tasks (%s) was",
		       draft_line_share(d, share, all),
		       draft_human(d, value_real(hot.cpu), AS_SECONDS));
	say_place(d, &hot, name);
	advise(d, &hot);
	if (!reads_files(r, &hot))
		d->f.apart = "not_by_coffea";
	draft_cost(d, cost_of_cpu(d->costs, hot.cpu));
	return draft_found(d, share);
}
