/* SPDX-License-Identifier: BSD-3-Clause */
/* test_io.c - reads, writes and maps are counted to the byte and behave as they do without the
 * shim. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/count/fd.h"
#include "shim/libc/real.h"

static const char *path;

extern char __executable_start, etext;

static void every_hook_has_a_real_function(void **state)
{
	(void)state;
	real_resolve();
#define HOOK(family, ret, name, params, args, fd, size)                                            \
	assert_true((void *)real.name != NULL);                                                    \
	assert_false((char *)real.name >= &__executable_start && (char *)real.name < &etext);
#include "hooks.def"
#undef HOOK
}

static void every_way_to_read_counts(void **state)
{
	struct harness_task h = harness_begin();
	char a[1000], b[500];
	struct iovec v[2] = {{a, 1000}, {b, 500}};
	int fd = open(path, O_RDONLY);
	struct crema_task *t;

	(void)state;
	assert_int_equal(read(fd, a, 1000), 1000);
	assert_int_equal(pread(fd, a, 1000, 10), 1000);
	assert_int_equal(pread64(fd, a, 700, 10), 700);
	assert_int_equal(readv(fd, v, 2), 1500);
	assert_int_equal(preadv(fd, v, 2, 5), 1500);
	assert_int_equal(preadv64(fd, v, 1, 5), 1000);
	assert_int_equal(preadv2(fd, v, 2, 5, 0), 1500);
	assert_int_equal(preadv64v2(fd, v, 1, 5, 0), 1000);
	assert_int_equal(pread(fd, a, 1000, 1 << 30), 0); /* beyond the end: one call, no bytes */
	close(fd);
	t = harness_end(&h);
	assert_int_equal(t->own.count[CREMA_C_read_calls], 9);
	assert_int_equal(t->own.count[CREMA_C_read_bytes],
			 1000 + 1000 + 700 + 1500 + 1500 + 1000 + 1500 + 1000);
	harness_free(&h);
}

static struct crema_file *row_of(const char *name)
{
	char *full = realpath(name, NULL);
	struct crema_file *found = NULL;

	for (unsigned i = 0; i < CREMA_SHM_FILES; i++) {
		struct crema_file *f = &crema_shm->file[i];

		if (full && f->state == 2 && f->path && !strcmp(arena_text(f->path), full))
			found = f;
	}
	free(full);
	return found;
}

static void bytes_are_kept_by_file(void **state)
{
	const char *other = harness_file("other", 5000);
	struct harness_task h = harness_begin();
	int a = open(path, O_RDONLY), b = open(other, O_RDONLY);
	uint64_t before = row_of(path) ? row_of(path)->read_bytes : 0;
	char buf[100];

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(read(a, buf, 100), 100);
		assert_int_equal(read(b, buf, 50), 50);
	}
	harness_end(&h);
	assert_int_equal(row_of(path)->read_bytes - before, 1000);
	assert_int_equal(row_of(other)->read_bytes, 500);
	assert_int_equal(row_of(other)->read_calls, 10);
	assert_int_equal(row_of(other)->size_bytes, 5000);
	harness_free(&h);
	close(a);
	close(b);
	unlink(other);
}

static void a_descriptor_used_again_means_another_file(void **state)
{
	const char *other = harness_file("again", 5000);
	struct harness_task h = harness_begin();
	int a = open(path, O_RDONLY), b, d;
	uint64_t before;
	char buf[100];

	(void)state;
	assert_int_equal(read(a, buf, 100), 100);
	before = row_of(path)->read_bytes;
	close(a);
	b = open(other, O_RDONLY);
	assert_int_equal(a, b);
	assert_int_equal(read(b, buf, 60), 60);
	d = open(path, O_RDONLY);
	assert_int_equal(read(d, buf, 1), 1);
	assert_int_equal(dup2(b, d), d); /* d is now the other file */
	assert_int_equal(read(d, buf, 7), 7);
	close(b);
	close(d);
	harness_end(&h);
	assert_int_equal(row_of(other)->read_bytes, 67);
	assert_int_equal(row_of(path)->read_bytes, before + 101);
	harness_free(&h);
	unlink(other);
}

