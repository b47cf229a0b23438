/* SPDX-License-Identifier: BSD-3-Clause */
/* rows.c - FILE, CODEC and DASK messages. */
#include "agent/rows.h"

#include <string.h>

#include "agent/redact.h"

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
}

static enum outbox_class class_of(bool last)
{
	return last ? OUTBOX_RECORD : OUTBOX_LIGHT;
}

static void send_file(struct rows *r, uint32_t i, const struct crema_file *f, bool lists, bool last)
{
	static const char *const kinds[] = {"data", "import", "other", "remote"};
	bool local = f->kind != CREMA_FILE_REMOTE; /* else no read call could show it */
	const struct fskind_entry *fs = fskinds_get(r->kinds, f->filesystem);
	struct text path = redact_file(r->view->redact, view_text(r->view, f->path));
	struct text name = redact_file(r->view->redact, view_text(r->view, f->name));
	struct text span = view_text(r->view, f->span);
	msgpack_packer *pk = outbox_begin(r->out, class_of(last));
	bool known;
	size_t map;

	pack_array(pk, 2);
	pack_u64(pk, CREMA_MSG_FILE);
	map = pack_map_begin(pk);
	pack_kv_str(pk, "path", path.ptr, path.len);
	pack_kv_str(pk, "span", span.ptr, span.len);
	pack_kv_text(pk, "filesystem", f->path ? fs->name : NULL);
	pack_kv_text(pk, "storage", f->path ? fskind_text(fs->kind) : NULL);
	pack_kv_text(pk, "kind", f->kind < 4 ? kinds[f->kind] : "other");
	pack_kv_maybe(pk, "size_bytes", f->path && local, f->size_bytes);
	pack_kv_maybe(pk, "read_calls", local, f->read_calls);
	pack_kv_maybe(pk, "read_bytes", local, f->read_bytes);
	pack_kv_maybe(pk, "write_calls", local, f->write_calls);
	pack_kv_maybe(pk, "write_bytes", local, f->write_bytes);
	pack_kv_maybe(pk, "mapped_bytes", local, f->mapped_bytes);
	pack_kv_maybe(pk, "storage_read_bytes", !f->path || fs->kind != FSKIND_UNKNOWN,
		      f->storage_read_bytes);
	pack_kv_maybe(pk, "storage_wait_ns", local, f->storage_wait_ns);
	known = !f->path || fs->kind != FSKIND_UNKNOWN;
	pack_kv_u64(pk, "large_read_bytes", f->large_read_bytes);
	pack_kv_maybe(pk, "cached_bytes", known, f->cached_bytes);
	pack_kv_maybe(pk, "readahead_bytes", known, f->readahead_bytes);
	pack_kv_str(pk, "name", name.ptr, name.len);
	pack_kv_u64(pk, "basket_calls", f->basket_calls);
	pack_kv_u64(pk, "page_calls", f->page_calls);
	pack_kv_u64(pk, "basket_bytes", f->basket_bytes);
	pack_kv_u64(pk, "basket_raw_bytes", f->basket_raw_bytes);
	pack_kv_u64(pk, "requests", f->requests);
	pack_kv_u64(pk, "network_read_bytes", f->network_read_bytes);
	pack_kv_u64(pk, "latency_sum_ns", f->latency_sum_ns);
	pack_kv_u64(pk, "latency_max_ns", f->latency_max_ns);
	extents_pack(&r->extents, i, lists, pk);
	pack_map_end(pk, map);
	outbox_end(r->out, class_of(last));
}

/* What live threads have read and not yet added to row i. */
static void add_pending(const struct rows *r, uint32_t i, struct crema_file *f)
{
	for (uint32_t k = 0; k < CREMA_SHM_THREADS; k++) {
		const struct crema_thread *t = &r->view->shm->thread[k];

		if (t->state == 1 && t->file_row == i + 1) {
			f->read_calls += t->file_read_calls;
			f->read_bytes += t->file_read_bytes;
		}
	}
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
			add_pending(r, i, &f);
		sum = f.read_calls + f.read_bytes + f.write_calls + f.write_bytes + f.mapped_bytes +
		      f.storage_read_bytes + f.storage_wait_ns + f.size_bytes + f.basket_calls +
		      f.basket_bytes + f.requests + f.latency_sum_ns;
		quiet = sum == r->file_sum[i];
		if (quiet && !extents_due(&r->extents, i))
			continue;
		r->file_sum[i] = sum;
		/* The lists go when nothing has been added for a while: they may be long. */
		send_file(r, i, &f, quiet || last, last);
	}
}

void rows_codecs(struct rows *r, bool last)
{
	for (uint32_t i = 0; i < CREMA_SHM_CODEC_ROWS; i++) {
		const struct crema_codec_row *at = &r->view->shm->codec[i];
		struct crema_codec_row c;
		struct text span;
		msgpack_packer *pk;
		uint64_t sum;
		size_t map;

		if (__atomic_load_n(&at->state, __ATOMIC_ACQUIRE) != 2)
			continue;
		memcpy(&c, at, sizeof(c));
		sum = c.calls + c.in_bytes + c.out_bytes + c.cpu_ns + c.wall_ns;
		if (c.codec >= CREMA_CODECS || sum == r->codec_sum[i])
			continue;
		r->codec_sum[i] = sum;
		span = view_text(r->view, c.span);
		pk = outbox_begin(r->out, class_of(last));
		pack_array(pk, 2);
		pack_u64(pk, CREMA_MSG_CODEC);
		map = pack_map_begin(pk);
		pack_kv_text(pk, "function", codec_names[c.codec].function);
		pack_kv_text(pk, "codec", codec_names[c.codec].codec);
		pack_kv_text(pk, "direction", codec_names[c.codec].direction);
		pack_kv_str(pk, "span", span.ptr, span.len);
		pack_kv_u64(pk, "calls", c.calls);
		pack_kv_u64(pk, "in_bytes", c.in_bytes);
		pack_kv_u64(pk, "out_bytes", c.out_bytes);
		pack_kv_maybe(pk, "cpu_ns", !c.time_unknown, c.cpu_ns);
		pack_kv_maybe(pk, "wall_ns", !c.time_unknown, c.wall_ns);
		pack_map_end(pk, map);
		outbox_end(r->out, class_of(last));
	}
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
