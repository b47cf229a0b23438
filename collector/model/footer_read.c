/* SPDX-License-Identifier: BSD-3-Clause */
/* footer_read.c - validates a footer, and feeds the model from it. */
#include "collector/model/footer.h"
#include "collector/model/footer_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/dirs.h"
#include "common/frame.h"

#define STOP 1 /* the rest is not needed */

struct feeding {
	struct model *m;
	const struct footer_id *id;
	bool good;  /* it belongs to this segment */
	bool whole; /* and requires reading the segment */
	bool known; /* attempts from earlier segments continue in it */
	bool indexed;
	uint64_t note_ns, frames;
	ARRAY(struct worker *) workers; /* by their number in the footer */
	struct buf payload;
	/* If blocks of the segment are read, too: */
	const char *segment; /* NULL: none are */
	struct blocks blocks;
	bool blocks_fed;
	uint64_t records;	     /* and rows of wanted spans */
	ARRAY(struct stream) stacks; /* of each worker: numbers of its long waits */
};

static bool is_segment(const msgpack_object_array *item)
{
	uint64_t kind;

	return items_u64(item, 0, &kind) && kind == FOOTER_SEGMENT;
}

/* Whether the footer belongs to this segment, and does not require reading it. */
static bool is_of(struct feeding *f, const msgpack_object_array *item)
{
	uint64_t format, created_ns, bytes, tail_hash;
	const struct footer_id *id = f->id;

	if (!is_segment(item) || item->size < 8 || !items_u64(item, 1, &format) ||
	    !items_u64(item, 2, &created_ns) || !items_u64(item, 3, &bytes) ||
	    !items_u64(item, 4, &tail_hash) || item->ptr[5].type != MSGPACK_OBJECT_BOOLEAN ||
	    !items_u64(item, 6, &f->note_ns) || !items_u64(item, 7, &f->frames))
		return false;
	f->indexed = item->size > 8 && item->ptr[8].type == MSGPACK_OBJECT_BOOLEAN &&
		     item->ptr[8].via.boolean;
	f->whole = item->ptr[5].via.boolean;
	return format == FOOTER_FORMAT && created_ns == id->created_ns && bytes == id->bytes &&
	       tail_hash == id->tail_hash;
}

/* Checking: only the workers matter, which come first */

/* Whether an attempt that is kept has records that the footer lacks. */
static bool goes_on(const struct stream *kept, const struct stream *spanned,
		    const struct stream *taken)
{
	const struct range *k, *s;
	uint64_t number, to;

	for (k = kept->ranges.v; k < kept->ranges.v + kept->ranges.n; k++) {
		for (s = spanned->ranges.v; s < spanned->ranges.v + spanned->ranges.n; s++) {
			to = k->to < s->to ? k->to : s->to;
			for (number = k->from > s->from ? k->from : s->from; number < to; number++)
				if (!stream_has(taken, number))
					return true;
		}
	}
	return false;
}

/*
 * An attempt is kept completely. If one that began in an earlier segment has records here that the
 * footer lacks, the segment must be read. This is rare: only for tasks that began a span.
 */
static int check_worker(struct feeding *f, const msgpack_object_array *item)
{
	const uint8_t *id = items_id(item, 1);
	struct stream spanned = {0}, taken = {0};
	const struct worker *w;
	int rc = id && item->size == 10 ? stream_take(&spanned, &item->ptr[6]) : -EBADMSG;

	if (!rc)
		rc = stream_take(&taken, &item->ptr[7]);
	w = id ? model_find_worker(f->m, id) : NULL;
	if (!rc && w)
		f->known = goes_on(&w->taken_up, &spanned, &taken);
	free(spanned.ranges.v);
	free(taken.ranges.v);
	return rc ? rc : f->known ? STOP : 0;
}

static int check_item(void *arg, const msgpack_object_array *item)
{
	struct feeding *f = arg;
	uint64_t kind;

	if (!f->good) {
		f->good = is_of(f, item);
		return f->good && !f->whole ? 0 : STOP;
	}
	if (!items_u64(item, 0, &kind) || kind != FOOTER_WORKER)
		return STOP;
	return f->m && !f->segment ? check_worker(f, item) : STOP;
}

/* Feeding */

static struct selection_file *current(struct feeding *f)
{
	return &f->m->selection->files.v[f->m->selection->files.n - 1];
}