static uint32_t changed_after_reading(const char *name, const struct timespec *at)
{
	const struct timespec times[2] = {*at, *at};
	uint32_t id = row_of(name)->path, changed = 0;
	int fd;
	char c;

	assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
	fd = open(name, O_RDONLY);
	assert_int_equal(read(fd, &c, 1), 1);
	close(fd);
	for (unsigned i = 0; i < CREMA_SHM_FILES; i++) /* of this task, and of before it */
		changed |= crema_shm->file[i].path == id && crema_shm->file[i].changed;
	return changed;
}

/* As on scratch space where each input is copied to one name, with its inode or another one. */
static void a_path_used_again_means_another_file(void **state)
{
	struct timespec at = {.tv_sec = 1700000000, .tv_nsec = 123456789};
	const char *name = harness_file("staged", 5000), *next;
	struct harness_task h = harness_begin();

	(void)state;
	assert_int_equal(changed_after_reading(name, &at), 0);
	assert_int_equal(changed_after_reading(name, &at), 0);
	next = harness_file("next", 5000); /* another inode, as FUSE may have for the same file */
	assert_int_equal(changed_after_reading(next, &at), 0);
	assert_int_equal(rename(next, name), 0);
	assert_int_equal(changed_after_reading(name, &at), 0);
	at.tv_nsec++;
	assert_int_equal(changed_after_reading(name, &at), 1);
	harness_end(&h);
	harness_free(&h);
	unlink(name);
}

static void grows_at(const char *of, struct timespec at)
{
	const char *name = harness_file(of, 5000);
	struct harness_task h = harness_begin();

	assert_int_equal(changed_after_reading(name, &at), 0);
	assert_int_equal(changed_after_reading(name, &at), 0);
	assert_int_equal(truncate(name, 6000), 0);
	assert_int_equal(changed_after_reading(name, &at), 1);
	harness_end(&h);
	harness_free(&h);
	unlink(name);
}

static void a_larger_copy_in_place_is_another_file(void **state)
{
	(void)state;
	grows_at("in_place", (struct timespec){.tv_sec = 1700000000, .tv_nsec = 123456789});
}

/* As some copies and file systems leave it. */
static void a_file_of_no_time_is_known_by_its_size(void **state)
{
	(void)state;
	grows_at("epoch", (struct timespec){0});
}

/* A task that writes a file and reads it afterwards reads one file. */
static void what_is_written_before_it_is_read_has_not_changed(void **state)
{
	const char *name = harness_file("written", 10);
	struct harness_task h = harness_begin();
	struct timespec at = {.tv_sec = 1700000000};
	int fd = open(name, O_WRONLY | O_APPEND);

	(void)state;
	assert_int_equal(write(fd, "more", 4), 4);
	close(fd);
	assert_int_equal(row_of(name)->size_bytes, 10);
	assert_int_equal(changed_after_reading(name, &at), 0);
	assert_int_equal(row_of(name)->size_bytes, 14);
	harness_end(&h);
	harness_free(&h);
	unlink(name);
}

/* It grows between two spans; in the second, descriptors opened before and after that read it. */
static void a_kept_descriptor_sees_the_file_as_it_is(void **state)
{
	const char *name = harness_file("kept", 100);
	struct timespec at = {.tv_sec = 1700000000};
	struct harness_task h = harness_begin();
	int kept = open(name, O_RDONLY);
	char c;

	(void)state;
	assert_int_equal(read(kept, &c, 1), 1);
	harness_end(&h);
	harness_free(&h);
	assert_int_equal(truncate(name, 200), 0);
	h = harness_begin();
	task_slot(h.owner)->span = arena_id("later", 5);
	assert_int_equal(changed_after_reading(name, &at), 0);
	assert_int_equal(read(kept, &c, 1), 1);
	for (unsigned i = 0; i < CREMA_SHM_FILES; i++) {
		const struct crema_file *f = &crema_shm->file[i];

		if (f->path != row_of(name)->path || f->span != task_slot(h.owner)->span)
			continue;
		assert_int_equal(f->size_bytes, 200);
		assert_int_equal(f->changed, 0);
	}
	close(kept);
	harness_end(&h);
	harness_free(&h);
	unlink(name);
}

