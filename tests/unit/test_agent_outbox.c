/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agent_outbox.c - batches, frames, the spool file, and which records are safe. */
#include <string.h>

#include "common/clock.h"
#include "tests/unit/spool_dir.h"

/* Sends everything: the sequence numbers must continue from `from` without a gap. */
static uint64_t pull(struct outbox *o, uint64_t from)
{
	const unsigned char *p;
	struct frame f;
	size_t n;

	while (outbox_next(o, &p, &n) == 1) {
		assert_int_equal(frame_decode(&f, p, n), n);
		assert_int_equal(f.head.first_seq, from);
		assert_true(f.head.count > 0);
		from += f.head.count;
	}
	return from;
}

static void sweep(void)
{
	char **names, path[PATH_MAX];
	int n = framefile_list(dir, &names);

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	free(names);
}

/* Counts the frames of a type in a spool file. */
static int count_frames(void *arg, const struct crema_frame_header *head, const unsigned char *raw,
			size_t raw_bytes)
{
	(void)raw;
	(void)raw_bytes;
	((unsigned int *)arg)[head->type]++;
	return 0;
}

static unsigned int in_file(const struct outbox *o, uint8_t type)
{
	unsigned int frames[256] = {0};
	struct framefile_stats st;

	assert_int_equal(framefile_read(o->file.path, count_frames, frames, &st), 0);
	return frames[type];
}

static size_t in_memory(const struct outbox *o)
{
	size_t bytes = 0;

	for (const struct outbox_frame *f = o->head; f; f = f->next)
		bytes += f->bytes;
	return bytes;
}

static void test_memory(void **state)
{
	struct outbox o;
	uint64_t first, second;

	(void)state;
	outbox_init(&o, worker, 1, NULL, false);
	assert_true(outbox_is_empty(&o));
	first = add(&o, OUTBOX_RECORD, 1);
	add(&o, OUTBOX_LIGHT, 2);
	outbox_flush(&o);
	second = add(&o, OUTBOX_RECORD, 3);
	outbox_flush(&o);
	assert_int_equal(pull(&o, 0), 3);
	assert_false(outbox_is_safe(&o, first));
	outbox_acked(&o, 1);
	assert_true(outbox_is_safe(&o, first));
	assert_false(outbox_is_safe(&o, second));
	outbox_rewind(&o, 1);
	assert_int_equal(pull(&o, 1), 3);
	outbox_acked(&o, UINT64_MAX);
	assert_true(outbox_is_safe(&o, second));
	assert_true(outbox_is_empty(&o));
	assert_int_equal(outbox_spill(&o), 0);
	outbox_release(&o);
}

/* Of the oldest frame in memory; an earlier clock value gives 0. */
static void test_age(void **state)
{
	struct outbox o;
	uint64_t before;

	(void)state;
	outbox_init(&o, worker, 1, NULL, false);
	assert_int_equal(outbox_age(&o, UINT64_MAX), 0);
	before = clock_mono_ns();
	for (uint64_t i = 0; i < 2; i++) {
		add(&o, OUTBOX_RECORD, i);
		outbox_flush(&o);
	}
	assert_in_range(o.head->born_ns, before, clock_mono_ns());
	o.head->born_ns = 1000;
	assert_int_equal(outbox_age(&o, 1000 + 77), 77);
	assert_int_equal(outbox_age(&o, 999), 0);
	outbox_release(&o);
}

