/* SPDX-License-Identifier: BSD-3-Clause */
/* test_redact.c - hidden names: no part of a name remains, except the scheme of a file on a
 * server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/redact.h"

static struct text hide(struct redact *r, const char *name)
{
	return redact_file(r, (struct text){name, strlen(name)});
}

static void assert_hidden(struct redact *r, const char *name, const char *kind)
{
	struct text t = hide(r, name);
	size_t n = strlen(kind);

	assert_int_equal(t.len, n + 16);
	assert_memory_equal(t.ptr, kind, n);
	assert_int_equal(strspn(t.ptr + n, "0123456789abcdef"), 16);
}

static void only_the_scheme_stays(void **state)
{
	struct redact r;

	(void)state;
	setenv("CREMA_REDACT_KEYS", "on", 1);
	assert_int_equal(redact_init(&r), 0);
	assert_hidden(&r, "/store/secret.root", "file-");
	assert_hidden(&r, "root://site.example//store/secret.root", "root://file-");
	assert_hidden(&r, "https://site.example/secret.root", "https://file-");
	/* not schemes, but parts of names */
	assert_hidden(&r, "://secret", "file-");
	assert_hidden(&r, "Secret://x", "file-");
	assert_hidden(&r, "/a/secret://x", "file-");
	assert_hidden(&r, "verylongsecret://x", "file-");
	assert_hidden(&r, "", "file-");
}

static void equal_names_are_equal(void **state)
{
	struct redact r;
	struct text one, two, other;

	(void)state;
	setenv("CREMA_REDACT_KEYS", "on", 1);
	assert_int_equal(redact_init(&r), 0);
	one = hide(&r, "root://a//x");
	two = hide(&r, "root://a//x");
	other = hide(&r, "root://a//y");
	assert_memory_equal(one.ptr, two.ptr, one.len);
	assert_memory_not_equal(one.ptr, other.ptr, one.len);
}

static void nothing_is_hidden_unless_asked(void **state)
{
	struct redact r;
	const char *name = "root://a//x";

	(void)state;
	setenv("CREMA_REDACT_KEYS", "off", 1);
	assert_int_equal(redact_init(&r), 0);
	assert_ptr_equal(hide(&r, name).ptr, name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_scheme_stays),
		cmocka_unit_test(equal_names_are_equal),
		cmocka_unit_test(nothing_is_hidden_unless_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
