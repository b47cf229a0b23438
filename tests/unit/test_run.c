/* SPDX-License-Identifier: BSD-3-Clause */
/* test_run.c - crema run: finding and trying the library, becoming the command. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/preload/preload.h"

static char dir[64], exe[PATH_MAX], library[PATH_MAX];

/* A valid and harmless library: one that this program has loaded. */
static int find_harmless(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	if (strstr(info->dlpi_name, "libcmocka.so"))
		snprintf(arg, PATH_MAX, "%s", info->dlpi_name);
	return 0;
}

static int set_up(void **state)
{
	char other[PATH_MAX] = "";

	(void)state;
	strcpy(dir, "/tmp/crema-unit-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(exe, sizeof(exe), "%s/crema", dir);
	snprintf(library, sizeof(library), "%s/libcrema.so", dir);
	dl_iterate_phdr(find_harmless, other);
	unsetenv("LD_PRELOAD");
	return other[0] ? symlink(other, library) : -1;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(library);
	return rmdir(dir);
}

static void bad_library(void)
{
	int fd;

	unlink(library);
	fd = open(library, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "no library", 10), 10);
	close(fd);
}

/* Runs the command in a child; returns its wait status and all its output. */
static int run_it(char **command, char *text, size_t size)
{
	int fd[2], status;
	size_t used = 0;
	ssize_t n;
	pid_t child;

	assert_int_equal(pipe(fd), 0);
	child = fork();
	if (!child) {
		dup2(fd[1], 1);
		dup2(fd[1], 2);
		close(fd[0]);
		close(fd[1]);
		preload_prepare(exe);
		_exit(preload_exec(command));
	}
	close(fd[1]);
	while ((n = read(fd[0], text + used, size - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	close(fd[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static int run_shell(const char *script, char *text, size_t size)
{
	char *command[] = {(char[]){"sh"}, (char[]){"-c"}, strdup(script), NULL};
	int status = run_it(command, text, size);

	free(command[2]);
	return status;
}

static void the_library_is_found_beside_or_in_lib(void **state)
{
	char path[PATH_MAX], real[PATH_MAX], deep[PATH_MAX];

	(void)state;
	assert_int_equal(preload_find(exe, path, sizeof(path)), 0);
	assert_non_null(realpath(library, real));
	assert_string_equal(path, real);
	snprintf(deep, sizeof(deep), "%s/bin/crema", dir);
	assert_int_equal(preload_find(deep, path, sizeof(path)), -ENOENT);
	snprintf(deep, sizeof(deep), "%s/bin", dir);
	assert_int_equal(mkdir(deep, 0700), 0);
	snprintf(deep, sizeof(deep), "%s/lib", dir);
	assert_int_equal(mkdir(deep, 0700), 0);
	snprintf(deep, sizeof(deep), "%s/lib/crema", dir);
	assert_int_equal(symlink(dir, deep), 0); /* lib/crema/libcrema.so now exists */
	snprintf(deep, sizeof(deep), "%s/bin/crema", dir);
	assert_int_equal(preload_find(deep, path, sizeof(path)), 0);
	assert_string_equal(path, real);
	snprintf(deep, sizeof(deep), "%s/lib/crema", dir);
	unlink(deep);
	snprintf(deep, sizeof(deep), "%s/lib", dir);
	rmdir(deep);
	snprintf(deep, sizeof(deep), "%s/bin", dir);
	rmdir(deep);
}

static void an_existing_preload_is_kept_behind_ours(void **state)
{
	char text[4096], real[PATH_MAX], want[2 * PATH_MAX + 8];

	(void)state;
	assert_non_null(realpath(library, real));
	assert_int_equal(run_shell("echo \"$LD_PRELOAD\"", text, sizeof(text)), 0);
	snprintf(want, sizeof(want), "%s\n", real);
	assert_string_equal(text, want);
	setenv("LD_PRELOAD", real, 1);
	assert_int_equal(run_shell("echo \"$LD_PRELOAD\"", text, sizeof(text)), 0);
	snprintf(want, sizeof(want), "%s:%s\n", real, real);
	assert_string_equal(text, want);
	unsetenv("LD_PRELOAD");
}

static void status_and_signals_are_the_commands_own(void **state)
{
	char *none[] = {(char[]){"/no/such/command"}, NULL}, *plain[] = {(char[]){"/etc"}, NULL};
	char text[4096];
	int status;

	(void)state;
	status = run_shell("exit 37", text, sizeof(text));
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 37);
	assert_string_equal(text, "");
	status = run_shell("kill -TERM $$", text, sizeof(text));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	status = run_it(none, text, sizeof(text));
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 127);
	assert_non_null(strstr(text, "/no/such/command"));
	status = run_it(plain, text, sizeof(text));
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 126);
}

static void a_library_that_fails_costs_the_measurement_only(void **state)
{
	char text[4096], why[512];

	(void)state;
	bad_library();
	assert_int_equal(preload_try(library, why, sizeof(why)), -1);
	assert_int_equal(run_shell("echo \"out $LD_PRELOAD\"; exit 3", text, sizeof(text)), 3 << 8);
	assert_non_null(strstr(text, "unmeasured"));
	assert_non_null(strstr(text, "\nout \n"));
	assert_string_equal(strchr(text, '\n'), "\nout \n"); /* one line, then the command's */
	unlink(library);
	assert_int_equal(run_shell("echo out", text, sizeof(text)), 0);
	assert_non_null(strstr(text, "neither next to"));
	assert_non_null(strstr(text, "\nout\n"));
}

static void the_trial_works_where_sigchld_is_ignored(void **state)
{
	struct sigaction now;
	char why[512];

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(preload_try(library, why, sizeof(why)), 0);
	sigaction(SIGCHLD, NULL, &now);
	assert_true(now.sa_handler == SIG_IGN); /* inherited by the command */
	signal(SIGCHLD, SIG_DFL);
}

static void a_path_that_ld_preload_cannot_hold_is_refused(void **state)
{
	(void)state;
	assert_int_equal(preload_set("/a b/libcrema.so"), -EINVAL);
	assert_int_equal(preload_set("/a:b/libcrema.so"), -EINVAL);
	assert_null(getenv("LD_PRELOAD"));
}

static void a_path_with_a_space_is_reached_through_a_link(void **state)
{
	char folder[] = "/tmp/crema run XXXXXX", state_dir[] = "/tmp/crema-state-XXXXXX";
	char path[PATH_MAX], loadable[PATH_MAX], real[PATH_MAX], wanted[PATH_MAX];
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_non_null(mkdtemp(state_dir));
	setenv("CREMA_DIR", state_dir, 1);
	snprintf(path, sizeof(path), "%s/libcrema.so", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	for (int i = 0; i < 2; i++) { /* the second time the link exists */
		assert_int_equal(preload_path(path, loadable, sizeof(loadable)), 0);
		assert_null(strpbrk(loadable, " :"));
		assert_non_null(realpath(loadable, real));
		assert_non_null(realpath(path, wanted));
		assert_string_equal(real, wanted);
	}
	setenv("CREMA_DIR", folder, 1); /* no usable folder for the link */
	assert_int_equal(preload_path(path, loadable, sizeof(loadable)), -EINVAL);
	assert_int_equal(preload_path("/plain/libcrema.so", loadable, sizeof(loadable)), 0);
	assert_string_equal(loadable, "/plain/libcrema.so");
	unsetenv("CREMA_DIR");
	snprintf(wanted, sizeof(wanted), "rm -rf '%s' '%s'", folder, state_dir);
	assert_int_equal(system(wanted), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_library_is_found_beside_or_in_lib),
		TEST(an_existing_preload_is_kept_behind_ours),
		TEST(status_and_signals_are_the_commands_own),
		TEST(a_library_that_fails_costs_the_measurement_only),
		TEST(the_trial_works_where_sigchld_is_ignored),
		TEST(a_path_with_a_space_is_reached_through_a_link),
		TEST(a_path_that_ld_preload_cannot_hold_is_refused),
	};

	return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
