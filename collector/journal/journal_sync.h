/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal_sync.h - fdatasync outside the loop: in its ring, else in a separate thread.
 *
 * Files are passed as descriptors, which the syncer then owns. The newest one is synced at
 * every interval in which journal_sync_dirty() was called; an older one is synced once more
 * and closed. A sync that is slower than the interval delays the next one. All functions are
 * for the journal's thread.
 */
#ifndef CREMA_COLLECTOR_JOURNAL_JOURNAL_SYNC_H
#define CREMA_COLLECTOR_JOURNAL_JOURNAL_SYNC_H

#include <stdbool.h>
#include <stdint.h>

struct journal_sync;
struct loop;

/*
 * dir, shorter than PATH_MAX, is synced after a file was added, so that its name survives, too.
 * loop: one with file operations, which then does the syncs; or NULL. Returns NULL with errno.
 */
struct journal_sync *journal_sync_start(struct loop *loop, const char *dir, int64_t interval_ms,
					int (*sync)(int fd));
void journal_sync_file(struct journal_sync *sync, int fd);
/* `written`: the journal's bytes so far. */
void journal_sync_dirty(struct journal_sync *sync, uint64_t written);
/*
 * -errno of a failed sync, until a file added later has been synced; else 0. wants_file: no such
 * file was added yet. unsynced_bytes: the journal's bytes that no sync has covered.
 */
int journal_sync_failed(struct journal_sync *sync, bool *wants_file, uint64_t *unsynced_bytes);
void journal_sync_stats(struct journal_sync *sync, uint64_t *syncs, uint64_t *slowest_ns,
			int *error);
/* Syncs the rest, ends the thread, closes all. Returns the last error of a sync. */
int journal_sync_stop(struct journal_sync *sync);

#endif