/* Closed as a range, known to the shim or not; later files with these numbers are other ones. */
static void ranges_that_are_closed_are_forgotten(void **state)
{
	const char *other = harness_file("ranged", 5000);
	struct harness_task h = harness_begin();
	int a = open(path, O_RDONLY), b = open(path, O_RDONLY), c;
	uint64_t before = row_of(path)->read_bytes;
	char buf[100];

	(void)state;
	assert_int_equal(read(a, buf, 100), 100);
	assert_int_equal(close_range((unsigned int)a, (unsigned int)b, 0), 0);
	c = open(other, O_RDONLY);
	assert_int_equal(c, a);
	assert_int_equal(read(c, buf, 60), 60);
	harness_end(&h);
	close(c);
	assert_int_equal(row_of(other)->read_bytes, 60);
	assert_int_equal(row_of(path)->read_bytes, before + 100);
	harness_free(&h);
	unlink(other);
}

static void pipes_and_sockets_are_no_files(void **state)
{
	struct harness_task h = harness_begin();
	int p[2], s[2];
	struct crema_task *t;
	char buf[16] = "0123456789";

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	assert_int_equal(write(p[1], buf, 10), 10);
	assert_int_equal(read(p[0], buf, 16), 10);
	assert_int_equal(write(s[1], buf, 10), 10);
	assert_int_equal(read(s[0], buf, 16), 10);
	t = harness_end(&h);
	assert_int_equal(t->own.count[CREMA_C_read_bytes], 0);
	assert_int_equal(t->own.count[CREMA_C_write_bytes], 0);
	assert_int_equal(t->own.count[CREMA_C_network_read_bytes], 0);
	assert_int_equal(t->own.count[CREMA_C_other_read_bytes], 20);
	harness_free(&h);
	for (int i = 0; i < 2; i++) {
		close(p[i]);
		close(s[i]);
	}
}