static void test_spool(void **state)
{
	struct outbox o;
	uint64_t ticket = 0;

	(void)state;
	outbox_init(&o, worker, 1, dir, false);
	assert_int_equal(outbox_hello(&o, "", 0), 0);
	for (uint64_t i = 0; i < 10; i++) {
		ticket = add(&o, i % 2 ? OUTBOX_RECORD : OUTBOX_LIGHT, i);
		outbox_flush(&o);
	}
	assert_int_equal(outbox_spill(&o), 0);
	assert_int_equal(files(), 1);
	assert_true(outbox_is_safe(&o, ticket));
	assert_int_equal(o.memory, 0);
	add(&o, OUTBOX_RECORD, 10);
	outbox_flush(&o);
	outbox_rewind(&o, 0);
	assert_int_equal(pull(&o, 0), 11);
	/* The connection breaks when the collector has 4; meanwhile more is spooled. */
	outbox_spill(&o);
	add(&o, OUTBOX_RECORD, 11);
	outbox_flush(&o);
	outbox_rewind(&o, 4);
	assert_int_equal(pull(&o, 4), 12);
	outbox_acked(&o, 11);
	assert_int_equal(files(), 0);
	assert_false(outbox_is_empty(&o));
	outbox_acked(&o, 12);
	assert_true(outbox_is_empty(&o));
	/* A second file when it is needed again. */
	add(&o, OUTBOX_RECORD, 12);
	outbox_flush(&o);
	outbox_spill(&o);
	assert_int_equal(files(), 1);
	assert_int_equal(pull(&o, 12), 13);
	outbox_acked(&o, 13);
	assert_int_equal(files(), 0);
	outbox_release(&o);
}

/* The folder is emptied: the open file's contents can be sent as long as its agent lives. */
static void test_removed_spool(void **state)
{
	struct outbox o;

	(void)state;
	outbox_init(&o, worker, 1, dir, false);
	add(&o, OUTBOX_RECORD, 0);
	outbox_flush(&o);
	assert_int_equal(outbox_spill(&o), 0);
	assert_int_equal(files(), 1);
	sweep();
	assert_int_equal(files(), 0);
	add(&o, OUTBOX_RECORD, 1);
	outbox_flush(&o);
	assert_int_equal(outbox_spill(&o), 0);
	add(&o, OUTBOX_RECORD, 2);
	outbox_flush(&o);
	assert_int_equal(pull(&o, 0), 3);
	outbox_acked(&o, 3);
	assert_true(outbox_is_empty(&o));
	assert_int_equal(o.dropped, 0);
	outbox_release(&o);
}

static void test_full_spool(void **state)
{
	uint64_t dropped, size;
	struct outbox o;

	(void)state;
	outbox_init(&o, worker, 1, dir, false);
	o.spool_max = 2000;
	for (uint64_t i = 0; i < 30; i++) {
		add(&o, i % 2 ? OUTBOX_RECORD : OUTBOX_LIGHT, i);
		outbox_flush(&o);
	}
	assert_int_equal(outbox_spill(&o), 0);
	assert_in_range(o.dropped, 1, 15);
	assert_int_equal(in_file(&o, CREMA_FRAME_DATA) + o.dropped, 30);
	assert_in_range(o.file.size, 1000, 2000);
	/* A worker's last records are kept regardless of the limit. */
	dropped = o.dropped;
	size = o.file.size;
	o.is_last = true;
	for (uint64_t i = 0; i < 30; i++) {
		add(&o, OUTBOX_RECORD, i);
		outbox_flush(&o);
	}
	assert_int_equal(outbox_spill(&o), 0);
	assert_int_equal(o.dropped, dropped);
	assert_true(o.file.size > size + 30 * 56);
	outbox_release(&o);
	sweep();
	/* What was discarded while being sent either arrived, or was lost with its connection. */
	outbox_init(&o, worker, 1, dir, false);
	o.spool_max = 100;
	for (uint64_t i = 0; i < 6; i++) {
		add(&o, OUTBOX_RECORD, i);
		outbox_flush(&o);
	}
	outbox_rewind(&o, 0);
	assert_int_equal(pull(&o, 0), 6);
	assert_int_equal(outbox_spill(&o), 0);
	assert_null(o.head);
	dropped = o.dropped;
	assert_int_equal(dropped, 0);
	outbox_acked(&o, 4);
	outbox_rewind(&o, 4);
	assert_int_equal(o.dropped, 2);
	outbox_release(&o);
	sweep();
	/* The directory cannot be created: memory is limited. */
	outbox_init(&o, worker, 1, "/proc/nowhere", false);
	o.memory_max = 2000;
	for (uint64_t i = 0; i < 100; i++) {
		add(&o, i % 2 ? OUTBOX_RECORD : OUTBOX_LIGHT, i);
		outbox_flush(&o);
		assert_true(outbox_spill(&o) < 0);
		assert_true(o.memory <= 2000);
		assert_int_equal(o.memory, in_memory(&o));
	}
	assert_true(o.dropped > 50);
	for (struct outbox_frame *f = o.head; f; f = f->next)
		assert_true(f->next || f == o.tail);
	outbox_release(&o);
}

