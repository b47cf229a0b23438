/* SPDX-License-Identifier: BSD-3-Clause */
/* rows_servers.c - SERVER messages. */
#include "agent/rows.h"

#include <string.h>

static void send_server(struct rows *r, const struct crema_server *s, enum outbox_class class)
{
	struct text server = view_text(r->view, s->address), scheme = view_text(r->view, s->scheme);
	struct text span = view_text(r->view, s->span);
	msgpack_packer *pk = outbox_begin(r->out, class);
	size_t map;

	pack_array(pk, 2);
	pack_u64(pk, CREMA_MSG_SERVER);
	map = pack_map_begin(pk);
	pack_kv_str(pk, "server", server.ptr, server.len);
	pack_kv_str(pk, "scheme", scheme.ptr, scheme.len);
	pack_kv_str(pk, "span", span.ptr, span.len);
	pack_kv_u64(pk, "requests", s->requests);
	pack_kv_u64(pk, "failed", s->failed);
	pack_kv_u64(pk, "read_bytes", s->read_bytes);
	pack_kv_u64(pk, "latency_sum_ns", s->latency_sum_ns);
	pack_kv_u64(pk, "latency_max_ns", s->latency_max_ns);
	pack_text(pk, "latency");
	pack_array(pk, CREMA_LATENCY_BUCKETS);
	for (unsigned int i = 0; i < CREMA_LATENCY_BUCKETS; i++)
		pack_u64(pk, s->latency[i]);
	pack_map_end(pk, map);
	outbox_end(r->out, class);
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
		sum = s.requests + s.read_bytes + s.latency_sum_ns;
		if (sum == r->server_sum[i])
			continue;
		r->server_sum[i] = sum;
		send_server(r, &s, last ? OUTBOX_RECORD : OUTBOX_LIGHT);
	}
}
