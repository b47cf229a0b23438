/* SPDX-License-Identifier: BSD-3-Clause */
/* doing.c - DOING messages: inspects the threads of running tasks. */
#include "agent/doing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/redact.h"
#include "contract/calls.h"
#include "common/procfs.h"
#include "common/utf8.h"
#include "fnv.h"
#include "switch.h"
#include "ticks.h"

int doing_init(struct doing *d, const struct view *v, struct outbox *out, int pid)
{
	memset(d, 0, sizeof(*d));
	d->view = v;
	d->out = out;
	d->pid = pid;
	d->off = crema_switch(getenv("CREMA_STUCK"), 1) == 0;
	native_init(&d->native, pid);
	d->row = calloc(DOING_ROWS, sizeof(*d->row));
	return d->row ? 0 : -ENOMEM;
}

void doing_release(struct doing *d)
{
	for (size_t i = 0; i < CREMA_SHM_THREADS; i++)
		free(d->seen[i].known);
	free(d->row);
	d->row = NULL;
	buf_release(&d->scratch);
	native_release(&d->native);
}

static bool same_call(const struct doing_seen *seen, const struct crema_thread *t)
{
	return seen->word == t->call && seen->start == t->call_start;
}

/* Of a thread that is in the same call as at the previous look. */
static void read_native(struct doing *d, const struct doing_row *row, struct doing_known *k,
			uint64_t thread_state)
{
	if (k->tried)
		return;
	if (k->ticket)
		k->tried = native_take(&d->native, k->ticket, &k->native);
	else
		k->ticket = native_want(&d->native, row->tid,
					doing_stack_entry(d->view, d->pid, thread_state, row->tid));
}

/*
 * What the thread waits for, and its stack. If it has not left its call since the last sample both
 * are unchanged, except for a child, which has its own name only once it runs its own program.
 * *place: a hash of a call that is not intercepted.
 */
static void read_known(struct doing *d, const struct doing_seen *seen, const struct crema_thread *t,
		       struct doing_row *row, uint64_t *place)
{
	struct doing_known *k = seen->known;
	bool same = t->call && same_call(seen, t);

	row->known = k;
	if (!t->call)
		doing_object_of_kernel(&k->on, d->view, d->pid, row->tid, place);
	else if (!same || !k->on.text[0] || (k->on.kind && !strcmp(k->on.kind, "process")))
		doing_object_of_word(&k->on, d->view, d->pid, t);
	if (!same || !k->stack.place)
		doing_stack_read(&k->stack, d->view, d->pid, t->python, row->tid);
	same = same || (!t->call && k->on.call[0] && k->kernel == *place);
	k->kernel = t->call ? 0 : *place;
	if (!same) {
		k->tried = k->native.known = false;
		k->ticket = 0;
	} else if (k->on.call[0]) {
		read_native(d, row, k, t->python);
	}
}

/* Where the thread is: its call and from which line, else in which function it runs. Without a
 * Python stack: its call, and its object. 0: unknown. */
static uint64_t place_of(const struct doing_known *k, uint64_t kernel)
{
	uint64_t line = k->stack.place, place = kernel;

	if (!k->on.call[0] && !line)
		return 0;
	place = crema_hash_more(place, k->on.call, strlen(k->on.call));
	if (!line)
		return crema_hash_more(place, k->on.text, strlen(k->on.text));
	place = crema_hash_more(place, &line, sizeof(line));
	if (k->on.call[0])
		place = crema_hash_more(place, k->stack.line, strlen(k->stack.line));
	return place;
}

/* The start of the call, which is fixed while the thread is in it. */
static uint64_t call_began(const struct doing *d, struct doing_seen *seen,
			   const struct crema_thread *t, uint64_t ticks, uint64_t boot_ns)
{
	uint64_t ago = ticks > t->call_start ? ticks - t->call_start : 0;
	uint64_t age = crema_ticks_ns(ago, d->view->shm->tsc_mult);

	if (!same_call(seen, t) || !seen->call_boot_ns)
		seen->call_boot_ns = age < boot_ns ? boot_ns - age : 0;
	seen->word = t->call;
	seen->start = t->call_start;
	return seen->call_boot_ns;
}

