/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fixture_journal.h - a journal in a temporary folder, with a worker's HELLO and a frame to add.
 * Included by one test file each.
 */
#ifndef TESTS_FIXTURE_JOURNAL_H
#define TESTS_FIXTURE_JOURNAL_H

#include "fixture_server.h"

struct seen {
	char order[64]; /* H hello, D data, N note */
	size_t n;
	unsigned int warnings;
};

static void see_frame(void *arg, const struct frame *frame)
{
	struct seen *seen = arg;
	uint8_t type = frame->head.type;

	assert_true(seen->n < sizeof(seen->order) - 1);
	seen->order[seen->n++] = type == CREMA_FRAME_HELLO  ? 'H'
				 : type == CREMA_FRAME_DATA ? 'D'
							    : 'N';
}

static void see_warning(void *arg, const char *text)
{
	assert_non_null(strstr(text, ".crema"));
	((struct seen *)arg)->warnings++;
}

static struct seen scan(const char *dir)
{
	struct seen seen;

	memset(&seen, 0, sizeof(seen));
	assert_int_equal(journal_scan_from(dir, 0, see_frame, &seen, see_warning), 0);
	return seen;
}

static void make_frame(struct buf *out, uint8_t type, size_t bytes)
{
	struct crema_frame_header head = frame_head(type, (const uint8_t *)"0123456789abcdef", 1);
	char *payload = malloc(bytes);
	size_t i;

	for (i = 0; i < bytes; i++)
		payload[i] = (char)random(); /* not compressible */
	assert_int_equal(frame_encode(out, &head, payload, bytes), 0);
	free(payload);
}

struct store {
	char dir[64];
	struct loop *loop;
	struct journal *journal;
	struct journal_config config;
	struct buf hello_frame, data;
	struct journal_hello hello;
};

static void store_open(struct store *store)
{
	int err;

	store->config.dir = store->dir;
	store->config.loop = fixture_ring ? store->loop : NULL;
	store->journal = journal_open(&store->config, &err);
	assert_non_null(store->journal);
	store->hello.segment = 0;
}

static void store_init(struct store *store)
{
	strcpy(store->dir, "/tmp/crema-unit-XXXXXX");
	assert_non_null(mkdtemp(store->dir));
	make_frame(&store->hello_frame, CREMA_FRAME_HELLO, 100);
	make_frame(&store->data, CREMA_FRAME_DATA, 1000);
	store->hello = (struct journal_hello){store->hello_frame.data, store->hello_frame.len, 0};
	log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
	store->loop = loop_new();
	assert_non_null(store->loop);
	store_open(store);
}

static int store_add(struct store *store)
{
	return journal_add(store->journal, &store->hello, store->data.data, store->data.len);
}

static int store_flush(struct store *store)
{
	int err;

	while ((err = journal_flush(store->journal)) == -EINPROGRESS)
		assert_int_equal(loop_turn(store->loop, -1), 0);
	return err;
}

static void store_release(struct store *store)
{
	char **names, path[512];
	int i, n = framefile_list(store->dir, &names);

	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", store->dir, names[i]);
		unlink(path);
	}
	free(names);
	assert_int_equal(rmdir(store->dir), 0);
	loop_free(store->loop);
	buf_release(&store->hello_frame);
	buf_release(&store->data);
}

#endif
