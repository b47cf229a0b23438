/* SPDX-License-Identifier: BSD-3-Clause */
/* retain_carry.c - gathers each worker's latest data from segments that are to be dropped. */
#include "collector/retain/retain_carry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/model/dropped.h"
#include "collector/model/footer.h"
#include "common/dirs.h"
#include "common/framefile.h"
#include "common/pack.h"
#include "common/walk.h"

/* By the worker's index in the model. */
struct carried {
	uint64_t totals_boot_ns;
	struct buf totals, clocks, goodbye; /* messages, unchanged */
};

struct carry {
	struct model m; /* only workers, their streams, and modules */
	ARRAY(struct carried) workers;
	struct buf modules; /* messages: the first one for each module, from any worker */
	uint32_t modules_n;
};

static struct carried *carried_of(struct carry *carry, const uint8_t *id)
{
	const struct worker *w = model_worker(&carry->m, id);

	while (w && carry->workers.n <= w->place) {
		if (!ARRAY_NEW(&carry->workers))
			return NULL;
	}
	return w ? &carry->workers.v[w->place] : NULL;
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
	int rc = unpack_open(&u, p, n);

	if (rc == -ENOMEM)
		c->totals.error = rc;
	if (rc)
		return;
	if (u.root.type == MSGPACK_OBJECT_ARRAY && u.root.via.array.size > 1)
		boot_ns = get_u64(&u.root.via.array.ptr[1], "boot_ns", 0);
	unpack_release(&u);
	if (c->totals.len && boot_ns < c->totals_boot_ns)
		return;
	c->totals_boot_ns = boot_ns;
	keep(&c->totals, p, n);
}

/* In a footer, only the worker that named a module first in its segment has it. */
static void take_module(struct carry *carry, const uint8_t *p, size_t n)
{
	size_t before = carry->m.module_table.n;
	struct unpack u;
	int rc = unpack_open(&u, p, n);

	if (rc == -ENOMEM)
		carry->modules.error = rc;
	if (rc)
		return;
	if (u.root.via.array.size > 1 && model_feed_module(&carry->m, &u.root.via.array.ptr[1]))
		carry->modules.error = -ENOMEM;
	unpack_release(&u);
	if (carry->m.module_table.n == before)
		return;
	buf_add(&carry->modules, p, n);
	carry->modules_n++;
}

static void take_message(struct carry *carry, struct carried *c, const uint8_t *p, size_t n)
{
	struct walk_item array;

	if (!walk_item(p, n, &array) || array.kind != WALK_ARRAY || array.bytes >= n)
		return;
	switch (p[array.bytes]) {
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
		take_module(carry, p, n);
		break;
	default:
		break;
	}
}

/* From frames: of the current file, and of a segment without a footer */

static void take_messages(struct carry *carry, struct carried *c, const unsigned char *raw,
			  size_t n)
{
	uint32_t items;
	size_t at;
	int64_t used;

	if (unpack_array(raw, n, &items, &at))
		return;
	for (; items; items--, at += (size_t)used) {
		used = walk_values(raw + at, n - at, 1, WALK_DEPTH_MAX);
		if (used <= 0)
			return;
		take_message(carry, c, raw + at, (size_t)used);
	}
}

static int take_frame(void *arg, const struct crema_frame_header *head, const unsigned char *raw,
		      size_t n)
{
	bool data = head->type == CREMA_FRAME_DATA;
	struct crema_frame_header carried = *head;
	struct carry *carry = arg;
	struct carried *c;
	struct stream *s;

	if (head->type == CREMA_FRAME_CARRY) {
		carried.first_seq = 1; /* one that had ended may have come back */
		return model_feed(&carry->m, &carried, raw, n);
	}
	if (!data && head->type != CREMA_FRAME_CARRIED)
		return 0;
	c = carried_of(carry, head->worker);
	s = c ? worker_stream(carry->m.workers.v[c - carry->workers.v], head->stream) : NULL;
	if (!s || (data && stream_received(s, head->first_seq, head->first_seq + head->count)))
		return -ENOMEM;
	if (!unpack_check(raw, n))
		take_messages(carry, c, raw, n);
	return 0;
}

/* From a footer */

static int take_item(void *arg, const msgpack_object_array *item)
{
	const uint8_t *id = items_id(item, 1);
	struct carry *carry = arg;
	struct carried *c;
	struct text bytes;
	uint64_t kind;

	if (!items_u64(item, 0, &kind))
		return -EBADMSG;
	if (kind != FOOTER_WORKER && kind != FOOTER_SURVEY && kind != FOOTER_MESSAGE)
		return 0;
	c = id ? carried_of(carry, id) : NULL;
	if (!c)
		return id ? -ENOMEM : -EBADMSG;
	if (kind == FOOTER_WORKER)
		return item->size == 10
			       ? worker_take_streams(model_worker(&carry->m, id), &item->ptr[8])
			       : -EBADMSG;
	if (item->size != 4 || !object_bin(&item->ptr[3], &bytes))
		return -EBADMSG;
	take_message(carry, c, (const uint8_t *)bytes.ptr, bytes.len);
	return 0;
}

/* Reading */

