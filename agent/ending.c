/* SPDX-License-Identifier: BSD-3-Clause */
/* ending.c - how the worker ended, and the evidence for the cause. */
#include "agent/ending.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/procfs.h"

#define EVIDENCE 6

struct evidence {
	char text[EVIDENCE][96];
	size_t n;
	const char *cause;
};

void ending_init(struct ending *e, int pid)
{
	struct procfs_stat st;

	memset(e, 0, sizeof(*e));
	e->pid = pid;
	if (procfs_stat(pid, 0, &st) == 0)
		e->nanny = st.ppid;
	if (e->nanny > 1 && procfs_stat(e->nanny, 0, &st) == 0)
		e->nanny_ticks = st.start_ticks;
	ending_look(e);
}

void ending_look(struct ending *e)
{
	char file[PATH_MAX];
	struct procfs_stat st;
	uint64_t kills;

	/* Checked last: a process that begins to end is shown in the root's group (version 1). */
	if (!procfs_oom_file(e->pid, file, sizeof(file)) || !strcmp(file, e->oom_file) ||
	    !procfs_oom_kills(file, &kills) || procfs_stat(e->pid, 0, &st) || st.exiting)
		return;
	memcpy(e->oom_file, file, sizeof(file));
	e->oom_kills = kills;
}

void ending_facts(struct ending *e, const struct buf *stack)
{
	static const char key[] = "\"memory_limit_bytes\":";
	const char *at = stack->len ? memmem(stack->data, stack->len, key, sizeof(key) - 1) : NULL;
	char number[32];
	size_t left;

	if (!at)
		return;
	at += sizeof(key) - 1;
	left = (size_t)((const char *)stack->data + stack->len - at);
	if (left > sizeof(number) - 1)
		left = sizeof(number) - 1;
	memcpy(number, at, left);
	number[left] = '\0';
	e->limit_bytes = strtoull(number, NULL, 10);
}

static char *add(struct evidence *ev)
{
	static char spare[96];

	return ev->n < EVIDENCE ? ev->text[ev->n++] : spare;
}

static void look_at_memory(const struct ending *e, struct evidence *ev, uint64_t rss)
{
	uint64_t now;

	if (e->oom_file[0] && procfs_oom_kills(e->oom_file, &now) && now > e->oom_kills) {
		snprintf(add(ev), 96, "%s oom_kill rose from %" PRIu64 " to %" PRIu64,
			 strrchr(e->oom_file, '/') + 1, e->oom_kills, now);
		ev->cause = "killed by the kernel: the cgroup was out of memory";
	}
	if (e->limit_bytes && rss >= e->limit_bytes / 100 * 80) {
		snprintf(add(ev), 96, "resident set at %" PRIu64 " %% of the worker's memory limit",
			 rss * 100 / e->limit_bytes);
		if (!ev->cause && rss >= e->limit_bytes / 100 * 95)
			ev->cause = "killed by the nanny: over the memory limit";
	}
}

/* A worker sees its parent's pipe close, and ends before the parent is reaped or has even ended. */
static bool is_leaving(int pid, uint64_t start_ticks)
{
	struct procfs_stat st;

	return procfs_ended(pid, start_ticks) || (!procfs_stat(pid, 0, &st) && st.exiting);
}

static void look_at_exit(const struct ending *e, const struct view *v, struct evidence *ev)
{
	uint32_t how = v->shm->goodbye;

	if (how == 1)
		snprintf(add(ev), 96, "exit handlers ran");
	else if (how == 2)
		snprintf(add(ev), 96, "_exit was called with status %d", v->shm->exit_status);
	else
		snprintf(add(ev), 96, "no exit handler ran");
	if (e->nanny > 1 && is_leaving(e->nanny, e->nanny_ticks))
		snprintf(add(ev), 96, "its parent (the nanny) is gone too");
}

void ending_goodbye(const struct ending *e, const struct view *v, struct outbox *out, uint64_t rss,
		    unsigned int in_flight, uint64_t boot_ns)
{
	bool exited = v->shm->goodbye != 0;
	struct evidence ev = {.n = 0};
	msgpack_packer *pk;

	look_at_exit(e, v, &ev);
	if (!exited)
		look_at_memory(e, &ev, rss);
	pk = outbox_begin_map(out, OUTBOX_RECORD, CREMA_MSG_GOODBYE);
	pack_kv_u64(pk, "boot_ns", boot_ns);
	pack_kv_text(pk, "how", exited ? "exit" : "killed");
	pack_text(pk, "evidence");
	pack_array(pk, ev.n);
	for (size_t i = 0; i < ev.n; i++)
		pack_text(pk, ev.text[i]);
	pack_kv_text(pk, "cause", exited ? NULL : ev.cause);
	pack_kv_u64(pk, "tasks_in_flight", in_flight);
	outbox_end_map(out, OUTBOX_RECORD);
}
