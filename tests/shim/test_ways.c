/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ways.c - reads without read(): streams, copies between descriptors, other threads' files. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/count/segment.h"
#include "shim/libc/sys.h"

#define SIZE 300000u

static const char *path;

static uint64_t count_of(const struct harness_task *h, int id)
{
	return task_slot(h->owner)->own.count[id];
}

/* One read fills a stream's buffer, and a large remainder is read directly. */
static void fread_counts_what_the_kernel_gave(void **state)
{
	struct harness_task h;
	static char buf[SIZE];
	FILE *f = fopen(path, "r");

	(void)state;
	h = harness_begin();
	assert_int_equal(fread(buf, 1, 10, f), 10); /* fills 4096 */
	assert_int_equal(fread(buf, 1, 4000, f), 4000);
	harness_end(&h);
	assert_int_equal(count_of(&h, CREMA_C_read_calls), 1);
	assert_int_equal(count_of(&h, CREMA_C_read_bytes), 4096);
	harness_free(&h);
	h = harness_begin();
	errno = 77;
	assert_int_equal(fread(buf, 1, SIZE, f), SIZE - 4010);
	assert_int_equal(errno, 77);
	harness_end(&h);
	assert_int_equal(count_of(&h, CREMA_C_read_calls), 1);
	assert_int_equal(count_of(&h, CREMA_C_read_bytes), SIZE - 4096);
	harness_free(&h);
	fclose(f);
}

static void lines_count_what_the_kernel_gave(void **state)
{
	const char *text = harness_file("lines", 0);
	FILE *f = fopen(text, "w");
	struct harness_task h;
	char buf[100], *line = NULL;
	size_t room = 0;
	long lines = 0, bytes;

	(void)state;
	for (int i = 0; i < 3000; i++)
		fprintf(f, "line %d\n", i);
	bytes = ftell(f);
	fclose(f);
	f = fopen(text, "r");
	h = harness_begin();
	while (lines < 1000 && fgets(buf, sizeof(buf), f))
		lines++;
	while (getline(&line, &room, f) > 0)
		lines++;
	harness_end(&h);
	assert_int_equal(lines, 3000);
	assert_int_equal(count_of(&h, CREMA_C_read_bytes), bytes);
	/* a call per buffer, and the one at the end of the file */
	assert_int_equal(count_of(&h, CREMA_C_read_calls), (bytes + 4095) / 4096 + 1);
	harness_free(&h);
	fclose(f);
	free(line);
	unlink(text);
}

extern int _IO_getc(FILE *f);

/* Character by character; the compiler may inline getc_unlocked, which then calls __uflow. */
static void characters_count_what_the_kernel_gave(void **state)
{
	const char *name = harness_file("characters", SIZE);
	FILE *f = fopen(name, "r");
	struct harness_task h;
	long got = 0;

	(void)state;
	h = harness_begin();
	while (got < 100000 && fgetc(f) != EOF && getc(f) != EOF && _IO_getc(f) != EOF)
		got += 3;
	while (got < 200000 && __getc_unlocked_body(f) != EOF)
		got++;
	while (getw(f) != EOF)
		;
	harness_end(&h);
	assert_true(feof(f));
	assert_int_equal(count_of(&h, CREMA_C_read_bytes), SIZE);
	assert_int_equal(count_of(&h, CREMA_C_read_calls), (SIZE + 4095) / 4096 + 1);
	harness_free(&h);
	fclose(f);
	unlink(name);
}

/* The kernel's counts for this process. */
static void io_of_process(uint64_t *written, uint64_t *calls)
{
	char text[512] = "";
	int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_int_equal(sscanf(strstr(text, "wchar"), "wchar: %lu", written), 1);
	assert_int_equal(sscanf(strstr(text, "syscw"), "syscw: %lu", calls), 1);
}

