/* SPDX-License-Identifier: BSD-3-Clause */
/* test_closed_by_libc.c - a descriptor that libc closes without close() means another file when it
 * is used again. */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES 100000u
#define PIECE 1000u

static const char *a, *b;

static uint64_t read_by(const struct crema_task *t)
{
	return t->own.count[CREMA_C_read_bytes];
}

static size_t read_rest(FILE *f)
{
	char buf[PIECE];
	size_t n, sum = 0;

	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		sum += n;
	return sum;
}

/* The file's row, as its last component names it. */
static const struct crema_file *row_of(const char *end)
{
	for (unsigned int i = 0; i < CREMA_SHM_FILES; i++) {
		const struct crema_file *f = &crema_shm->file[i];
		const char *path = f->state == 2 && f->path ? arena_text(f->path) : "";

		if (strlen(path) > strlen(end) && !strcmp(path + strlen(path) - strlen(end), end))
			return f;
	}
	fail_msg("no row of %s", end);
	return NULL;
}

/* Opens b at the descriptor and reads all of it for a task. */
static void assert_b_is_counted(int at)
{
	struct harness_task h = harness_begin();
	FILE *f = fopen(b, "r");

	assert_non_null(f);
	assert_int_equal(fileno(f), at);
	assert_int_equal(read_rest(f), BYTES);
	fclose(f);
	assert_int_equal(read_by(harness_end(&h)), BYTES);
	harness_free(&h);
}

static void pclose_is_a_close(void **state)
{
	FILE *f = popen("echo hello", "r");
	char line[100];
	int fd = fileno(f);

	(void)state;
	assert_non_null(fgets(line, sizeof(line), f));
	/* now the descriptor is known to be a pipe */
	assert_int_equal(read(fd, line, sizeof(line)), 0);
	assert_int_equal(pclose(f), 0);
	assert_b_is_counted(fd);
}

static void closedir_is_a_close(void **state)
{
	DIR *d = opendir(".");
	char byte;
	int fd = dirfd(d);

	(void)state;
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, EISDIR);
	assert_int_equal(closedir(d), 0);
	assert_b_is_counted(fd);
	assert_int_equal(((int (*volatile)(DIR *))closedir)(NULL), -1);
	assert_int_equal(errno, EINVAL);
}

static void endmntent_is_a_close(void **state)
{
	FILE *f = setmntent("/proc/self/mounts", "r");
	int fd = fileno(f);
	char byte;

	(void)state;
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(endmntent(f), 1);
	assert_b_is_counted(fd);
}

/* Streams stay open: glibc only flushes them and takes their buffers. */
static void fcloseall_closes_nothing(void **state)
{
	FILE *f = fopen(a, "r");

	(void)state;
	assert_int_equal(fcloseall(), 0);
	assert_true(fcntl(fileno(f), F_GETFD) >= 0);
	fclose(f);
}

typedef FILE *reopen(const char *, const char *, FILE *);

static void check_freopen_reads(reopen *how)
{
	struct harness_task h = harness_begin();
	FILE *f = fopen(a, "r");
	uint64_t before = 0;
	char byte;

	assert_int_equal(fread(&byte, 1, 1, f), 1);
	assert_int_equal(read_by(harness_end(&h)), 4096);
	harness_free(&h);
	before = row_of("-a.dat")->read_bytes;

	h = harness_begin();
	f = how(b, "r", f);
	assert_non_null(f);
	assert_int_equal(read_rest(f), BYTES);
	fclose(f);
	assert_int_equal(read_by(harness_end(&h)), BYTES);
	harness_free(&h);
	assert_int_equal(row_of("-a.dat")->read_bytes, before);
}

static void freopen_reads_another_file(void **state)
{
	uint64_t before;

	(void)state;
	check_freopen_reads(freopen);
	before = row_of("-b.dat")->read_bytes;
	check_freopen_reads(freopen64);
	assert_int_equal(row_of("-b.dat")->read_bytes, before + BYTES);
}

static void freopen_writes_another_file(void **state)
{
	static const char piece[PIECE];
	struct harness_task h = harness_begin();
	FILE *f = fopen("/dev/null", "w");
	struct crema_task *t;

	(void)state;
	assert_int_equal(fwrite(piece, 1, PIECE, f), PIECE);
	assert_int_equal(fflush(f), 0);
	f = freopen(a, "w", f);
	for (unsigned int i = 0; i < BYTES / PIECE; i++)
		assert_int_equal(fwrite(piece, 1, PIECE, f), PIECE);
	assert_int_equal(fclose(f), 0);
	t = harness_end(&h);
	assert_int_equal(t->own.count[CREMA_C_write_bytes], BYTES);
	harness_free(&h);
}

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

static int arm(void **state)
{
	(void)state;
	harness_arm();
	a = strdup(harness_file("a.dat", BYTES));
	b = strdup(harness_file("b.dat", BYTES));
	return 0;
}

static int clean(void **state)
{
	(void)state;
	return unlink(a) || unlink(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pclose_is_a_close),
		cmocka_unit_test(closedir_is_a_close),
		cmocka_unit_test(endmntent_is_a_close),
		cmocka_unit_test(fcloseall_closes_nothing),
		cmocka_unit_test(freopen_reads_another_file),
		cmocka_unit_test(freopen_writes_another_file),
		cmocka_unit_test(closing_a_stream_in_memory_keeps_errno),
	};

	return cmocka_run_group_tests_name("shim closed by libc", tests, arm, clean);
}
