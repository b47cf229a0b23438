/* SPDX-License-Identifier: BSD-3-Clause */
/* test_status.c - a journal that cannot be written, in status.json and /metrics. */
#include "fixture_journal.h"

#include <jansson.h>
#include <math.h>
#include <time.h>

#include "collector/ingest/server_conn.h"
#include "collector/web/http_metrics.h"
#include "collector/web/http_status.h"
#include "common/clock.h"

#define SYNC_MS 30

static int disk_full, disk_error;

static int append(struct framefile *file, const void *frames, size_t bytes)
{
	return disk_full ? -ENOSPC : framefile_append(file, frames, bytes);
}

static int slow_sync(int fd)
{
	struct timespec wait = {0, SYNC_MS * 1000000};

	(void)fd;
	nanosleep(&wait, NULL);
	errno = __atomic_load_n(&disk_error, __ATOMIC_ACQUIRE);
	return errno ? -1 : 0;
}

static json_t *status_of(const struct store *store, const struct server *server)
{
	const struct retain_config config = {.dir = store->dir, .journal_dir = store->dir};
	struct retain *retain = retain_new(store->loop, store->journal, &config);
	struct buf out = BUF_INIT;
	json_t *root, *journal;

	http_status(server, store->journal, retain, store->dir, 0, &out);
	root = json_loadb((const char *)out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	journal = json_incref(json_object_get(root, "journal"));
	/* the test writes and syncs instead of the collector */
	assert_string_equal(json_string_value(json_object_get(journal, "writes_by")), "pwrite");
	json_decref(root);
	buf_release(&out);
	retain_free(retain);
	return journal;
}

/* The value of `name` in /metrics. */
static double gauge(const struct store *store, const struct server *server, const char *name)
{
	struct live *live = live_new();
	struct http_metrics from = {.live = live,
				    .server = server,
				    .journal = store->journal,
				    .journal_dir = store->dir};
	struct buf out = BUF_INIT;
	char line[128];
	const char *at;
	double value;

	http_metrics(&from, &out);
	buf_add(&out, "", 1);
	snprintf(line, sizeof(line), "\n%s ", name);
	at = strstr((const char *)out.data, line);
	assert_non_null(at);
	value = strtod(at + strlen(line), NULL);
	buf_release(&out);
	live_free(live);
	return value;
}

static uint64_t number(const json_t *object, const char *key)
{
	assert_true(json_is_integer(json_object_get(object, key)));
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static void a_full_disk(void **state)
{
	struct store store = {.config = {.append = append}};
	struct server_config config = {0};
	struct server *server;
	json_t *journal;
	uint64_t queued;

	(void)state;
	store_init(&store);
	config.loop = store.loop;
	config.journal = store.journal;
	server = server_new(&config);
	disk_full = 1;
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), -ENOSPC);
	queued = store.hello_frame.len + store.data.len;
	journal = status_of(&store, server);
	assert_string_equal(json_string_value(json_object_get(journal, "state")), "stuck");
	assert_string_equal(json_string_value(json_object_get(journal, "error")),
			    "no space left on device");
	assert_true(json_is_null(json_object_get(journal, "keep_seconds")));
	assert_true(json_is_null(json_object_get(journal, "max_bytes")));
	assert_int_equal(number(journal, "queued_bytes"), queued);
	assert_int_equal(number(journal, "failures"), 1);
	assert_int_equal(number(journal, "frames"), 0);
	json_decref(journal);
	assert_true(gauge(&store, server, "crema_journal_queued_bytes") == (double)queued);
	assert_true(gauge(&store, server, "crema_journal_stuck") == 1);
	assert_true(gauge(&store, server, "crema_journal_sync_failed") == 0);
	assert_true(gauge(&store, server, "crema_journal_write_failures_total") == 1);
	disk_full = 0;
	assert_int_equal(store_flush(&store), 0);
	assert_string_equal(scan(store.dir).order, "HD");
	server_free(server);
	journal_close(store.journal);
	store_release(&store);
}

static void flush_until(struct store *store, int want)
{
	int i;

	for (i = 0; i < 1000 && store_flush(store) != want; i++)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	assert_int_equal(store_flush(store), want);
}

