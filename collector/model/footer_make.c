/* SPDX-License-Identifier: BSD-3-Clause */
/* footer_make.c - reads a segment as a survey would, and writes what the survey keeps. */
#include "collector/model/footer.h"
#include "collector/model/footer_blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/dirs.h"
#include "common/framefile.h"

/* A message that is kept unchanged. */
struct kept {
	const struct worker *worker;
	uint64_t stream;
	enum footer_item kind;
	const unsigned char *bytes; /* in the arena */
	size_t n;
};

/* By the worker's index in the model. */
struct made {
	uint64_t from_boot_ns, to_boot_ns; /* of samples */
	bool timeless;			   /* one of them has no time */
	struct stream taken;
	struct kept first_totals, last_totals, digests;
	struct kept latest_totals; /* by its time; mostly the last one */
	size_t notes;
	const char *closing;
	size_t lines_block, doing_block; /* of the latest such message, plus 1 */
};

/* A span that rows name. */
struct made_span {
	const char *name; /* interned in the model */
	uint64_t rows;
};

struct footer_maker {
	struct model_witness witness; /* must be the first member: saw() receives it */
	struct model m;
	struct selection s;
	struct arena arena;
	ARRAY(struct made) made;
	ARRAY(struct kept) hellos;
	ARRAY(struct kept) kept;
	struct table rows; /* made_span */
	size_t modules;
	struct framefile_stats stats;
	struct block_maker blocks;
	uint64_t bytes; /* of the segment */
	bool whole;	/* has something that requires reading the segment */
};

static struct made *made_of(struct footer_maker *f, const struct worker *w)
{
	while (f->made.n <= w->place) {
		if (!ARRAY_NEW(&f->made))
			return NULL;
	}
	return &f->made.v[w->place];
}

static int copy(struct footer_maker *f, struct kept *k, const struct worker *w, uint64_t stream,
		enum footer_item kind, const unsigned char *bytes, size_t n)
{
	unsigned char *own = arena_bytes(&f->arena, n ? n : 1);

	if (!own)
		return -ENOMEM;
	memcpy(own, bytes, n);
	*k = (struct kept){w, stream, kind, own, n};
	f->whole = f->whole || n > ITEMS_BYTES;
	return 0;
}

static int keep(struct footer_maker *f, const struct worker *w, uint64_t stream,
		enum footer_item kind, const unsigned char *bytes, size_t n)
{
	struct kept *k = ARRAY_NEW(&f->kept);

	return k ? copy(f, k, w, stream, kind, bytes, n) : -ENOMEM;
}

static int timed(struct footer_maker *f, const struct worker *w, struct made *made,
		 uint64_t boot_ns, bool totals)
{
	made->timeless = made->timeless || !boot_ns;
	if (!made->from_boot_ns || boot_ns < made->from_boot_ns)
		made->from_boot_ns = boot_ns;
	if (boot_ns > made->to_boot_ns)
		made->to_boot_ns = boot_ns;
	return blocks_add_time(&f->blocks, w->place, boot_ns, totals);
}

static bool same_name(const void *item, const void *key)
{
	return ((const struct made_span *)item)->name == key;
}

static struct made_span *find_row(const struct footer_maker *f, const char *name)
{
	return table_find(&f->rows, hash_pair((uintptr_t)name, 0), same_name, name);
}

static struct made_span *row_of(struct footer_maker *f, const char *name)
{
	struct made_span *span = find_row(f, name);

	if (span)
		return span;
	span = arena_get(&f->m.arena, sizeof(*span));
	if (!span || table_add(&f->rows, hash_pair((uintptr_t)name, 0), span))
		return NULL;
	span->name = name;
	return span;
}

static int take_row(struct footer_maker *f, struct text text)
{
	const char *name = text.ptr ? model_text(&f->m, text) : NULL;
	struct made_span *span = name ? row_of(f, name) : NULL;

	if (!name || !span)
		return name ? -ENOMEM : f->m.error;
	span->rows++;
	return blocks_add_span(&f->blocks, name);
}

static int take_totals(struct footer_maker *f, struct made *made, struct worker *w, uint64_t stream,
		       uint64_t boot_ns, const unsigned char *bytes, size_t n)
{
	bool notes = w->notes.n > made->notes;
	struct kept *to = made->first_totals.bytes ? &made->last_totals : &made->first_totals;
	int rc = timed(f, w, made, boot_ns, true);

	made->notes = w->notes.n;
	if (!rc && notes && to == &made->last_totals)
		rc = keep(f, w, stream, FOOTER_MESSAGE, bytes, n);
	if (!rc)
		rc = copy(f, to, w, stream, FOOTER_MESSAGE, bytes, n);
	if (w->totals.boot_ns == boot_ns)
		made->latest_totals = *to;
	return rc;
}

