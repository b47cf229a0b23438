/* SPDX-License-Identifier: BSD-3-Clause */
/* test_journal.c - segments, hellos, a full disk, damaged segments. */
#include "fixture_journal.h"

#include <signal.h>
#include <sys/resource.h>

static void each_segment_repeats_the_hello(void **state)
{
	struct store store = {.config.segment_bytes = 3000};
	struct journal_stats stats;
	struct seen seen;
	int i;

	(void)state;
	store_init(&store);
	for (i = 0; i < 5; i++)
		assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	journal_get_stats(store.journal, &stats);
	assert_int_equal(stats.segments, 3);
	seen = scan(store.dir);
	assert_string_equal(seen.order, "HDDHDDHD");
	assert_int_equal(journal_close(store.journal), 0);
	store_open(&store);
	assert_int_equal(journal_note(store.journal, "start", "x"), 0);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(journal_close(store.journal), 0); /* writes what is queued */
	seen = scan(store.dir);
	assert_string_equal(seen.order, "HDDHDDHDNHD");
	assert_int_equal(seen.warnings, 0);
	store_release(&store);
}

static void sizes_are(struct store *store, uint64_t other_bytes)
{
	struct journal_stats stats;
	uint64_t bytes;

	journal_get_stats(store->journal, &stats);
	assert_int_equal(framefile_sizes(store->dir, &bytes), 0);
	assert_int_equal(stats.size_bytes + other_bytes, bytes);
}

static uint64_t oldest_of(struct store *store)
{
	struct journal_stats stats;

	journal_get_stats(store->journal, &stats);
	return stats.oldest_ns;
}

/* Without reading the directory: changes by others are only noticed when it is read. */
static void its_size_is_known(void **state)
{
	struct store store = {.config.segment_bytes = 3000};
	char **names, path[512];
	uint64_t first;
	int fd;

	(void)state;
	store_init(&store);
	sizes_are(&store, 0);
	first = journal_segment_ns(store.journal);
	assert_int_equal(oldest_of(&store), first);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(store_add(&store), 0);
		assert_int_equal(store_flush(&store), 0);
		sizes_are(&store, 0);
	}
	assert_int_equal(journal_close(store.journal), 0);
	store_open(&store); /* those of earlier collectors are included */
	sizes_are(&store, 0);
	assert_int_equal(oldest_of(&store), first);
	snprintf(path, sizeof(path), "%s/%020d-other.crema", store.dir, 1);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, path, 100), 100);
	close(fd);
	sizes_are(&store, 100);
	journal_look(store.journal);
	sizes_are(&store, 0);
	assert_int_equal(oldest_of(&store), 1);
	unlink(path);
	assert_true(framefile_list(store.dir, &names) == 4);
	snprintf(path, sizeof(path), "%s/%s", store.dir, names[0]);
	unlink(path);
	journal_look(store.journal);
	sizes_are(&store, 0);
	assert_int_equal(oldest_of(&store), strtoull(names[1], NULL, 10));
	free(names);
	assert_int_equal(journal_close(store.journal), 0);
	store_release(&store);
}

static void a_torn_segment_is_left_alone(void **state)
{
	struct store store = {.config.segment_bytes = 0};
	char **names, path[512];
	struct seen seen;
	int fd, n;

	(void)state;
	store_init(&store);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(journal_close(store.journal), 0);
	n = framefile_list(store.dir, &names);
	assert_int_equal(n, 1);
	snprintf(path, sizeof(path), "%s/%s", store.dir, names[0]);
	free(names);
	fd = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, store.data.data, 500), 500);
	off_t torn = lseek(fd, 0, SEEK_END);
	store_open(&store);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(journal_close(store.journal), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), torn);
	close(fd);
	seen = scan(store.dir);
	assert_string_equal(seen.order, "HDHD");
	assert_int_equal(seen.warnings, 1);
	store_release(&store);
}

/* A write() that really fails: a limit on the file size, in the middle of a batch. */
static void a_failed_write_is_tried_again_and_tears_nothing(void **state)
{
	struct store store = {.config.segment_bytes = 0};
	struct rlimit before, small;
	struct journal_stats stats;
	struct seen seen;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	store_init(&store);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 2500;
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), -EFBIG);
	assert_true(journal_is_stuck(store.journal));
	assert_int_equal(store_add(&store), -EAGAIN);
	assert_int_equal(store_flush(&store), -EFBIG);
	seen = scan(store.dir);
	assert_string_equal(seen.order, "HD");
	assert_int_equal(seen.warnings, 0); /* the partial write was truncated */
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(store_flush(&store), 0);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	journal_get_stats(store.journal, &stats);
	assert_int_equal(stats.failures, 1);
	assert_int_equal(stats.error, 0);
	seen = scan(store.dir);
	assert_string_equal(seen.order, "HDDDD");
	journal_close(store.journal);
	store_release(&store);
}

static char sick[PATH_MAX];

/* A disk that became read-only after an error: one file accepts nothing more. */
static int append_elsewhere(struct framefile *file, const void *frames, size_t bytes)
{
	return strcmp(file->path, sick) ? framefile_append(file, frames, bytes) : -EROFS;
}

