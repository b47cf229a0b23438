/* SPDX-License-Identifier: BSD-3-Clause */
/* retain_carry.c - the latest of each worker, gathered from segments that are to go. */
#include "collector/retain/retain_carry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/ingest/server_conn.h"
#include "collector/journal/journal.h"
#include "common/clock.h"
#include "common/pack.h"

struct carried {
	uint8_t id[CREMA_WORKER_ID_BYTES];
	uint64_t stream, totals_boot_ns;
	struct buf totals, clocks, goodbye, modules; /* messages as they came */
	uint32_t modules_n, streams_n;
	struct buf streams; /* packed pairs */
};

struct carry {
	struct live *live;
	struct server *server; /* knows how far the streams had got */
	struct table index;
	ARRAY(struct carried *) workers;
	struct buf scratch;
	int error;
};

static bool same_worker(const void *item, const void *key)
{
	return !memcmp(((const struct carried *)item)->id, key, CREMA_WORKER_ID_BYTES);
}

static struct carried *carried_of(struct carry *carry, const uint8_t *id)
{
	uint64_t hash = hash_bytes(1, id, CREMA_WORKER_ID_BYTES);
	struct carried *c = table_find(&carry->index, hash, same_worker, id), **at;

	if (c)
		return c;
	at = ARRAY_NEW(&carry->workers);
	c = at ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		carry->workers.n -= at != NULL;
		carry->error = -ENOMEM;
		return NULL;
	}
	*at = c;
	memcpy(c->id, id, sizeof(c->id));
	if (table_add(&carry->index, hash, c))
		carry->error = -ENOMEM;
	return c;
}

static void keep(struct buf *to, const uint8_t *p, size_t n)
{
	buf_clear(to);
	buf_add(to, p, n);
}

static void take_totals(struct carried *c, const uint8_t *p, size_t n)
{
	uint64_t boot_ns = 0;
	struct unpack u;

	if (unpack_open(&u, p, n))
		return;
	if (u.root.type == MSGPACK_OBJECT_ARRAY && u.root.via.array.size > 1)
		boot_ns = get_u64(&u.root.via.array.ptr[1], "boot_ns", 0);
	unpack_release(&u);
	if (c->totals.len && boot_ns < c->totals_boot_ns)
		return;
	c->totals_boot_ns = boot_ns;
	keep(&c->totals, p, n);
}

static void take_message(struct carried *c, const uint8_t *p, size_t n)
{
	size_t head = p[0] == 0xdc ? 3 : p[0] == 0xdd ? 5 : 1;

	if (head >= n)
		return;
	switch (p[head]) {
	case CREMA_MSG_TOTALS:
		take_totals(c, p, n);
		break;
	case CREMA_MSG_CLOCKS:
		keep(&c->clocks, p, n);
		break;
	case CREMA_MSG_GOODBYE:
		keep(&c->goodbye, p, n);
		break;
	case CREMA_MSG_MODULE:
		buf_add(&c->modules, p, n);
		c->modules_n++;
		break;
	default:
		break;
	}
}

static void visit(void *arg, const struct frame *frame)
{
	const struct crema_frame_header *head = &frame->head;
	struct carry *carry = arg;
	const unsigned char *raw;
	const uint32_t *starts;
	struct carried *c;
	uint32_t i, end;

	server_restore_frame(carry->server, frame);
	if ((head->type != CREMA_FRAME_DATA && head->type != CREMA_FRAME_CARRIED) ||
	    frame_payload(frame, &carry->scratch, &raw) ||
	    server_messages(carry->server, head, raw, &starts))
		return;
	c = carried_of(carry, head->worker);
	if (!c)
		return;
	c->stream = head->stream;
	for (i = 0; i < head->count; i++) {
		end = i + 1 < head->count ? starts[i + 1] : head->raw_bytes;
		take_message(c, raw + starts[i], end - starts[i]);
	}
}

int carry_read(struct carry **out, const char *journal_dir, uint64_t below_ns)
{
	struct carry *carry = *out = calloc(1, sizeof(*carry));
	int err;

	if (!carry)
		return -ENOMEM;
	carry->live = live_new();
	carry->server = carry->live ? server_offline(carry->live) : NULL;
	if (!carry->server)
		return -ENOMEM;
	live_restoring(carry->live, true);
	err = journal_scan_before(journal_dir, below_ns, visit, carry, NULL);
	return err ? err : carry->server->no_memory ? -ENOMEM : carry->error;
}

void carry_free(struct carry *carry)
{
	size_t i;

	if (!carry)
		return;
	for (i = 0; i < carry->workers.n; i++) {
		struct carried *c = carry->workers.v[i];

		buf_release(&c->totals);
		buf_release(&c->clocks);
		buf_release(&c->goodbye);
		buf_release(&c->modules);
		buf_release(&c->streams);
		free(c);
	}
	free(carry->workers.v);
	table_release(&carry->index);
	buf_release(&carry->scratch);
	if (carry->server) {
		server_streams_release(&carry->server->streams);
		buf_release(&carry->server->scratch);
		buf_release(&carry->server->starts);
	}
	free(carry->server);
	live_free(carry->live);
	free(carry);
}

