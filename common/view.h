/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view.h - the worker's shared memory as its agent and the doctor see it: mapped, checked, not
 * trusted.
 *
 * Everything in it may be garbage or change at any time. Code that reads a struct copies it first
 * and uses the copy; texts are only reached through view_text(). One thread.
 */
#ifndef CREMA_COMMON_VIEW_H
#define CREMA_COMMON_VIEW_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/pack.h"
#include "shm.h"

struct redact;

struct view {
	struct crema_shm *shm; /* NULL: not attached */
	int fd;		       /* holds the shared lock; -1 for memory made by tests */
	char path[PATH_MAX];
	struct redact *redact; /* NULL: names are sent as they are */
};

/* Length of the name of such memory, "crema-" and the worker's id in hex, that the text begins
 * with; 0: it does not. */
size_t view_name_bytes(const char *text);
/*
 * Opens (O_NOFOLLOW), locks (shared), checks owner, size, magic, ABI, tables, struct sizes, maps.
 * 0; -EPROTO: not ours or another ABI; -ESTALE: a worker other than pid/start_ticks; or -errno.
 */
int view_open(struct view *v, const char *path, uint32_t pid, uint64_t start_ticks);
/*
 * For reading only: no lock, read-only, any owner's. 0; -EPROTO: of another build or no such
 * memory; or -errno. Functions that write (view_free(), view_repair()) must not be called.
 */
int view_look(struct view *v, const char *path);
/* Unmaps. The last process unlinks the file if `remove` is set because the worker has ended (only
 * for memory from view_open()). */
void view_close(struct view *v, bool remove);

/* A text by its id; {NULL, 0} if it is 0 or not sane. The view is valid as long as the mapping. */
struct text view_text(const struct view *v, uint32_t id);
/*
 * Copies task slot i < CREMA_SHM_TASKS. True: *word is the slot's word, the same before and after
 * the copy (references aside), and the copy belongs to it.
 */
bool view_task(const struct view *v, uint32_t i, struct crema_task *copy, uint32_t *word);
uint32_t view_word(const struct view *v, uint32_t i);
/*
 * Copies a live thread block; false: free, or it was being folded or was changing hands. For a
 * worker that has ended, also blocks that were folding: what they still hold is not in the slot
 * yet.
 */
bool view_thread(const struct view *v, uint32_t i, bool ended, struct crema_thread *copy);
/* Copies a text under its sequence lock: true if it is complete. */
bool view_probe(const struct crema_probe_text *p, struct buf *out, uint64_t *boot_ns);
/* Copies the process snapshot under its sequence lock: true if there is one. */
bool view_snapshot(const struct view *v, struct crema_snapshot *out);
/* Frees a DONE slot without references if its version is still `version`. */
bool view_free(const struct view *v, uint32_t i, uint32_t version);
/* Slots that an agent left half freed become DONE again: called once when attaching. */
void view_repair(const struct view *v);

#endif
