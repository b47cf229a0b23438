/* SPDX-License-Identifier: BSD-3-Clause */
/* test_server_payload.c - which bytes are messages, and that no prefix is read beyond its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/serve/server_payload.h"

static void payload_check_accepts_messages_only(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		uint32_t count;
		int want;
	} example[] = {
		{"\x90", 1, 0, 0},
		{"\x91\x91\x01", 3, 1, 0},
		{"\x92\x91\x01\x92\x02\x81\xa1k\xc0", 9, 2, 0},
		{"\x91\x92\xcc\xc8\xcb\0\0\0\0\0\0\0\0", 13, 1, 0},
		{"\x91\x91\x01\xc0", 4, 1, -EBADMSG}, /* something behind it */
		{"\x91\x91\x01", 3, 2, -EBADMSG},     /* another count */
		{"\x91\x90", 2, 1, -EBADMSG},	      /* a message without its number */
		{"\x91\x91\xa1x", 4, 1, -EBADMSG},    /* a text for its number */
		{"\x91\x81\x01\x01", 4, 1, -EBADMSG}, /* a map for a message */
		{"\x81\x91\x01\x01", 4, 1, -EBADMSG}, /* a map of messages */
		{"\x91\x92\x01\xc6\xff\xff\xff\xff", 8, 1, -EBADMSG},
		{"\x91\x92\x01\xdd\xff\xff\xff\xff", 8, 1, -EBADMSG},
		{"\x91\x92\x01\xc1", 4, 1, -EBADMSG},
		{"\x91\x92\x01\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x01", 19,
		 1, -EBADMSG}, /* too deep */
	};
	size_t i, cut;

	(void)state;
	for (i = 0; i < sizeof(example) / sizeof(example[0]); i++) {
		const uint8_t *p = (const uint8_t *)example[i].bytes;

		assert_int_equal(server_payload_check(p, example[i].n, example[i].count, NULL),
				 example[i].want);
		for (cut = 0; cut < example[i].n; cut++) {
			uint8_t *exact = malloc(cut ? cut : 1); /* a sanitizer sees over-reads */

			memcpy(exact, p, cut);
			if (!example[i].want)
				assert_int_equal(
					server_payload_check(exact, cut, example[i].count, NULL),
					-EBADMSG);
			free(exact);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(payload_check_accepts_messages_only),
	};

	return cmocka_run_group_tests_name("server_payload", tests, NULL, NULL);
}
