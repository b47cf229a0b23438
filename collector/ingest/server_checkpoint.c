/* SPDX-License-Identifier: BSD-3-Clause */
/* server_checkpoint.c - writes the server's state at the head of a segment, and restores it. */
#include <errno.h>
#include <stdlib.h>

#include "collector/journal/checkpoint.h"
#include "collector/ingest/server_conn.h"

static int make(const struct server *server, bool written, struct buf *out)
{
	const struct live *live = server->config.live;
	struct items c;
	msgpack_packer *pk;
	const struct server_progress *p;
	size_t at = 0;

	/* Reading the journal restores what was lost for lack of memory. */
	if (server->live_failed)
		return -ENOMEM;
	items_begin(&c, out, CREMA_FRAME_CHECKPOINT);
	pk = items_add(&c, CHECKPOINT_HEAD, 2);
	pack_u64(pk, CHECKPOINT_FORMAT);
	pack_u64(pk, live != NULL);
	while ((p = table_next(&server->streams.streams, &at))) {
		if (!p->next)
			continue;
		pk = items_add(&c, CHECKPOINT_STREAM, 4);
		pack_bin(pk, p->worker, sizeof(p->worker));
		pack_u64(pk, p->stream);
		pack_u64(pk, written ? p->written : p->next);
		pack_u64(pk, p->next);
	}
	if (live)
		live_save(live, &c);
	return items_end(&c);
}

int server_checkpoint(void *server, struct buf *out)
{
	return make(server, false, out);
}

int server_state(void *server, struct buf *out)
{
	return make(server, true, out);
}

/* Reading */

struct taking {
	struct server *server;
	struct server_checkpoint *found;
	bool headed;
};

static int take_head(struct taking *t, const msgpack_object_array *item)
{
	uint64_t format, live;

	if (!items_u64(item, 1, &format) || !items_u64(item, 2, &live))
		return -EBADMSG;
	t->headed = true;
	return format == CHECKPOINT_FORMAT && live == (t->server->config.live != NULL)
		       ? 0
		       : -EPROTONOSUPPORT;
}

static int take_stream(struct server *server, const msgpack_object_array *item)
{
	const uint8_t *worker = items_id(item, 1);
	struct server_progress *progress;
	uint64_t stream, next, counted;

	if (!worker || !items_u64(item, 2, &stream) || !items_u64(item, 3, &next) ||
	    !items_u64(item, 4, &counted))
		return -EBADMSG;
	progress = server_streams_get(&server->streams, worker, stream);
	if (!progress)
		return -ENOMEM;
	progress->next = progress->written = next;
	progress->counted = counted;
	return 0;
}

static int take_item(void *arg, const msgpack_object_array *item)
{
	struct taking *t = arg;
	uint64_t kind;

	if (!items_u64(item, 0, &kind))
		return -EBADMSG;
	if (kind == CHECKPOINT_HEAD)
		return take_head(t, item);
	if (!t->headed)
		return -EBADMSG;
	if (kind == CHECKPOINT_STREAM)
		return take_stream(t->server, item);
	return t->server->config.live ? live_load(t->server->config.live, item) : -EBADMSG;
}

/* 0: this one is used; 1: try an older segment; -ENOMEM. */
static int try_segment(void *arg, const char *path, uint64_t created_ns)
{
	struct taking *t = arg;
	struct server *server = t->server;
	int err;

	t->headed = false;
	err = items_read(path, CREMA_FRAME_CHECKPOINT, take_item, t, &t->found->bytes);
	if (!err) {
		t->found->created_ns = created_ns;
		if (server->config.live)
			live_loaded(server->config.live);
		return 0;
	}
	server_streams_release(&server->streams);
	if (server->config.live)
		live_clear(server->config.live);
	return err == -ENOMEM ? err : 1;
}

int server_take_checkpoint(struct server *server, const char *dir, struct server_checkpoint *found)
{
	struct taking t = {.server = server, .found = found};
	int err;

	*found = (struct server_checkpoint){0, 0};
	err = journal_find(dir, try_segment, &t);
	if (err)
		*found = (struct server_checkpoint){0, 0};
	return err > 0 ? 0 : err;
}
