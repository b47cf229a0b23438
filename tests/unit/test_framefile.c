/* SPDX-License-Identifier: BSD-3-Clause */
/* test_framefile.c - files of frames, including damaged ones. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "common/framefile.h"

static const uint8_t worker[16] = {0xab, 1};

struct seen {
	uint64_t seq[256];
	size_t n;
};

static int note(void *arg, const struct crema_frame_header *head, const unsigned char *raw,
		size_t raw_bytes)
{
	struct seen *s = arg;

	assert_int_equal(raw_bytes, 600);
	assert_int_equal(raw[599], 'a' + head->first_seq % 26);
	s->seq[s->n++] = head->first_seq;
	return 0;
}

static int setup(void **state)
{
	char *dir = strdup("/tmp/crema-test-XXXXXX");

	*state = mkdtemp(dir);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	char **names;
	int n = framefile_list(*state, &names);
	char path[PATH_MAX];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", (char *)*state, names[i]);
		unlink(path);
	}
	free(names);
	rmdir(*state);
	free(*state);
	return 0;
}

static int add(struct framefile *f, uint64_t seq)
{
	struct crema_frame_header h = frame_head(CREMA_FRAME_DATA, worker, 5);
	struct buf out = BUF_INIT;
	char raw[600];
	int rc;

	memset(raw, (int)('a' + seq % 26), sizeof(raw));
	for (size_t i = 0; i < 300; i++)
		raw[i] = (char)(i * seq * 7); /* not too compressible */
	h.first_seq = seq;
	h.count = 1;
	assert_int_equal(frame_encode(&out, &h, raw, sizeof(raw)), 0);
	rc = framefile_append(f, out.data, out.len);
	buf_release(&out);
	return rc;
}

static void make(struct framefile *f, const char *dir, int frames)
{
	assert_int_equal(framefile_create(f, dir, "spool", 42, worker), 0);
	for (int i = 0; i < frames; i++)
		assert_int_equal(add(f, (uint64_t)i), 0);
}

static void test_whole(void **state)
{
	struct framefile_stats st;
	struct seen s = {.n = 0};
	struct framefile f, again;
	struct stat info;
	char **names, head[200];

	make(&f, *state, 100);
	assert_int_equal(framefile_sync(&f), 0);
	assert_int_equal(framefile_create(&again, *state, "spool", 42, worker), -EEXIST);
	assert_int_equal(fstat(f.fd, &info), 0);
	assert_true(pread(f.fd, head, sizeof(head), 0) == sizeof(head));
	assert_non_null(memmem(head, sizeof(head),
			       "\xaa"
			       "created_ns\x2a",
			       12)); /* 42 */
	assert_int_equal(info.st_mode & 0777, 0600);
	assert_int_equal(info.st_size, f.size);
	framefile_close(&f);
	assert_int_equal(framefile_read(f.path, note, &s, &st), 0);
	assert_int_equal(s.n, 100);
	assert_int_equal(s.seq[99], 99);
	assert_int_equal(st.frames, 100);
	assert_int_equal(st.bytes, info.st_size);
	assert_int_equal(st.bytes_skipped, 0);
	assert_int_equal(st.first_bad_offset, -1);
	assert_false(st.truncated || st.no_header);
	assert_int_equal(framefile_list(*state, &names), 1);
	assert_string_equal(names[0],
			    "00000000000000000042-ab010000000000000000000000000000.crema");
	free(names);
}

static void test_every_tail(void **state)
{
	struct framefile f;
	struct framefile_stats st;

	make(&f, *state, 2);
	for (uint64_t size = f.size; size-- > 0;) {
		struct seen s = {.n = 0};

		assert_int_equal(ftruncate(f.fd, (off_t)size), 0);
		assert_int_equal(framefile_read(f.path, note, &s, &st), 0);
		assert_int_equal(s.n, st.frames);
		assert_true(s.n < 2);
		/* A file that ends exactly after a frame is not damaged. */
		assert_int_equal(st.truncated, st.bytes_skipped != 0);
	}
	assert_true(st.no_header);
	framefile_close(&f);
}

static void test_flipped_byte(void **state)
{
	struct framefile_stats st;
	struct framefile f;
	int fd;

	make(&f, *state, 20);
	framefile_close(&f);
	fd = open(f.path, O_RDWR);
	for (off_t at = 0; at < (off_t)f.size; at += 7) {
		struct seen s = {.n = 0};
		unsigned char c;

		assert_int_equal(pread(fd, &c, 1, at), 1);
		c ^= 0x40;
		assert_int_equal(pwrite(fd, &c, 1, at), 1);
		assert_int_equal(framefile_read(f.path, note, &s, &st), 0);
		/* One frame (or the header) is lost, all others are found. */
		assert_int_equal(s.n, 19u + st.no_header);
		assert_in_range(st.bytes_skipped, 1, 1000);
		assert_true(st.first_bad_offset >= 0 && st.first_bad_offset <= at);
		c ^= 0x40;
		assert_int_equal(pwrite(fd, &c, 1, at), 1);
	}
	close(fd);
}

static void test_garbage(void **state)
{
	char path[PATH_MAX];
	unsigned char junk[9000];
	struct framefile_stats st;
	struct seen s = {.n = 0};
	int fd;

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (unsigned char)"CRMF\1\7ABC"[i % 9];
	snprintf(path, sizeof(path), "%s/x.crema", (char *)*state);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
	close(fd);
	assert_int_equal(framefile_read(path, note, &s, &st), 0);
	assert_int_equal(s.n, 0);
	assert_int_equal(st.bytes_skipped, sizeof(junk));
	assert_int_equal(st.first_bad_offset, 0);
	assert_true(st.no_header);
	assert_int_equal(framefile_read("/nonexistent/x", note, &s, &st), -ENOENT);
}

