/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agent_rows.c - rows of shared memory as messages, with a different number in each field. */
#include "tests/unit/values.h"

#include <arpa/inet.h>

#include "agent/rows.h"
#include "agent/stacks.h"

static const struct value file_values[] = {
#define FILE_NUMBER(name, ...) VALUE(crema_file, name),
#include "rows.def"
};
static const struct value codec_values[] = {
#define CODEC_NUMBER(name, ...) VALUE(crema_codec_row, name),
#include "rows.def"
};
static const struct value server_values[] = {
#define SERVER_NUMBER(name, ...) VALUE(crema_server, name),
#include "rows.def"
};

struct sent {
	struct fake *f;
	struct rows rows;
};

static int rows_setup(void **state)
{
	struct sent *s = calloc(1, sizeof(*s));
	void *f;

	if (!s || setup(&f))
		return -1;
	s->f = f;
	s->f->shm->filesystem[0] = (struct crema_filesystem){.state = 2, .f_type = 0xEF53};
	s->f->shm->filesystem[1] = (struct crema_filesystem){.state = 2, .f_type = 0x01021994};
	s->f->shm->filesystem[2] = (struct crema_filesystem){.state = 2, .f_type = 0x6969};
	fskinds_poll(&s->f->kinds, &s->f->view, getpid());
	rows_init(&s->rows, &s->f->view, &s->f->out, &s->f->kinds);
	*state = s;
	return 0;
}

static int rows_teardown(void **state)
{
	struct sent *s = *state;
	void *f = s->f;

	rows_release(&s->rows);
	teardown(&f);
	free(s);
	return 0;
}

/* Sends the rows' messages; returns how many of this type were sent. */
static unsigned int sent(struct sent *s, void (*rows)(struct rows *, bool), bool last,
			 unsigned int type)
{
	ack_all(s->f);
	rows(&s->rows, last);
	look(s->f);
	for (const struct outbox_frame *o = s->f->out.head; o; o = o->next)
		assert_int_equal(o->light, !last);
	return s->f->types[type];
}

static struct crema_file *file_row(struct fake *f, uint32_t i, uint32_t kind, uint32_t filesystem)
{
	struct crema_file *row = &f->shm->file[i];

	fill(row, sizeof(*row), i + 1);
	row->path = text(f, "/data/a.root");
	row->name = text(f, "root://a.root");
	row->span = text(f, "a-span");
	row->kind = kind;
	row->changed = 0;
	row->filesystem = filesystem;
	row->state = 2;
	return row;
}

static void test_files(void **state)
{
	static const char *const kinds[] = {"data", "import", "other"};
	struct sent *s = *state;

	for (uint32_t i = 0; i < 3; i++)
		file_row(s->f, i, i, i % 2);
	s->f->shm->file[3] = s->f->shm->file[0];
	s->f->shm->file[3].state = 1;
	assert_int_equal(sent(s, rows_files, false, CREMA_MSG_FILE), 3);
	for (uint32_t i = 0; i < 3; i++) {
		const msgpack_object *m = message(s->f, CREMA_MSG_FILE, i);

		assert_values(m, &s->f->shm->file[i], file_values, COUNT_OF(file_values));
		assert_text(m, "path", "/data/a.root");
		assert_text(m, "name", "root://a.root");
		assert_text(m, "span", "a-span");
		assert_text(m, "kind", kinds[i]);
		assert_text(m, "filesystem", i % 2 ? "tmpfs" : "ext4");
		assert_text(m, "storage", i % 2 ? "none" : "exact");
	}
	assert_int_equal(sent(s, rows_files, false, CREMA_MSG_FILE), 0);
	rows_forget(&s->rows);
	assert_int_equal(sent(s, rows_files, true, CREMA_MSG_FILE), 3);
}

