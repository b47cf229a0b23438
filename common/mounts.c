/* SPDX-License-Identifier: BSD-3-Clause */
/* mounts.c - the lines of /proc/PID/mountinfo (mounts.h). */
#include "common/mounts.h"

#include <string.h>
#include <sys/sysmacros.h>

struct text mounts_take(struct text *from, char separator)
{
	const char *end = from->len ? memchr(from->ptr, separator, from->len) : NULL;
	struct text t = {from->ptr, end ? (size_t)(end - from->ptr) : from->len};
	size_t used = t.len + (end != NULL);

	from->ptr += used;
	from->len -= used;
	return t;
}

static bool take_number(struct text *from, char separator, uint64_t *out)
{
	struct text t = mounts_take(from, separator);

	*out = 0;
	for (size_t i = 0; i < t.len; i++) {
		if (t.ptr[i] < '0' || t.ptr[i] > '9' || i > 9)
			return false;
		*out = *out * 10 + (uint64_t)(t.ptr[i] - '0');
	}
	return t.len > 0;
}

/* ID PARENT MAJOR:MINOR ROOT POINT FLAGS [TAG ...] - TYPE SOURCE OPTIONS */
static bool parse(struct text line, struct mount *m)
{
	uint64_t parent, major, minor;
	struct text tag;

	if (!take_number(&line, ' ', &m->id) || !take_number(&line, ' ', &parent) ||
	    !take_number(&line, ':', &major) || !take_number(&line, ' ', &minor))
		return false;
	m->dev = makedev((unsigned int)major, (unsigned int)minor);
	mounts_take(&line, ' ');
	m->point = mounts_take(&line, ' ');
	mounts_take(&line, ' ');
	do {
		tag = mounts_take(&line, ' ');
	} while (line.len && !text_is(tag, "-"));
	m->type = mounts_take(&line, ' ');
	m->source = mounts_take(&line, ' ');
	m->options = mounts_take(&line, ' ');
	return m->type.len && m->options.len;
}

bool mounts_next(struct text *rest, struct mount *m)
{
	while (rest->len)
		if (parse(mounts_take(rest, '\n'), m))
			return true;
	return false;
}

bool mounts_find(struct text all, uint64_t dev, struct mount *m)
{
	while (mounts_next(&all, m))
		if (m->dev == dev)
			return true;
	return false;
}

static bool is_address(struct text option)
{
	static const char *const names[] = {"addr=", "clientaddr=", "mountaddr="};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);

		if (option.len >= n && memcmp(option.ptr, names[i], n) == 0)
			return true;
	}
	return false;
}

bool mounts_options(const struct mount *m, char *out)
{
	struct text rest = m->options, option;
	size_t n = 0;

	while (rest.len) {
		option = mounts_take(&rest, ',');
		if (is_address(option))
			continue;
		if (n + option.len + 2 > MOUNT_OPTIONS)
			return false;
		if (n)
			out[n++] = ',';
		memcpy(out + n, option.ptr, option.len);
		n += option.len;
	}
	out[n] = '\0';
	return n > 0;
}
