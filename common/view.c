/* SPDX-License-Identifier: BSD-3-Clause */
/* view.c - the worker's shared memory. */
#include "common/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/frame.h"

#define LOAD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)

size_t view_name_bytes(const char *text)
{
	const size_t digits = FRAME_HEX_BYTES - 1;

	return !strncmp(text, "crema-", 6) && strspn(text + 6, "0123456789abcdef") == digits
		       ? 6 + digits
		       : 0;
}

static bool is_ours(const struct crema_shm *m)
{
	return crema_shm_same_build(m) && m->header_bytes == offsetof(struct crema_shm, task) &&
	       m->task_bytes == sizeof(struct crema_task) &&
	       m->thread_bytes == sizeof(struct crema_thread) &&
	       m->file_bytes == sizeof(struct crema_file) && m->tasks == CREMA_SHM_TASKS &&
	       m->threads == CREMA_SHM_THREADS && m->files == CREMA_SHM_FILES;
}

static int check(const struct crema_shm *m, uint32_t pid, uint64_t start_ticks)
{
	if (!is_ours(m))
		return -EPROTO;
	if (m->pid != pid || (m->start_ticks && start_ticks && m->start_ticks != start_ticks))
		return -ESTALE;
	return 0;
}

/* Checks that the name still refers to the file that we have open and locked. */
static int lock_and_check(struct view *v, struct stat *st)
{
	struct stat named;

	if (flock(v->fd, LOCK_SH | LOCK_NB) < 0 || fstat(v->fd, st) < 0 ||
	    lstat(v->path, &named) < 0)
		return -errno;
	if (named.st_ino != st->st_ino || named.st_dev != st->st_dev)
		return -ESTALE;
	if (!S_ISREG(st->st_mode) || st->st_uid != geteuid() ||
	    st->st_size != (off_t)sizeof(struct crema_shm))
		return -EPROTO;
	return 0;
}

int view_open(struct view *v, const char *path, uint32_t pid, uint64_t start_ticks)
{
	struct stat st;
	void *m;
	int rc;

	v->shm = NULL;
	v->fd = -1;
	if (snprintf(v->path, sizeof(v->path), "%s", path) >= (int)sizeof(v->path))
		return -ENAMETOOLONG;
	v->fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (v->fd < 0)
		return -errno;
	rc = lock_and_check(v, &st);
	if (rc)
		goto fail;
	m = mmap(NULL, sizeof(struct crema_shm), PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
	if (m == MAP_FAILED) {
		rc = -errno;
		goto fail;
	}
	rc = check(m, pid, start_ticks);
	if (!rc) {
		v->shm = m;
		return 0;
	}
	munmap(m, sizeof(struct crema_shm));
fail:
	close(v->fd);
	v->fd = -1;
	return rc;
}

int view_look(struct view *v, const char *path)
{
	struct stat st;
	void *m;
	int rc = 0;

	*v = (struct view){.fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)};
	if (v->fd < 0)
		return -errno;
	if (fstat(v->fd, &st) < 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode))
		rc = -EINVAL;
	else if (st.st_size != (off_t)sizeof(*v->shm))
		rc = -EPROTO;
	if (!rc) {
		m = mmap(NULL, sizeof(*v->shm), PROT_READ, MAP_SHARED, v->fd, 0);
		if (m == MAP_FAILED)
			rc = -errno;
		else
			v->shm = m;
	}
	if (!rc && !is_ours(v->shm))
		rc = -EPROTO;
	if (rc)
		view_close(v, false);
	return rc;
}

void view_close(struct view *v, bool remove)
{
	if (v->fd < 0)
		return;
	if (v->shm)
		munmap(v->shm, sizeof(*v->shm));
	v->shm = NULL;
	if (remove && *v->path && flock(v->fd, LOCK_EX | LOCK_NB) == 0)
		unlink(v->path);
	close(v->fd);
	v->fd = -1;
}

struct text view_text(const struct view *v, uint32_t id)
{
	const struct text none = {NULL, 0};
	uint32_t n;

