/* SPDX-License-Identifier: BSD-3-Clause */
/* section_task.c - lists of rows in crema_shm->task_section. */
#include "shim/count/section_task.h"

enum { LOOKS = 64 }; /* for a free row: a full table must not make sections slow */

static int is_free(const struct crema_task_section *s)
{
	uint32_t slot = s->owner - 1u;

	return !s->owner || !LOAD(&crema_shm->slot_word[slot]) ||
	       s->attempt != (uint32_t)LOAD(&crema_shm->task[slot].attempt);
}

static struct crema_task_section *make(uint32_t slot, uint32_t path)
{
	static uint32_t at;

	for (uint32_t i = 0; i < LOOKS; i++) {
		struct crema_task_section *s =
			&crema_shm->task_section[at++ % CREMA_SHM_TASK_SECTIONS];

		if (!is_free(s))
			continue;
		*s = (struct crema_task_section){
			.path = path,
			.attempt = (uint32_t)crema_shm->task[slot].attempt,
			.owner = (uint16_t)(slot + 1),
		};
		return s;
	}
	return NULL;
}

void section_task_add(const struct crema_task *task, uint32_t path, uint32_t flags,
		      uint64_t wall_ns)
{
	uint32_t slot = (uint32_t)(task - crema_shm->task), n = 0;
	struct crema_task *t = &crema_shm->task[slot];
	struct crema_task_section *s = NULL;
	uint16_t *link = &t->sections;

	path |= flags & CREMA_SECTION_FOUND  ? CREMA_TASK_SECTION_FOUND
		: flags & CREMA_SECTION_POOL ? CREMA_TASK_SECTION_POOL
					     : 0;
	for (; *link; link = &s->next, n++) {
		s = &crema_shm->task_section[*link - 1];
		if (s->path == path)
			break;
	}
	if (!*link) {
		s = path > 3 && n < CREMA_TASK_SECTIONS ? make(slot, path) : NULL;
		if (s)
			__atomic_store_n(link, (uint16_t)(s - crema_shm->task_section + 1),
					 __ATOMIC_RELEASE);
	}
	if (!s) {
		t->sections_refused += t->sections_refused != UINT16_MAX;
		return;
	}
	STORE(&s->wall_ns, s->wall_ns + wall_ns);
	STORE(&s->calls, s->calls + 1);
}
