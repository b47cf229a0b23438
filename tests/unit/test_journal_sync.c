/* SPDX-License-Identifier: BSD-3-Clause */
/* test_journal_sync.c - syncing the journal: normally, slowly, and with errors. */
#include "fixture_journal.h"

#include <linux/memfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "collector/journal/journal_sync.h"
#include "common/clock.h"

static void pause_ms(long ms)
{
	struct timespec moment = {.tv_nsec = ms * 1000000};

	nanosleep(&moment, NULL);
}

static void each_second_the_disk_is_asked_to_keep_it(void **state)
{
	struct store store = {.config = {.sync_ms = 10, .segment_bytes = 3000}};
	struct journal_stats stats = {0};
	uint64_t syncs;
	int i;

	(void)state;
	store_init(&store);
	for (i = 0; i < 5; i++)
		assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	/* The three segments; one more if a sync came between two of the writes. */
	for (i = 0; i < 1000 && stats.syncs < 3; i++) {
		assert_int_equal(loop_turn(store.loop, 10), 0);
		journal_get_stats(store.journal, &stats);
	}
	for (i = 0; i < 10; i++)
		assert_int_equal(loop_turn(store.loop, 10), 0);
	journal_get_stats(store.journal, &stats);
	assert_in_range(stats.syncs, 3, 4);
	assert_int_equal(stats.sync_error, 0);
	syncs = stats.syncs;
	for (i = 0; i < 10; i++) /* once is enough */
		assert_int_equal(loop_turn(store.loop, 10), 0);
	journal_get_stats(store.journal, &stats);
	assert_int_equal(stats.syncs, syncs);
	journal_close(store.journal);
	store_release(&store);
}

static int slow_sync_calls;

static int slow_sync(int fd)
{
	assert_true(fcntl(fd, F_GETFD) >= 0);
	pause_ms(300);
	__atomic_add_fetch(&slow_sync_calls, 1, __ATOMIC_RELAXED);
	return 0;
}

static void a_slow_disk_holds_up_nobody(void **state)
{
	struct store store = {.config = {.sync_ms = 1, .sync = slow_sync, .segment_bytes = 3000}};
	struct journal_stats stats;
	uint64_t start;
	int i;

	(void)state;
	slow_sync_calls = 0;
	store_init(&store);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	pause_ms(30); /* the sync is running now */
	start = clock_mono_ns();
	for (i = 0; i < 20; i++) {
		assert_int_equal(store_add(&store), 0);
		assert_int_equal(store_flush(&store), 0);
		journal_get_stats(store.journal, &stats);
	}
	assert_true(clock_mono_ns() - start < 200000000);
	assert_int_equal(__atomic_load_n(&slow_sync_calls, __ATOMIC_RELAXED), 0);
	assert_int_equal(journal_close(store.journal), 0);
	assert_true(slow_sync_calls >= (int)stats.segments); /* each was eventually synced */
	store_release(&store);
}

/* A disk that loses data, and reports it once per file. */
static int disk_error;
static ino_t told; /* the first file with the error; 0: none yet */

static int forgetful_sync(int fd)
{
	int error = __atomic_load_n(&disk_error, __ATOMIC_ACQUIRE);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	if (!error || st.st_ino == told)
		return 0;
	if (!told)
		told = st.st_ino;
	errno = error;
	return -1;
}

static void disk_says(int error)
{
	__atomic_store_n(&disk_error, error, __ATOMIC_RELEASE);
}

/* Until the journal's next attempt returns this. */
static void flush_until(struct store *store, int want)
{
	int i;

	for (i = 0; i < 10000 && store_flush(store) != want; i++)
		pause_ms(1);
	assert_int_equal(store_flush(store), want);
}

static void settle_syncs(struct store *store)
{
	struct journal_stats stats;
	uint64_t before;
	int i;

	journal_get_stats(store->journal, &stats);
	before = stats.syncs;
	for (i = 0; i < 10000 && stats.syncs == before; i++) {
		pause_ms(1);
		journal_get_stats(store->journal, &stats);
	}
	assert_true(stats.syncs > before);
}