/* Writing */

/* What came of the stream in these segments; all of it, if the model has not seen it. */
static void pack_edges(msgpack_packer *pk, const struct server_progress *p, struct model *m)
{
	const struct worker *w = model_find_worker(m, p->worker);
	const struct stream *s = NULL;
	size_t i, n = 0;

	for (i = 0; w && i < w->streams.n && !s; i++)
		s = w->streams.v[i].id == p->stream ? &w->streams.v[i] : NULL;
	while (s && n < s->ranges.n && s->ranges.v[n].from < p->next)
		n++;
	pack_array(pk, n ? 2 * n : 2);
	if (!n) {
		pack_u64(pk, 0);
		pack_u64(pk, p->next);
	}
	for (i = 0; i < n; i++) {
		pack_u64(pk, s->ranges.v[i].from);
		pack_u64(pk, s->ranges.v[i].to < p->next ? s->ranges.v[i].to : p->next);
	}
}

static void gather_streams(struct carry *carry, struct model *m)
{
	const struct table *streams = &carry->server->streams.streams;
	const struct server_progress *p;
	msgpack_packer pk;
	struct carried *c;
	size_t at = 0;

	while ((p = table_next(streams, &at))) {
		c = p->next ? carried_of(carry, p->worker) : NULL;
		if (!c)
			continue;
		pack_init(&pk, &c->streams);
		pack_array(&pk, 2);
		pack_u64(&pk, p->stream);
		pack_edges(&pk, p, m);
		c->streams_n++;
	}
}

static int write_state(struct carry *carry, const struct carried *c, bool goes_on, struct buf *out)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_CARRY, c->id, c->stream);
	struct buf body = BUF_INIT;
	msgpack_packer pk;
	size_t map;

	head.first_seq = goes_on;
	pack_init(&pk, &body);
	map = pack_map_begin(&pk);
	pack_text(&pk, "streams");
	pack_array(&pk, c->streams_n);
	buf_add(&body, c->streams.data, c->streams.len);
	pack_text(&pk, "ended");
	live_pack_ended(carry->live, c->id, &pk);
	pack_map_end(&pk, map);
	return frame_encode_buf(out, &head, &body);
}

static int write_messages(const struct carried *c, bool goes_on, bool modules, struct buf *out)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_CARRIED, c->id, c->stream);
	const struct buf *one[] = {&c->totals, &c->clocks, &c->goodbye};
	struct buf body = BUF_INIT;
	msgpack_packer pk;
	size_t i;

	head.first_seq = goes_on;
	head.count = modules ? c->modules_n : 0;
	for (i = 0; i < 3; i++)
		head.count += one[i]->len > 0;
	if (!head.count)
		return 0;
	pack_init(&pk, &body);
	pack_array(&pk, head.count);
	for (i = 0; i < 3; i++)
		buf_add(&body, one[i]->data, one[i]->len);
	if (modules)
		buf_add(&body, c->modules.data, c->modules.len);
	return frame_encode_buf(out, &head, &body);
}

static int write_head(const struct carry *carry, uint64_t below_ns, struct buf *out)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_DROPPED, NULL, 0);
	struct buf body = BUF_INIT;
	msgpack_packer pk;
	size_t map;

	pack_init(&pk, &body);
	map = pack_map_begin(&pk);
	pack_kv_u64(&pk, "below_ns", below_ns);
	pack_kv_u64(&pk, "dropped_ns", clock_real_ns());
	pack_text(&pk, "sums");
	live_pack_sums(carry->live, &pk);
	pack_map_end(&pk, map);
	return frame_encode_buf(out, &head, &body);
}

int carry_write(struct carry *carry, struct model *m, size_t first_kept, uint64_t below_ns,
		struct buf *head, struct buf *rest)
{
	const struct worker *w;
	struct carried *c;
	bool goes_on;
	size_t i;
	int rc;

	gather_streams(carry, m);
	rc = carry->error ? carry->error : write_head(carry, below_ns, head);
	for (i = 0; i < carry->workers.n && !rc; i++) {
		c = carry->workers.v[i];
		w = model_find_worker(m, c->id);
		goes_on = w && w->last_segment >= first_kept;
		if (c->totals.error || c->clocks.error || c->goodbye.error || c->modules.error ||
		    c->streams.error)
			return -ENOMEM;
		rc = write_state(carry, c, goes_on, rest);
		if (!rc)
			rc = write_messages(c, goes_on, goes_on, rest);
		if (rc == -EMSGSIZE) /* names of libraries only; call sites keep their addresses */
			rc = write_messages(c, goes_on, false, rest);
	}
	return rc;
}
