/* SPDX-License-Identifier: BSD-3-Clause */
/* test_utf8.c - what is a character, which characters a screen gets, and which files keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "collector/emit/emit_text.h"
#include "collector/live/live_parts.h"
#include "common/utf8.h"

static void put(char *s, uint32_t c, size_t n)
{
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t i;

	for (i = n; --i > 0; c >>= 6)
		s[i] = (char)(0x80 | (c & 0x3f));
	s[0] = n == 1 ? (char)c : (char)(lead[n] | c);
	s[n] = '\0';
}

/* Each code point in each length: only the shortest is a character, and surrogates are not. */
static void code_points(void **state)
{
	static const uint32_t from[] = {0, 0, 0x80, 0x800, 0x10000, 0x110000};
	static const uint32_t room[] = {0, 0x80, 0x800, 0x10000, 0x200000};
	uint32_t c, got;
	char s[8];
	size_t n;

	(void)state;
	for (n = 1; n <= 4; n++) {
		for (c = 0; c < room[n]; c++) {
			bool good = c >= from[n] && c < from[n + 1] && (c < 0xd800 || c > 0xdfff);

			put(s, c, n);
			got = 0xffffffff;
			assert_int_equal(utf8_take(s, n, &got), good ? n : 0);
			assert_int_equal(got, good ? c : 0xffffffff);
			if (n > 1)
				assert_int_equal(utf8_take(s, n - 1, &got), 0);
		}
	}
}

/* The terminal's names and those of the live page: the same characters are replaced, each with one
 * '?'. */
static void one_filter(void **state)
{
	static const uint32_t hidden[] = {0x1b,	  0x7f,	  0x85,	  0x9b,	  0x061c, 0x200b, 0x200f,
					  0x2028, 0x202e, 0x2060, 0x2066, 0x206f, 0xfeff};
	static const uint32_t shown[] = {'a',	 0xa0,	 0xe9,	 0x061b, 0x061e, 0x200a, 0x2010,
					 0x2027, 0x202f, 0x205f, 0x2070, 0x4e2d, 0x1f600};
	char text[16], live[16], name[8];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(hidden) / sizeof(*hidden); i++) {
		put(name, hidden[i], hidden[i] < 0x80 ? 1 : hidden[i] < 0x800 ? 2 : 3);
		snprintf(text, sizeof(text), "a%sb", name);
		live_text(live, sizeof(live), (struct text){text, strlen(text)});
		assert_string_equal(live, "a?b");
		assert_string_equal(text_clean(text), "a?b");
	}
	for (i = 0; i < sizeof(shown) / sizeof(*shown); i++) {
		put(name, shown[i],
		    shown[i] < 0x80	 ? 1
		    : shown[i] < 0x800	 ? 2
		    : shown[i] < 0x10000 ? 3
					 : 4);
		live_text(live, sizeof(live), (struct text){name, strlen(name)});
		assert_string_equal(live, name);
		snprintf(text, sizeof(text), "%s", name);
		assert_string_equal(text_clean(text), name);
	}
	live_text(live, sizeof(live), (struct text){"\xff\xe2\x80", 3});
	assert_string_equal(live, "???");
	live_text(live, 4, (struct text){"ab\xc3\xa9", 4});
	assert_string_equal(live, "ab");
}

/* Files keep all characters, including U+061C. */
static void files_keep_characters(void **state)
{
	static const char text[] = "a\xd8\x9c\xff\xe2\x80\xae\x1b\xe2\x80";
	static const char kept[] = "a\xd8\x9c\xef\xbf\xbd\xe2\x80\xae\x1b\xef\xbf\xbd\xef\xbf\xbd";
	struct buf out = BUF_INIT;

	(void)state;
	assert_int_equal(utf8_add(&out, text, sizeof(text) - 1), 0);
	assert_int_equal(out.len, sizeof(kept) - 1);
	assert_memory_equal(out.data, kept, out.len);
	buf_release(&out);
}

static void cut_characters(void **state)
{
	static const char text[] = "a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80";
	static const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
	size_t n;

	(void)state;
	for (n = 0; n < sizeof(text); n++)
		assert_int_equal(utf8_whole(text, n), whole[n]);
	assert_int_equal(utf8_whole("\x80\x80\x80\x80\x80", 5), 5);
	assert_true(utf8_begins('a') && utf8_begins('\xc3') && !utf8_begins('\xa9'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_points),
		cmocka_unit_test(one_filter),
		cmocka_unit_test(files_keep_characters),
		cmocka_unit_test(cut_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
