/* SPDX-License-Identifier: BSD-3-Clause */
/* test_checkpoint.c - a start from the newest checkpoint, and without one if it is incomplete. */
#include "fixture_server.h"

#include <sys/stat.h>

#include "collector/journal/checkpoint.h"

#define FRAMES 200u

static char **names;
static int names_n;

static const char *path_of(const struct site *site, int i)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", site->dir, names[i]);
	return path;
}

static void list(const struct site *site)
{
	free(names);
	names_n = framefile_list(site->dir, &names);
	assert_true(names_n > 0);
}

static int count_items(void *arg, const msgpack_object_array *item)
{
	uint64_t kind;

	assert_true(items_u64(item, 0, &kind));
	++*(unsigned int *)arg;
	return 0;
}

static bool has_checkpoint(const char *path, uint64_t *bytes)
{
	unsigned int items = 0;
	int rc = items_read(path, CREMA_FRAME_CHECKPOINT, count_items, &items, bytes);

	assert_true(rc == 0 || (rc == -ENOENT && !items));
	return !rc;
}

/* A journal of several segments, as a killed collector leaves it. */
static void fill(struct site *site)
{
	struct agent agent;
	uint32_t i;

	fixture_segment_bytes = 8192;
	site_init(site);
	agent_open(site, &agent, 1);
	for (i = 0; i < FRAMES; i++) {
		agent_data(&agent, 3 * i, 3);
		assert_int_equal(agent_ack(&agent), 3 * i + 3);
	}
	agent_close(&agent);
	site_stop(site);
	list(site);
	assert_true(names_n >= 3);
}

/* The number that a new collector expects next from the worker. */
static uint64_t wanted(struct site *site)
{
	struct agent agent;
	uint64_t next;

	site_start(site);
	next = agent_open(site, &agent, 1);
	agent_close(&agent);
	site_stop(site);
	return next;
}

/* A segment before all others, with records that no checkpoint includes. */
static void older_segment(const struct site *site)
{
	struct framefile file = {.fd = -1};
	struct crema_frame_header head = {
		.type = CREMA_FRAME_DATA, .stream = 1000, .first_seq = 4 * FRAMES, .count = 1};
	struct buf body = BUF_INIT, frame = BUF_INIT;

	memset(head.worker, 1, sizeof(head.worker));
	data_body(&body, 1, 10);
	assert_int_equal(frame_encode_buf(&frame, &head, &body), 0);
	assert_int_equal(framefile_create(&file, site->dir, "journal", 1, NULL), 0);
	assert_int_equal(framefile_append(&file, frame.data, frame.len), 0);
	framefile_close(&file);
	buf_release(&frame);
}

static void only_the_newest_is_read(void **state)
{
	struct site site;
	unsigned int before;
	uint64_t bytes;
	int i;

	(void)state;
	fill(&site);
	for (i = 1; i < names_n; i++)
		assert_true(has_checkpoint(path_of(&site, i), &bytes));
	for (i = 0; i + 1 < names_n; i++)
		assert_int_equal(unlink(path_of(&site, i)), 0);
	assert_true(journaled(&site).records < 3 * FRAMES);
	assert_int_equal(wanted(&site), 3 * FRAMES);
	before = journaled(&site).data;
	older_segment(&site);
	assert_int_equal(journaled(&site).data, before + 1);
	assert_int_equal(wanted(&site), 3 * FRAMES);
	site_start(&site);
	site_release(&site);
}

/* One byte of the file, at `at`, is changed during the call. */
static void flip(const char *path, off_t at)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

/* The offset of the checkpoint, which takes `bytes` bytes in one frame. */
static off_t begin_of(const char *path, uint64_t bytes)
{
	struct framefile_reader r;
	struct frame f;
	off_t at;

	assert_int_equal(framefile_open(&r, path), 0);
	assert_int_equal(framefile_next(&r, &f), 1);
	assert_int_equal(f.head.type, CREMA_FRAME_CHECKPOINT);
	at = (off_t)(r.at - bytes);
	framefile_reader_close(&r);
	return at;
}

static void one_that_is_damaged_is_not_used(void **state)
{
	struct site site;
	uint64_t bytes, none;
	off_t from, at;

	(void)state;
	fill(&site);
	assert_true(has_checkpoint(path_of(&site, names_n - 1), &bytes));
	from = begin_of(path_of(&site, names_n - 1), bytes);
	for (at = from; at < from + (off_t)bytes; at += 11) {
		flip(path_of(&site, names_n - 1), at);
		assert_false(has_checkpoint(path_of(&site, names_n - 1), &none));
		assert_int_equal(wanted(&site), 3 * FRAMES);
		flip(path_of(&site, names_n - 1), at);
	}
	site_start(&site);
	site_release(&site);
}