static void read_state(const struct doing *d, struct doing_row *row)
{
	struct procfs_stat st;

	memset(row->state, 0, sizeof(row->state));
	if (procfs_stat(d->pid, (int)row->tid, &st) == 0)
		row->state[0] = st.state;
	if (procfs_slurp(row->wchan, sizeof(row->wchan), "/proc/%d/task/%" PRIu32 "/wchan", d->pid,
			 row->tid) <= 0 ||
	    !strcmp(row->wchan, "0"))
		row->wchan[0] = '\0';
}

static void look_at(struct doing *d, struct doing_row *row, struct doing_seen *seen,
		    const struct crema_thread *at, uint64_t ticks, uint64_t boot_ns)
{
	struct crema_thread t = {.about = __atomic_load_n(&at->about, __ATOMIC_RELAXED),
				 .python = __atomic_load_n(&at->python, __ATOMIC_RELAXED)};
	bool called = crema_call_read(&at->call, &at->call_start, &t.call, &t.call_start);
	uint64_t place = CREMA_HASH_BEGIN;

	if (!called)
		t.call = t.call_start = 0;
	read_state(d, row);
	read_known(d, seen, &t, row, &place);
	row->call_boot_ns = called ? call_began(d, seen, &t, ticks, boot_ns) : 0;
	if (!called)
		seen->word = seen->start = 0;
	place = place_of(row->known, place);
	if (!place || seen->place != place || seen->attempt != row->task.attempt)
		seen->place_boot_ns = boot_ns;
	seen->place = place;
	seen->attempt = row->task.attempt;
	row->place_boot_ns = place ? seen->place_boot_ns : 0;
}

/* Room for one more row; one of a task that began later is removed. NULL: this one is the
 * latest. */
static struct doing_row *room(struct doing *d, const struct crema_task *task)
{
	struct doing_row *last = d->row;

	if (d->rows < DOING_ROWS)
		return &d->row[d->rows++];
	d->cut++;
	for (size_t i = 1; i < d->rows; i++)
		if (d->row[i].task.start_boot_ns > last->task.start_boot_ns)
			last = &d->row[i];
	return last->task.start_boot_ns > task->start_boot_ns ? last : NULL;
}

static void gather(struct doing *d, uint64_t ticks, uint64_t boot_ns)
{
	struct crema_thread t;
	struct crema_task task;
	struct doing_row *row;
	uint32_t word;

	d->rows = 0;
	d->cut = 0;
	for (uint32_t i = 0; i < CREMA_SHM_THREADS; i++) {
		if (!view_thread(d->view, i, false, &t) || t.owner - 1 >= CREMA_SHM_TASKS ||
		    !view_task(d->view, t.owner - 1, &task, &word) ||
		    CREMA_SLOT_STATE(word) != CREMA_SLOT_RUNNING ||
		    boot_ns < task.start_boot_ns + DOING_TASK_NS || !task.start_boot_ns)
			continue;
		if (!d->seen[i].known)
			d->seen[i].known = calloc(1, sizeof(*d->seen[i].known));
		row = d->seen[i].known ? room(d, &task) : NULL;
		if (!row)
			continue;
		row->task = task;
		row->tid = t.tid;
		row->is_pool = t.is_pool != 0;
		look_at(d, row, &d->seen[i], &d->view->shm->thread[i], ticks, boot_ns);
	}
}

static void pack_name(msgpack_packer *pk, const char *key, struct text t)
{
	pack_kv_str(pk, key, t.ptr, t.ptr ? utf8_whole(t.ptr, t.len < 255 ? t.len : 255) : 0);
}

static void pack_known(msgpack_packer *pk, const char *key, const char *text)
{
	pack_name(pk, key, (struct text){*text ? text : NULL, strlen(text)});
}

