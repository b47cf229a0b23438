/* SPDX-License-Identifier: BSD-3-Clause */
/* spool_dir.h - a folder for a spool, and records for it: `dir` is shared by the group of tests. */
#ifndef TESTS_UNIT_SPOOL_DIR_H
#define TESTS_UNIT_SPOOL_DIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/outbox.h"

static const uint8_t worker[16] = {0xcd};
static char dir[] = "/tmp/crema-test-XXXXXX";

static uint64_t add(struct outbox *o, enum outbox_class class, uint64_t v)
{
	msgpack_packer *pk = outbox_begin(o, class);

	pack_array(pk, 2);
	pack_u64(pk, CREMA_MSG_SAMPLE);
	pack_u64(pk, v);
	return outbox_end(o, class);
}

static void make_hello(struct buf *hello)
{
	struct crema_frame_header h = frame_head(CREMA_FRAME_HELLO, worker, 1);

	assert_int_equal(frame_encode(hello, &h, "\x80", 1), 0);
}

static int files(void)
{
	char **names;
	int n = framefile_list(dir, &names);

	free(names);
	return n;
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

/* With the token that fake_collector.h puts into it. */
static int remove_dir(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/token", dir);
	unlink(path);
	rmdir(dir);
	return 0;
}

#endif