/* Long waits count once by their numbers, so those of blocks come first. */
static int feed_stacks(struct feeding *f, struct worker *w, const msgpack_object *list)
{
	struct stream *later = f->segment ? ARRAY_NEW(&f->stacks) : &w->stacks;

	return later ? stream_take(later, list) : -ENOMEM;
}

static int feed_worker(struct feeding *f, const msgpack_object_array *item)
{
	const uint8_t *id = items_id(item, 1);
	struct worker *w = id ? model_worker(f->m, id) : NULL, **at = ARRAY_NEW(&f->workers);
	uint64_t first_ns, last_ns;
	struct sampled *sampled;
	int rc;

	if (!w || !at)
		return id ? -ENOMEM : -EBADMSG;
	*at = w;
	sampled = ARRAY_NEW(&current(f)->sampled);
	if (!sampled)
		return -ENOMEM;
	sampled->worker = w;
	if (item->size != 10 || !items_u64(item, 2, &first_ns) || !items_u64(item, 3, &last_ns) ||
	    !items_u64(item, 4, &sampled->from_boot_ns) ||
	    !items_u64(item, 5, &sampled->to_boot_ns))
		return -EBADMSG;
	rc = stream_take(&w->spanned, &item->ptr[6]);
	if (!rc)
		rc = feed_stacks(f, w, &item->ptr[9]);
	if (!rc)
		rc = worker_take_streams(w, &item->ptr[8]);
	if (rc)
		return rc;
	worker_sign(w, first_ns);
	worker_sign(w, last_ns);
	w->last_segment = f->m->segment;
	w->left_out = w->left_out || (item->ptr[6].via.array.size && !f->segment &&
				      f->m->selection->pass != SELECTION_SURVEY);
	return 0;
}

/* Feeds its keys as if tasks had them. */
static int feed_keys(struct model *m, struct task_record *r, const msgpack_object *list,
		     uint64_t *value, uint64_t known)
{
	uint32_t i;
	int rc = 0;

	if (list->type != MSGPACK_OBJECT_ARRAY)
		return -EBADMSG;
	r->known |= known;
	for (i = 0; i < list->via.array.size && !rc; i++)
		rc = object_u64(&list->via.array.ptr[i], value) ? span_part_feed(m, r) : -EBADMSG;
	r->known &= ~known;
	*value = 0;
	return rc;
}

static int feed_part(struct model *m, const msgpack_object_array *item, struct text span,
		     struct span_part **part)
{
	struct task_record r = {0};
	struct text prefix;
	int rc;

	TASK_SET(&r, span, span);
	if (object_text(&item->ptr[2], &prefix))
		TASK_SET(&r, prefix, prefix);
	if (item->ptr[4].via.boolean)
		TASK_SET(&r, flags, CREMA_TASK_USERS_SPAN);
	rc = span_part_feed(m, &r);
	if (!rc)
		rc = feed_keys(m, &r, &item->ptr[7], &r.key_hash, UINT64_C(1) << TASK_F_key_hash);
	if (!rc)
		rc = feed_keys(m, &r, &item->ptr[8], &r.consumes, 0);
	*part = (struct span_part *)span_part_find(m, model_text(m, span));
	if (*part && item->ptr[3].via.boolean)
		(*part)->prefixes = true;
	return rc ? rc : *part ? 0 : -ENOMEM;
}

static int feed_ends(struct feeding *f, const char *span, const msgpack_object *list)
{
	uint64_t number, end_ns;
	uint32_t i;
	int rc = 0;

	if (list->type != MSGPACK_OBJECT_ARRAY || list->via.array.size % 2)
		return -EBADMSG;
	for (i = 0; i < list->via.array.size && !rc; i += 2) {
		if (!object_u64(&list->via.array.ptr[i], &number) || number >= f->workers.n ||
		    !object_u64(&list->via.array.ptr[i + 1], &end_ns))
			return -EBADMSG;
		rc = selection_ended(f->m->selection, span, f->workers.v[number], end_ns);
	}
	return rc;
}