static void newest(const struct store *store, char *path, size_t size)
{
	char **names;
	int n = framefile_list(store->dir, &names);

	assert_true(n > 0);
	snprintf(path, size, "%s/%s", store->dir, names[n - 1]);
	free(names);
}

static void a_file_that_stays_read_only_is_left(void **state)
{
	struct store store = {.config.append = append_elsewhere};
	struct journal_stats stats;

	(void)state;
	sick[0] = 0;
	store_init(&store);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	newest(&store, sick, sizeof(sick));
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), -EROFS);
	assert_int_equal(store_add(&store), -EAGAIN);
	assert_int_equal(store_flush(&store), 0); /* the folder accepts a new file */
	assert_int_equal(journal_written(store.journal), journal_taken(store.journal));
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	journal_get_stats(store.journal, &stats);
	assert_int_equal(stats.segments, 2);
	assert_int_equal(stats.failures, 1);
	/* The HELLO for the queued data was in the previous segment. */
	assert_string_equal(scan(store.dir).order, "HDDHD");
	/* A segment that never accepted a frame is removed. */
	journal_next_segment(store.journal);
	assert_int_equal(store_add(&store), 0);
	newest(&store, sick, sizeof(sick));
	assert_int_equal(store_flush(&store), -EROFS);
	assert_int_equal(store_flush(&store), 0);
	assert_int_equal(access(sick, F_OK), -1);
	assert_string_equal(scan(store.dir).order, "HDDHDHD");
	journal_close(store.journal);
	store_release(&store);
}

static void a_removed_segment_takes_nothing_more(void **state)
{
	struct store store = {.config.segment_bytes = 0};
	char path[PATH_MAX], away[sizeof(store.dir) + 8];

	(void)state;
	store_init(&store);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	newest(&store, path, sizeof(path));
	unlink(path);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	assert_string_equal(scan(store.dir).order, "HD");
	/* The folder is gone as well: nothing is accepted until it exists again. */
	newest(&store, path, sizeof(path));
	unlink(path);
	snprintf(away, sizeof(away), "%s.away", store.dir);
	assert_int_equal(rename(store.dir, away), 0);
	assert_int_equal(store_add(&store), -EAGAIN);
	assert_int_equal(store_flush(&store), -ENOENT);
	assert_true(journal_is_stuck(store.journal));
	assert_int_equal(rename(away, store.dir), 0);
	assert_int_equal(store_flush(&store), 0);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	assert_string_equal(scan(store.dir).order, "HD");
	journal_close(store.journal);
	store_release(&store);
}

static void memory_is_bounded_while_it_is_stuck(void **state)
{
	struct store store = {.config.segment_bytes = 0};
	struct rlimit before, small;
	struct journal_stats stats;
	int i;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	store_init(&store);
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 1;
	setrlimit(RLIMIT_FSIZE, &small);
	for (i = 0; i < 9000 && !store_add(&store); i++)
		;
	assert_in_range(i, 1, 8999);
	journal_get_stats(store.journal, &stats);
	/* The same amount may have been queued during the write that failed. */
	assert_in_range(stats.queued_bytes, JOURNAL_QUEUE_BYTES,
			(fixture_ring ? 2 : 1) * JOURNAL_QUEUE_BYTES + 2 * store.data.len);
	setrlimit(RLIMIT_FSIZE, &before);
	journal_close(store.journal);
	store_release(&store);
}

/* Acknowledged is what the file holds, in the order in which it was received. */
static void what_is_written_can_be_read(void **state)
{
	struct store store = {.config.segment_bytes = 0};
	uint64_t taken[50];
	struct seen seen;
	int i;

	(void)state;
	store_init(&store);
	for (i = 0; i < 50; i++) {
		assert_int_equal(store_add(&store), 0);
		taken[i] = journal_taken(store.journal);
		assert_true(i == 0 || taken[i] == taken[i - 1] + store.data.len);
		journal_flush(store.journal);
		if (i % 3 == 0)
			assert_int_equal(loop_turn(store.loop, 0), 0);
		seen = scan(store.dir);
		assert_true(journal_written(store.journal) <= (seen.n ? taken[seen.n - 2] : 0));
	}
	assert_int_equal(store_flush(&store), 0);
	assert_int_equal(journal_written(store.journal), journal_taken(store.journal));
	seen = scan(store.dir);
	assert_int_equal(seen.n, 51);
	journal_close(store.journal);
	store_release(&store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_segment_repeats_the_hello),
		cmocka_unit_test(its_size_is_known),
		cmocka_unit_test(a_torn_segment_is_left_alone),
		cmocka_unit_test(a_failed_write_is_tried_again_and_tears_nothing),
		cmocka_unit_test(a_file_that_stays_read_only_is_left),
		cmocka_unit_test(a_removed_segment_takes_nothing_more),
		cmocka_unit_test(memory_is_bounded_while_it_is_stuck),
		cmocka_unit_test(what_is_written_can_be_read),
	};

	return fixture_run("journal", tests);
}
