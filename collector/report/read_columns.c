/* SPDX-License-Identifier: BSD-3-Clause */
/* read_columns.c - sums of columns over the workers of a run, and the rest outside of them. */
#include "collector/report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {[COLUMN_ONE] = "column",
					 [COLUMN_TOGETHER] = "together",
					 [COLUMN_BEYOND] = "beyond",
					 [COLUMN_REST] = "rest"};

const char *column_kind_name(enum column_kind kind)
{
	return kind_names[kind];
}

static bool same_sum(const void *item, const void *key)
{
	const struct column_sum *a = item, *b = key;

	return a->kind == b->kind && a->column == b->column && a->tree == b->tree &&
	       a->dataset == b->dataset;
}

static uint64_t hash_of(const struct column_sum *key)
{
	return hash_pair(hash_pair((uintptr_t)key->column, (uintptr_t)key->tree),
			 (uintptr_t)key->dataset + key->kind);
}

void column_numbers_begin(struct value *number)
{
	for (size_t i = 0; i < CREMA_COLUMN_NUMBERS; i++)
		number[i] = row_column[i].merge == ROW_SUM ? value_uint(0) : value_null();
}

static struct column_sum *sum_of(struct read_columns *c, const struct column_sum *key)
{
	uint64_t hash = hash_of(key);
	struct column_sum *s = table_find(&c->table, hash, same_sum, key);

	if (s)
		return s;
	s = TABLE_NEW(&c->table, hash, &c->arena, &c->v);
	if (!s)
		return NULL;
	*s = *key;
	column_numbers_begin(s->number);
	return s;
}

static void add_line(struct column_sum *s, const char *line)
{
	for (size_t i = 0; i < s->lines; i++)
		if (s->line[i] == line)
			return;
	if (s->lines < COLUMN_LINES)
		s->line[s->lines++] = line;
	else
		s->more_lines = true;
}

static int take(struct read_columns *c, const struct column_row *row)
{
	const struct column_key *k = &row->key;
	const struct column_sum key = {.kind = k->beyond     ? COLUMN_BEYOND
					       : k->together ? COLUMN_TOGETHER
							     : COLUMN_ONE,
				       .column = k->column,
				       .tree = k->tree,
				       .dataset = k->dataset};
	struct column_sum *s = sum_of(c, &key);

	if (!s)
		return -ENOMEM;
	for (size_t i = 0; i < CREMA_COLUMN_LINES && row->line[i]; i++)
		add_line(s, row->line[i]);
	s->more_lines = s->more_lines || row->more_lines;
	report_merge(s->number, row->number, row_column, CREMA_COLUMN_NUMBERS, false);
	return 0;
}

/* An attempt's count of one number; unknown if only columns have it. */
static struct value of_attempt(const struct attempt *a, size_t i)
{
	const struct row_column_from *from = &row_column_from[i];

	if (from->kind == ROW_COUNT)
		return count_of(&a->c, (enum crema_count_id)from->id);
	if (from->kind == ROW_TIME && from->id == CREMA_T_cpu)
		return value_plus(own_ns(&a->c, CREMA_T_cpu), pool_ns(&a->c, CREMA_T_cpu));
	if (from->kind == ROW_TIME)
		return own_ns(&a->c, (enum crema_time_id)from->id);
	switch (i) {
	case CREMA_COLUMN_N_requested_bytes:
		return attempt_u64(a, TASK_F_coffea_bytesread);
	case CREMA_COLUMN_N_baskets:
		return count_of(&a->c, CREMA_C_basket_calls);
	case CREMA_COLUMN_N_basket_bytes:
		return count_of(&a->c, CREMA_C_basket_bytes);
	case CREMA_COLUMN_N_basket_raw_bytes:
		return count_of(&a->c, CREMA_C_basket_raw_bytes);
	case CREMA_COLUMN_N_wall_ns:
		return value_uint(a->wall_ns);
	default:
		return value_null();
	}
}