static void errno_is_the_real_calls(void **state)
{
	struct harness_task h = harness_begin();
	char buf[10];
	int fd = open(path, O_RDONLY);
	char *volatile nowhere = (char *)1;

	(void)state;
	errno = 0;
	assert_int_equal(read(-1, buf, 10), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(read(fd, nowhere, 10), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(write(fd, buf, 10), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(open("/no/such/file", O_RDONLY), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(close(9999), -1);
	assert_int_equal(errno, EBADF);
	errno = 77; /* a successful call does not change it */
	assert_int_equal(read(fd, buf, 10), 10);
	close(fd);
	fd = open(path, O_RDONLY);
	assert_int_equal(pread(fd, buf, 10, 0), 10);
	close(fd);
	assert_int_equal(errno, 77);
	harness_end(&h);
	assert_int_equal(task_slot(h.owner)->own.count[CREMA_C_read_calls], 2);
	harness_free(&h);
}

static void modes_of_new_files_are_kept(void **state)
{
	char name[] = "crema-mode-XXXXXX";
	int fd;

	(void)state;
	assert_true((fd = mkstemp(name)) >= 0);
	close(fd);
	unlink(name);
	fd = open(name, O_CREAT | O_WRONLY | O_EXCL, 0640);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_WRONLY);
	close(fd);
	assert_int_equal(access(name, R_OK | W_OK), 0);
	unlink(name);
}

static void maps_count_their_length(void **state)
{
	struct harness_task h = harness_begin();
	int fd = open(path, O_RDONLY);
	void *m = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
	struct crema_task *t;

	(void)state;
	assert_true(m != MAP_FAILED);
	munmap(m, 8192);
	m = mmap64(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	munmap(m, 4096);
	m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(m, 4096);
	close(fd);
	t = harness_end(&h);
	assert_int_equal(t->own.count[CREMA_C_mapped_bytes], 8192 + 4096);
	harness_free(&h);
}

static void kept_apart(const char *name)
{
	const char *module = harness_file(name, 300);
	struct harness_task h = harness_begin();
	int fd = open(module, O_RDONLY);
	struct crema_file *row = &crema_shm->file[fd_lookup(fd).row - 1], before = *row;
	struct crema_task *t;
	char buf[400];

	assert_int_equal(row->kind, CREMA_FILE_IMPORT);
	assert_int_equal(read(fd, buf, 400), 300);
	assert_int_equal(read(fd, buf, 400), 0);
	close(fd);
	t = harness_end(&h);
	assert_int_equal(t->own.count[CREMA_C_read_bytes], 0);
	assert_int_equal(t->own.count[CREMA_C_import_read_calls], 2);
	assert_int_equal(t->own.count[CREMA_C_import_read_bytes], 300);
	assert_int_equal(row->read_calls - before.read_calls, 2);
	assert_int_equal(row->read_bytes - before.read_bytes, 300);
	harness_free(&h);
	unlink(module);
}

static void modules_are_kept_apart(void **state)
{
	(void)state;
	kept_apart("module.py");
}

static void certificates_are_no_data(void **state)
{
	(void)state;
	kept_apart("cacert.pem");
	kept_apart("ca-certificates.crt");
	kept_apart("openssl.cnf");
}

/* The reference is what read() returns. */
static void the_kernels_own_files_are_no_data(void **state)
{
	static const char *const names[] = {"/proc/self/status",
					    "/sys/kernel/mm/ksm/run",
					    "/sys/kernel/uevent_seqnum",
					    "/proc/self/mountinfo",
					    "/sys/fs/cgroup/cgroup.procs",
					    "/sys/fs/cgroup/unified/cgroup.procs",
					    "/sys/fs/cgroup/cpu/cpu.shares"};
	uint32_t none = 0, filesystems = 0;
	struct harness_task h = harness_begin();
	struct crema_task *t;
	uint64_t bytes = 0;
	char buf[40000];

	(void)state;
	for (unsigned int i = 0; i < CREMA_SHM_FILESYSTEMS; i++)
		none += crema_shm->filesystem[i].state != 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int fd = open(names[i], O_RDONLY);
		ssize_t n = fd >= 0 ? read(fd, buf, sizeof(buf)) : 0;

		bytes += n > 0 ? (uint64_t)n : 0;
		close(fd);
		assert_null(row_of(names[i]));
	}
	t = harness_end(&h);
	assert_true(bytes > 0);
	for (unsigned int i = 0; i < CREMA_SHM_FILESYSTEMS; i++)
		filesystems += crema_shm->filesystem[i].state != 0;
	assert_int_equal(filesystems, none);
	assert_int_equal(t->fs_mask, 0);
	assert_int_equal(t->own.count[CREMA_C_other_read_bytes], bytes);
	assert_int_equal(t->own.count[CREMA_C_read_calls], 0);
	assert_int_equal(t->own.count[CREMA_C_import_read_calls], 0);
	harness_free(&h);
}

/* As uproot does with a file that is written while it runs. */
static void a_file_named_before_it_exists_finds_its_file_system(void **state)
{
	char full[4200], buf[100], *dir = realpath(path, NULL);
	struct harness_task h;
	struct crema_file *f;
	struct stat st;
	int fd;

	(void)state;
	snprintf(full, sizeof(full), "%s.later", dir);
	f = &crema_shm->file[file_row_by_name(full, 0) - 1];
	assert_int_equal(f->filesystem, CREMA_SHM_FILESYSTEMS);
	fd = open(full, O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(fd, "0123456789", 10), 10);
	close(fd);
	h = harness_begin();
	fd = open(full, O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(read(fd, buf, 100), 10);
	close(fd);
	harness_end(&h);
	assert_ptr_equal(row_of(full), f);
	assert_int_equal(f->read_bytes, 10);
	assert_true(f->filesystem < CREMA_SHM_FILESYSTEMS);
	assert_int_equal(f->dev, st.st_dev);
	assert_int_equal(f->ino, st.st_ino);
	harness_free(&h);
	unlink(full);
	free(dir);
}

static void a_vfork_child_changes_nothing(void **state)
{
	int fd = open(path, O_RDONLY), status = -1;
	struct harness_task h = harness_begin();
	uint64_t before;
	char buf[50];
	pid_t pid;

	(void)state;
	assert_int_equal(read(fd, buf, 50), 50);
	before = row_of(path)->read_bytes;
	pid = vfork();
	if (pid == 0) {
		close(fd); /* only the child's descriptor: the parent's stays open and known */
		dup2(2, fd);
		execl("/bin/true", "true", (char *)NULL);
		_exit(9);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(read(fd, buf, 20), 20);
	close(fd);
	harness_end(&h);
	assert_int_equal(row_of(path)->read_bytes, before + 70);
	harness_free(&h);
}

static void what_a_vfork_child_reads_is_not_ours(void **state)
{
	const char *childs = harness_file("childs", 900), *ours = harness_file("ours", 80);
	struct harness_task h = harness_begin();
	int fd, status = -1;
	struct crema_task *t;
	char buf[900];
	pid_t pid;

	(void)state;
	pid = vfork();
	if (pid == 0) {
		fd = open(childs, O_RDONLY);
		_exit(fd < 0 || read(fd, buf, 900) != 900 || pread(fd, buf, 10, 0) != 10 ||
		      mmap(NULL, 900, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* with the number that the child's descriptor had */
	fd = open(ours, O_RDONLY);
	assert_int_equal(read(fd, buf, 80), 80);
	close(fd);
	t = harness_end(&h);
	assert_int_equal(t->own.count[CREMA_C_read_calls], 1);
	assert_int_equal(t->own.count[CREMA_C_read_bytes], 80);
	assert_int_equal(t->own.count[CREMA_C_mapped_bytes], 0);
	assert_int_equal(row_of(ours)->read_bytes, 80);
	assert_int_equal(row_of(childs)->read_calls, 0); /* it has a row since it was created */
	assert_int_equal(row_of(childs)->mapped_bytes, 0);
	harness_free(&h);
	unlink(childs);
	unlink(ours);
}

/* A stream's buffered output is written before the stream reads: that is not a read. */
static void a_read_after_a_write(void **state)
{
	const char *both = harness_file("both", 10000);
	struct harness_task h = harness_begin();
	static char block[100];
	struct crema_task *t;
	FILE *f = fopen(both, "r+");
	off_t at;

	(void)state;
	assert_non_null(f);
	assert_int_equal(fwrite(block, 1, sizeof(block), f), sizeof(block));
	assert_int_equal(fread(block, 1, 10, f), 10);
	at = lseek(fileno(f), 0, SEEK_CUR);
	t = harness_end(&h);
	assert_true(at > 110);
	assert_int_equal(t->own.count[CREMA_C_read_calls], 1);
	assert_int_equal(t->own.count[CREMA_C_read_bytes], at - 100);
	assert_int_equal(t->own.count[CREMA_C_write_bytes], 100);
	fclose(f);
	harness_free(&h);
	unlink(both);
}

static void writes_count(void **state)
{
	struct harness_task h = harness_begin();
	const char *out = harness_file("out", 0);
	int fd = open(out, O_WRONLY);
	struct iovec v[2] = {{(char[]){"abc"}, 3}, {(char[]){"defg"}, 4}};
	struct crema_task *t;

	(void)state;
	assert_int_equal(write(fd, "0123456789", 10), 10);
	assert_int_equal(pwrite(fd, "01", 2, 100), 2);
	assert_int_equal(writev(fd, v, 2), 7);
	close(fd);
	t = harness_end(&h);
	assert_int_equal(t->own.count[CREMA_C_write_calls], 3);
	assert_int_equal(t->own.count[CREMA_C_write_bytes], 19);
	harness_free(&h);
	unlink(out);
}

static int arm(void **state)
{
	(void)state;
	harness_arm();
	path = harness_file("input", 100000);
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
		cmocka_unit_test(every_hook_has_a_real_function),
		cmocka_unit_test(every_way_to_read_counts),
		cmocka_unit_test(bytes_are_kept_by_file),
		cmocka_unit_test(a_descriptor_used_again_means_another_file),
		cmocka_unit_test(a_path_used_again_means_another_file),
		cmocka_unit_test(a_larger_copy_in_place_is_another_file),
		cmocka_unit_test(what_is_written_before_it_is_read_has_not_changed),
		cmocka_unit_test(a_file_of_no_time_is_known_by_its_size),
		cmocka_unit_test(a_kept_descriptor_sees_the_file_as_it_is),
		cmocka_unit_test(ranges_that_are_closed_are_forgotten),
		cmocka_unit_test(pipes_and_sockets_are_no_files),
		cmocka_unit_test(errno_is_the_real_calls),
		cmocka_unit_test(modes_of_new_files_are_kept),
		cmocka_unit_test(maps_count_their_length),
		cmocka_unit_test(modules_are_kept_apart),
		cmocka_unit_test(the_kernels_own_files_are_no_data),
		cmocka_unit_test(a_file_named_before_it_exists_finds_its_file_system),
		cmocka_unit_test(certificates_are_no_data),
		cmocka_unit_test(a_vfork_child_changes_nothing),
		cmocka_unit_test(what_a_vfork_child_reads_is_not_ours),
		cmocka_unit_test(a_read_after_a_write),
		cmocka_unit_test(writes_count),
	};

	return cmocka_run_group_tests_name("shim io", tests, arm, clean);
}
