/* SPDX-License-Identifier: BSD-3-Clause */
/* file_place.c - see file_place.h. */
#include "collector/model/file_place.h"

#include <string.h>

enum fsplace file_place(const struct file_row *f)
{
	if (f->kind && !strcmp(f->kind, "remote"))
		return FSPLACE_SHARED;
	return fsplace_of(f->filesystem);
}

bool file_is_own(const struct file_row *f)
{
	return f->place == FSPLACE_OWN;
}

static int host_order(const struct worker *a, const struct worker *b)
{
	int order = text_order(a->host, b->host);

	return order ? order : text_order(a->boot_id, b->boot_id);
}

bool file_same_host(const struct worker *a, const struct worker *b)
{
	return a == b || !host_order(a, b);
}

int file_order(const struct file_row *a, const struct file_row *b)
{
	bool own = file_is_own(a);
	int order = text_order(a->path, b->path);

	if (order || own != file_is_own(b))
		return order ? order : own ? -1 : 1;
	return own ? host_order(a->worker, b->worker) : 0;
}

bool file_may_differ(const struct file_row *first, struct value size, const struct file_row *f)
{
	if (size.type == VALUE_UINT && f->size_bytes.type == VALUE_UINT &&
	    size.v.u != f->size_bytes.v.u)
		return true;
	return f->place == FSPLACE_EITHER && !file_same_host(first->worker, f->worker);
}

int file_name_own(struct buf *to, const char *path, const struct worker *w)
{
	const char *host = w->host ? w->host : "unknown host";

	buf_add(to, path, strlen(path));
	buf_add(to, " (", 2);
	buf_add(to, host, strlen(host));
	return buf_add(to, ")", 2);
}