/* Memory only, and full: records that a later one replaces are dropped first, then the oldest. */
static void test_what_goes_first(void **state)
{
	struct outbox o;

	(void)state;
	outbox_init(&o, worker, 1, NULL, false);
	o.memory_max = 2000;
	for (uint64_t i = 0; !o.dropped && i < 100; i++) {
		add(&o, i < 2 ? OUTBOX_RECORD : OUTBOX_LIGHT, i);
		outbox_flush(&o);
		assert_true(outbox_spill(&o) < 0);
	}
	assert_int_equal(o.head->first_seq, 0);
	assert_int_equal(o.head->next->first_seq, 1);
	for (o.dropped = 0; !o.dropped;) {
		add(&o, OUTBOX_RECORD, 1);
		outbox_flush(&o);
		assert_true(outbox_spill(&o) < 0);
		for (struct outbox_frame *f = o.head; o.dropped && f; f = f->next)
			assert_false(f->light);
	}
	assert_int_equal(o.memory, in_memory(&o));
	outbox_release(&o);
}

/* A message that does not fit into any frame is one dropped record, and nothing waits for it. */
static void test_too_large(void **state)
{
	char *large = calloc(1, CREMA_FRAME_RAW_MAX + 1);
	msgpack_packer *pk;
	struct outbox o;
	uint64_t ticket;

	(void)state;
	outbox_init(&o, worker, 1, NULL, false);
	pk = outbox_begin(&o, OUTBOX_RECORD);
	pack_array(pk, 2);
	pack_u64(pk, CREMA_MSG_SAMPLE);
	pack_str(pk, large, CREMA_FRAME_RAW_MAX + 1);
	ticket = outbox_end(&o, OUTBOX_RECORD);
	outbox_flush(&o);
	assert_int_equal(o.dropped, 1);
	assert_true(outbox_is_safe(&o, ticket) && outbox_is_empty(&o));
	add(&o, OUTBOX_RECORD, 1);
	outbox_flush(&o);
	assert_int_equal(pull(&o, 0), 1); /* it used no number */
	assert_int_equal(o.dropped, 1);
	outbox_release(&o);
	free(large);
}

static void test_destination(void **state)
{
	struct outbox o;
	struct buf hello = BUF_INIT;
	uint64_t ticket;
	const unsigned char *p;
	size_t n;

	(void)state;
	outbox_init(&o, worker, 1, dir, true);
	ticket = add(&o, OUTBOX_RECORD, 1);
	outbox_flush(&o);
	assert_false(outbox_is_empty(&o));
	assert_int_equal(outbox_spill(&o), 0);
	assert_true(outbox_is_safe(&o, ticket) && outbox_is_empty(&o));
	assert_int_equal(outbox_next(&o, &p, &n), 0);
	outbox_sync(&o);
	assert_false(o.file_dirty);
	outbox_acked(&o, 1);
	assert_int_equal(files(), 1);
	make_hello(&hello); /* a later one, with new facts */
	assert_int_equal(outbox_hello(&o, hello.data, hello.len), 0);
	outbox_release(&o);
	assert_int_equal(in_file(&o, CREMA_FRAME_DATA), 1);
	assert_int_equal(in_file(&o, CREMA_FRAME_HELLO), 1);
	buf_release(&hello);
	sweep();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),	      cmocka_unit_test(test_spool),
		cmocka_unit_test(test_removed_spool), cmocka_unit_test(test_full_spool),
		cmocka_unit_test(test_destination),   cmocka_unit_test(test_age),
		cmocka_unit_test(test_too_large),     cmocka_unit_test(test_what_goes_first),
	};

	return cmocka_run_group_tests_name("agent outbox", tests, make_dir, remove_dir);
}
