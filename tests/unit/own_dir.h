/* SPDX-License-Identifier: BSD-3-Clause */
/* own_dir.h - setup and teardown of a folder for each test. */
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

static int remove_dir(void **state)
{
	(void)state;
	return fx_remove(dir);
}

#endif