static void pack_task(msgpack_packer *pk, const struct view *v, const struct crema_task *t)
{
	bool entries = t->known & CREMA_KNOWN_ENTRIES;
	size_t n = utf8_whole(t->key, strnlen(t->key, CREMA_KEY_BYTES - 1));
	struct text key = {n ? t->key : NULL, n};

	pack_kv_u64(pk, "attempt", t->attempt);
	pack_name(pk, "key", redact_key(v->redact, key, t->key_hash));
	pack_name(pk, "prefix", view_text(v, t->prefix));
	pack_name(pk, "span", view_text(v, t->span));
	pack_name(pk, "function", view_text(v, t->function));
	pack_name(pk, "dataset", view_text(v, t->dataset));
	pack_name(pk, "filename", redact_file(v->redact, view_text(v, t->filename)));
	pack_kv_maybe(pk, "entrystart", entries && t->entrystart >= 0, (uint64_t)t->entrystart);
	pack_kv_maybe(pk, "entrystop", entries && t->entrystop >= 0, (uint64_t)t->entrystop);
	pack_kv_u64(pk, "start_boot_ns", t->start_boot_ns);
}

/* n texts, each in a field of that many bytes. */
static void pack_frames(msgpack_packer *pk, const char *key, const char *frame, size_t n,
			size_t bytes)
{
	pack_text(pk, key);
	pack_array(pk, n);
	for (size_t i = 0; i < n; i++, frame += bytes)
		pack_str(pk, frame, strlen(frame));
}

static void pack_stacks(msgpack_packer *pk, const struct doing_known *k)
{
	pack_known(pk, "line", k->stack.line);
	pack_frames(pk, "stack", k->stack.frame[0], k->stack.frames, DOING_FRAME_BYTES);
	if (k->native.known)
		pack_frames(pk, "native", k->native.frame[0], k->native.frames, NATIVE_FRAME_BYTES);
	else
		pack_kv_text(pk, "native", NULL);
}

static void pack_rows(const struct doing *d, msgpack_packer *pk)
{
	pack_kv_u64(pk, "cut", d->cut);
	pack_text(pk, "rows");
	pack_array(pk, d->rows);
	for (size_t i = 0; i < d->rows; i++) {
		const struct doing_row *r = &d->row[i];
		size_t map = pack_map_begin(pk);

		pack_task(pk, d->view, &r->task);
		pack_kv_u64(pk, "thread", r->tid);
		pack_text(pk, "pool");
		pack_bool(pk, r->is_pool);
		pack_known(pk, "call", r->known->on.call);
		pack_kv_maybe(pk, "call_boot_ns", r->call_boot_ns != 0, r->call_boot_ns);
		pack_kv_text(pk, "kind", r->known->on.kind);
		pack_known(pk, "object", r->known->on.text);
		pack_kv_maybe(pk, "place_boot_ns", r->place_boot_ns != 0, r->place_boot_ns);
		pack_stacks(pk, r->known);
		pack_known(pk, "state", r->state);
		pack_known(pk, "wchan", r->wchan);
		pack_map_end(pk, map);
	}
}

void doing_look(struct doing *d, uint64_t ticks, uint64_t boot_ns)
{
	uint64_t hash = 0;
	msgpack_packer pk, *out;

	if (d->off)
		return;
	native_turn(&d->native, boot_ns); /* what was found since the previous look */
	gather(d, ticks, boot_ns);
	native_turn(&d->native, boot_ns); /* what is wanted now */
	if (d->rows) {
		buf_clear(&d->scratch);
		pack_init(&pk, &d->scratch);
		pack_rows(d, &pk);
		hash = crema_hash_more(CREMA_HASH_BEGIN, d->scratch.data, d->scratch.len);
	}
	if (hash == d->sent && (!hash || boot_ns - d->sent_ns < DOING_AGAIN_NS))
		return;
	d->sent = hash;
	d->sent_ns = boot_ns;
	out = outbox_begin_map(d->out, OUTBOX_LIGHT, CREMA_MSG_DOING);
	pack_kv_u64(out, "boot_ns", boot_ns);
	pack_rows(d, out);
	outbox_end_map(d->out, OUTBOX_LIGHT);
}
