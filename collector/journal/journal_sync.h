/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal_sync.h - fdatasync outside the loop: in its ring, else in a separate thread.
 *
 * Files are handed over as descriptors that the syncer owns from then on. The newest one is synced
 * at every interval in which journal_sync_dirty() was called; an older one once more and then
 * closed. A sync that is slower than the interval puts off the next one. Everything but the thread
 * itself is for the thread of the journal.
 */
#ifndef CREMA_COLLECTOR_JOURNAL_JOURNAL_SYNC_H
#define CREMA_COLLECTOR_JOURNAL_JOURNAL_SYNC_H

#include <stdbool.h>
#include <stdint.h>

struct journal_sync;
struct loop;

/*
 * dir, shorter than PATH_MAX, is synced after a file was handed over, so that its name survives
 * too. loop: one with file operations, which then does the syncs; or NULL. NULL with errno.
 */
struct journal_sync *journal_sync_start(struct loop *loop, const char *dir, int64_t interval_ms,
					int (*sync)(int fd));
void journal_sync_file(struct journal_sync *sync, int fd);
/* `written`: the journal's bytes so far. */
void journal_sync_dirty(struct journal_sync *sync, uint64_t written);
/*
 * -errno of a sync that failed, until a file handed over later has been synced; else 0. wants_file:
 * no such file was handed over yet. unsynced_bytes: of the journal's, what no sync has kept.
 */
int journal_sync_failed(struct journal_sync *sync, bool *wants_file, uint64_t *unsynced_bytes);
void journal_sync_stats(struct journal_sync *sync, uint64_t *syncs, uint64_t *slowest_ns,
			int *error);
/* Syncs what is left, ends the thread, closes all. Returns the last error of a sync. */
int journal_sync_stop(struct journal_sync *sync);

#endif