/* A report that reads some of the segment also needs the reason why Dask closed the worker. */
static int take_dask(struct footer_maker *f, struct made *made, struct worker *w, uint64_t stream,
		     uint64_t boot_ns, const unsigned char *bytes, size_t n)
{
	int rc = timed(f, w, made, boot_ns, false);

	if (rc || w->digests_boot_ns != boot_ns) /* an older one, or one without digests */
		return rc;
	if (w->closing != made->closing) {
		blocks_current(&f->blocks)->always = true;
		rc = keep(f, w, stream, FOOTER_MESSAGE, bytes, n);
	}
	made->closing = w->closing;
	return rc ? rc : copy(f, &made->digests, w, stream, FOOTER_MESSAGE, bytes, n);
}

static int take_other(struct footer_maker *f, struct worker *w, uint64_t stream,
		      const msgpack_object_array *message, const unsigned char *bytes, size_t n)
{
	struct made *made = made_of(f, w);
	uint64_t type = message->ptr[0].via.u64, boot_ns = 0;
	const msgpack_object *map = &message->ptr[1];
	bool news;

	if (!made || !blocks_current(&f->blocks))
		return -ENOMEM;

	switch (type) {
	case CREMA_MSG_SAMPLE:
	case CREMA_MSG_HOST:
		return timed(f, w, made, get_u64(map, "boot_ns", 0), false);
	case CREMA_MSG_TOTALS:
		return take_totals(f, made, w, stream, get_u64(map, "boot_ns", 0), bytes, n);
	case CREMA_MSG_DASK:
		object_u64(map, &boot_ns);
		return take_dask(f, made, w, stream, boot_ns, bytes, n);
	case CREMA_MSG_LINES:
		if (w->lines.boot_ns == get_u64(map, "boot_ns", 0))
			made->lines_block = f->blocks.blocks.n;
		return take_row(f, get_text(map, "span"));
	case CREMA_MSG_DOING:
		if (w->doing_boot_ns == get_u64(map, "boot_ns", 0))
			made->doing_block = f->blocks.blocks.n;
		return 0;
	case CREMA_MSG_CLOCKS:
	case CREMA_MSG_GOODBYE:
		return keep(f, w, stream, FOOTER_SURVEY, bytes, n);
	case CREMA_MSG_MODULE:
		news = f->m.module_table.n > f->modules;
		f->modules = f->m.module_table.n;
		return news ? keep(f, w, stream, FOOTER_MESSAGE, bytes, n) : 0;
	case CREMA_MSG_TASK_START:
	case CREMA_MSG_TASK_PROGRESS:
	case CREMA_MSG_TASK_END:
	case CREMA_MSG_TASK_AMEND:
		f->whole = true; /* no agent writes this */
		return 0;
	default:
		return take_row(f, get_text(map, "span"));
	}
}

static int saw(struct model_witness *witness, struct worker *w, const struct stream *s,
	       const struct task_record *r, bool taken, const unsigned char *bytes, size_t n)
{
	struct footer_maker *f = (struct footer_maker *)witness;
	struct unpack u = {0};
	const char *span;
	struct made *made;
	size_t used;
	int rc;

	if (!r) {
		rc = unpack_next(&u, bytes, n, &used);
		if (!rc && u.root.type == MSGPACK_OBJECT_ARRAY && u.root.via.array.size >= 2 &&
		    u.root.via.array.ptr[0].type == MSGPACK_OBJECT_POSITIVE_INTEGER)
			rc = take_other(f, w, s->id, &u.root.via.array, bytes, used);
		else if (!rc)
			f->whole = true;
		unpack_release(&u);
		return rc;
	}
	f->whole = f->whole || !TASK_KNOWN(r, span) || span_is_plain(r->span);
	if (f->whole)
		return 0;
	span = model_task_text(&f->m, TASK_F_span, r->span);
	rc = span ? blocks_add_span(&f->blocks, span) : f->m.error;
	if (!taken || rc)
		return rc;
	made = made_of(f, w);
	if (!made || stream_received(&made->taken, r->attempt, r->attempt + 1))
		return -ENOMEM;
	return keep(f, w, s->id, FOOTER_SURVEY, bytes, n);
}

static int take_hello(struct footer_maker *f, const struct crema_frame_header *head,
		      const unsigned char *raw, size_t n)
{
	const struct worker *w = model_find_worker(&f->m, head->worker);
	struct kept *k;
	size_t i;

	for (i = f->hellos.n; i > 0; i--) {
		k = &f->hellos.v[i - 1];
		if (k->worker == w && k->stream == head->stream)
			break;
	}
	if (i && k->n == n && !memcmp(k->bytes, raw, n))
		return 0;
	k = w ? ARRAY_NEW(&f->hellos) : NULL;
	f->whole = f->whole || !w;
	return !w ? 0 : k ? copy(f, k, w, head->stream, FOOTER_HELLO, raw, n) : -ENOMEM;
}

