/* SPDX-License-Identifier: BSD-3-Clause */
/* rows_servers.c - SERVER messages. */
#include "agent/rows.h"

#include <string.h>

#include "common/rows.h"

static void send_server(struct rows *r, const struct crema_server *s, enum outbox_class class)
{
	struct text server = view_text(r->view, s->address), scheme = view_text(r->view, s->scheme);
	struct text span = view_text(r->view, s->span);
	msgpack_packer *pk = outbox_begin_map(r->out, class, CREMA_MSG_SERVER);

	pack_kv_str(pk, "server", server.ptr, server.len);
	pack_kv_str(pk, "scheme", scheme.ptr, scheme.len);
	pack_kv_str(pk, "span", span.ptr, span.len);
	for (unsigned int i = 0; i < CREMA_SERVER_NUMBERS; i++)
		pack_kv_u64(pk, row_server[i].name, s->number[i]);
	pack_text(pk, "latency");
	pack_array(pk, CREMA_LATENCY_BUCKETS);
	for (unsigned int i = 0; i < CREMA_LATENCY_BUCKETS; i++)
		pack_u64(pk, s->latency[i]);
	outbox_end_map(r->out, class);
}

void rows_servers(struct rows *r, bool last)
{
	for (uint32_t i = 0; i < CREMA_SHM_SERVERS; i++) {
		const struct crema_server *at = &r->view->shm->server[i];
		struct crema_server s;
		uint64_t sum;

		if (__atomic_load_n(&at->state, __ATOMIC_ACQUIRE) != 2)
			continue;
		memcpy(&s, at, sizeof(s));
		sum = rows_sum_of(s.number, CREMA_SERVER_NUMBERS);
		if (sum == r->server_sum[i])
			continue;
		r->server_sum[i] = sum;
		send_server(r, &s, last ? OUTBOX_RECORD : OUTBOX_LIGHT);
	}
}
