/* SPDX-License-Identifier: BSD-3-Clause */
/* drain.c - from task slots to records. */
#include "agent/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int drain_init(struct drain *d, const struct view *v, struct outbox *out,
	       const struct fskinds *kinds, int pid)
{
	memset(d, 0, sizeof(*d));
	d->view = v;
	d->out = out;
	d->kinds = kinds;
	d->pid = pid;
	d->unknown = (struct drain_unknown){UINT32_MAX, UINT64_MAX};
	d->slot = calloc(CREMA_SHM_TASKS, sizeof(*d->slot));
	return d->slot ? 0 : -ENOMEM;
}

void drain_release(struct drain *d)
{
	free(d->slot);
	d->slot = NULL;
	buf_release(&d->text);
}

/* Revisions grow across several agents, too: milliseconds since boot. */
static uint64_t next_rev(struct drain_slot *s, uint64_t boot_ns)
{
	uint64_t rev = boot_ns / 1000000u;

	s->rev = rev > s->rev ? rev : s->rev + 1;
	return s->rev;
}

static void put_peak(struct task_record *r, struct drain_slot *s, const struct crema_task *t)
{
	uint64_t peak = s->rss_peak;

	if (TASK_KNOWN(r, rss_start_bytes) && r->rss_start_bytes > peak)
		peak = r->rss_start_bytes;
	if (TASK_KNOWN(r, rss_stop_bytes) && r->rss_stop_bytes > peak)
		peak = r->rss_stop_bytes;
	if ((t->known & CREMA_KNOWN_RSS_PEAK) && t->rss_peak_bytes > peak)
		peak = t->rss_peak_bytes;
	s->rss_peak = peak;
	if (peak)
		TASK_SET(r, rss_peak_bytes, peak);
}

struct send {
	uint32_t type, index, word;
	bool killed;
};

static void send_task(struct drain *d, const struct send *what, const struct crema_task *t)
{
	struct drain_slot *s = &d->slot[what->index];
	struct compose c = {d->view,	  d->kinds,	what->killed ? 0 : d->pid,
			    d->last_mono, d->last_boot, &d->text};
	enum outbox_class class =
		what->type == CREMA_MSG_TASK_PROGRESS ? OUTBOX_LIGHT : OUTBOX_RECORD;
	uint32_t state = CREMA_SLOT_STATE(what->word);
	bool refs = CREMA_SLOT_REFS(what->word) != 0;
	struct task_record r;

	compose_task(&c, &r, t, what->index, state, state == CREMA_SLOT_RUNNING || refs,
		     what->killed, &s->live);
	put_peak(&r, s, t);
	r.type = what->type;
	r.rev = next_rev(s, d->last_boot);
	task_encode(outbox_begin(d->out, class), &r);
	s->ticket = outbox_end(d->out, class);
	d->unknown.time &= t->time_unknown;
	d->unknown.count &= t->count_unknown;
	s->version = t->version;
	s->sum = compose_sum(t);
	s->had_refs = refs;
}

static void adopt(struct drain_slot *s, uint64_t attempt)
{
	memset(s, 0, sizeof(*s));
	s->attempt = attempt;
}

static void poll_running(struct drain *d, uint32_t i, unsigned int *budget)
{
	struct drain_slot *s = &d->slot[i];
	struct send what = {CREMA_MSG_TASK_START, i, 0, false};
	bool is_new = s->attempt != d->view->shm->task[i].attempt || s->stage == DRAIN_NEW;
	struct crema_task t;

	if (d->rss > s->rss_peak && !is_new)
		s->rss_peak = d->rss;
	if (!is_new && (d->last_mono - s->progress_ns < DRAIN_PROGRESS_NS || *budget == 0))
		return;
	if (!view_task(d->view, i, &t, &what.word) ||
	    CREMA_SLOT_STATE(what.word) != CREMA_SLOT_RUNNING)
		return;
	if (s->attempt != t.attempt || s->stage == DRAIN_NEW) {
		adopt(s, t.attempt);
		s->rss_peak = d->rss;
		s->stage = DRAIN_STARTED;
	} else {
		what.type = CREMA_MSG_TASK_PROGRESS;
		--*budget;
	}
	s->progress_ns = d->last_mono;
	send_task(d, &what, &t);
}