/* Whether the rest of the footer and the index have what other reports need of the frame. */
static bool is_indexed(uint8_t type)
{
	return type == CREMA_FRAME_DATA || type == CREMA_FRAME_HELLO || type == CREMA_FRAME_NOTE ||
	       type == CREMA_FRAME_CHECKPOINT;
}

static int visit(void *arg, const struct crema_frame_header *head, const unsigned char *raw,
		 size_t n)
{
	struct footer_maker *f = arg;
	struct block_made *block = blocks_current(&f->blocks);
	int rc = block ? model_feed(&f->m, head, raw, n) : -ENOMEM;

	if (rc)
		return rc;
	block->always = block->always || !is_indexed(head->type);
	if (head->type == CREMA_FRAME_HELLO)
		rc = take_hello(f, head, raw, n);
	return rc ? rc : blocks_add_frame(&f->blocks, f->stats.end);
}

/* Writing */

static void write_worker(struct items *items, const struct made *made, const struct worker *w)
{
	msgpack_packer *pk = items_add(items, FOOTER_WORKER, 9);

	pack_bin(pk, w->id, sizeof(w->id));
	pack_u64(pk, w->first_boot_ns);
	pack_u64(pk, w->last_boot_ns);
	pack_u64(pk, made->timeless ? 0 : made->from_boot_ns);
	pack_u64(pk, made->to_boot_ns);
	stream_pack(&w->spanned, pk);
	stream_pack(&made->taken, pk);
	worker_pack_streams(w, pk);
	stream_pack(&w->stacks, pk);
}

static void pack_smallest(msgpack_packer *pk, const struct smallest *s)
{
	size_t i;

	pack_array(pk, s->n);
	for (i = 0; i < s->n; i++)
		pack_u64(pk, s->v[i]);
}

static void write_span(struct footer_maker *f, struct items *items, const struct span_part *p)
{
	const struct seen_span *seen = selection_span(&f->s, p->name);
	msgpack_packer *pk = items_add(items, FOOTER_SPAN, 10);
	const struct made_span *rows = find_row(f, p->name);
	uint64_t end_ns;
	size_t i, n = 0;

	pack_text(pk, p->name);
	pack_text(pk, p->prefix);
	pack_bool(pk, p->prefixes);
	pack_bool(pk, p->users);
	pack_u64(pk, seen ? seen->begun : 0);
	pack_u64(pk, seen ? seen->ended : 0);
	pack_smallest(pk, &p->keys);
	pack_smallest(pk, &p->consumed);
	for (i = 0; i < f->m.workers.n; i++)
		n += selection_end(&f->s, p->name, f->m.workers.v[i], &end_ns);
	pack_array(pk, 2 * n);
	for (i = 0; i < f->m.workers.n; i++) {
		if (!selection_end(&f->s, p->name, f->m.workers.v[i], &end_ns))
			continue;
		pack_u64(pk, i);
		pack_u64(pk, end_ns);
	}
	pack_u64(pk, rows ? rows->rows : 0);
}

/* Of a span that only rows name. */
static void write_row(struct items *items, const struct made_span *span)
{
	msgpack_packer *pk = items_add(items, FOOTER_SPAN, 10);

	pack_text(pk, span->name);
	pack_nil(pk);
	pack_bool(pk, false);
	pack_bool(pk, false);
	pack_u64(pk, 0);
	pack_u64(pk, 0);
	pack_array(pk, 0);
	pack_array(pk, 0);
	pack_array(pk, 0);
	pack_u64(pk, span->rows);
}

static void write_kept(struct items *items, const struct kept *k)
{
	msgpack_packer *pk = items_add(items, k->kind, 3);

	pack_bin(pk, k->worker->id, sizeof(k->worker->id));
	pack_u64(pk, k->stream);
	pack_bin(pk, k->bytes, k->n);
}

static void write_messages(const struct footer_maker *f, struct items *items, enum footer_item kind)
{
	size_t i;

	for (i = 0; i < f->kept.n; i++) {
		if (f->kept.v[i].kind == kind)
			write_kept(items, &f->kept.v[i]);
	}
}

static bool has_index(const struct footer_maker *f)
{
	return f->stats.end == f->bytes && blocks_count(&f->blocks);
}