static void one_that_is_cut_is_not_used(void **state)
{
	uint64_t bytes, none, before;
	struct site site;
	char last[512];
	off_t cut;

	(void)state;
	fill(&site);
	strcpy(last, path_of(&site, names_n - 1));
	assert_true(has_checkpoint(last, &bytes));
	assert_int_equal(truncate(last, 0), 0);
	before = journaled(&site).records;
	assert_in_range(before, 1, 3 * FRAMES - 1);
	assert_int_equal(wanted(&site), before);
	site_start(&site);
	site_release(&site);
	for (cut = 1; cut < (off_t)bytes; cut += 37) {
		fill(&site);
		strcpy(last, path_of(&site, names_n - 1));
		assert_int_equal(truncate(last, cut), 0);
		assert_false(has_checkpoint(last, &none));
		before = journaled(&site).records;
		assert_int_equal(wanted(&site), before);
		site_start(&site);
		site_release(&site);
	}
}

/* Items of a checkpoint that takes several frames, in a separate segment; `leave` is omitted. */
static uint64_t write_parts(const char *dir, uint64_t format, uint64_t leave)
{
	struct framefile file = {.fd = -1};
	struct buf frames = BUF_INIT;
	struct items c;
	msgpack_packer *pk;
	uint8_t worker[CREMA_WORKER_ID_BYTES];
	size_t at = 0;
	uint64_t i;

	items_begin(&c, &frames, CREMA_FRAME_CHECKPOINT);
	pk = items_add(&c, CHECKPOINT_HEAD, 2);
	pack_u64(pk, format);
	pack_u64(pk, 0);
	memset(worker, 1, sizeof(worker));
	for (i = 0; i < 40000; i++) {
		pk = items_add(&c, CHECKPOINT_STREAM, 4);
		pack_bin(pk, worker, sizeof(worker));
		pack_u64(pk, 1000 + i);
		pack_u64(pk, 77 + i);
		pack_u64(pk, 77 + i);
	}
	assert_true(items_end(&c) > 0);
	assert_int_equal(framefile_create(&file, dir, "journal", 5000000000000000000, NULL), 0);
	for (i = 0; at < frames.len; i++) {
		struct frame f;
		ssize_t used = frame_decode(&f, frames.data + at, frames.len - at);

		assert_true(used > 0);
		assert_int_equal(f.head.first_seq, i);
		if (i != leave)
			assert_int_equal(framefile_append(&file, frames.data + at, (size_t)used),
					 0);
		at += (size_t)used;
	}
	framefile_close(&file);
	buf_release(&frames);
	return i;
}

/* Parts that are valid frames but incomplete are ignored, and so is a checkpoint from the
 * future. */
static void all_parts_are_asked_for(void **state)
{
	uint64_t parts, leave;
	struct site site;
	int i;

	(void)state;
	fixture_segment_bytes = 0;
	site_init(&site);
	site_stop(&site);
	parts = write_parts(site.dir, CHECKPOINT_FORMAT, UINT64_MAX);
	assert_true(parts >= 3);
	assert_int_equal(wanted(&site), 77);
	for (leave = 0; leave <= parts; leave++) {
		list(&site);
		for (i = 0; i < names_n; i++)
			unlink(path_of(&site, i));
		write_parts(site.dir, CHECKPOINT_FORMAT + (leave == parts), leave);
		assert_int_equal(wanted(&site), 0);
	}
	site_start(&site);
	site_release(&site);
}

/* Records that all segments until now are gone, with the server's state at that time, if it had
 * any. */
static void drop_all(const struct site *site, const struct buf *checkpoint)
{
	struct framefile file = {.fd = -1};
	struct crema_frame_header head = frame_head(CREMA_FRAME_DROPPED, NULL, 0);
	struct buf body = BUF_INIT, frames = BUF_INIT;
	msgpack_packer pk;
	char path[512];

	list(site);
	if (checkpoint)
		buf_add(&frames, checkpoint->data, checkpoint->len);
	pack_init(&pk, &body);
	pack_map(&pk, 1);
	pack_kv_u64(&pk, "below_ns", strtoull(names[names_n - 1], NULL, 10) + 1);
	assert_int_equal(frame_encode_buf(&frames, &head, &body), 0);
	assert_int_equal(framefile_create(&file, site->dir, "dropped", 0, NULL), 0);
	assert_int_equal(framefile_append(&file, frames.data, frames.len), 0);
	buf_release(&frames);
	framefile_close(&file);
	snprintf(path, sizeof(path), "%s/%020d-dropped.crema", site->dir, 0);
	assert_int_equal(rename(file.path, path), 0);
}