static struct column_sum *rest_of(struct read_columns *c, const char *dataset, bool make)
{
	const struct column_sum key = {.kind = COLUMN_REST, .dataset = dataset};

	return make ? sum_of(c, &key) : table_find(&c->table, hash_of(&key), same_sum, &key);
}

/* Negative: not all rows are from the same moment. */
static struct value settled(struct value v)
{
	double n = value_number(v, NULL);

	return v.type == VALUE_NULL || n < 0 ? value_null() : value_uint((uint64_t)n);
}

static void add(struct column_sum *rest, const struct attempt *a)
{
	for (size_t k = 0; k < CREMA_COLUMN_NUMBERS; k++)
		rest->number[k] = value_plus(rest->number[k], of_attempt(a, k));
}

/* Numbers of a dataset's chunks, less those of its columns. */
static int gather_rest(struct read_columns *c, const struct run *run)
{
	size_t rows = c->v.n, i, k;
	struct column_sum *rest;

	for (i = 0; i < rows; i++)
		if (c->v.v[i]->dataset && !rest_of(c, c->v.v[i]->dataset, true))
			return -ENOMEM;
	for (i = 0; i < run->attempts.n && c->v.n > rows; i++) {
		rest = attempt_is_chunk(run->attempts.v[i])
			       ? rest_of(c, run->attempts.v[i]->dataset, false)
			       : NULL;
		if (rest)
			add(rest, run->attempts.v[i]);
	}
	for (i = 0; i < rows; i++) {
		rest = c->v.v[i]->dataset ? rest_of(c, c->v.v[i]->dataset, false) : NULL;
		for (k = 0; rest && k < CREMA_COLUMN_NUMBERS; k++)
			rest->number[k] = value_minus(rest->number[k], c->v.v[i]->number[k]);
	}
	for (i = rows; i < c->v.n; i++)
		for (k = 0; k < CREMA_COLUMN_NUMBERS; k++)
			c->v.v[i]->number[k] = settled(c->v.v[i]->number[k]);
	return 0;
}

struct value column_bytes(const struct value *number)
{
	struct value baskets = number[CREMA_COLUMN_N_basket_bytes];

	return value_number(baskets, NULL) > 0 ? baskets : number[CREMA_COLUMN_N_requested_bytes];
}

static int by_bytes(const void *pa, const void *pb)
{
	const struct column_sum *a = *(struct column_sum *const *)pa;
	const struct column_sum *b = *(struct column_sum *const *)pb;
	double x = value_number(column_bytes(a->number), NULL),
	       y = value_number(column_bytes(b->number), NULL);
	int order;

	if ((a->kind == COLUMN_REST) != (b->kind == COLUMN_REST))
		return a->kind == COLUMN_REST ? 1 : -1;
	if (x != y)
		return x > y ? -1 : 1;
	order = text_order(a->column, b->column);
	if (!order)
		order = text_order(a->dataset, b->dataset);
	return order ? order : text_order(a->tree, b->tree);
}

int read_columns_gather(struct read_columns *c, const struct run *run)
{
	const struct model *m = run->model;
	int rc = 0;

	memset(c, 0, sizeof(*c));
	c->unmeasured = value_uint(0);
	for (size_t i = 0; i < run->workers.n; i++)
		c->unmeasured =
			value_plus(c->unmeasured, run->workers.v[i]->totals.columns_unmeasured);
	for (size_t i = 0; i < m->columns.n && !rc; i++) {
		const struct column_key *k = &m->columns.v[i]->key;

		if (run_has_row(run, k->worker, k->span))
			rc = take(c, m->columns.v[i]);
	}
	if (!rc)
		rc = gather_rest(c, run);
	if (c->v.n)
		qsort(c->v.v, c->v.n, sizeof(*c->v.v), by_bytes);
	return rc;
}

void read_columns_release(struct read_columns *c)
{
	free(c->v.v);
	table_release(&c->table);
	arena_release(&c->arena);
	memset(c, 0, sizeof(*c));
}