static void what_a_disk_did_not_keep_stops_the_acknowledging(void **state)
{
	struct store store = {.config = {.sync_ms = 3, .sync = forgetful_sync}};
	struct journal_stats stats;
	uint64_t written, kept;

	(void)state;
	told = 0;
	disk_says(0);
	store_init(&store);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	settle_syncs(&store);
	kept = journal_written(store.journal);
	disk_says(EIO);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	flush_until(&store, -EIO);
	/* What was received before the error waits; nothing more is accepted. */
	assert_int_equal(store_add(&store), -EAGAIN);
	assert_true(journal_is_stuck(store.journal));
	written = journal_written(store.journal);
	assert_int_equal(written, kept + store.data.len);
	journal_get_stats(store.journal, &stats);
	assert_int_equal(stats.unsynced_bytes, store.data.len);
	assert_int_equal(stats.failures, 1);
	/* Syncing the first file succeeds again by now: that proves nothing. */
	for (int i = 0; i < 3; i++) {
		settle_syncs(&store);
		assert_int_equal(store_flush(&store), -EIO);
	}
	disk_says(0);
	flush_until(&store, 0);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	journal_get_stats(store.journal, &stats);
	assert_int_equal(stats.error, 0);
	assert_int_equal(stats.failures, 1);
	assert_int_equal(stats.unsynced_bytes, store.data.len);
	/* In a separate segment, with its worker's HELLO; segments that accepted nothing are
	 * gone. */
	assert_string_equal(scan(store.dir).order, "HDDHD");
	assert_int_equal(journal_close(store.journal), 0);
	store_release(&store);
}

/* A file without a name: nothing remains of it. */
static int new_file(void)
{
	return (int)syscall(SYS_memfd_create, "segment", MFD_CLOEXEC);
}

static void wait_for_sync(struct journal_sync *sync, uint64_t n)
{
	uint64_t syncs = 0, slowest;
	int error;

	for (int i = 0; i < 10000 && syncs < n; i++) {
		journal_sync_stats(sync, &syncs, &slowest, &error);
		pause_ms(1);
	}
	assert_int_equal(syncs, n);
}

/* Bytes written to the file after the failure are kept; the earlier ones are unknown. */
static void only_another_file_shows_that_the_disk_works(void **state)
{
	struct store store = {.config.segment_bytes = 0};
	struct journal_sync *sync;
	uint64_t unsynced;
	bool wants_file;

	(void)state;
	store_init(&store);
	told = 0;
	disk_says(EIO);
	sync = journal_sync_start(NULL, store.dir, 3, forgetful_sync);
	assert_non_null(sync);
	journal_sync_file(sync, new_file());
	wait_for_sync(sync, 1);
	assert_int_equal(journal_sync_failed(sync, &wants_file, &unsynced), -EIO);
	assert_true(wants_file);
	disk_says(0);
	journal_sync_dirty(sync, 100);
	wait_for_sync(sync, 2);
	assert_int_equal(journal_sync_failed(sync, &wants_file, &unsynced), -EIO);
	assert_true(wants_file);
	assert_int_equal(unsynced, 100);
	journal_sync_file(sync, new_file());
	wait_for_sync(sync, 4);
	assert_int_equal(journal_sync_failed(sync, &wants_file, &unsynced), 0);
	assert_int_equal(unsynced, 0);
	assert_int_equal(journal_sync_stop(sync), 0);
	journal_close(store.journal);
	store_release(&store);
}

static void what_was_queued_waits_for_the_disk(void **state)
{
	struct store store = {.config = {.sync_ms = 3, .sync = forgetful_sync}};
	uint64_t before;

	(void)state;
	told = 0;
	disk_says(EDQUOT);
	store_init(&store); /* the file itself cannot be stored */
	assert_int_equal(store_add(&store), 0);
	before = journal_written(store.journal);
	settle_syncs(&store);
	assert_int_equal(store_flush(&store), -EDQUOT);
	assert_int_equal(journal_written(store.journal), before);
	disk_says(0);
	flush_until(&store, 0);
	assert_int_equal(journal_written(store.journal), journal_taken(store.journal));
	assert_string_equal(scan(store.dir).order, "HD");
	journal_close(store.journal);
	store_release(&store);
}

/* Some file systems lack fdatasync: that does not mean that they lost anything. */
static void a_disk_that_cannot_be_asked_is_believed(void **state)
{
	struct store store = {.config = {.sync_ms = 3, .sync = forgetful_sync}};
	struct journal_stats stats;

	(void)state;
	told = 0;
	disk_says(EINVAL);
	store_init(&store);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	settle_syncs(&store);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	journal_get_stats(store.journal, &stats);
	assert_int_equal(stats.unsynced_bytes, 0);
	assert_int_equal(stats.segments, 1);
	journal_close(store.journal);
	store_release(&store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_second_the_disk_is_asked_to_keep_it),
		cmocka_unit_test(a_slow_disk_holds_up_nobody),
		cmocka_unit_test(what_a_disk_did_not_keep_stops_the_acknowledging),
		cmocka_unit_test(only_another_file_shows_that_the_disk_works),
		cmocka_unit_test(what_was_queued_waits_for_the_disk),
		cmocka_unit_test(a_disk_that_cannot_be_asked_is_believed),
	};

	return fixture_run("journal_sync", tests);
}