/* Values that cannot be measured are nil, and the others are not. */
static void test_files_half_unknown(void **state)
{
	static const char *const by_requests[] = {"read_calls",	 "read_bytes",	 "write_calls",
						  "write_bytes", "mapped_bytes", "storage_wait_ns"};
	static const char *const unproven[] = {"storage_read_bytes", "cached_bytes",
					       "readahead_bytes"};
	struct sent *s = *state;
	const msgpack_object *m;

	file_row(s->f, 0, CREMA_FILE_REMOTE, 0);
	file_row(s->f, 1, CREMA_FILE_DATA, 2);
	file_row(s->f, 2, CREMA_FILE_OTHER, 2)->path = 0;
	file_row(s->f, 3, 4, 0);
	file_row(s->f, 4, CREMA_FILE_REMOTE, 0)->size_bytes = 0;
	assert_int_equal(sent(s, rows_files, false, CREMA_MSG_FILE), 5);
	assert_nil(message(s->f, CREMA_MSG_FILE, 4), "size_bytes"); /* not reported */
	m = message(s->f, CREMA_MSG_FILE, 0);
	assert_text(m, "kind", "remote");
	assert_number(m, "size_bytes", s->f->shm->file[0].size_bytes);
	for (size_t i = 0; i < COUNT_OF(by_requests); i++)
		assert_nil(m, by_requests[i]);
	assert_number(m, "requests", s->f->shm->file[0].requests);
	m = message(s->f, CREMA_MSG_FILE, 1);
	assert_text(m, "filesystem", "nfs");
	assert_text(m, "storage", "unknown");
	for (size_t i = 0; i < COUNT_OF(unproven); i++)
		assert_nil(m, unproven[i]);
	assert_number(m, "read_bytes", s->f->shm->file[1].read_bytes);
	/* The remainder of several files: on no single file system, without a size. */
	m = message(s->f, CREMA_MSG_FILE, 2);
	assert_nil(m, "path");
	assert_nil(m, "filesystem");
	assert_nil(m, "storage");
	assert_nil(m, "size_bytes");
	for (size_t i = 0; i < COUNT_OF(unproven); i++)
		assert_false(is_nil(get(m, unproven[i])));
	assert_text(message(s->f, CREMA_MSG_FILE, 3), "kind", "other");
}

/* A change of any number sends its row again. */
static void test_what_changed_is_sent(void **state)
{
	struct sent *s = *state;
	struct crema_codec_row *codec = &s->f->shm->codec[7];
	struct crema_server *server = &s->f->shm->server[5];
	struct crema_file *file = file_row(s->f, 9, CREMA_FILE_DATA, 0);

	codec->state = server->state = 2;
	assert_int_equal(sent(s, rows_files, false, CREMA_MSG_FILE), 1);
	for (size_t i = 0; i < COUNT_OF(file_values); i++) {
		add_at(file, file_values[i].at, 1);
		assert_int_equal(sent(s, rows_files, false, CREMA_MSG_FILE), 1);
		assert_int_equal(sent(s, rows_files, false, CREMA_MSG_FILE), 0);
	}
	for (size_t i = 0; i < COUNT_OF(codec_values); i++) {
		add_at(codec, codec_values[i].at, 1);
		assert_int_equal(sent(s, rows_codecs, false, CREMA_MSG_CODEC), 1);
		assert_int_equal(sent(s, rows_codecs, false, CREMA_MSG_CODEC), 0);
	}
	for (size_t i = 0; i < COUNT_OF(server_values); i++) {
		add_at(server, server_values[i].at, 1);
		assert_int_equal(sent(s, rows_servers, false, CREMA_MSG_SERVER), 1);
		assert_int_equal(sent(s, rows_servers, false, CREMA_MSG_SERVER), 0);
	}
}

/* Of a dead worker: what its threads had read and not yet added to the row. */
static void test_pending_reads(void **state)
{
	struct sent *s = *state;
	struct crema_file *file = file_row(s->f, 4, CREMA_FILE_DATA, 0);
	const msgpack_object *m;

	for (uint32_t i = 0; i < 4; i++)
		s->f->shm->thread[i] =
			(struct crema_thread){.state = i != 3,
					      .file_row = i == 2 ? 4 : 5,
					      .file_read_calls = 3,
					      .file_read_bytes = UINT64_C(1000) << i};
	assert_int_equal(sent(s, rows_files, false, CREMA_MSG_FILE), 1);
	m = message(s->f, CREMA_MSG_FILE, 0);
	assert_number(m, "read_bytes", file->read_bytes);
	assert_int_equal(sent(s, rows_files, true, CREMA_MSG_FILE), 1);
	m = message(s->f, CREMA_MSG_FILE, 0);
	assert_number(m, "read_calls", file->read_calls + 6);
	assert_number(m, "read_bytes", file->read_bytes + 3000);
}

