/* SPDX-License-Identifier: BSD-3-Clause */
/* compose.c - makes one task record from its slot and the thread blocks that work for it. */
#include "agent/compose.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/redact.h"
#include "common/procfs.h"
#include "common/utf8.h"

uint64_t compose_sum(const struct crema_task *t)
{
	uint64_t sum = 0;

	for (int i = 0; i < CREMA_TIMES; i++)
		sum += t->pool_time[i] + t->own.time[i];
	for (int i = 0; i < CREMA_COUNTS; i++)
		sum += t->own.count[i];
	return sum;
}

static void set_text(struct task_record *r, enum task_field field, struct text *at, struct text t)
{
	if (!t.ptr)
		return;
	*at = t;
	r->known |= UINT64_C(1) << field;
}

#define SET_TEXT(r, field, t) set_text((r), TASK_F_##field, &(r)->field, (t))

/* The key without a character that its cut left incomplete. */
static struct text key_text(const struct crema_task *t)
{
	size_t n = utf8_whole(t->key, strnlen(t->key, CREMA_KEY_BYTES - 1));

	if (n == 0)
		return (struct text){NULL, 0};
	return (struct text){t->key, n};
}

static void put_identity(const struct compose *c, struct task_record *r, const struct crema_task *t)
{
	TASK_SET(r, attempt, t->attempt);
	TASK_SET(r, thread, t->tid);
	TASK_SET(r, thread_sequence, t->thread_sequence);
	TASK_SET(r, flags, t->flags | (t->unblocked ? CREMA_TASK_THREAD_REFUSED : 0));
	if (t->key_bytes)
		TASK_SET(r, key_hash, redact_key_hash(c->view->redact, t->key_hash));
	if (t->known & CREMA_KNOWN_CONSUMES)
		TASK_SET(r, consumes,
			 t->consumes ? redact_key_hash(c->view->redact, t->consumes) : 0);
	SET_TEXT(r, key, redact_key(c->view->redact, key_text(t), t->key_hash));
	SET_TEXT(r, prefix, view_text(c->view, t->prefix));
	SET_TEXT(r, span, view_text(c->view, t->span));
	SET_TEXT(r, function, view_text(c->view, t->function));
	SET_TEXT(r, worker_address, view_text(c->view, t->worker_address));
	SET_TEXT(r, worker_name, view_text(c->view, t->worker_name));
	SET_TEXT(r, dataset, view_text(c->view, t->dataset));
	SET_TEXT(r, filename, redact_file(c->view->redact, view_text(c->view, t->filename)));
	SET_TEXT(r, treename, view_text(c->view, t->treename));
	SET_TEXT(r, columns, view_text(c->view, t->columns));
	SET_TEXT(r, error_type, view_text(c->view, t->error_type));
	SET_TEXT(r, error_text, redact_words(c->view->redact, view_text(c->view, t->error_text)));
	SET_TEXT(r, error_cause, redact_words(c->view->redact, view_text(c->view, t->error_cause)));
	if (t->flags & CREMA_TASK_TREE_READ)
		TASK_SET(r, tree_reads, t->tree_reads);
	if (t->known & CREMA_KNOWN_ENTRIES) {
		TASK_SET(r, entrystart, t->entrystart);
		TASK_SET(r, entrystop, t->entrystop);
	}
	if (t->known & CREMA_KNOWN_EVENTS)
		TASK_SET(r, events, t->events);
	if (t->known & CREMA_KNOWN_BYTESREAD)
		TASK_SET(r, coffea_bytesread, t->coffea_bytesread);
	if (t->known & CREMA_KNOWN_PROCESSTIME)
		TASK_SET(r, coffea_processtime, t->coffea_processtime);
}

static const char *status_text(const struct crema_task *t, uint32_t state, bool killed)
{
	if (state == CREMA_SLOT_RUNNING)
		return killed ? "killed" : "running";
	return t->status == CREMA_STATUS_OK	 ? "ok"
	       : t->status == CREMA_STATUS_ERRED ? "erred"
						 : NULL;
}