static void streams_write(void **state)
{
	const char *name = harness_file("streamed", 0);
	uint64_t bytes[2], calls[2];
	struct harness_task h;
	static char buf[SIZE];
	FILE *f = fopen(name, "w");

	(void)state;
	h = harness_begin();
	io_of_process(&bytes[0], &calls[0]);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(fwrite(buf, 10, 7, f), 7);
	memset(buf, 'x', 500);
	for (int i = 0; i < 100; i++)
		assert_true(fputs(buf, f) >= 0);
	io_of_process(&bytes[1], &calls[1]);
	segment_cut(thread_self());
	assert_int_equal(count_of(&h, CREMA_C_write_calls), calls[1] - calls[0]);
	assert_int_equal(fwrite(buf, 1, SIZE, f), SIZE);
	errno = 77;
	assert_int_equal(fwrite(buf, 1, 3, f), 3);
	assert_int_equal(errno, 77);
	harness_end(&h);
	fclose(f);
	io_of_process(&bytes[1], &calls[1]);
	assert_int_equal(count_of(&h, CREMA_C_write_bytes), bytes[1] - bytes[0]);
	harness_free(&h);
	f = fopen(name, "r");
	h = harness_begin();
	assert_int_equal(fwrite(buf, 1, 100, f), 0);
	harness_end(&h);
	assert_int_equal(count_of(&h, CREMA_C_write_bytes), 0);
	harness_free(&h);
	fclose(f);
}

/* As a program with its own print function does. */
__attribute__((format(printf, 2, 3))) static int print_list(FILE *f, const char *format, ...)
{
	va_list list;
	int n;

	va_start(list, format);
	n = vfprintf(f, format, list);
	va_end(list);
	return n;
}

__attribute__((format(printf, 2, 3))) static int print_to(int fd, const char *format, ...)
{
	va_list list;
	int n;

	va_start(list, format);
	n = vdprintf(fd, format, list);
	va_end(list);
	return n;
}

extern int __fprintf_chk(FILE *f, int flag, const char *format, ...);
extern int __dprintf_chk(int fd, int flag, const char *format, ...);
extern int _IO_putc(int c, FILE *f);

static void print_every_way(FILE *f)
{
	int (*put_unlocked)(int, FILE *) = putc_unlocked; /* not the inlined version */

	for (int i = 0; i < 3000; i++) {
		assert_true(fprintf(f, "%d %s\n", i, "of the task") > 0);
		assert_true(print_list(f, "%*d", i % 90, i) >= 0);
		assert_true(__fprintf_chk(f, 1, "%x", i) > 0);
		assert_int_equal(fputc('a', f), 'a');
		assert_int_equal(putc('b', f), 'b');
		assert_int_equal(_IO_putc('c', f), 'c');
		assert_int_equal(fputc_unlocked('d', f), 'd');
		assert_int_equal(put_unlocked('\n', f), '\n');
		assert_int_equal(putw(i, f), 0);
	}
}

/* Streams with each kind of buffer: the count equals what the kernel got in the end. */
static void what_is_printed_counts(void **state)
{
	static const int modes[] = {_IOFBF, _IOLBF, _IONBF};
	const char *name = harness_file("printed", 0);
	uint64_t bytes[2], calls[2];
	struct harness_task h;
	struct stat st;
	FILE *f;

	(void)state;
	for (int i = 0; i < 3; i++) {
		f = fopen(name, "w");
		assert_int_equal(setvbuf(f, NULL, modes[i], 5000), 0);
		h = harness_begin();
		io_of_process(&bytes[0], &calls[0]);
		print_every_way(f);
		harness_end(&h);
		fclose(f);
		io_of_process(&bytes[1], &calls[1]);
		assert_int_equal(count_of(&h, CREMA_C_write_bytes), bytes[1] - bytes[0]);
		assert_int_equal(stat(name, &st), 0);
		assert_int_equal(count_of(&h, CREMA_C_write_bytes), st.st_size);
		harness_free(&h);
	}
	unlink(name);
}

static void what_is_printed_to_a_descriptor_counts(void **state)
{
	const char *name = harness_file("printed", 0);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint64_t bytes[2], calls[2];
	struct harness_task h;

	(void)state;
	h = harness_begin();
	io_of_process(&bytes[0], &calls[0]);
	for (int i = 0; i < 100; i++) {
		assert_true(dprintf(fd, "%d %s\n", i, "of the task") > 0);
		assert_true(print_to(fd, "%0*d", i * 100, 1) > 0);
		assert_true(__dprintf_chk(fd, 1, "%x", i) > 0);
	}
	errno = 77;
	assert_true(dprintf(fd, "x") == 1 && errno == 77);
	harness_end(&h);
	close(fd);
	io_of_process(&bytes[1], &calls[1]);
	assert_int_equal(count_of(&h, CREMA_C_write_bytes), bytes[1] - bytes[0]);
	harness_free(&h);
	unlink(name);
}