static void poll_done(struct drain *d, uint32_t i)
{
	struct drain_slot *s = &d->slot[i];
	struct send what = {CREMA_MSG_TASK_AMEND, i, 0, false};
	const struct crema_task *now = &d->view->shm->task[i];
	struct crema_task t;
	bool settled = s->had_refs && CREMA_SLOT_REFS(view_word(d->view, i)) == 0;
	bool again = now->fs_mask & d->again;

	if (s->stage == DRAIN_ENDED && s->attempt == now->attempt && !settled && !again &&
	    __atomic_load_n(&now->version, __ATOMIC_ACQUIRE) == s->version)
		return;
	if (!view_task(d->view, i, &t, &what.word) ||
	    CREMA_SLOT_STATE(what.word) != CREMA_SLOT_DONE)
		return;
	if (s->attempt != t.attempt)
		adopt(s, t.attempt);
	if (s->stage != DRAIN_ENDED) {
		what.type = CREMA_MSG_TASK_END;
	} else if (!again && t.version == s->version && compose_sum(&t) == s->sum) {
		/* The last reference was released without having counted anything. */
		s->had_refs = CREMA_SLOT_REFS(what.word) != 0;
		return;
	}
	s->stage = DRAIN_ENDED;
	send_task(d, &what, &t);
}

static void try_free(struct drain *d, uint32_t i)
{
	struct drain_slot *s = &d->slot[i];

	if (d->hold && d->used <= DRAIN_HELD && d->view->shm->task[i].fs_mask)
		return;
	if (s->stage == DRAIN_ENDED && !s->had_refs && outbox_is_safe(d->out, s->ticket) &&
	    s->attempt == d->view->shm->task[i].attempt && view_free(d->view, i, s->version))
		memset(s, 0, sizeof(*s));
}

void drain_free(struct drain *d)
{
	for (uint32_t i = 0; i < CREMA_SHM_TASKS; i++)
		if (view_word(d->view, i) == CREMA_SLOT_DONE)
			try_free(d, i);
}

void drain_poll(struct drain *d, uint64_t rss, uint64_t mono_ns, uint64_t boot_ns)
{
	unsigned int budget = DRAIN_PROGRESS_PER_POLL;

	d->rss = rss;
	d->last_mono = mono_ns;
	d->last_boot = boot_ns;
	d->running = 0;
	d->used = 0;
	for (uint32_t i = 0; i < CREMA_SHM_TASKS; i++) {
		uint32_t word = view_word(d->view, i);

		d->used += word != 0;
		switch (CREMA_SLOT_STATE(word)) {
		case CREMA_SLOT_RUNNING:
			d->running++;
			poll_running(d, i, &budget);
			break;
		case CREMA_SLOT_DONE:
			poll_done(d, i);
			if (CREMA_SLOT_REFS(word) == 0)
				try_free(d, i);
			break;
		default:
			if (d->slot[i].stage)
				memset(&d->slot[i], 0, sizeof(d->slot[i]));
		}
	}
	d->again = 0;
}

unsigned int drain_end(struct drain *d)
{
	struct send what = {CREMA_MSG_TASK_END, 0, 0, true};
	unsigned int killed = 0;
	struct crema_task t;

	for (uint32_t i = 0; i < CREMA_SHM_TASKS; i++) {
		struct drain_slot *s = &d->slot[i];

		if (!view_word(d->view, i) || !view_task(d->view, i, &t, &what.word))
			continue;
		what.index = i;
		if (s->attempt != t.attempt)
			adopt(s, t.attempt);
		if (CREMA_SLOT_STATE(what.word) == CREMA_SLOT_RUNNING) {
			killed++;
			what.type = CREMA_MSG_TASK_END;
		} else if (s->stage != DRAIN_ENDED) {
			what.type = CREMA_MSG_TASK_END;
		} else if (s->had_refs || s->version != t.version || compose_sum(&t) != s->sum ||
			   (t.fs_mask & d->again)) {
			what.type = CREMA_MSG_TASK_AMEND;
		} else {
			continue;
		}
		s->stage = DRAIN_ENDED;
		send_task(d, &what, &t);
		/* Nothing will release a reference any more. */
		s->had_refs = false;
	}
	return killed;
}