static void extent(struct crema_shm *m, uint32_t row, uint64_t offset, uint32_t bytes)
{
	m->extent[m->extents_head++ % CREMA_SHM_EXTENTS] =
		(struct crema_extent){offset, bytes, row};
}

static void assert_ranges(const msgpack_object *list, const uint64_t *due, uint32_t n)
{
	assert_non_null(list);
	assert_int_equal(list->via.array.size, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(list->via.array.ptr[i].via.u64, due[i]);
}

/* Read: [100,150) twice, [140,300), [1000,1010); baskets: [290,310) twice, [1005,1006). */
static void test_extents(void **state)
{
	static const uint64_t read[] = {100, 200, 700, 10}, baskets[] = {290, 20, 695, 1};
	struct sent *s = *state;
	struct crema_shm *shm = s->f->shm;
	const msgpack_object *m;
	uint64_t begin = CREMA_SHM_EXTENTS - 3; /* across the ring's end */

	file_row(s->f, 6, CREMA_FILE_DATA, 0);
	shm->extents_head = shm->extents_tail = begin;
	extent(shm, 7, 100, 50);
	extent(shm, 7, 140, 160);
	extent(shm, 7, 100, 50);
	extent(shm, 7 | CREMA_EXTENT_BASKET, 290, 20);
	extent(shm, 7 | CREMA_EXTENT_BASKET, 290, 20);
	extent(shm, 7, 1000, 10);
	extent(shm, 7 | CREMA_EXTENT_BASKET, 1005, 1);
	extent(shm, 0, 5, 5); /* a thread is currently writing it */
	extent(shm, 7, 5000, 5);
	assert_int_equal(sent(s, rows_files, false, CREMA_MSG_FILE), 1);
	assert_int_equal(shm->extents_tail, begin + 7);
	assert_nil(message(s->f, CREMA_MSG_FILE, 0), "ranges");
	assert_int_equal(sent(s, rows_files, false, CREMA_MSG_FILE), 1);
	m = message(s->f, CREMA_MSG_FILE, 0);
	assert_number(m, "extent_bytes", 270);
	assert_number(m, "unique_bytes", 210);
	assert_number(m, "basket_extent_bytes", 41);
	assert_number(m, "unique_basket_bytes", 21);
	assert_number(m, "read_basket_bytes", 11);
	assert_ranges(get(m, "ranges"), read, 4);
	assert_ranges(get(m, "basket_ranges"), baskets, 4);
	assert_int_equal(sent(s, rows_files, false, CREMA_MSG_FILE), 0);
	/* another file has that path now */
	shm->file[6].changed = 1;
	shm->file[6].read_calls++;
	assert_int_equal(sent(s, rows_files, false, CREMA_MSG_FILE), 1);
	m = message(s->f, CREMA_MSG_FILE, 0);
	assert_nil(m, "extent_bytes");
	assert_nil(m, "unique_bytes");
	assert_nil(m, "unique_basket_bytes");
	assert_nil(m, "ranges");
	/* as a journal of SQLite, which reads 0 bytes of it: no read can be of other bytes */
	shm->file[6].read_bytes = shm->file[6].basket_bytes = shm->file[6].mapped_bytes = 0;
	assert_int_equal(sent(s, rows_files, false, CREMA_MSG_FILE), 1);
	assert_number(message(s->f, CREMA_MSG_FILE, 0), "unique_bytes", 210);
}

/* Extents that threads still held when the worker died, and the rest of the ring. */
static void test_pending_extents(void **state)
{
	struct sent *s = *state;
	struct crema_shm *shm = s->f->shm;
	const msgpack_object *m;

	file_row(s->f, 0, CREMA_FILE_DATA, 0);
	extent(shm, 0, 5, 5);
	extent(shm, 1, 1000, 1);
	shm->thread[2] = (struct crema_thread){.state = 1,
					       .file_row = 1,
					       .extents_ended = 2,
					       .extent_ended_offset = {10, 20, 30},
					       .extent_ended_bytes = {2, 4, 8},
					       .extent_offset = 100,
					       .extent_bytes = 16};
	shm->thread[3] = shm->thread[2];
	shm->thread[3].state = 0;
	shm->thread[4] = shm->thread[2];
	shm->thread[4].file_row = 2;
	assert_int_equal(sent(s, rows_files, true, CREMA_MSG_FILE), 1);
	m = message(s->f, CREMA_MSG_FILE, 0);
	assert_number(m, "extent_bytes", 23);
	assert_number(m, "unique_bytes", 23);
	assert_number(m, "basket_extent_bytes", 0);
	assert_int_equal(shm->extents_tail, 2);
	/* An invalid head is ignored. */
	shm->extents_head = 3 + CREMA_SHM_EXTENTS;
	extent(shm, 1, 5000, 1);
	assert_int_equal(sent(s, rows_files, true, CREMA_MSG_FILE), 1);
	assert_int_equal(shm->extents_tail, shm->extents_head);
}

static void test_codecs(void **state)
{
	struct sent *s = *state;
	struct crema_codec_row *row = s->f->shm->codec;
	const msgpack_object *m;

	for (uint32_t i = 0; i < 4; i++) {
		fill(&row[i], sizeof(row[i]), i + 1);
		row[i].state = i == 3 ? 1 : 2;
		row[i].codec = i == 0 ? CREMA_CODEC_zlib_decompress : CREMA_CODEC_cramjam_xz_c;
		row[i].span = text(s->f, i ? "two" : "one");
		row[i].time_unknown = i == 1;
	}
	row[2].codec = CREMA_CODECS;
	assert_int_equal(sent(s, rows_codecs, false, CREMA_MSG_CODEC), 2);
	m = message(s->f, CREMA_MSG_CODEC, 0);
	assert_values(m, row, codec_values, COUNT_OF(codec_values));
	assert_text(m, "function", "zlib.decompress");
	assert_text(m, "codec", "zlib");
	assert_text(m, "direction", "decompress");
	assert_text(m, "span", "one");
	m = message(s->f, CREMA_MSG_CODEC, 1);
	assert_values(m, row + 1, codec_values, 3);
	assert_nil(m, "cpu_ns");
	assert_nil(m, "wall_ns");
	assert_text(m, "function", "cramjam.cramjam.xz.compress");
	assert_text(m, "codec", "lzma");
	assert_text(m, "direction", "compress");
	assert_text(m, "span", "two");
	rows_forget(&s->rows);
	assert_int_equal(sent(s, rows_codecs, true, CREMA_MSG_CODEC), 2);
}

static void test_servers(void **state)
{
	struct sent *s = *state;
	struct crema_server *row = &s->f->shm->server[3];
	const msgpack_object *m, *latency;

	fill(row, sizeof(*row), 3);
	row->state = 2;
	row->address = text(s->f, "a.host:1094");
	row->scheme = text(s->f, "root");
	row->span = text(s->f, "the-span");
	s->f->shm->server[4] = *row;
	s->f->shm->server[4].state = 1;
	assert_int_equal(sent(s, rows_servers, false, CREMA_MSG_SERVER), 1);
	m = message(s->f, CREMA_MSG_SERVER, 0);
	assert_values(m, row, server_values, COUNT_OF(server_values));
	assert_text(m, "server", "a.host:1094");
	assert_text(m, "scheme", "root");
	assert_text(m, "span", "the-span");
	latency = get(m, "latency");
	assert_int_equal(latency->via.array.size, CREMA_LATENCY_BUCKETS);
	for (uint32_t i = 0; i < CREMA_LATENCY_BUCKETS; i++)
		assert_int_equal(latency->via.array.ptr[i].via.u64, row->latency[i]);
	rows_forget(&s->rows);
	assert_int_equal(sent(s, rows_servers, true, CREMA_MSG_SERVER), 1);
}

/* The probe's text: sent once each time that it was written. */
static void test_dask(void **state)
{
	struct sent *s = *state;
	struct crema_probe_text *p = &s->f->shm->probe;
	const msgpack_object *m;

	*p = (struct crema_probe_text){.seq = 2, .bytes = 4, .boot_ns = 77000, .text = "{ } and"};
	rows_dask(&s->rows);
	rows_dask(&s->rows);
	look(s->f);
	assert_int_equal(s->f->types[CREMA_MSG_DASK], 1);
	m = message(s->f, CREMA_MSG_DASK, 0);
	assert_int_equal(m->via.u64, 77000);
	assert_int_equal(m[1].via.str.size, 4);
	assert_memory_equal(m[1].via.str.ptr, "{ } ", 4);
	p->seq = 3; /* it is being written */
	p->boot_ns = 78000;
	rows_dask(&s->rows);
	p->seq = 4;
	p->bytes = sizeof(p->text) + 1;
	rows_dask(&s->rows);
	look(s->f);
	assert_int_equal(s->f->types[CREMA_MSG_DASK], 1);
	p->bytes = 1;
	rows_dask(&s->rows);
	look(s->f);
	assert_int_equal(s->f->types[CREMA_MSG_DASK], 2);
}

/* A long wait: its numbers and names, and the file and offset of its addresses. */
static void test_stack(void **state)
{
	struct sent *s = *state;
	struct crema_stack *r = &s->f->shm->stack[4];
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(1094)};
	const msgpack_object *m, *frames;
	struct stacks stacks;

	inet_pton(AF_INET, "10.2.3.4", &peer.sin_addr);
	stacks_init(&stacks, &s->f->view, &s->f->out, NULL, getpid());
	*r = (struct crema_stack){.state = 2,
				  .wait = CREMA_T_network_wait,
				  .number = 11,
				  .attempt = 22,
				  .waited_ns = 333333333,
				  .end_boot_ns = 4444444444,
				  .tid = 55,
				  .prefix = text(s->f, "fill"),
				  .span = text(s->f, "a-span"),
				  .on = CREMA_ON_SOCKET,
				  .peer_bytes = sizeof(peer),
				  .depth = 2,
				  .address = {8, 9}}; /* in no file */
	memcpy(r->peer, &peer, sizeof(peer));
	stacks_poll(&stacks, SECOND);
	assert_int_equal(r->state, 0);
	look(s->f);
	m = message(s->f, CREMA_MSG_STACK, 0);
	assert_number(m, "number", 11);
	assert_number(m, "attempt", 22);
	assert_number(m, "tid", 55);
	assert_number(m, "end_boot_ns", 4444444444);
	assert_number(m, "waited_ns", 333333333);
	assert_text(m, "wait", "network_wait_ns");
	assert_text(m, "on", "socket");
	assert_text(m, "peer", "10.2.3.4:1094");
	assert_nil(m, "file");
	assert_text(m, "prefix", "fill");
	assert_text(m, "span", "a-span");
	frames = get(m, "frames");
	assert_int_equal(frames->via.array.size, 4);
	for (uint32_t i = 0; i < 4; i++) /* module and place of each */
		assert_int_equal(frames->via.array.ptr[i].via.u64, i % 2 ? 8 + i / 2 : 0);
	/* a lookup's text is a host, not a file */
	r->number = 12;
	r->on = CREMA_ON_HOST;
	r->peer_bytes = 0;
	r->file = text(s->f, "db.example");
	r->state = 2;
	stacks_poll(&stacks, 3 * SECOND);
	look(s->f);
	m = message(s->f, CREMA_MSG_STACK, 1);
	assert_number(m, "number", 12);
	assert_text(m, "on", "host");
	assert_text(m, "peer", "db.example");
	assert_nil(m, "file");
	stacks_release(&stacks);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rows_setup, rows_teardown)
	const struct CMUnitTest tests[] = {
		T(test_files),
		T(test_files_half_unknown),
		T(test_what_changed_is_sent),
		T(test_pending_reads),
		T(test_extents),
		T(test_pending_extents),
		T(test_codecs),
		T(test_servers),
		T(test_dask),
		T(test_stack),
	};

	return cmocka_run_group_tests_name("agent rows", tests, NULL, NULL);
}