static void put_edges(const struct compose *c, struct task_record *r, const struct crema_task *t,
		      uint32_t state, bool killed)
{
	const char *status = status_text(t, state, killed);

	if (status)
		TASK_SET(r, status, ((struct text){status, strlen(status)}));
	if (t->start_boot_ns)
		TASK_SET(r, start_boot_ns, t->start_boot_ns);
	if (state == CREMA_SLOT_DONE) {
		if (t->stop_boot_ns)
			TASK_SET(r, stop_boot_ns, t->stop_boot_ns);
		if (t->stop_mono_ns >= t->start_mono_ns && t->start_mono_ns)
			TASK_SET(r, wall_ns, t->stop_mono_ns - t->start_mono_ns);
	} else {
		if (killed && c->boot_ns >= t->start_boot_ns)
			TASK_SET(r, stop_boot_ns, c->boot_ns);
		if (t->start_mono_ns && c->mono_ns >= t->start_mono_ns)
			TASK_SET(r, wall_ns, c->mono_ns - t->start_mono_ns);
	}
	if (t->known & CREMA_KNOWN_RSS_START)
		TASK_SET(r, rss_start_bytes, t->rss_start_bytes);
	if (state == CREMA_SLOT_DONE && (t->known & CREMA_KNOWN_RSS_STOP))
		TASK_SET(r, rss_stop_bytes, t->rss_stop_bytes);
}

static void raise_to(uint64_t *have, uint64_t v)
{
	if (v > *have)
		*have = v;
}

static uint64_t above(uint64_t now, uint64_t base)
{
	return now > base ? now - base : 0;
}

/* Of a running segment. */
struct since_start {
	struct compose_live clocks;
	uint32_t unknown; /* times */
};

/* What the kernel charged to a working thread since its segment began, added to *since. */
static void add_segment(const struct compose *c, const struct crema_thread *th,
			struct since_start *since)
{
	struct compose_live *more = &since->clocks;
	uint64_t cpu, delay, in, out;
	int pool = th->is_pool ? 1 : 0;

	if (th->base_runqueue_ns == CREMA_BASE_UNKNOWN)
		since->unknown |= 1u << CREMA_T_runqueue;
	if (!c->pid || !th->tid)
		return;
	if (procfs_schedstat(c->pid, (int)th->tid, &cpu, &delay)) {
		more->cpu[pool] += above(cpu, th->base_cpu_ns);
		more->runqueue[pool] += above(delay, th->base_runqueue_ns);
	}
	if (procfs_io(c->pid, (int)th->tid, &in, &out)) {
		more->storage_read += above(in, th->base_inblock * 512);
		more->storage_write += above(out, th->base_oublock * 512);
	}
}

static void add_blocks(const struct compose *c, struct task_record *r, uint32_t slot,
		       struct since_start *more)
{
	struct crema_thread th;

	for (uint32_t i = 0; i < CREMA_SHM_THREADS; i++) {
		if (c->view->shm->thread[i].owner != slot + 1 ||
		    !view_thread(c->view, i, !c->pid, &th) || th.owner != slot + 1)
			continue;
		for (int k = 0; k < CREMA_TIMES; k++) {
			if (th.is_pool)
				r->pool[k] += th.seg.time[k];
			else
				r->own[k] += th.seg.time[k];
		}
		for (int k = 0; k < CREMA_COUNTS; k++)
			r->count[k] += th.seg.count[k];
		add_segment(c, &th, more);
	}
}

/* A segment's clocks come with its end; until then the largest values that the kernel showed
 * count. */
