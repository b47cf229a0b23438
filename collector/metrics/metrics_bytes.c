/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_bytes.c - bytes requested and read, compared with the baskets that were used. */
#include "collector/metrics/metrics.h"

METRIC_COUNT(basket_bytes, chunks, basket_bytes)
METRIC_COUNT(basket_raw_bytes, chunks, basket_raw_bytes)
METRIC_COUNT(large_read_bytes, tasks, large_read_bytes)
METRIC_COUNT(cached_bytes, tasks, cached_bytes)
METRIC_COUNT(readahead_bytes, tasks, readahead_bytes)

struct value tally_came(const struct tally *t)
{
	struct value mapped = sum_value(&t->count[CREMA_C_mapped_bytes]);
	struct value net = sum_value(&t->server_network);
	bool came, used;

	/* For mapped files it is unknown which bytes were accessed. */
	if (mapped.type != VALUE_UINT || mapped.v.u)
		return value_null();
	/* Less arrived than was used: the client is not seen per task, or a cache was used. */
	if (value_number(net, &came) < value_number(sum_value(&t->server_baskets), &used) ||
	    !came || !used)
		return value_null();
	return value_plus(net, sum_value(&t->file_read));
}

struct value tally_requested(const struct tally *t)
{
	return t->attempts ? sum_value(&t->bytesread) : value_null();
}

struct value tally_baskets(const struct tally *t)
{
	struct value bytes = sum_value(&t->count[CREMA_C_basket_bytes]);
	struct value embedded = sum_value(&t->count[CREMA_C_embedded_baskets]);

	/* None at all: files of another format, whose used bytes are unknown. */
	return value_number(bytes, NULL) > 0 || value_number(embedded, NULL) > 0 ? bytes
										 : value_null();
}

struct value tally_outside(const struct tally *t)
{
	struct value v = value_minus(tally_came(t), tally_baskets(t));

	/* Fewer read than used: from a cache of the reader. */
	return v.type == VALUE_INT && v.v.i < 0 ? value_null() : v;
}

struct value tally_amplification(const struct tally *t)
{
	return value_ratio(tally_came(t), tally_baskets(t), 1);
}

struct value metric_read_amplification(const struct facts *f)
{
	return tally_amplification(&f->chunks);
}

struct value metric_requested_amplification(const struct facts *f)
{
	return value_ratio(tally_requested(&f->chunks), tally_baskets(&f->chunks), 1);
}

struct value metric_outside_basket_bytes(const struct facts *f)
{
	return tally_outside(&f->chunks);
}

struct value metric_outside_basket_percent(const struct facts *f)
{
	return value_ratio(tally_outside(&f->chunks), tally_came(&f->chunks), 100);
}

struct value metric_requested_outside_percent(const struct facts *f)
{
	struct value requested = tally_requested(&f->chunks);

	return value_ratio(value_minus(requested, tally_baskets(&f->chunks)), requested, 100);
}
