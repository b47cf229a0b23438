/* SPDX-License-Identifier: BSD-3-Clause */
/* file_layers.c - adds up the layers of a file. */
#include "collector/report/file_layers.h"

#include <errno.h>

static void add(struct value *sum, struct value v, bool first)
{
	*sum = first ? v : value_plus(*sum, v);
}

static bool same(struct value a, struct value b)
{
	return a.type == VALUE_UINT && b.type == VALUE_UINT && a.v.u == b.v.u;
}

static bool has(struct value v, uint64_t n)
{
	return v.type == VALUE_UINT && v.v.u == n;
}

int layers_add(struct file_layers *l, const struct file_row *f, bool first)
{
	bool all_read = same(f->extent_bytes, f->read_bytes);
	bool all_baskets = same(f->basket_extent_bytes, f->basket_bytes);

	add(&l->basket_calls, f->basket_calls, first);
	add(&l->page_calls, f->page_calls, first);
	add(&l->basket_bytes, f->basket_bytes, first);
	add(&l->basket_raw_bytes, f->basket_raw_bytes, first);
	add(&l->large_read_bytes, f->large_read_bytes, first);
	add(&l->cached_bytes, f->cached_bytes, first);
	add(&l->readahead_bytes, f->readahead_bytes, first);
	add(&l->worker_unique_bytes, all_read ? f->unique_bytes : value_null(), first);
	l->read_incomplete |= !all_read || !has(f->unique_bytes, f->read.bytes);
	l->baskets_incomplete |= !all_baskets || !has(f->unique_basket_bytes, f->baskets.bytes);
	if (ranges_join(&l->read, &f->read) || ranges_join(&l->baskets, &f->baskets))
		return -ENOMEM;
	return 0;
}

void layers_release(struct file_layers *l)
{
	ranges_release(&l->read);
	ranges_release(&l->baskets);
}

/*
 * Of a mapped file nobody knows which bytes were looked at. A server's file has no read calls;
 * where less came from there than was used, its requests do not tell the file, or a cache was in
 * between.
 */
static struct value amplification(const struct file_layers *l, struct value read,
				  struct value mapped, struct value network)
{
	bool came, used;

	if (read.type != VALUE_NULL)
		return has(mapped, 0) ? value_ratio(read, l->basket_bytes, 1) : value_null();
	if (value_number(network, &came) < value_number(l->basket_bytes, &used) || !came || !used)
		return value_null();
	return value_ratio(network, l->basket_bytes, 1);
}

void layers_values(const struct file_layers *l, struct value read_bytes, struct value mapped_bytes,
		   struct value network_read_bytes, struct layer_values *out)
{
	struct value read = l->read_incomplete ? value_null() : value_uint(l->read.bytes);
	struct value baskets = l->baskets_incomplete ? value_null() : value_uint(l->baskets.bytes);
	bool both = !l->read_incomplete && !l->baskets_incomplete;

	out->unique_bytes = read;
	out->reread_bytes = value_minus(read_bytes, read);
	out->worker_reread_bytes = value_minus(read_bytes, l->worker_unique_bytes);
	out->unique_basket_bytes = baskets;
	out->read_basket_bytes =
		both ? value_uint(ranges_common(&l->read, &l->baskets)) : value_null();
	out->outside_bytes = value_minus(read, out->read_basket_bytes);
	out->small_read_bytes = value_minus(read_bytes, l->large_read_bytes);
	if (value_number(out->small_read_bytes, NULL) <
	    0) /* a read under way is in one of them only */
		out->small_read_bytes = value_null();
	out->amplification = amplification(l, read_bytes, mapped_bytes, network_read_bytes);
	out->requested_amplification = value_ratio(l->requested, l->basket_bytes, 1);
}
