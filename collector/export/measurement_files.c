/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measurement_files.c - what was read of each file. roastcoffea's ratio is compressed / unpacked of
 * the whole tree; this is the same of the baskets that were used. Its percentages are of the tree's
 * bytes; these are of the file's size, which is a little more.
 */
#include "collector/export/measurement_parts.h"

static struct value ratio_of(const struct file_sum *f)
{
	return value_ratio(f->basket_bytes, f->basket_raw_bytes, 1);
}

static struct value used_bytes(const struct file_sum *f)
{
	struct layer_values v;

	layers_values(f, &v);
	return v.unique_basket_bytes;
}

static struct value used_percent(const struct file_sum *f)
{
	return value_ratio(used_bytes(f), f->size_bytes, 100);
}

static const char *name_of(const struct file_sum *f)
{
	return f->name ? f->name : f->path;
}

static bool is_data(const struct file_sum *f)
{
	return ratio_of(f).type != VALUE_NULL && name_of(f);
}

static void put_list(const struct report *r, const char *name,
		     struct value (*value)(const struct file_sum *), struct json *j)
{
	struct value v;
	size_t i;

	emit_array(j, name);
	for (i = 0; i < r->files.n; i++) {
		v = is_data(&r->files.v[i]) ? value(&r->files.v[i]) : value_null();
		if (v.type != VALUE_NULL)
			emit_value(j, NULL, v);
	}
	emit_end(j);
}

void measurement_files(const struct report *r, struct json *j)
{
	const struct file_sum *f;
	size_t i;

	emit_object(j, "file_metadata");
	for (i = 0; i < r->files.n; i++) {
		f = &r->files.v[i];
		if (!is_data(f))
			continue;
		emit_object(j, name_of(f));
		emit_value(j, "filename", value_text(name_of(f)));
		emit_value(j, "compression_ratio", ratio_of(f));
		emit_end(j);
	}
	emit_end(j);
	emit_object(j, "file_read_metrics");
	for (i = 0; i < r->files.n; i++) {
		f = &r->files.v[i];
		if (!is_data(f))
			continue;
		emit_object(j, name_of(f));
		measurement_put(j, "file_bytes", f->size_bytes);
		measurement_put(j, "bytes_read", used_bytes(f));
		measurement_put(j, "bytes_read_percent", used_percent(f));
		emit_end(j);
	}
	emit_end(j);
	put_list(r, "compression_ratios", ratio_of, j);
	put_list(r, "bytes_read_percent_per_file", used_percent, j);
}