/* stdout counts if it is a file. */
static void what_is_printed_to_stdout_counts(void **state)
{
	const char *name = harness_file("stdout", 0);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), kept;
	struct harness_task h;
	struct stat st;

	(void)state;
	fflush(stdout);
	kept = dup(STDOUT_FILENO);
	dup2(fd, STDOUT_FILENO);
	h = harness_begin();
	for (int i = 0; i < 1000; i++) {
		printf("%d %s ", i, "of the task");
		puts("a line");
		putchar('x');
		putchar_unlocked('y');
	}
	fflush(stdout);
	harness_end(&h);
	dup2(kept, STDOUT_FILENO);
	close(kept);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	assert_true(st.st_size > 10000);
	assert_int_equal(count_of(&h, CREMA_C_write_bytes), st.st_size);
	harness_free(&h);
	unlink(name);
}

/* getdelim's delimiter need not be a newline. */
static void other_ends_are_looked_for(void **state)
{
	const char *name = harness_file("ends", 0);
	FILE *f = fopen(name, "w");
	struct harness_task h;
	char *line = NULL;
	size_t room = 0;

	(void)state;
	for (int i = 0; i < 30000; i++)
		assert_true(putc(i % 900 == 899 ? ';' : i % 7 ? 'a' : '\n', f) >= 0);
	fclose(f);
	f = fopen(name, "r");
	h = harness_begin();
	while (getdelim(&line, &room, ';', f) > 0)
		;
	harness_end(&h);
	assert_int_equal(count_of(&h, CREMA_C_read_bytes), 30000);
	harness_free(&h);
	free(line);
	fclose(f);
}

static void a_long_line_is_read_once(void **state)
{
	const char *name = harness_file("long", 0);
	FILE *f = fopen(name, "w");
	struct harness_task h;
	char buf[100];
	long pieces = 0;

	(void)state;
	fprintf(f, "%0*d", (int)SIZE, 0);
	fclose(f);
	f = fopen(name, "r");
	h = harness_begin();
	while (fgets(buf, sizeof(buf), f))
		pieces++;
	assert_null(fgets(buf, sizeof(buf), f));
	harness_end(&h);
	assert_int_equal(pieces, (SIZE + 98) / 99);
	assert_int_equal(count_of(&h, CREMA_C_read_bytes), SIZE);
	assert_int_equal(count_of(&h, CREMA_C_read_calls), (SIZE + 4095) / 4096 + 1);
	harness_free(&h);
	fclose(f);
	unlink(name);
}

/* Bytes returned by this thread's read calls so far, according to the kernel. */
static uint64_t kernels_count(void)
{
	static uint64_t own; /* bytes read by this function: counted after the read */
	char buf[512];
	int fd = sys_open("/proc/thread-self/io", O_RDONLY, 0);
	long n = sys_read(fd, buf, sizeof(buf) - 1);
	uint64_t count;

	sys_close(fd);
	assert_true(n > 0);
	buf[n] = 0;
	count = strtoull(strstr(buf, "rchar: ") + 7, NULL, 10) - own;
	own += (uint64_t)n;
	return count;
}

static long below(long n)
{
	return rand() % n;
}

/* Anything that a program may do with a stream, including lines and pushed-back characters. */
static void one_step(FILE *f, int may_write, char *buf)
{
	static char *line;
	static size_t room;
	fpos_t at;

	switch (below(may_write ? 12 : 9)) {
	case 0:
	case 1:
		fread(buf, 1, (size_t)below(below(8) ? 300 : 70000), f);
		break;
	case 2:
		fseek(f, below(SIZE + 20000), SEEK_SET);
		break;
	case 3:
		fseeko(f, below(9000) - 4500, SEEK_CUR);
		break;
	case 4:
		fseek(f, 3000 - below(below(4) ? 5000 : SIZE), SEEK_END);
		break;
	case 5:
		if (!fgetpos(f, &at) && fread(buf, 1, 5000, f))
			fsetpos(f, &at);
		break;
	case 6:
		fgets(buf, 200, f);
		if (below(4) == 0)
			getline(&line, &room, f);
		break;
	case 7:
		if (fread(buf, 1, 1, f) == 1 &&
		    !may_write)		       /* glibc 2.36 aborts if both are mixed */
			ungetc(buf[0] + 1, f); /* a different character: into a separate buffer */
		break;
	case 8:
		if (below(4))
			ftell(f);
		else
			rewind(f);
		break;
	case 9:
	case 10:
		fseek(f, 0, SEEK_CUR); /* required by C between reads and writes */
		fwrite(buf, 1, (size_t)below(below(8) ? 100 : 9000), f);
		if (below(2))
			fseek(f, below(3000) - 1500, SEEK_CUR);
		else
			fflush(f);
		break;
	default:
		fflush(f);
	}
}

