/* SPDX-License-Identifier: BSD-3-Clause */
/* server.c - rows of servers. */
#include "shim/count/server.h"

#include "shim/count/file_row.h"
#include "shim/count/task.h"

#define OVERFLOW (CREMA_SHM_SERVERS - 1)

static struct crema_server *overflow_row(void)
{
	struct crema_server *s = &crema_shm->server[OVERFLOW];

	if (row_claim(&s->state))
		__atomic_store_n(&s->state, 2, __ATOMIC_RELEASE);
	return s;
}

static struct crema_server *row_of(uint32_t scheme, uint32_t address, uint32_t span)
{
	uint32_t at = address * 2654435761u + span * 40503u + scheme;

	if (!address)
		return overflow_row();
	for (uint32_t i = 0; i < OVERFLOW; i++, at++) {
		struct crema_server *s = &crema_shm->server[at % OVERFLOW];

		if (row_claim(&s->state)) {
			s->scheme = scheme;
			s->address = address;
			s->span = span;
			__atomic_store_n(&s->state, 2, __ATOMIC_RELEASE);
			return s;
		}
		if (!row_ready(&s->state))
			break;
		if (s->address == address && s->span == span && s->scheme == scheme)
			return s;
	}
	return overflow_row();
}

static uint32_t span_of(uint64_t name)
{
	uint32_t owner = task_ref_name(name), span = 0;
	struct crema_task *task = task_slot(owner);

	if (task) {
		span = LOAD(&task->span);
		task_unref(owner);
	}
	return span;
}

static void raise_to(uint64_t *most, uint64_t ns)
{
	uint64_t have = LOAD(most);

	while (ns > have &&
	       !__atomic_compare_exchange_n(most, &have, ns, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void count_file(const struct server_request *r, uint32_t span)
{
	struct crema_file *f = &crema_shm->file[file_row_remote(r->url, span) - 1];

	ADD(&f->requests, 1);
	ADD(&f->network_read_bytes, r->read_bytes);
	ADD(&f->latency_sum_ns, r->latency_ns);
	raise_to(&f->latency_max_ns, r->latency_ns);
}

void server_count(const struct server_request *r)
{
	uint32_t span = span_of(r->task);
	struct crema_server *s = row_of(r->scheme, r->address, span);

	ADD(&s->requests, 1);
	if (r->failed)
		ADD(&s->failed, 1);
	ADD(&s->read_bytes, r->read_bytes);
	ADD(&s->latency_sum_ns, r->latency_ns);
	ADD(&s->latency[crema_latency_bucket(r->latency_ns)], 1);
	raise_to(&s->latency_max_ns, r->latency_ns);
	if (r->url)
		count_file(r, span);
}