/* Anything that an invalid footer passed on before is also in the segment. */
static int read_segment(struct carry *carry, const struct retain_config *config, const char *name)
{
	char path[PATH_MAX], footers[PATH_MAX];
	int rc = dirs_join(path, sizeof(path), config->journal_dir, name);

	if (!rc)
		rc = dirs_join(footers, sizeof(footers), config->dir, FOOTER_FOLDER);
	if (rc)
		return rc;
	rc = footer_each(config->journal_dir, footers, name, take_item, carry);
	if (rc == 1 || rc == -ENOMEM)
		return rc == 1 ? 0 : rc;
	rc = framefile_read(path, take_frame, carry, NULL);
	return rc == -ENOMEM ? rc : 0; /* unreadable data is lost in any case */
}

static int read_all(struct carry *carry, const struct retain_config *config, const struct model *m,
		    size_t first_kept)
{
	uint64_t created_ns, below_ns = 0;
	char **names = NULL;
	int i, rc = 0, n = framefile_list(config->journal_dir, &names);

	if (first_kept)
		below_ns = m->segments.v[first_kept - 1].created_ns + 1;
	for (i = 0; i < n && !rc; i++) {
		created_ns = framefile_created_ns(names[i]);
		if (!strcmp(names[i], DROPPED_FILE) ||
		    (created_ns >= m->below_ns && created_ns < below_ns))
			rc = read_segment(carry, config, names[i]);
	}
	free(names);
	return n < 0 ? n : rc;
}

/* Writing */

/* Any stream will do: carried messages have no task fields. */
static struct crema_frame_header head_of(uint8_t type, const struct worker *w, bool goes_on)
{
	struct crema_frame_header head =
		frame_head(type, w->id, w->streams.n ? w->streams.v[w->streams.n - 1].id : 0);

	head.first_seq = goes_on;
	return head;
}

static int pack_state(const struct worker *w, bool goes_on, struct buf *out)
{
	struct crema_frame_header head = head_of(CREMA_FRAME_CARRY, w, goes_on);
	struct packed_map map;
	msgpack_packer *pk = packed_map_begin(&map);

	pack_text(pk, "streams");
	worker_pack_streams(w, pk);
	return frame_encode_buf(out, &head, packed_map_end(&map));
}

/* modules: of all workers; NULL: not with this one. */
static int pack_messages(const struct worker *w, const struct carried *c, bool goes_on,
			 const struct carry *modules, struct buf *out)
{
	struct crema_frame_header head = head_of(CREMA_FRAME_CARRIED, w, goes_on);
	const struct buf *one[] = {&c->totals, &c->clocks, &c->goodbye};
	struct buf body = BUF_INIT;
	msgpack_packer pk;
	size_t i;

	head.count = modules ? modules->modules_n : 0;
	for (i = 0; i < 3; i++)
		head.count += one[i]->len > 0;
	if (!head.count)
		return 0;
	pack_init(&pk, &body);
	pack_array(&pk, head.count);
	for (i = 0; i < 3; i++)
		buf_add(&body, one[i]->data, one[i]->len);
	if (modules)
		buf_add(&body, modules->modules.data, modules->modules.len);
	return frame_encode_buf(out, &head, &body);
}

static int pack_worker(const struct worker *w, const struct carried *c, bool goes_on,
		       const struct carry *modules, struct buf *out)
{
	int rc;

	if (c->totals.error || c->clocks.error || c->goodbye.error)
		return -ENOMEM;
	rc = pack_state(w, goes_on, out);
	if (!rc)
		rc = pack_messages(w, c, goes_on, modules, out);
	if (rc == -EMSGSIZE && modules) /* loses only library names; call sites keep addresses */
		rc = pack_messages(w, c, goes_on, NULL, out);
	return rc;
}

/* Packs the workers that continue, with all modules in the first; or those that neither continue
 * nor ended: they may come back. */
static int pack_workers(struct carry *carry, const struct model *m, size_t first_kept, bool go_on,
			bool *modules, struct buf *out)
{
	const struct worker *w, *now;
	const struct carried *c;
	size_t i;
	int rc = carry->modules.error;

	for (i = 0; i < carry->m.workers.n && !rc; i++) {
		w = carry->m.workers.v[i];
		now = model_find_worker(m, w->id);
		c = carried_of(carry, w->id);
		if (!c)
			return -ENOMEM;
		if ((now && now->last_segment >= first_kept) != go_on || (!go_on && c->goodbye.len))
			continue;
		rc = pack_worker(w, c, go_on, *modules ? carry : NULL, out);
		*modules = false;
	}
	return rc;
}

static void release(struct carry *carry)
{
	struct carried *c;

	for (c = carry->workers.v; c < carry->workers.v + carry->workers.n; c++) {
		buf_release(&c->totals);
		buf_release(&c->clocks);
		buf_release(&c->goodbye);
	}
	buf_release(&carry->modules);
	free(carry->workers.v);
	model_release(&carry->m);
}

int carry_pack(const struct retain_config *config, const struct model *m, size_t first_kept,
	       struct buf *out)
{
	struct carry carry = {0};
	bool modules = true;
	int rc;

	model_init(&carry.m);
	rc = read_all(&carry, config, m, first_kept);
	if (!rc)
		rc = pack_workers(&carry, m, first_kept, true, &modules, out);
	if (!rc)
		rc = pack_workers(&carry, m, first_kept, false, &modules, out);
	release(&carry);
	return rc;
}