/* Its checksum is valid, but its contents do not inflate: skipped, with offset and bytes
 * recorded. */
static void test_not_inflatable(void **state)
{
	struct crema_frame_header h;
	struct framefile_stats st;
	struct seen s = {.n = 0};
	struct framefile f;
	unsigned char stored[600];
	uint32_t crc;
	uint64_t at;
	int fd;

	make(&f, *state, 1);
	at = f.size;
	assert_int_equal(add(&f, 1), 0);
	fd = open(f.path, O_RDWR);
	assert_int_equal(pread(fd, &h, sizeof(h), (off_t)at), sizeof(h));
	assert_true(h.flags && h.stored_bytes <= sizeof(stored));
	memset(stored, 0xff, sizeof(stored));
	h.crc = 0;
	crc = (uint32_t)crc32(crc32(0, (void *)&h, sizeof(h)), stored, h.stored_bytes);
	h.crc = crc;
	assert_int_equal(pwrite(fd, &h, sizeof(h), (off_t)at), sizeof(h));
	assert_int_equal(pwrite(fd, stored, h.stored_bytes, (off_t)at + (off_t)sizeof(h)),
			 h.stored_bytes);
	assert_int_equal(add(&f, 2), 0);
	framefile_close(&f);
	close(fd);
	assert_int_equal(framefile_read(f.path, note, &s, &st), 0);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.seq[1], 2);
	assert_int_equal(st.frames, 2);
	assert_int_equal(st.bytes_skipped, sizeof(h) + h.stored_bytes);
	assert_int_equal(st.first_bad_offset, at);
}

static void test_growing(void **state)
{
	struct framefile_reader r;
	struct framefile f;
	struct frame frame;
	size_t n;

	make(&f, *state, 1);
	assert_int_equal(framefile_open(&r, f.path), 0);
	assert_int_equal(framefile_next(&r, &frame), 1);
	assert_int_equal(framefile_next(&r, &frame), 0);
	assert_int_equal(add(&f, 1), 0);
	assert_int_equal(framefile_next(&r, &frame), 1);
	assert_int_equal(frame.head.first_seq, 1);
	assert_non_null(framefile_verbatim(&r, &frame, &n));
	assert_int_equal(n, FRAME_HEAD_BYTES + frame.head.stored_bytes);
	assert_int_equal(framefile_next(&r, &frame), 0);
	framefile_reader_close(&r);
	framefile_close(&f);
}

/* A name may lead to something that is not a regular file: it must not block, or be read
 * forever. */
static void test_no_file(void **state)
{
	struct framefile_stats st;
	struct seen s = {.n = 0};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/it", (char *)*state);
	alarm(30);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(framefile_read(path, note, &s, &st), -EMEDIUMTYPE);
	unlink(path);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_int_equal(framefile_read(path, note, &s, &st), -EMEDIUMTYPE);
	unlink(path);
	assert_int_equal(symlink("it", path), 0);
	assert_int_equal(framefile_read(path, note, &s, &st), -ELOOP);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(framefile_read(path, note, &s, &st), -EISDIR);
	rmdir(path);
	alarm(0);
	assert_int_equal(s.n, 0);
}

/* A write that fails midway leaves nothing behind. */
static void test_full_disk(void **state)
{
	struct rlimit was, now;
	struct framefile f;
	struct framefile_stats st;
	struct seen s = {.n = 0};
	uint64_t size;

	make(&f, *state, 3);
	size = f.size;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	now = was;
	now.rlim_cur = size + 100;
	setrlimit(RLIMIT_FSIZE, &now);
	assert_true(add(&f, 3) < 0);
	setrlimit(RLIMIT_FSIZE, &was);
	assert_int_equal(f.size, size);
	assert_int_equal(lseek(f.fd, 0, SEEK_END), size);
	assert_int_equal(add(&f, 3), 0);
	framefile_close(&f);
	assert_int_equal(framefile_read(f.path, note, &s, &st), 0);
	assert_int_equal(s.n, 4);
	assert_int_equal(st.bytes_skipped, 0);
}

/* All files of frames, exact to the byte, and no others. */
static void test_sizes(void **state)
{
	static const char text[3000];
	struct framefile file = {.fd = -1};
	uint64_t bytes = 5, due = 0;
	struct stat st;
	char path[PATH_MAX];
	FILE *other;

	assert_int_equal(framefile_sizes(*state, &bytes), 0);
	assert_int_equal(bytes, 0);
	for (uint64_t i = 1; i <= 2; i++) {
		assert_int_equal(framefile_create(&file, *state, "spool", i, worker), 0);
		assert_int_equal(framefile_append(&file, text, 1000 * i), 0);
		assert_int_equal(stat(file.path, &st), 0);
		due += (uint64_t)st.st_size;
		framefile_close(&file);
	}
	assert_true(due > 3000);
	snprintf(path, sizeof(path), "%s/other", (char *)*state);
	other = fopen(path, "w");
	assert_non_null(other);
	fputs("not counted", other);
	fclose(other);
	assert_int_equal(framefile_sizes(*state, &bytes), 0);
	assert_int_equal(bytes, due);
	unlink(path);
	assert_int_equal(framefile_sizes(path, &bytes), -ENOENT);
	assert_int_equal(bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_tail, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flipped_byte, setup, teardown),
		cmocka_unit_test_setup_teardown(test_garbage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_growing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_inflatable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
	};

	return cmocka_run_group_tests_name("framefile", tests, NULL, NULL);
}