static int feed_span(struct feeding *f, const msgpack_object_array *item)
{
	struct selection *s = f->m->selection;
	struct span_part *part;
	uint64_t begun, ended, rows = 0;
	struct text span;
	const char **at;
	int rc;

	if (item->size < 10 || !object_text(&item->ptr[1], &span) ||
	    item->ptr[3].type != MSGPACK_OBJECT_BOOLEAN ||
	    item->ptr[4].type != MSGPACK_OBJECT_BOOLEAN || !items_u64(item, 5, &begun) ||
	    !items_u64(item, 6, &ended))
		return -EBADMSG;
	at = ARRAY_NEW(&current(f)->spans);
	if (!at)
		return -ENOMEM;
	*at = model_text(f->m, span);
	items_u64(item, 10, &rows);
	if (f->segment && selection_wants(s, span))
		f->records += begun + ended + rows;
	else
		f->m->left_out += begun + ended;
	if (!begun && !ended) /* rows only */
		return f->m->error;
	rc = feed_part(f->m, item, span, &part);
	if (!rc && s->pass == SELECTION_SURVEY)
		rc = selection_counted(s, part->name, begun, ended);
	if (!rc && s->pass == SELECTION_SURVEY)
		rc = feed_ends(f, part->name, &item->ptr[9]);
	return rc;
}

static int feed_hello(struct feeding *f, const uint8_t *id, uint64_t stream, struct text payload)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_HELLO, id, stream);

	return model_feed(f->m, &head, (const unsigned char *)payload.ptr, payload.len);
}

/* As an array of one. */
static int feed_message(struct feeding *f, const uint8_t *id, uint64_t stream, struct text message)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_CARRIED, id, stream);
	static const unsigned char one = 0x91;

	head.first_seq = head.count = 1;
	buf_clear(&f->payload);
	buf_add(&f->payload, &one, 1);
	if (buf_add(&f->payload, message.ptr, message.len))
		return -ENOMEM;
	return model_feed(f->m, &head, f->payload.data, f->payload.len);
}

/* Whether the blocks that are read lack it, or do not replace it. */
static int is_missing(struct feeding *f, const struct worker *w, struct text bytes, bool *missing)
{
	const msgpack_object_array *message;
	uint64_t type = 0, boot_ns = 0;
	struct unpack u;
	int rc = unpack_open(&u, bytes.ptr, bytes.len);

	if (rc)
		return rc;
	message = &u.root.via.array;
	if (u.root.type != MSGPACK_OBJECT_ARRAY || message->size < 2 ||
	    !object_u64(&message->ptr[0], &type))
		rc = -EBADMSG;
	else if (type == CREMA_MSG_TOTALS)
		*missing = !selection_takes_time(f->m, w, get_u64(&message->ptr[1], "boot_ns", 0));
	else if (type == CREMA_MSG_DASK)
		*missing = object_u64(&message->ptr[1], &boot_ns) && boot_ns > w->digests_boot_ns;
	else
		*missing = true;
	unpack_release(&u);
	return rc;
}

static void settle_workers(struct feeding *f)
{
	struct worker *w;
	size_t i;

	for (i = 0; i < f->workers.n; i++) {
		w = f->workers.v[i];
		w->left_out =
			w->left_out || ranges_common(&w->spanned.ranges, &w->taken_up.ranges) <
					       w->spanned.ranges.bytes;
	}
}

static int feed_blocks(struct feeding *f)
{
	struct selection *s = f->m->selection;
	uint64_t taken = s->taken;
	size_t i;
	int rc;

	f->blocks_fed = true;
	rc = blocks_feed(&f->blocks, f->m, f->segment, f->id->bytes, f->frames);
	if (!rc && s->taken - taken != f->records)
		rc = -EBADMSG;
	for (i = 0; i < f->stacks.n && !rc; i++)
		rc = ranges_join(&f->workers.v[i]->stacks.ranges, &f->stacks.v[i].ranges);
	if (!rc)
		settle_workers(f);
	return rc;
}

static int feed_kept(struct feeding *f, uint64_t kind, const uint8_t *id, uint64_t stream,
		     struct text bytes)
{
	struct worker *w = model_worker(f->m, id);
	bool missing = true;
	int rc = w ? 0 : -ENOMEM;

	if (!rc && kind == FOOTER_HELLO)
		return feed_hello(f, id, stream, bytes);
	if (!rc &&
	    selection_skips_task(f->m->selection, (const unsigned char *)bytes.ptr, bytes.len))
		return 0;
	if (!rc && f->segment)
		rc = is_missing(f, w, bytes, &missing);
	return rc || !missing ? rc : feed_message(f, id, stream, bytes);
}