static uint64_t our_count(void)
{
	return thread_self()->seg.count[CREMA_C_read_bytes];
}

enum { STEPS = 100 };

/* The operations on one stream; stores the bytes read after each step. */
static void play(const char *name, unsigned int seed, uint64_t *bytes, uint64_t (*count)(void))
{
	static const char *const modes[] = {"r", "r", "r+", "w+", "a+"};
	static const size_t rooms[] = {0, 1, 100, 1024, 4096, 5000, 65536};
	static char buf[100000];
	const char *mode;
	uint64_t before;
	FILE *f;

	srand(seed);
	mode = modes[below(5)];
	assert_int_equal(truncate(name, below(SIZE)), 0);
	f = fopen(name, mode);
	if (below(2))
		setvbuf(f, NULL, below(4) ? _IOFBF : _IONBF, rooms[below(7)]);
	before = count();
	for (int i = 0; i < STEPS; i++) {
		one_step(f, mode[0] != 'r' || mode[1], buf);
		bytes[i] = count() - before;
	}
	fclose(f);
}

/* Seeks read into the buffer, and the position does not show how much. The reference is the
 * kernel's count in a forked child that does the same: the shim is dormant there and reads
 * nothing. */
static void a_stream_that_seeks_counts_what_the_kernel_gave(void **state)
{
	uint64_t *truth =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t ours[STEPS];
	char name[64];

	(void)state;
	snprintf(name, sizeof(name), "/dev/shm/crema-seeks-%d", (int)getpid());
	close(open(name, O_CREAT | O_WRONLY | O_EXCL, 0600));
	for (unsigned int seed = 1; seed <= 60; seed++) {
		pid_t child = fork();
		struct harness_task h;

		if (!child) {
			play(name, seed, truth, kernels_count);
			_exit(0);
		}
		assert_int_equal(waitpid(child, NULL, 0), child);
		h = harness_begin();
		play(name, seed, ours, our_count);
		harness_end(&h);
		harness_free(&h);
		for (int i = 0; i < STEPS; i++) {
			if (ours[i] != truth[i])
				print_message("seed %u, step %d\n", seed, i);
			assert_int_equal(ours[i], truth[i]);
		}
	}
	munmap(truth, 4096);
	unlink(name);
}

/* A seek is one call if it reads, otherwise none; its bytes are compared with the kernel's
 * above. */
static void a_seek_is_a_call_if_it_reads(void **state)
{
	static const struct {
		long offset;
		int whence, result;
	} seeks[] = {{50, SEEK_SET, 0},	  {-10, SEEK_CUR, 0},  {-1, SEEK_SET, -1},
		     {9000, SEEK_SET, 0}, {9001, SEEK_SET, 0}, {40000, SEEK_SET, 0}};
	enum { SEEKS = sizeof(seeks) / sizeof(*seeks) };
	FILE *f = fopen(path, "r");
	struct harness_task h = harness_begin();
	const uint64_t *count = thread_self()->seg.count;
	uint64_t calls, bytes, reads = 0;
	char buf[100];

	(void)state;
	assert_int_equal(fread(buf, 1, 100, f), 100);
	for (int i = 0; i < SEEKS; i++) {
		calls = count[CREMA_C_read_calls];
		bytes = count[CREMA_C_read_bytes];
		assert_int_equal(fseek(f, seeks[i].offset, seeks[i].whence), seeks[i].result);
		assert_int_equal(count[CREMA_C_read_calls] - calls,
				 count[CREMA_C_read_bytes] > bytes);
		reads += count[CREMA_C_read_calls] - calls;
	}
	assert_in_range(reads, 1, SEEKS - 2);
	fclose(f);
	harness_end(&h);
	harness_free(&h);
}

