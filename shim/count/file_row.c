/* SPDX-License-Identifier: BSD-3-Clause */
/* file_row.c - the table of files. */
#include "shim/count/file_row.h"

#include "shim/shim.h"

static int row_matches(const struct crema_file *f, uint32_t path, uint32_t span, uint32_t kind)
{
	return f->path == path && f->span == span && f->kind == kind;
}

#define REST_FROM (CREMA_SHM_FILES - 1 - CREMA_SHM_FILES_REST)

struct wanted {
	uint32_t path, span, kind, filesystem;
	const struct file_look *look;
};

static void keep_look(struct crema_file *f, const struct file_look *look)
{
	STORE(&f->dev, look->dev);
	STORE(&f->mtime_ns, look->mtime_ns);
	STORE(&f->size_bytes, look->size_bytes);
	STORE(&f->ino, look->ino); /* last: it stands for all */
}

/* A path may be used again, for the next input that is copied there. By size and time of change: a
 * copy may keep the inode, and some file systems give an unchanged file another one. */
static void look_again(struct crema_file *f, const struct file_look *look)
{
	int known = LOAD(&f->ino) != 0; /* 0: this is the first look */
	int was_read = LOAD(&f->was_read) || LOAD(&f->mapped_bytes) || LOAD(&f->basket_bytes);

	if (likely(known && LOAD(&f->mtime_ns) == look->mtime_ns &&
		   LOAD(&f->size_bytes) == look->size_bytes))
		return;
	if (known && was_read)
		ADD(&f->changed, 1);
	keep_look(f, look);
}

/* Row + 1 of the wanted one among `n` rows, found there or made; 0: there is no room. */
static uint32_t find_or_make(uint32_t from, uint32_t n, uint32_t tries, const struct wanted *w)
{
	uint32_t at = w->path * 2654435761u + w->span * 40503u + w->kind;

	for (uint32_t i = 0; i < tries; i++, at++) {
		uint32_t row = from + at % n;
		struct crema_file *f = &crema_shm->file[row];

		if (row_claim(&f->state)) {
			f->path = w->path;
			f->span = w->span;
			f->kind = w->kind;
			f->filesystem = w->filesystem;
			if (w->look)
				keep_look(f, w->look);
			__atomic_store_n(&f->state, 2, __ATOMIC_RELEASE);
			return row + 1;
		}
		if (!row_ready(&f->state))
			break;
		if (row_matches(f, w->path, w->span, w->kind)) {
			if (w->look)
				look_again(f, w->look);
			return row + 1;
		}
	}
	return 0;
}

/* The last row was made by shim_arm(). */
uint32_t file_rest_row(uint32_t span)
{
	const struct wanted rest = {.span = span, .kind = CREMA_FILE_OTHER};
	uint32_t row = find_or_make(REST_FROM, CREMA_SHM_FILES_REST, CREMA_SHM_FILES_REST, &rest);

	return row ? row : CREMA_SHM_FILES;
}

/* Row + 1 of (path, span); imports of a span share one row without a path. */
uint32_t file_row_make(uint32_t path, uint32_t span, uint32_t kind, uint32_t filesystem,
		       const struct file_look *look)
{
	const struct wanted file = {path, span, kind, filesystem, look};
	uint32_t row = find_or_make(0, REST_FROM, 64, &file);

	if (row)
		return row;
	ADD(&crema_shm->totals.files_refused, 1);
	return file_rest_row(span);
}

uint32_t file_row_remote(uint32_t url, uint32_t span)
{
	uint32_t row = file_row_make(url, span, CREMA_FILE_REMOTE, CREMA_SHM_FILESYSTEMS, NULL);
	struct crema_file *f = &crema_shm->file[row - 1];

	if (f->kind == CREMA_FILE_REMOTE && !LOAD(&f->name))
		STORE(&f->name, url);
	return row;
}