	if (id == 0 || id % 4 || id > CREMA_SHM_STRINGS - 8)
		return none;
	memcpy(&n, v->shm->strings + id, 4);
	if (n == 0 || n > CREMA_SHM_STRINGS - 5 - id || v->shm->strings[id + 4 + n] != '\0')
		return none;
	return (struct text){v->shm->strings + id + 4, n};
}

uint32_t view_word(const struct view *v, uint32_t i)
{
	return LOAD(&v->shm->slot_word[i]);
}

bool view_task(const struct view *v, uint32_t i, struct crema_task *copy, uint32_t *word)
{
	for (int tries = 0; tries < 3; tries++) {
		uint32_t before = view_word(v, i), after;

		memcpy(copy, &v->shm->task[i], sizeof(*copy));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		after = view_word(v, i);
		if (CREMA_SLOT_STATE(before) != CREMA_SLOT_STATE(after) ||
		    LOAD(&v->shm->task[i].attempt) != copy->attempt ||
		    LOAD(&v->shm->task[i].version) != copy->version)
			continue;
		*word = before;
		copy->key[CREMA_KEY_BYTES - 1] = '\0';
		return CREMA_SLOT_STATE(before) == CREMA_SLOT_RUNNING ||
		       CREMA_SLOT_STATE(before) == CREMA_SLOT_DONE;
	}
	return false;
}

bool view_thread(const struct view *v, uint32_t i, bool ended, struct crema_thread *copy)
{
	const struct crema_thread *t = &v->shm->thread[i];
	uint32_t owner = LOAD(&t->owner);

	if (LOAD(&t->state) != 1 || (LOAD(&t->folding) && !ended))
		return false;
	memcpy(copy, t, sizeof(*copy));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return LOAD(&t->state) == 1 && (!LOAD(&t->folding) || ended) && LOAD(&t->owner) == owner &&
	       copy->owner == owner;
}

bool view_probe(const struct crema_probe_text *p, struct buf *out, uint64_t *boot_ns)
{
	for (int tries = 0; tries < 3; tries++) {
		uint32_t seq = LOAD(&p->seq);
		uint32_t n = LOAD(&p->bytes);
		uint64_t when = LOAD(&p->boot_ns);

		if ((seq & 1) || n == 0 || n > sizeof(p->text))
			continue;
		buf_clear(out);
		if (buf_add(out, p->text, n))
			return false;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (LOAD(&p->seq) == seq) {
			*boot_ns = when;
			return true;
		}
	}
	return false;
}

bool view_snapshot(const struct view *v, struct crema_snapshot *out)
{
	for (int tries = 0; tries < 3; tries++) {
		uint32_t seq = LOAD(&v->shm->snapshot.seq);

		memcpy(out, &v->shm->snapshot, sizeof(*out));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(seq & 1) && LOAD(&v->shm->snapshot.seq) == seq)
			return seq != 0 && out->boot_ns != 0;
	}
	return false;
}

/*
 * A late piece of work could take a reference, count and leave between the check of the version and
 * the freeing. So the slot goes to CLAIMED first (no references can be taken there), then the
 * version is checked, and only then it is freed. The shim's own CLAIMED always holds a reference.
 */
bool view_free(const struct view *v, uint32_t i, uint32_t version)
{
	uint32_t *word = &v->shm->slot_word[i];
	uint32_t done = CREMA_SLOT_DONE;
	bool same;

	if (!__atomic_compare_exchange_n(word, &done, CREMA_SLOT_CLAIMED, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return false;
	same = LOAD(&v->shm->task[i].version) == version;
	__atomic_store_n(word, same ? CREMA_SLOT_FREE : CREMA_SLOT_DONE, __ATOMIC_RELEASE);
	return same;
}

void view_repair(const struct view *v)
{
	for (uint32_t i = 0; i < CREMA_SHM_TASKS; i++) {
		uint32_t limbo = CREMA_SLOT_CLAIMED;

		__atomic_compare_exchange_n(&v->shm->slot_word[i], &limbo, CREMA_SLOT_DONE, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	}
}
