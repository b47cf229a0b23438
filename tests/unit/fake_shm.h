/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_shm.h - synthetic shared memory, the agent's drain on it, and decoding of what it sent. */
#ifndef TESTS_FAKE_SHM_H
#define TESTS_FAKE_SHM_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/drain.h"

#define SECOND UINT64_C(1000000000)

struct fake {
	struct crema_shm *shm;
	struct view view;
	struct fskinds kinds;
	struct outbox out;
	struct drain drain;
	uint64_t now;
	/* contents of the outbox at the last look() */
	struct task_record r[64];
	struct unpack u[64];
	struct buf scratch[64];
	size_t frames, n;
	unsigned int types[32];
};

static inline int setup(void **state)
{
	struct fake *f = calloc(1, sizeof(*f));
	static const uint8_t worker[16] = {9};

	f->shm = calloc(1, sizeof(*f->shm));
	f->view.shm = f->shm;
	f->view.fd = -1;
	f->now = 1000 * SECOND;
	f->shm->strings_used = 8;
	outbox_init(&f->out, worker, 5, NULL, false);
	if (drain_init(&f->drain, &f->view, &f->out, &f->kinds, 0))
		return -1;
	*state = f;
	return 0;
}

static inline void forget(struct fake *f)
{
	while (f->frames) {
		unpack_release(&f->u[--f->frames]);
		buf_release(&f->scratch[f->frames]);
	}
	f->n = 0;
	memset(f->types, 0, sizeof(f->types));
}

static inline int teardown(void **state)
{
	struct fake *f = *state;

	forget(f);
	drain_release(&f->drain);
	outbox_release(&f->out);
	free(f->shm);
	free(f);
	return 0;
}

static inline uint32_t text(struct fake *f, const char *s)
{
	uint32_t n = (uint32_t)strlen(s), at = f->shm->strings_used;

	memcpy(f->shm->strings + at, &n, 4);
	memcpy(f->shm->strings + at + 4, s, n + 1);
	f->shm->strings_used += (4 + n + 1 + 3) & ~3u;
	return at;
}

/* Decodes all records in the outbox. */
static inline void look(struct fake *f)
{
	struct task_map map;
	const unsigned char *raw;
	struct frame frame;

	forget(f);
	outbox_flush(&f->out);
	task_map_own(&map);
	for (struct outbox_frame *o = f->out.head; o; o = o->next) {
		assert_true(f->frames < 64);
		assert_true(frame_decode(&frame, o->data, o->bytes) > 0);
		assert_int_equal(frame_payload(&frame, &f->scratch[f->frames], &raw), 0);
		assert_int_equal(unpack_open(&f->u[f->frames], raw, frame.head.raw_bytes), 0);
		assert_int_equal(f->u[f->frames].root.via.array.size, frame.head.count);
		for (uint32_t i = 0; i < frame.head.count; i++) {
			const msgpack_object *m = &f->u[f->frames].root.via.array.ptr[i];

			f->types[m->via.array.ptr[0].via.u64]++;
			if (f->n < 64 && task_decode(&f->r[f->n], &map, m) == 0)
				f->n++;
		}
		f->frames++;
	}
}

static inline void poll_and_look(struct fake *f, uint64_t step)
{
	f->now += step;
	drain_poll(&f->drain, 5000, f->now, f->now);
	look(f);
}

/* The part after the type of the nth message of this type in the last look(); NULL: none. */
static inline const msgpack_object *message(const struct fake *f, unsigned int type, uint32_t nth)
{
	for (size_t k = 0; k < f->frames; k++) {
		const msgpack_object_array *all = &f->u[k].root.via.array;

		for (uint32_t i = 0; i < all->size; i++)
			if (all->ptr[i].via.array.ptr[0].via.u64 == type && nth-- == 0)
				return all->ptr[i].via.array.ptr + 1;
	}
	return NULL;
}

static inline void ack_all(struct fake *f)
{
	outbox_acked(&f->out, f->out.next_seq);
}

static inline struct crema_task *start(struct fake *f, uint32_t slot, uint64_t attempt)
{
	struct crema_task *t = &f->shm->task[slot];

	memset(t, 0, sizeof(*t));
	t->attempt = attempt;
	t->tid = 77;
	t->start_boot_ns = f->now;
	t->start_mono_ns = f->now;
	strcpy(t->key, "the-key");
	t->key_bytes = 7;
	t->rss_start_bytes = 1000;
	t->known = CREMA_KNOWN_RSS_START;
	f->shm->slot_word[slot] = CREMA_SLOT_RUNNING + CREMA_SLOT_REF;
	return t;
}

static inline void done(struct fake *f, uint32_t slot, uint32_t refs)
{
	struct crema_task *t = &f->shm->task[slot];

	t->status = CREMA_STATUS_OK;
	t->stop_boot_ns = f->now;
	t->stop_mono_ns = t->start_mono_ns + 5;
	t->own.count[CREMA_C_read_bytes] = 100;
	f->shm->slot_word[slot] = CREMA_SLOT_DONE + refs * CREMA_SLOT_REF;
}

#endif