/* Segments that are about to be dropped may lack some in between. */
static void one_below_what_was_dropped_is_not_used(void **state)
{
	struct site site;

	(void)state;
	fill(&site);
	drop_all(&site, NULL);
	assert_int_equal(wanted(&site), 0);
	site_start(&site);
	site_release(&site);
}

/* Only the file of dropped runs remains. */
static void only_dropped(const struct site *site)
{
	list(site);
	for (int i = 1; i < names_n; i++)
		assert_int_equal(unlink(path_of(site, i)), 0);
}

/* Used if no remaining segment has a complete one. */
static void one_of_what_was_dropped(void **state)
{
	struct buf checkpoint = BUF_INIT;
	struct site site;
	char dropped[512];
	uint64_t bytes;

	(void)state;
	fill(&site);
	site_start(&site);
	assert_true(server_state(site.server, &checkpoint) > 0);
	site_stop(&site);
	drop_all(&site, &checkpoint);
	only_dropped(&site);
	strcpy(dropped, path_of(&site, 0));
	assert_true(has_checkpoint(dropped, &bytes));
	assert_int_equal(wanted(&site), 3 * FRAMES);
	only_dropped(&site);
	flip(dropped, begin_of(dropped, bytes) + (off_t)bytes / 2);
	assert_int_equal(wanted(&site), 0);
	site_start(&site);
	site_release(&site);
	buf_release(&checkpoint);
}

static bool disk_is_full;

static int append(struct framefile *file, const void *frames, size_t bytes)
{
	return disk_is_full ? -ENOSPC : framefile_append(file, frames, bytes);
}

static uint64_t bad_records(void)
{
	struct live_cluster c;

	live_cluster(fixture_live, &c);
	return c.records_bad;
}

static uint64_t lost_records(void)
{
	struct live_cluster c;

	live_cluster(fixture_live, &c);
	return c.records_lost;
}

/* What was received but is in no file yet is requested again, and counts once: here each record is
 * a bad one, and two never arrived. */
static void what_is_not_written_was_not_received(void **state)
{
	struct buf checkpoint = BUF_INIT;
	struct agent agent;
	struct site site;

	(void)state;
	fixture_append = append;
	fixture_live = live_new();
	site_init(&site);
	agent_open(&site, &agent, 1);
	agent_data(&agent, 0, 3);
	assert_int_equal(agent_ack(&agent), 3);
	disk_is_full = true;
	agent_data(&agent, 5, 4);
	site_turns(&site, 5);
	assert_true(server_state(site.server, &checkpoint) > 0);
	assert_int_equal(bad_records(), 7);
	assert_int_equal(lost_records(), 2);
	agent_close(&agent);
	site_stop(&site);
	disk_is_full = false;
	drop_all(&site, &checkpoint);
	only_dropped(&site);
	live_clear(fixture_live);
	site_start(&site);
	assert_int_equal(bad_records(), 7);
	assert_int_equal(agent_open(&site, &agent, 1), 3);
	agent_data(&agent, 5, 4);
	assert_int_equal(agent_ack(&agent), 9);
	agent_data(&agent, 9, 1);
	assert_int_equal(agent_ack(&agent), 10);
	assert_int_equal(bad_records(), 8);
	assert_int_equal(lost_records(), 2);
	agent_close(&agent);
	site_release(&site);
	live_free(fixture_live);
	fixture_live = NULL;
	fixture_append = NULL;
	buf_release(&checkpoint);
}

/* Starts without anything new do not each add a large checkpoint. */
static void starts_add_nothing(void **state)
{
	struct site site;
	uint64_t bytes;
	int i, found = 0;

	(void)state;
	fixture_segment_bytes = 0;
	site_init(&site);
	site_stop(&site);
	write_parts(site.dir, CHECKPOINT_FORMAT, UINT64_MAX);
	for (i = 0; i < 5; i++) {
		site_start(&site);
		assert_int_equal(journal_note(site.journal, "start", "here"), 0);
		site_stop(&site);
	}
	list(&site);
	assert_int_equal(names_n, 7); /* an empty one from the first start */
	for (i = 0; i < names_n; i++)
		found += has_checkpoint(path_of(&site, i), &bytes);
	assert_int_equal(found, 1);
	assert_int_equal(wanted(&site), 77);
	site_start(&site);
	site_release(&site);
}

