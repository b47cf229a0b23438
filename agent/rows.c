/* SPDX-License-Identifier: BSD-3-Clause */
/* rows.c - FILE, CODEC and DASK messages. */
#include "agent/rows.h"

#include <string.h>

#include "agent/redact.h"
#include "common/rows.h"

struct codec_name {
	const char *function, *codec, *direction;
};

#define DIRECTION_D "decompress"
#define DIRECTION_C "compress"
#define DIRECTION_I NULL /* it has no row */
#define DIRECTION_U NULL

static const struct codec_name codec_names[CREMA_CODECS] = {
#define CODEC(id, module, path, codec, direction, input, into)                                     \
	{module "." path, codec, DIRECTION_##direction},
#include "codecs.def"
#undef CODEC
};

void rows_init(struct rows *r, const struct view *v, struct outbox *out,
	       const struct fskinds *kinds)
{
	memset(r, 0, sizeof(*r));
	r->view = v;
	r->out = out;
	r->kinds = kinds;
	extents_init(&r->extents);
}

void rows_release(struct rows *r)
{
	buf_release(&r->text);
	extents_release(&r->extents);
}

void rows_forget(struct rows *r)
{
	memset(r->file_sum, 0, sizeof(r->file_sum));
	memset(r->codec_sum, 0, sizeof(r->codec_sum));
	memset(r->server_sum, 0, sizeof(r->server_sum));
	memset(r->section_sent, 0, sizeof(r->section_sent));
	memset(r->gauge_sent, 0, sizeof(r->gauge_sent));
	memset(r->column_sent, 0, sizeof(r->column_sent));
}

static enum outbox_class class_of(bool last)
{
	return last ? OUTBOX_RECORD : OUTBOX_LIGHT;
}

/* What applies to a file, by enum row_seen: another message reports whether io_uring is used. */
static unsigned int seen_of(const struct crema_file *f, const struct fskind_entry *fs)
{
	bool local = f->kind != CREMA_FILE_REMOTE; /* otherwise no read call could show it */
	/* a data file without a path: the table of texts was full, and it may stand for several */
	bool proven = f->path ? fs->kind != FSKIND_UNKNOWN : f->kind != CREMA_FILE_DATA;

	return ROW_NO_URING | (local ? ROW_LOCAL : 0) | (proven ? ROW_PROVEN : 0) |
	       (f->path && (local || f->size_bytes) ? ROW_SIZED : 0);
}

/* What live threads have read and not yet added to file[i], or opened[i]. */
static void add_pending(const struct view *v, bool opened, uint32_t i, uint64_t *calls,
			uint64_t *bytes)
{
	for (uint32_t k = 0; k < CREMA_SHM_THREADS; k++) {
		const struct crema_thread *t = &v->shm->thread[k];

		if (t->state == 1 && (opened ? t->file_opened : t->file_row) == i + 1) {
			*calls += t->file_read_calls;
			*bytes += t->file_read_bytes;
		}
	}
}

static void pack_opened(struct rows *r, uint32_t file, bool last, msgpack_packer *pk)
{
	const struct crema_opened *at = r->view->shm->opened;
	uint16_t found[CREMA_SHM_OPENED];
	struct crema_opened o;
	uint32_t n = 0;

	for (uint32_t i = 0; i < CREMA_SHM_OPENED; i++)
		if (__atomic_load_n(&at[i].state, __ATOMIC_ACQUIRE) == 2 &&
		    at[i].file_row == file + 1)
			found[n++] = (uint16_t)i;
	if (!n)
		return;
	pack_text(pk, "opened_by");
	pack_array(pk, n);
	for (uint32_t i = 0; i < n; i++) {
		memcpy(&o, &at[found[i]], sizeof(o));
		if (last)
			add_pending(r->view, true, found[i], &o.read_calls, &o.read_bytes);
		pack_array(pk, 1 + CREMA_OPENED_NUMBERS);
		rows_pack_line(pk, r->view, &o.line);
		for (uint32_t k = 0; k < CREMA_OPENED_NUMBERS; k++)
			pack_u64(pk, o.number[k]);
	}
}

/* False: it changed after it was read, so two reads may be of other bytes. */
static bool is_one_file(const struct crema_file *f)
{
	return !f->changed || !(f->read_bytes || f->basket_bytes || f->mapped_bytes);
}

static void send_file(struct rows *r, uint32_t i, const struct crema_file *f, bool lists, bool last)
{
	static const char *const kinds[] = {"data", "import", "other", "remote"};
	const struct fskind_entry *fs = fskinds_get(r->kinds, f->filesystem);
	struct text path = redact_file(r->view->redact, view_text(r->view, f->path));
	struct text name = redact_file(r->view->redact, view_text(r->view, f->name));
	struct text span = view_text(r->view, f->span);
	unsigned int seen = seen_of(f, fs);
	msgpack_packer *pk = outbox_begin_map(r->out, class_of(last), CREMA_MSG_FILE);

	pack_kv_str(pk, "path", path.ptr, path.len);
	pack_kv_str(pk, "span", span.ptr, span.len);
	pack_kv_text(pk, "filesystem", f->path ? fs->name : NULL);
	pack_kv_text(pk, "storage", f->path ? fskind_text(fs->kind) : NULL);
	pack_kv_text(pk, "kind", f->kind < 4 ? kinds[f->kind] : "other");
	pack_kv_str(pk, "name", name.ptr, name.len);
	for (unsigned int k = 0; k < CREMA_FILE_NUMBERS; k++)
		pack_kv_maybe(pk, row_file[k].name, !(row_file_seen[k] & ~seen), f->number[k]);
	pack_opened(r, i, last, pk);
	extents_pack(&r->extents, i, is_one_file(f), lists, pk);
	outbox_end_map(r->out, class_of(last));
}

uint64_t rows_sum_of(const uint64_t *number, size_t n)
{
	uint64_t sum = 0;

	while (n--)
		sum += number[n];
	return sum;
}

void rows_files(struct rows *r, bool last)
{
	extents_take(&r->extents, r->view, last);
	for (uint32_t i = 0; i < CREMA_SHM_FILES; i++) {
		const struct crema_file *at = &r->view->shm->file[i];
		struct crema_file f;
		uint64_t sum;
		bool quiet;

		if (__atomic_load_n(&at->state, __ATOMIC_ACQUIRE) != 2)
			continue;
		memcpy(&f, at, sizeof(f));
		if (last)
			add_pending(r->view, false, i, &f.read_calls, &f.read_bytes);
		sum = rows_sum_of(f.number, CREMA_FILE_NUMBERS);
		quiet = sum == r->file_sum[i];
		if (quiet && !extents_due(&r->extents, i))
			continue;
		r->file_sum[i] = sum;
		/* The lists are sent when nothing has been added for a while: they may be long. */
		send_file(r, i, &f, quiet || last, last);
	}
}

static const bool codec_timed[CREMA_CODEC_NUMBERS] = {
#define CODEC_NUMBER(name, cell, title, unit, merge, timed, help) timed,
#include "rows.def"
};

void rows_codecs(struct rows *r, bool last)
{
	for (uint32_t i = 0; i < CREMA_SHM_CODEC_ROWS; i++) {
		const struct crema_codec_row *at = &r->view->shm->codec[i];
		struct crema_codec_row c;
		struct text span;
		msgpack_packer *pk;
		uint64_t sum;

		if (__atomic_load_n(&at->state, __ATOMIC_ACQUIRE) != 2)
			continue;
		memcpy(&c, at, sizeof(c));
		sum = rows_sum_of(c.number, CREMA_CODEC_NUMBERS);
		if (c.codec >= CREMA_CODECS || sum == r->codec_sum[i])
			continue;
		r->codec_sum[i] = sum;
		span = view_text(r->view, c.span);
		pk = outbox_begin_map(r->out, class_of(last), CREMA_MSG_CODEC);
		pack_kv_text(pk, "function", codec_names[c.codec].function);
		pack_kv_text(pk, "codec", codec_names[c.codec].codec);
		pack_kv_text(pk, "direction", codec_names[c.codec].direction);
		pack_kv_str(pk, "span", span.ptr, span.len);
		for (unsigned int k = 0; k < CREMA_CODEC_NUMBERS; k++)
			pack_kv_maybe(pk, row_codec[k].name, !c.time_unknown || !codec_timed[k],
				      c.number[k]);
		outbox_end_map(r->out, class_of(last));
	}
}

/* A writer that was killed meanwhile leaves an odd seq. */
void rows_copy(void *to, const void *from, size_t bytes, const uint64_t *seq)
{
	uint64_t before;
	int tries = 100;

	do {
		before = __atomic_load_n(seq, __ATOMIC_ACQUIRE);
		memcpy(to, from, bytes);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while ((before & 1 || before != __atomic_load_n(seq, __ATOMIC_RELAXED)) && --tries);
}

struct drain_unknown rows_unknown(const struct rows *r, uint32_t time_unknown,
				  uint64_t count_unknown, uint32_t fs_mask)
{
	struct drain_unknown u = {time_unknown, count_unknown};
	bool mixed;

	if (fskinds_unknown(r->kinds, fs_mask, &mixed))
		u.count |= CREMA_COUNT_BIT(storage_read_bytes) | CREMA_COUNT_BIT(cached_bytes) |
			   CREMA_COUNT_BIT(readahead_bytes);
	return u;
}

/* The copy may be newer than the seq that was seen: the next poll then finds another seq, and sends
 * the row again. */
bool rows_due(struct rows *r, struct row_sent *sent, const uint64_t *live, uint64_t *safe_seq,
	      enum outbox_class *class)
{
	uint64_t seq = __atomic_load_n(live, __ATOMIC_ACQUIRE);

	if (sent->seq != seq || !sent->any) {
		*sent = (struct row_sent){.seq = seq, .any = true};
		return true;
	}
	if (sent->polls < ROWS_QUIET_POLLS && ++sent->polls == ROWS_QUIET_POLLS) {
		*class = OUTBOX_RECORD;
		return true;
	}
	if (sent->polls == ROWS_QUIET_POLLS && outbox_is_safe(r->out, sent->ticket))
		__atomic_store_n(safe_seq, seq, __ATOMIC_RELAXED);
	return false;
}

void rows_dask(struct rows *r)
{
	const struct crema_probe_text *p = &r->view->shm->probe;
	msgpack_packer *pk;
	uint64_t boot_ns;

	if (__atomic_load_n(&p->boot_ns, __ATOMIC_ACQUIRE) == r->probe_boot_ns ||
	    !view_probe(p, &r->text, &boot_ns))
		return;
	r->probe_boot_ns = boot_ns;
	pk = outbox_begin(r->out, OUTBOX_LIGHT);
	pack_array(pk, 3);
	pack_u64(pk, CREMA_MSG_DASK);
	pack_u64(pk, boot_ns);
	pack_str(pk, (const char *)r->text.data, r->text.len);
	outbox_end(r->out, OUTBOX_LIGHT);
}
