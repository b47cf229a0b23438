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

/* A folder that others may enter; otherwise they could not reach anything below it. */
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
	/* its contents could be renamed and replaced */
	assert_int_equal(dirs_make_own(below("all/inside")), -EPERM);
	assert_int_equal(dirs_make(below("all/inside")), -EPERM);
	made("sticky", 01777);
	assert_int_equal(dirs_make_own(below("sticky")), -EPERM);
	assert_non_null(
		strstr(dirs_explain(line, sizeof(line), -EPERM, below("sticky")), "chmod go-w"));
	assert_int_equal(dirs_make_own(below("sticky/inside")), 0);
	/* others cannot reach anything below a private folder */
	made("private", 0700);
	made("private/all", 0777);
	assert_int_equal(dirs_make_own(below("private/all/inside")), 0);
	/* but a private folder can be replaced if its parent is writable for others */
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
	/* root's folders are fine for a user: a service's folder, a volume of a container's
	 * group */
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

/* A folder's owner can rename its contents, sticky or not. */
static void outputs_below_another_users_folder(void **state)
{
	char line[PATH_MAX + 128];

	(void)state;
	if (geteuid()) {
		print_message("only root can make a folder of another user\n");
		skip();
	}
	made("bobs", 0755);
	made("bobs/mine", 0755);
	made("bobs/mine/deep", 0755);
	made("daemons", 0755);
	made("daemons/job", 0755);
	assert_int_equal(chown(below("bobs"), STRANGER, STRANGER), 0);
	assert_int_equal(chown(below("daemons"), 64, 64), 0);
	assert_int_equal(dirs_make_output(below("bobs/mine")), -EPERM);
	assert_int_equal(dirs_make_output(below("bobs/mine/deep")), -EPERM);
	assert_int_equal(dirs_make_output(below("bobs/new")), -EPERM);
	assert_int_equal(access(below("bobs/new"), F_OK), -1); /* and is not left behind */
	dirs_explain(line, sizeof(line), -EPERM, below("bobs/mine/deep"));
	assert_non_null(strstr(line, "/bobs'"));
	assert_non_null(strstr(line, "uid 65534"));
	assert_int_equal(chmod(below("bobs"), 01777), 0);
	assert_int_equal(dirs_make_output(below("bobs/mine")), -EPERM);
	/* a batch system's scratch folder belongs to the job, inside a folder of a system
	 * account */
	assert_int_equal(dirs_make_output(below("daemons/job")), 0);
	assert_int_equal(dirs_make_output(below("own/out")), 0);
	/* there may be records: those in a refused spool would be lost with its job */
	assert_int_equal(chmod(below("bobs"), 0755), 0);
	assert_int_equal(dirs_make_own(below("bobs/mine")), 0);
	/* root's folders in the path are fine for a user */
	assert_int_equal(chown(below("bobs/mine"), STRANGER, STRANGER), 0);
	assert_int_equal(seteuid(STRANGER), 0);
	assert_int_equal(dirs_make_output(below("bobs/mine")), 0);
	assert_int_equal(seteuid(0), 0);
	/* a private folder of ours protects what is below it */
	made("closed", 0700);
	made("closed/bobs", 0755);
	made("closed/bobs/mine", 0755);
	assert_int_equal(chown(below("closed/bobs"), STRANGER, STRANGER), 0);
	assert_int_equal(dirs_make_output(below("closed/bobs/mine")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_ones_are_made),
		cmocka_unit_test(others_must_not_write),
		cmocka_unit_test(a_link_is_where_it_leads),
		cmocka_unit_test(of_another_user),
		cmocka_unit_test(outputs_below_another_users_folder),
	};

	return cmocka_run_group_tests_name("dirs", tests, setup, teardown);
}
