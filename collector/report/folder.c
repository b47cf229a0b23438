/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.c - the common folder of files: printed once, so that names stay short. */
#include <string.h>

#include "collector/emit/emit_text.h"
#include "collector/report/report.h"

#define FOLDER_COLUMNS 70

static size_t in_common(const char *a, const char *b, size_t n)
{
	size_t i = 0, end = 0;

	for (; i < n && a[i] && a[i] == b[i]; i++) {
		if (a[i] == '/')
			end = i + 1;
	}
	return end;
}

size_t report_folder(const struct report *r, bool (*shown)(const struct file_sum *))
{
	const char *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < r->files.n; i++) {
		const struct file_sum *f = &r->files.v[i];

		if (!shown(f))
			continue;
		if (!first) {
			first = f->path;
			n = strlen(first);
		}
		n = in_common(first, f->path, n);
	}
	return n;
}

void report_folder_line(const struct report *r, bool (*shown)(const struct file_sum *), size_t n,
			struct sink *s)
{
	char folder[1024];

	for (size_t i = 0; n > 1 && i < r->files.n; i++) {
		if (!shown(&r->files.v[i]))
			continue;
		if (n >= sizeof(folder))
			n = sizeof(folder) - 1;
		memcpy(folder, r->files.v[i].path, n);
		folder[n] = '\0';
		text_shorten(text_clean(folder), FOLDER_COLUMNS);
		sink_printf(s, "  all in %s\n", folder);
		return;
	}
}