static void put_live(struct task_record *r, struct compose_live *live,
		     const struct compose_live *more)
{
	uint64_t *times[2] = {r->own, r->pool};

	for (int i = 0; i < 2; i++) {
		raise_to(&live->cpu[i], times[i][CREMA_T_cpu] + more->cpu[i]);
		raise_to(&live->runqueue[i], times[i][CREMA_T_runqueue] + more->runqueue[i]);
		raise_to(&times[i][CREMA_T_cpu], live->cpu[i]);
		raise_to(&times[i][CREMA_T_runqueue], live->runqueue[i]);
	}
	raise_to(&live->storage_read, r->count[CREMA_C_storage_read_bytes] + more->storage_read);
	raise_to(&live->storage_write, r->count[CREMA_C_storage_write_bytes] + more->storage_write);
	raise_to(&r->count[CREMA_C_storage_read_bytes], live->storage_read);
	raise_to(&r->count[CREMA_C_storage_write_bytes], live->storage_write);
}

static void put_known(const struct compose *c, struct task_record *r, const struct crema_task *t,
		      uint32_t times_unknown)
{
	bool mixed;
	const char *unknown = fskinds_unknown(c->kinds, t->fs_mask, &mixed);

	r->own_known = ((1u << CREMA_TIMES) - 1) & ~(t->time_unknown | times_unknown);
	r->pool_known = t->flags & CREMA_TASK_POOL_UNSEEN ? 0 : r->own_known;
	r->count_known = ((UINT64_C(1) << CREMA_COUNTS) - 1) & ~t->count_unknown;
	if (!unknown)
		return;
	TASK_SET(r, fs_unknown, ((struct text){unknown, strlen(unknown)}));
	r->count_known &= ~(CREMA_COUNT_BIT(cached_bytes) | CREMA_COUNT_BIT(readahead_bytes));
	/* Otherwise a reader makes it unknown, and reports the known part: read - unsure. */
	if (mixed)
		r->count_known &= ~CREMA_COUNT_BIT(storage_read_bytes);
}

static void put_sections(const struct compose *c, struct task_record *r, const struct crema_task *t)
{
	static const char kinds[] = "tpff";
	const struct crema_task_section *s;
	uint32_t at = t->sections;
	struct text path;
	char head[80];

	buf_clear(c->text);
	snprintf(head, sizeof(head), "%u", t->sections_refused);
	buf_add(c->text, head, strlen(head));
	for (uint32_t n = 0; at && at <= CREMA_SHM_TASK_SECTIONS && n < CREMA_TASK_SECTIONS; n++) {
		s = &c->view->shm->task_section[at - 1];
		path = view_text(c->view, s->path & ~3u);
		snprintf(head, sizeof(head), " %c %u %" PRIu64 " %zu ", kinds[s->path & 3],
			 s->calls, s->wall_ns, path.ptr ? path.len : 0);
		buf_add(c->text, head, strlen(head));
		if (path.ptr)
			buf_add(c->text, path.ptr, path.len);
		at = s->next;
	}
	TASK_SET(r, sections, ((struct text){(const char *)c->text->data, c->text->len}));
}

void compose_task(const struct compose *c, struct task_record *r, const struct crema_task *t,
		  uint32_t slot, uint32_t state, bool blocks, bool killed,
		  struct compose_live *live)
{
	struct since_start more;

	memset(r, 0, sizeof(*r));
	memset(&more, 0, sizeof(more));
	put_identity(c, r, t);
	put_edges(c, r, t, state, killed);
	memcpy(r->own, t->own.time, sizeof(r->own));
	memcpy(r->pool, t->pool_time, sizeof(r->pool));
	memcpy(r->count, t->own.count, sizeof(r->count));
	if (blocks)
		add_blocks(c, r, slot, &more);
	if (state == CREMA_SLOT_RUNNING)
		put_live(r, live, &more.clocks);
	put_known(c, r, t, more.unknown);
	if (c->text && (state == CREMA_SLOT_DONE || killed) &&
	    !(t->flags & (CREMA_TASK_ASYNC | CREMA_TASK_ELSEWHERE)))
		put_sections(c, r, t);
}
