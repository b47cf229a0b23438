/* SPDX-License-Identifier: BSD-3-Clause */
/* file_row.c - the table of files. */
#include "shim/count/file_row.h"

#include "shim/shim.h"

static int row_matches(const struct crema_file *f, uint32_t path, uint32_t span, uint32_t kind)
{
	return f->path == path && f->span == span && f->kind == kind;
}

/* Row + 1 of (path, span); imports of a span share one row without a path. What finds no room is
 * counted in the last row, which shim_arm() made. */
uint32_t file_row_make(uint32_t path, uint32_t span, uint32_t kind, uint32_t filesystem,
		       const struct stat *st)
{
	uint32_t at = path * 2654435761u + span * 40503u + kind;

	for (uint32_t i = 0; i < 64; i++, at++) {
		uint32_t row = at % (CREMA_SHM_FILES - 1);
		struct crema_file *f = &crema_shm->file[row];

		if (row_claim(&f->state)) {
			f->path = path;
			f->span = span;
			f->kind = kind;
			f->filesystem = filesystem;
			f->dev = st ? st->st_dev : 0;
			f->ino = st ? st->st_ino : 0;
			f->size_bytes = st ? (uint64_t)st->st_size : 0;
			__atomic_store_n(&f->state, 2, __ATOMIC_RELEASE);
			return row + 1;
		}
		if (!row_ready(&f->state))
			break;
		if (row_matches(f, path, span, kind))
			return row + 1;
	}
	ADD(&crema_shm->totals.files_refused, 1);
	return CREMA_SHM_FILES;
}

uint32_t file_rest_row(uint32_t span)
{
	return file_row_make(0, span, CREMA_FILE_OTHER, 0, NULL);
}

uint32_t file_row_remote(uint32_t url, uint32_t span)
{
	uint32_t row = file_row_make(url, span, CREMA_FILE_REMOTE, CREMA_SHM_FILESYSTEMS, NULL);
	struct crema_file *f = &crema_shm->file[row - 1];

	if (f->kind == CREMA_FILE_REMOTE && !LOAD(&f->name))
		STORE(&f->name, url);
	return row;
}