/* A segment with one record of each of many streams. */
static void many_streams(const char *dir, uint64_t streams)
{
	struct framefile file = {.fd = -1};
	struct crema_frame_header head = {.type = CREMA_FRAME_DATA, .count = 1};
	struct buf body = BUF_INIT, frames = BUF_INIT;

	memset(head.worker, 1, sizeof(head.worker));
	data_body(&body, 1, 10);
	for (head.stream = 1000; head.stream < 1000 + streams; head.stream++)
		assert_int_equal(frame_encode(&frames, &head, body.data, body.len), 0);
	assert_int_equal(framefile_create(&file, dir, "journal", 1, NULL), 0);
	assert_int_equal(framefile_append(&file, frames.data, frames.len), 0);
	framefile_close(&file);
	buf_release(&body);
	buf_release(&frames);
}

/* How many new segments begin with a checkpoint; none may exceed its size limit. */
static int checkpoints(const struct site *site, uint64_t segment_bytes)
{
	uint64_t bytes;
	struct stat st;
	int found = 0;

	list(site);
	for (int i = 1; i < names_n; i++) {
		assert_int_equal(stat(path_of(site, i), &st), 0);
		assert_true((uint64_t)st.st_size <= segment_bytes);
		found += has_checkpoint(path_of(site, i), &bytes);
	}
	return found;
}

/* Segments stay within their limit, and a start reads everything. */
static void one_that_is_too_large_is_left_out(void **state)
{
	struct site site;

	(void)state;
	fixture_segment_bytes = 64 << 10;
	site_init(&site);
	site_stop(&site);
	many_streams(site.dir, 5000);
	for (int i = 0; i < 2; i++) {
		site_start(&site);
		assert_int_equal(journal_note(site.journal, "start", "here"), 0);
		site_stop(&site);
		assert_int_equal(checkpoints(&site, i ? 1 << 20 : 64 << 10), i);
		fixture_segment_bytes = 1 << 20;
	}
	assert_int_equal(wanted(&site), 1);
	fixture_segment_bytes = 0;
	site_start(&site);
	site_release(&site);
}

/* Part of a complete one: its frame is valid, but its contents are not. */
static void what_is_no_list_is_refused(void **state)
{
	static const struct {
		const char *body;
		int error;
	} cases[] = {{"\xc1", -EBADMSG}, {"\x05", -EBADMSG}, {"\x91\x05", -EBADMSG}, {"\x90", 0}};
	static const uint8_t nobody[CREMA_WORKER_ID_BYTES];
	struct crema_frame_header head = frame_head(CREMA_FRAME_CHECKPOINT, nobody, 7);
	char dir[] = "/tmp/crema-unit-XXXXXX";
	unsigned int items = 0;
	uint64_t bytes;

	(void)state;
	assert_non_null(mkdtemp(dir));
	head.count = 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct framefile file = {.fd = -1};
		struct buf frame = BUF_INIT;

		assert_int_equal(frame_encode(&frame, &head, cases[i].body, strlen(cases[i].body)),
				 0);
		assert_int_equal(framefile_create(&file, dir, "journal", i + 1, NULL), 0);
		assert_int_equal(framefile_append(&file, frame.data, frame.len), 0);
		framefile_close(&file);
		assert_int_equal(
			items_read(file.path, CREMA_FRAME_CHECKPOINT, count_items, &items, &bytes),
			cases[i].error);
		assert_int_equal(bytes, frame.len);
		assert_int_equal(items, 0);
		unlink(file.path);
		buf_release(&frame);
	}
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_newest_is_read),
		cmocka_unit_test(one_that_is_damaged_is_not_used),
		cmocka_unit_test(one_that_is_cut_is_not_used),
		cmocka_unit_test(all_parts_are_asked_for),
		cmocka_unit_test(one_below_what_was_dropped_is_not_used),
		cmocka_unit_test(one_of_what_was_dropped),
		cmocka_unit_test(what_is_not_written_was_not_received),
		cmocka_unit_test(starts_add_nothing),
		cmocka_unit_test(one_that_is_too_large_is_left_out),
		cmocka_unit_test(what_is_no_list_is_refused),
	};

	return fixture_run("checkpoint", tests);
}