static void copies_are_reads_and_writes(void **state)
{
	const char *to = harness_file("copy", 0);
	int in = open(path, O_RDONLY), out = open(to, O_WRONLY), p[2];
	struct harness_task h = harness_begin();
	off_t at = 100;
	char buf[4096];

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(sendfile(out, in, &at, 50000), 50000);
	assert_int_equal(sendfile64(out, in, NULL, 3000), 3000);
	assert_int_equal(copy_file_range(in, NULL, out, NULL, 20000, 0), 20000);
	assert_int_equal(splice(in, NULL, p[1], NULL, 4096, 0), 4096);	/* a read */
	assert_int_equal(splice(p[0], NULL, out, NULL, 4000, 0), 4000); /* a write */
	errno = 77;
	assert_int_equal(read(p[0], buf, 96), 96);
	assert_int_equal(errno, 77);
	assert_int_equal(sendfile(out, -1, NULL, 10), -1);
	assert_int_equal(errno, EBADF);
	harness_end(&h);
	assert_int_equal(count_of(&h, CREMA_C_read_calls), 4);
	assert_int_equal(count_of(&h, CREMA_C_read_bytes), 50000 + 3000 + 20000 + 4096);
	assert_int_equal(count_of(&h, CREMA_C_write_calls), 4);
	assert_int_equal(count_of(&h, CREMA_C_write_bytes), 50000 + 3000 + 20000 + 4000);
	assert_int_equal(count_of(&h, CREMA_C_other_read_bytes), 4000 + 96);
	harness_free(&h);
	close(in);
	close(out);
	close(p[0]);
	close(p[1]);
	unlink(to);
}

static void *read_there(void *arg)
{
	static char buf[5000];

	assert_int_equal(pread(*(int *)arg, buf, 5000, 0), 5000);
	assert_int_equal(segment_owner(), OWNER_NONE);
	posix_fadvise(*(int *)arg, 0, 0, POSIX_FADV_WILLNEED);
	return NULL;
}

static void run_there(int *fd)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, read_there, fd), 0);
	pthread_join(t, NULL);
}

static void who_opens_a_file_owns_its_reads(void **state)
{
	int before = open(path, O_RDONLY), fd;
	struct harness_task h = harness_begin();

	(void)state;
	fd = open(path, O_RDONLY);
	run_there(&fd);
	run_there(&before); /* opened by no task */
	close(fd);
	fd = dup(before); /* the task's file again */
	run_there(&fd);
	assert_int_equal(CREMA_SLOT_REFS(crema_shm->slot_word[h.owner - 1]), 1);
	harness_end(&h);
	assert_int_equal(count_of(&h, CREMA_C_read_calls), 2);
	assert_int_equal(count_of(&h, CREMA_C_read_bytes), 10000);
	assert_int_equal(count_of(&h, CREMA_C_pool_segments), 4); /* including the read-ahead */
	harness_free(&h);
	run_there(&fd); /* its record is gone: unattributed, without a crash */
	close(fd);
	close(before);
}

static int arm(void **state)
{
	(void)state;
	harness_arm();
	path = harness_file("ways", SIZE);
	return 0;
}

static int clean(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fread_counts_what_the_kernel_gave),
		cmocka_unit_test(lines_count_what_the_kernel_gave),
		cmocka_unit_test(characters_count_what_the_kernel_gave),
		cmocka_unit_test(streams_write),
		cmocka_unit_test(what_is_printed_counts),
		cmocka_unit_test(what_is_printed_to_a_descriptor_counts),
		cmocka_unit_test(what_is_printed_to_stdout_counts),
		cmocka_unit_test(other_ends_are_looked_for),
		cmocka_unit_test(a_long_line_is_read_once),
		cmocka_unit_test(a_stream_that_seeks_counts_what_the_kernel_gave),
		cmocka_unit_test(a_seek_is_a_call_if_it_reads),
		cmocka_unit_test(copies_are_reads_and_writes),
		cmocka_unit_test(who_opens_a_file_owns_its_reads),
	};

	return cmocka_run_group_tests_name("shim ways to read", tests, arm, clean);
}
