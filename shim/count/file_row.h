/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_row.h - the table of files in shared memory: a row for each path, span and kind.
 *
 * A row is given as index + 1. What finds no room is counted, and goes to the row of its span's
 * rest; with more spans than rows for these, to the last row. Any thread, no lock.
 */
#ifndef CREMA_SHIM_COUNT_FILE_ROW_H
#define CREMA_SHIM_COUNT_FILE_ROW_H

#include <stdint.h>

/* What fstat() found. */
struct file_look {
	uint64_t dev, ino, mtime_ns, size_bytes;
};

/* look NULL: unknown. Otherwise a row that was read before the file changed is marked (changed). */
uint32_t file_row_make(uint32_t path, uint32_t span, uint32_t kind, uint32_t filesystem,
		       const struct file_look *look);
/* Row + 1 for charges of a span's tasks that cannot be attributed to a single file. */
uint32_t file_rest_row(uint32_t span);
/* Row + 1 of a file that is identified by its URL (a string id). Any thread. */
uint32_t file_row_remote(uint32_t url, uint32_t span);

#endif