static void a_disk_that_keeps_nothing(void **state)
{
	struct store store = {.config = {.sync_ms = 1, .append = append, .sync = slow_sync}};
	const uint64_t start = clock_mono_ns();
	struct server_config config = {0};
	struct server *server;
	json_t *journal;
	double slowest, longest;

	(void)state;
	store_init(&store);
	config.loop = store.loop;
	config.journal = store.journal;
	server = server_new(&config);
	__atomic_store_n(&disk_error, EIO, __ATOMIC_RELEASE);
	assert_int_equal(store_add(&store), 0);
	assert_int_equal(store_flush(&store), 0);
	flush_until(&store, -EIO);
	journal = status_of(&store, server);
	assert_string_equal(json_string_value(json_object_get(journal, "sync_error")),
			    "input/output error");
	assert_int_equal(number(journal, "unsynced_bytes"), store.hello_frame.len + store.data.len);
	slowest = json_real_value(json_object_get(journal, "slowest_sync_seconds"));
	longest = (double)(clock_mono_ns() - start) / 1e9;
	assert_true(slowest >= SYNC_MS / 1e3 && slowest <= longest);
	assert_true(number(journal, "syncs") >= 1);
	json_decref(journal);
	assert_true(gauge(&store, server, "crema_journal_sync_failed") == 1);
	assert_true(gauge(&store, server, "crema_journal_unsynced_bytes_total") ==
		    (double)(store.hello_frame.len + store.data.len));
	slowest = gauge(&store, server, "crema_journal_slowest_sync_seconds");
	longest = (double)(clock_mono_ns() - start) / 1e9;
	assert_true(slowest >= SYNC_MS / 1e3 && slowest <= longest);
	__atomic_store_n(&disk_error, 0, __ATOMIC_RELEASE);
	server_free(server);
	journal_close(store.journal);
	store_release(&store);
}

#define AGENTS SERVER_CONNECTIONS

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void agents_connect(struct server *server, struct server_conn *conns,
			   struct server_progress *progress)
{
	for (uint32_t i = 0; i < AGENTS; i++) {
		struct server_conn *conn = &conns[i];

		conn->state = CONN_OPEN;
		conn->progress = &progress[i];
		progress[i].next = 3 * i;
		memcpy(conn->worker, &i, sizeof(i));
		conn->pid = 1000 + i;
		conn->records = 7 * i;
		conn->bytes = 100 * i;
		snprintf(conn->peer, sizeof(conn->peer), "10.0.%u.%u:40000", i >> 8, i & 255);
		snprintf(conn->host, sizeof(conn->host), "node%u.example.org", i);
		conn->next = server->conns;
		server->conns = conn;
	}
}

static void agents_are(const json_t *agents)
{
	const json_t *row;
	char name[64];
	size_t i;

	assert_int_equal(json_array_size(agents), AGENTS);
	json_array_foreach(agents, i, row)
	{
		uint64_t n = AGENTS - 1 - i; /* the newest connection first */

		snprintf(name, sizeof(name), "node%ju.example.org", (uintmax_t)n);
		assert_string_equal(json_string_value(json_object_get(row, "host")), name);
		assert_int_equal(number(row, "pid"), 1000 + n);
		assert_int_equal(number(row, "records"), 7 * n);
		assert_int_equal(number(row, "bytes"), 100 * n);
		assert_int_equal(number(row, "next"), 3 * n);
	}
}

/* The loop's thread writes it: this takes half as long as reading it, and building a tree would
 * take longer. */
static void as_many_agents_as_can_be(void **state)
{
	struct server_conn *conns = calloc(AGENTS, sizeof(*conns));
	struct server_progress *progress = calloc(AGENTS, sizeof(*progress));
	struct store store = {0};
	struct retain_config kept = {0};
	struct server_config config = {0};
	double made = INFINITY, read = INFINITY, begin;
	struct retain *retain;
	struct server *server;
	json_t *root;
	int i;

	(void)state;
	assert_true(conns && progress);
	store_init(&store);
	config.loop = store.loop;
	config.journal = store.journal;
	kept.dir = kept.journal_dir = store.dir;
	server = server_new(&config);
	retain = retain_new(store.loop, store.journal, &kept);
	agents_connect(server, conns, progress);
	for (i = 0; i < 5; i++) {
		struct buf out = BUF_INIT;

		begin = cpu_s();
		http_status(server, store.journal, retain, store.dir, 0, &out);
		made = fmin(made, cpu_s() - begin);
		begin = cpu_s();
		root = json_loadb((const char *)out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
		read = fmin(read, cpu_s() - begin);
		assert_non_null(root);
		agents_are(json_object_get(root, "agents"));
		json_decref(root);
		buf_release(&out);
	}
	print_message("made in %.1f ms, read in %.1f ms\n", made * 1e3, read * 1e3);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they only slow our code */
	assert_true(made < read / 2);
#endif
	server->conns = NULL;
	retain_free(retain);
	server_free(server);
	journal_close(store.journal);
	store_release(&store);
	free(progress);
	free(conns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_disk),
		cmocka_unit_test(a_disk_that_keeps_nothing),
		cmocka_unit_test(as_many_agents_as_can_be),
	};

	return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
