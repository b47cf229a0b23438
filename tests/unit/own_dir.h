/* SPDX-License-Identifier: BSD-3-Clause */
/* own_dir.h - setup and teardown of a folder per test, and files of frames in it. */
#ifndef OWN_DIR_H
#define OWN_DIR_H

#include <stdlib.h>
#include <string.h>

#include "report_fixture.h"

static char dir[32];

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/crema-test-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

__attribute__((unused)) static void write_frames(uint64_t created_ns, const struct buf *frames)
{
	struct framefile f;

	assert_int_equal(framefile_create(&f, dir, "spool", created_ns, NULL), 0);
	assert_int_equal(framefile_append(&f, frames->data, frames->len), 0);
	framefile_close(&f);
}

static int remove_dir(void **state)
{
	(void)state;
	return fx_remove(dir);
}

#endif