static int feed_item(void *arg, const msgpack_object_array *item)
{
	struct feeding *f = arg;
	uint64_t kind, stream;
	struct text bytes;
	const uint8_t *id;
	int rc;

	if (!items_u64(item, 0, &kind))
		return -EBADMSG;
	if (kind == FOOTER_SEGMENT)
		return 0;
	if (kind == FOOTER_WORKER)
		return feed_worker(f, item);
	if (kind == FOOTER_SPAN)
		return feed_span(f, item);
	if (kind >= FOOTER_MESSAGE && f->m->selection->pass == SELECTION_SURVEY)
		return STOP;
	if (kind == FOOTER_BLOCK)
		return f->segment ? blocks_take(&f->blocks, f->m, f->workers.v, f->workers.n, item)
				  : 0;
	if (f->blocks.v.n && !f->blocks_fed && (rc = feed_blocks(f)))
		return rc;
	id = items_id(item, 1);
	if (!id || item->size != 4 || !items_u64(item, 2, &stream) ||
	    !object_bin(&item->ptr[3], &bytes) || !bytes.len)
		return -EBADMSG;
	return feed_kept(f, kind, id, stream, bytes);
}

/* Checks its first items, and that the footer is complete. */
static int check(const char *folder, const char *name, struct feeding *f)
{
	char path[PATH_MAX];
	uint64_t bytes;

	if (dirs_join(path, sizeof(path), folder, name))
		return -ENAMETOOLONG;
	return items_read(path, CREMA_FRAME_FOOTER, check_item, f, &bytes);
}

/* After check(). */
static int read_items(const char *folder, const char *name,
		      int (*take)(void *arg, const msgpack_object_array *item), void *arg)
{
	char path[PATH_MAX];

	if (dirs_join(path, sizeof(path), folder, name))
		return -ENAMETOOLONG;
	return items_read_whole(path, CREMA_FRAME_FOOTER, take, arg);
}

static void release(struct feeding *f)
{
	size_t i;

	for (i = 0; i < f->stacks.n; i++)
		ranges_release(&f->stacks.v[i].ranges);
	free(f->stacks.v);
	free(f->workers.v);
	blocks_free(&f->blocks);
	buf_release(&f->payload);
}

int footer_feed(struct model *m, const char *folder, const char *segment, const char *name)
{
	struct feeding f = {.m = m};
	struct footer_id id;
	int rc;

	f.id = &id;
	if (m->selection->pass == SELECTION_RUNS && !selection_skips(m->selection, segment))
		f.segment = segment;
	if (footer_identify(segment, name, &id))
		return 0;
	rc = check(folder, name, &f);
	if (rc == -ENOMEM)
		return rc;
	if (rc < 0 || !f.good || f.whole || f.known || (f.segment && !f.indexed))
		return 0;
	m->selection->counted = true;
	m->selection->no_tasks = m->selection->pass == SELECTION_RUNS;
	selection_frames(m->selection, f.frames);
	current(&f)->footer = true;
	rc = read_items(folder, name, feed_item, &f);
	if (rc >= 0 && f.segment && !f.blocks_fed)
		rc = feed_blocks(&f);
	m->selection->counted = m->selection->no_tasks = false;
	if (f.note_ns > m->last_note_ns)
		m->last_note_ns = f.note_ns;
	release(&f);
	if (m->error || rc == -ENOMEM)
		return m->error ? m->error : rc;
	if (rc >= 0)
		return 1;
	m->selection->footers_off = true;
	return -ESTALE;
}

/* Whether there is a valid footer; *whole: it requires reading the segment. */
static bool is_good(const char *journal, const char *folder, const char *name, bool *whole)
{
	char segment[PATH_MAX];
	struct footer_id id;
	struct feeding f = {.id = &id};

	if (dirs_join(segment, sizeof(segment), journal, name) ||
	    footer_identify(segment, name, &id) || check(folder, name, &f) < 0)
		return false;
	*whole = f.whole;
	return f.good;
}

bool footer_is_good(const char *journal, const char *folder, const char *name)
{
	bool whole;

	return is_good(journal, folder, name, &whole);
}

int footer_each(const char *journal, const char *folder, const char *name,
		int (*take)(void *arg, const msgpack_object_array *item), void *arg)
{
	bool whole;
	int rc;

	if (!is_good(journal, folder, name, &whole) || whole)
		return 0;
	rc = read_items(folder, name, take, arg);
	return rc < 0 ? rc : 1;
}