/* Keeps the messages in order of arrival as far as it matters. */
static void write_all(struct footer_maker *f, struct items *items)
{
	const struct made_span *row;
	const struct made *made;
	size_t i, at = 0;

	for (i = 0; i < f->made.n; i++)
		write_worker(items, &f->made.v[i], f->m.workers.v[i]);
	for (i = 0; i < f->hellos.n; i++)
		write_kept(items, &f->hellos.v[i]);
	for (i = 0; i < f->m.parts.n; i++)
		write_span(f, items, f->m.parts.v[i]);
	while ((row = table_next(&f->rows, &at))) {
		if (!span_part_find(&f->m, row->name))
			write_row(items, row);
	}
	write_messages(f, items, FOOTER_SURVEY);
	for (made = f->made.v; made < f->made.v + f->made.n; made++) {
		if (made->first_totals.bytes)
			write_kept(items, &made->first_totals);
	}
	if (has_index(f))
		blocks_write(&f->blocks, items, FOOTER_BLOCK);
	write_messages(f, items, FOOTER_MESSAGE);
	for (made = f->made.v; made < f->made.v + f->made.n; made++) {
		if (made->latest_totals.bytes != made->first_totals.bytes &&
		    made->latest_totals.bytes != made->last_totals.bytes)
			write_kept(items, &made->latest_totals);
		if (made->last_totals.bytes)
			write_kept(items, &made->last_totals);
		if (made->digests.bytes)
			write_kept(items, &made->digests);
	}
}

static int encode(struct footer_maker *f, const struct footer_id *id, struct buf *out)
{
	struct items items;
	msgpack_packer *pk;
	int rc;

	items_begin(&items, out, CREMA_FRAME_FOOTER);
	pk = items_add(&items, FOOTER_SEGMENT, 8);
	pack_u64(pk, FOOTER_FORMAT);
	pack_u64(pk, id->created_ns);
	pack_u64(pk, id->bytes);
	pack_u64(pk, id->tail_hash);
	pack_bool(pk, f->whole);
	pack_u64(pk, f->m.last_note_ns);
	pack_u64(pk, f->stats.frames);
	pack_bool(pk, has_index(f));
	if (!f->whole)
		write_all(f, &items);
	rc = items_end(&items);
	return rc < 0 ? rc : 0;
}

static void release(struct footer_maker *f)
{
	size_t i;

	for (i = 0; i < f->made.n; i++)
		free(f->made.v[i].taken.ranges.v);
	free(f->made.v);
	free(f->hellos.v);
	free(f->kept.v);
	table_release(&f->rows);
	blocks_release(&f->blocks);
	arena_release(&f->arena);
	selection_restart(&f->s);
	model_release(&f->m);
}

static int survey(struct footer_maker *f, const char *segment)
{
	const struct framefile_stats *stats = &f->stats;
	size_t i;
	int rc = selection_file(&f->s, segment, 0);

	if (!rc)
		rc = framefile_read(segment, visit, f, &f->stats);
	if (rc)
		return rc;
	for (i = 0; i < f->m.workers.n && !rc; i++)
		rc = made_of(f, f->m.workers.v[i]) ? 0 : -ENOMEM;
	for (i = 0; i < f->made.n; i++) {
		blocks_always(&f->blocks, f->made.v[i].lines_block);
		blocks_always(&f->blocks, f->made.v[i].doing_block);
	}
	f->whole = f->whole || f->m.records_bad || stats->bytes_skipped || stats->truncated ||
		   stats->no_header || stats->newer;
	return rc ? rc : f->m.error;
}

/* A footer that is too large for its frames only records that the segment must be read. */
int footer_write(const char *journal, const char *folder, const char *name)
{
	struct footer_maker f = {.witness = {saw}, .s = {.pass = SELECTION_FOOTER}};
	struct buf out = BUF_INIT;
	char segment[PATH_MAX];
	struct footer_id id = {0};
	int rc = dirs_join(segment, sizeof(segment), journal, name);

	model_init(&f.m);
	f.m.selection = &f.s;
	f.m.witness = &f.witness;
	if (!rc)
		rc = footer_identify(segment, name, &id);
	f.bytes = id.bytes;
	if (!rc)
		rc = survey(&f, segment);
	if (!rc)
		rc = encode(&f, &id, &out);
	if (rc == -EMSGSIZE) {
		f.whole = true;
		buf_clear(&out);
		rc = encode(&f, &id, &out);
	}
	if (!rc)
		rc = framefile_replace(folder, name, "footer", id.created_ns, &out);
	buf_release(&out);
	release(&f);
	return rc;
}

int footer_identify(const char *segment, const char *name, struct footer_id *id)
{
	int fd = open(segment, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc = 0;
	unsigned char tail[FOOTER_TAIL_BYTES];
	struct stat st;
	ssize_t n;
	off_t from;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EMEDIUMTYPE;
	}
	from = st.st_size > (off_t)sizeof(tail) ? st.st_size - (off_t)sizeof(tail) : 0;
	n = pread(fd, tail, sizeof(tail), from);
	if (n != st.st_size - from)
		rc = n < 0 ? -errno : -EIO;
	close(fd);
	if (!rc)
		*id = (struct footer_id){framefile_created_ns(name), (uint64_t)st.st_size,
					 hash_bytes(17, tail, (size_t)n)};
	return rc;
}
