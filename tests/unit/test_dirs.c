/* SPDX-License-Identifier: BSD-3-Clause */
/* test_dirs.c - folders that another user owns, can write to or can replace are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/dirs.h"

#define STRANGER 65534

/* A folder of its own that others may enter, else nothing below it could be reached by them. */
static char base[PATH_MAX];

static const char *below(const char *name)
{
	static char path[2][2 * PATH_MAX];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", base, name);
	return path[turn];
}

static int setup(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "/tmp/crema-dirs-XXXXXX");
	return mkdtemp(base) && !chmod(base, 0755) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[PATH_MAX + 16];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	return system(command);
}

static void made(const char *name, mode_t mode)
{
	assert_int_equal(mkdir(below(name), 0700), 0);
	assert_int_equal(chmod(below(name), mode), 0);
}

static void missing_ones_are_made(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(dirs_check_own(below("a/b")), -ENOENT);
	assert_int_equal(dirs_make_own(below("a/b")), 0);
	assert_int_equal(stat(below("a"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(dirs_make_own(below("a/b")), 0);
	assert_int_equal(dirs_check_own(below("a/b")), 0);
}

static void others_must_not_write(void **state)
{
	char line[PATH_MAX + 128];

	(void)state;
	made("all", 0777);
	assert_int_equal(dirs_make_own(below("all")), -EPERM);
	assert_non_null(
		strstr(dirs_explain(line, sizeof(line), -EPERM, below("all")), "chmod o-w"));
	/* what is in it could be renamed, and another put there */
	assert_int_equal(dirs_make_own(below("all/inside")), -EPERM);
	assert_int_equal(dirs_make(below("all/inside")), -EPERM);
	made("sticky", 01777);
	assert_int_equal(dirs_make_own(below("sticky")), -EPERM);
	assert_non_null(
		strstr(dirs_explain(line, sizeof(line), -EPERM, below("sticky")), "chmod go-w"));
	assert_int_equal(dirs_make_own(below("sticky/inside")), 0);
	/* nobody else gets to what is below a private folder */
	made("private", 0700);
	made("private/all", 0777);
	assert_int_equal(dirs_make_own(below("private/all/inside")), 0);
	/* but a private one can itself be replaced where others may write */
	made("all/private", 0700);
	assert_int_equal(dirs_make_own(below("all/private/inside")), -EPERM);
}

static void a_link_is_where_it_leads(void **state)
{
	(void)state;
	made("open", 0777);
	made("open/to", 0700);
	assert_int_equal(symlink(below("open/to"), below("link")), 0);
	assert_int_equal(dirs_make_own(below("link")), -EPERM);
}

static void of_another_user(void **state)
{
	char line[PATH_MAX + 128];

	(void)state;
	if (geteuid()) {
		print_message("only root can make a folder of another user\n");
		skip();
	}
	made("theirs", 0755);
	assert_int_equal(chown(below("theirs"), STRANGER, STRANGER), 0);
	assert_int_equal(dirs_make_own(below("theirs")), -EPERM);
	assert_non_null(
		strstr(dirs_explain(line, sizeof(line), -EPERM, below("theirs")), "uid 65534"));
	/* root's is fine for a user: a service's folder, a volume of a container's group */
	made("roots", 0775);
	made("group", 0775);
	made("upg", 0775);
	assert_int_equal(chown(below("group"), STRANGER, 100), 0);
	assert_int_equal(chown(below("upg"), STRANGER, STRANGER), 0);
	assert_int_equal(seteuid(STRANGER), 0);
	assert_int_equal(dirs_check_own(below("roots")), 0);
	assert_int_equal(dirs_check_own(below("theirs")), 0);
	assert_int_equal(dirs_check_own(below("upg")), 0);
	assert_int_equal(dirs_check_own(below("group")), -EPERM);
	assert_int_equal(seteuid(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_ones_are_made),
		cmocka_unit_test(others_must_not_write),
		cmocka_unit_test(a_link_is_where_it_leads),
		cmocka_unit_test(of_another_user),
	};

	return cmocka_run_group_tests_name("dirs", tests, setup, teardown);
}
