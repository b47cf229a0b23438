/* SPDX-License-Identifier: BSD-3-Clause */
/* test_closed_by_libc.c - closing what libc closes without close() is as it is without the shim. */
#include "harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A stream in memory has no descriptor. */
static void closing_a_stream_in_memory_keeps_errno(void **state)
{
	char *text = NULL, buf[8] = "";
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	fputs("x", f);
	errno = 0;
	assert_int_equal(fclose(f), 0);
	assert_int_equal(errno, 0);
	free(text);
	f = fmemopen(buf, sizeof(buf), "r");
	errno = ECHILD;
	assert_int_equal(fclose(f), 0);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_a_stream_in_memory_keeps_errno),
	};

	return cmocka_run_group_tests_name("shim closed by libc", tests, harness_setup, NULL);
}
