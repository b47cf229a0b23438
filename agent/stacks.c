/* SPDX-License-Identifier: BSD-3-Clause */
/* stacks.c - turns records of long waits into messages. */
#include "agent/stacks.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/redact.h"
#include "common/task.h"

void stacks_init(struct stacks *s, const struct view *v, struct outbox *out, struct pylines *lines,
		 int pid)
{
	memset(s, 0, sizeof(*s));
	s->view = v;
	s->out = out;
	s->lines = lines;
	s->pid = pid;
}

void stacks_release(struct stacks *s)
{
	modules_release(&s->modules);
}

/* "1.2.3.4:80", "[::1]:80"; false if it is neither. */
static bool peer_text(const struct crema_stack *r, char *out, size_t size)
{
	char host[INET6_ADDRSTRLEN];
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	memcpy(&v4, r->peer, sizeof(v4));
	memcpy(&v6, r->peer, sizeof(v6));
	if (r->peer_bytes >= sizeof(v4) && v4.sin_family == AF_INET &&
	    inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host)))
		return snprintf(out, size, "%s:%u", host, ntohs(v4.sin_port)) > 0;
	if (r->peer_bytes >= sizeof(v6) && v6.sin6_family == AF_INET6 &&
	    inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host)))
		return snprintf(out, size, "[%s]:%u", host, ntohs(v6.sin6_port)) > 0;
	return false;
}

static void tell_module(struct stacks *s, struct module *m)
{
	msgpack_packer *pk = outbox_begin_map(s->out, OUTBOX_RECORD, CREMA_MSG_MODULE);
	char hex[2 * MODULES_BUILD_ID + 1] = "";

	m->told = true;
	for (uint32_t i = 0; i < m->build_id_bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", m->build_id[i]);
	pack_kv_u64(pk, "id", m->id);
	pack_kv_text(pk, "path", m->path);
	pack_kv_text(pk, "build_id", m->build_id_bytes ? hex : NULL);
	outbox_end_map(s->out, OUTBOX_RECORD);
}

struct located {
	uint64_t module, place;
};

/* Names the addresses, after new modules have been sent. */
static void find_frames(struct stacks *s, const struct crema_stack *r, struct located *frame)
{
	for (uint32_t i = 0; i < r->depth; i++) {
		struct module *m = modules_find(&s->modules, r->address[i], &frame[i].place);

		frame[i].module = m ? m->id : 0;
		if (!m)
			frame[i].place = r->address[i];
		else if (!m->told)
			tell_module(s, m);
	}
}

/* Rows of LINES that a record refers to; NULL: none. */
struct rows_of {
	const struct pyline_row *python, *holder;
	uint32_t samples, of; /* of the holder */
};

/* Sends those that were not sent yet. */
static struct rows_of find_rows(struct stacks *s, const struct crema_stack *r)
{
	struct rows_of rows = {NULL, NULL, 0, 0};
	struct pylines_wait wait = {r->tid, r->wait, r->end_boot_ns - r->waited_ns, r->end_boot_ns};
	struct pyline_row *python, *holder;

	if (!s->lines)
		return rows;
	python = pylines_named(s->lines, r->python);
	holder = pylines_held_by(s->lines, &wait, &rows.samples, &rows.of);
	if (python)
		pylines_tell(s->lines, python, r->end_boot_ns);
	if (holder)
		pylines_tell(s->lines, holder, r->end_boot_ns);
	rows.python = python;
	rows.holder = holder;
	return rows;
}

static void pack_rows(const struct stacks *s, msgpack_packer *pk, const struct rows_of *rows)
{
	if (rows->python || rows->holder)
		pack_kv_u64(pk, "lines_table", s->lines->table_id);
	if (rows->python)
		pack_kv_u64(pk, "lines_row", (uint64_t)(rows->python - s->lines->table->row));
	if (!rows->holder)
		return;
	pack_kv_u64(pk, "holder_row", (uint64_t)(rows->holder - s->lines->table->row));
	pack_kv_u64(pk, "holder_samples", rows->samples);
	pack_kv_u64(pk, "holder_of", rows->of);
}

static void send_stack(struct stacks *s, const struct crema_stack *r)
{
	static const char *const on[] = {NULL, "file", "socket", "other", "host"};
	struct text prefix = view_text(s->view, r->prefix), span = view_text(s->view, r->span);
	struct text named = view_text(s->view, r->file), file = redact_file(s->view->redact, named);
	struct located frame[CREMA_STACK_DEPTH];
	struct rows_of rows;
	msgpack_packer *pk;
	char peer[64];

	find_frames(s, r, frame);
	rows = find_rows(s, r);
	pk = outbox_begin_map(s->out, OUTBOX_RECORD, CREMA_MSG_STACK);
	pack_kv_u64(pk, "number", r->number);
	pack_kv_u64(pk, "attempt", r->attempt);
	pack_kv_u64(pk, "tid", r->tid);
	pack_kv_u64(pk, "end_boot_ns", r->end_boot_ns);
	pack_kv_text(pk, "wait", task_name(TASK_FIELDS + r->wait));
	pack_kv_u64(pk, "waited_ns", r->waited_ns);
	pack_kv_text(pk, "on", on[r->on]);
	if (r->on == CREMA_ON_HOST) {
		pack_kv_text(pk, "file", NULL);
		pack_kv_str(pk, "peer", named.ptr, named.len);
	} else {
		pack_kv_str(pk, "file", file.ptr, file.len);
		pack_kv_text(pk, "peer", peer_text(r, peer, sizeof(peer)) ? peer : NULL);
	}
	pack_kv_str(pk, "prefix", prefix.ptr, prefix.len);
	pack_kv_str(pk, "span", span.ptr, span.len);
	pack_text(pk, "frames");
	pack_array(pk, (size_t)2 * r->depth);
	for (uint32_t i = 0; i < r->depth; i++) {
		pack_u64(pk, frame[i].module);
		pack_u64(pk, frame[i].place);
	}
	pack_rows(s, pk, &rows);
	outbox_end_map(s->out, OUTBOX_RECORD);
}

static bool is_sane(const struct crema_stack *r)
{
	return r->wait < CREMA_TIMES && r->on <= CREMA_ON_HOST && r->depth <= CREMA_STACK_DEPTH &&
	       r->peer_bytes <= sizeof(r->peer);
}

void stacks_poll(struct stacks *s, uint64_t mono_ns)
{
	bool fresh = false;

	if (mono_ns - s->second_ns >= 1000000000u) {
		s->second_ns = mono_ns;
		s->sent = 0;
	}
	for (uint32_t i = 0; i < CREMA_SHM_STACKS; i++) {
		struct crema_stack *at = &s->view->shm->stack[i], r;

		if (__atomic_load_n(&at->state, __ATOMIC_ACQUIRE) != 2)
			continue;
		memcpy(&r, at, sizeof(r));
		if (!is_sane(&r) || s->sent >= STACKS_PER_SECOND) {
			__atomic_store_n(&at->state, 0, __ATOMIC_RELEASE);
			continue;
		}
		/* Once for this whole round: a library may have been loaded. */
		if (!fresh && r.depth)
			modules_read(&s->modules, s->pid);
		fresh = true;
		send_stack(s, &r);
		s->sent++;
		__atomic_store_n(&at->state, 0, __ATOMIC_RELEASE);
	}
}
