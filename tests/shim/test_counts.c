/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_counts.c - each count of a segment against getrusage of the same thread, read inside and
 * outside of it: the count is never less than the former nor more than the latter.
 */
#include "clocks.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "shim/count/codec.h"
#include "shim/count/extent.h"
#include "shim/count/fd.h"
#include "shim/count/op.h"
#include "shim/count/packed.h"
#include "shim/hooks/bootstrap.h"
#include "shim/python/patch.h"
#include "shim/libc/real.h"
#include "shim/count/section.h"
#include "shim/count/segment.h"
#include "shim/libc/sys.h"

#define MS UINT64_C(1000000)
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* The kernel's values for this thread. */
struct usage {
	uint64_t wall, cpu, in, out, voluntary, involuntary, faults;
};

static uint64_t clock_of(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static struct usage usage_now(void)
{
	struct rusage ru;

	getrusage(RUSAGE_THREAD, &ru);
	return (struct usage){clock_of(CLOCK_MONOTONIC),     clock_of(CLOCK_THREAD_CPUTIME_ID),
			      (uint64_t)ru.ru_inblock * 512, (uint64_t)ru.ru_oublock * 512,
			      (uint64_t)ru.ru_nvcsw,	     (uint64_t)ru.ru_nivcsw,
			      (uint64_t)ru.ru_majflt};
}

static struct usage minus(struct usage a, struct usage b)
{
	return (struct usage){a.wall - b.wall,
			      a.cpu - b.cpu,
			      a.in - b.in,
			      a.out - b.out,
			      a.voluntary - b.voluntary,
			      a.involuntary - b.involuntary,
			      a.faults - b.faults};
}

static void *rival(void *stop)
{
	harness_pin(0);
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		for (volatile int i = 0; i < 1000; i++)
			;
	return NULL;
}

static void read_cold(const char *path, size_t piece)
{
	static char buf[1 << 17];
	int fd;

	harness_make_cold(path);
	fd = open(path, O_RDONLY);
	while (read(fd, buf, piece) > 0)
		;
	close(fd);
}

static const char *cold_file, *mapped_file;

/* Some of everything that is counted: reads, faults, writes, waits, and a competitor for the
 * core. */
static struct usage work(void)
{
	struct usage before = usage_now();
	char byte = 0;
	pthread_t other;
	int stop = 0, fd;
	char *map;

	assert_int_equal(pthread_create(&other, NULL, rival, &stop), 0);
	harness_pin(0);
	harness_spin(30 * MS);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(other, NULL);
	for (int i = 0; i < 5; i++)
		usleep(1000);
	read_cold(cold_file, 4096);
	harness_make_cold(mapped_file);
	fd = open(mapped_file, O_RDWR);
	map = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, fd, 0);
	madvise(map, 1 << 20, MADV_RANDOM);
	for (size_t i = 0; i < 1 << 20; i += 1 << 16)
		byte = (char)(byte + ((volatile char *)map)[i]);
	munmap(map, 1 << 20);
	assert_int_equal(pwrite(fd, &byte, 1, 1 << 19), 1);
	fsync(fd);
	close(fd);
	return minus(usage_now(), before);
}

static void assert_between(const struct crema_counters *c, const struct usage *inner,
			   const struct usage *outer)
{
	assert_in_range(c->time[CREMA_T_cpu], inner->cpu, outer->cpu);
	assert_in_range(c->count[CREMA_C_storage_read_bytes], inner->in, outer->in);
	assert_in_range(c->count[CREMA_C_storage_write_bytes], inner->out, outer->out);
	assert_in_range(c->count[CREMA_C_voluntary_switches], inner->voluntary, outer->voluntary);
	assert_in_range(c->count[CREMA_C_involuntary_switches], inner->involuntary,
			outer->involuntary);
	assert_in_range(c->count[CREMA_C_major_faults], inner->faults, outer->faults);
}

/* What was added to the totals since; times are the own thread's or the pool's. */
static struct crema_counters since(const struct crema_totals *before, int is_pool)
{
	const struct crema_totals *now = &crema_shm->totals;
	struct crema_counters d;

	for (int i = 0; i < CREMA_TIMES; i++)
		d.time[i] = is_pool ? now->tasks_pool_time[i] - before->tasks_pool_time[i]
				    : now->tasks.time[i] - before->tasks.time[i];
	for (int i = 0; i < CREMA_COUNTS; i++)
		d.count[i] = now->tasks.count[i] - before->tasks.count[i];
	return d;
}

static void a_tasks_counts_are_the_kernels(void **state)
{
	struct crema_totals totals = crema_shm->totals;
	struct usage before = usage_now(), inner, outer;
	struct harness_task h = harness_begin();
	struct crema_counters d;
	struct crema_task *t;

	(void)state;
	inner = work();
	t = harness_end(&h);
	outer = minus(usage_now(), before);
	assert_true(inner.voluntary > 0 && inner.involuntary > 0 && inner.cpu > 30 * MS);
	assert_between(&t->own, &inner, &outer);
	d = since(&totals, 0);
	assert_memory_equal(&d, &t->own, sizeof(d));
	for (int i = 0; i < CREMA_TIMES; i++)
		assert_int_equal(t->pool_time[i], 0);
	assert_int_equal(t->own.count[CREMA_C_pool_segments], 0);
	assert_int_equal(t->own.count[CREMA_C_pool_wall_ns], 0);
	harness_free(&h);
}

static void a_pool_threads_counts_are_the_tasks(void **state)
{
	struct crema_totals totals;
	struct harness_task h = harness_begin();
	struct crema_counters pool, d;
	struct usage before, inner, outer;
	struct owner outside;
	struct crema_task *t = task_slot(h.owner);

	(void)state;
	segment_cut(thread_self());
	pool = t->own;
	totals = crema_shm->totals;
	before = usage_now();
	outside = segment_begin(h.owner, 1);
	assert_int_equal(outside.owner, h.owner);
	assert_int_equal(outside.is_pool, 0);
	inner = work();
	segment_cut(thread_self()); /* not a separate piece of work */
	outside = segment_begin(OWNER_NONE, 0);
	outer = minus(usage_now(), before);
	assert_int_equal(outside.owner, h.owner);
	assert_int_equal(outside.is_pool, 1);
	d = since(&totals, 1);
	for (int i = 0; i < CREMA_TIMES; i++)
		assert_int_equal(d.time[i], t->pool_time[i]);
	for (int i = 0; i < CREMA_COUNTS; i++)
		assert_int_equal(d.count[i], t->own.count[i] - pool.count[i]);
	assert_between(&d, &inner, &outer);
	assert_int_equal(d.count[CREMA_C_pool_segments], 1);
	assert_in_range(d.count[CREMA_C_pool_wall_ns], inner.wall * 999 / 1000,
			outer.wall * 1001 / 1000);
	harness_end(&h);
	harness_free(&h);
}

/* Segments nest: the outer one continues afterwards, and unattributed counts are in no task. */
static void segments_nest(void **state)
{
	struct crema_totals totals = crema_shm->totals;
	int fd = open(cold_file, O_RDONLY); /* unattributed: the task has not opened it */
	struct harness_task h = harness_begin(), other;
	char buf[100];
	struct owner nobody, pool;

	(void)state;
	assert_int_equal(read(fd, buf, 10), 10);
	pool = segment_begin(h.owner, 1);
	nobody = segment_begin(OWNER_NONE, 0);
	assert_int_equal(segment_owner(), OWNER_NONE);
	assert_int_equal(read(fd, buf, 7), 7);
	segment_end(nobody);
	assert_int_equal(segment_owner(), h.owner);
	assert_int_equal(thread_self()->is_pool, 1);
	segment_end(pool);
	assert_int_equal(thread_self()->is_pool, 0);
	other = harness_begin();
	assert_int_equal(read(fd, buf, 30), 30);
	harness_end(&other);
	assert_int_equal(segment_owner(), h.owner);
	assert_int_equal(read(fd, buf, 50), 50);
	harness_end(&h);
	close(fd);
	assert_int_equal(task_slot(h.owner)->own.count[CREMA_C_read_bytes], 60);
	assert_int_equal(task_slot(other.owner)->own.count[CREMA_C_read_bytes], 30);
	assert_int_equal(crema_shm->totals.unattributed.count[CREMA_C_read_bytes] -
				 totals.unattributed.count[CREMA_C_read_bytes],
			 7);
	harness_free(&other);
	harness_free(&h);
}

static struct crema_file *row_of(const char *name, uint32_t span)
{
	char *full = name ? realpath(name, NULL) : NULL;
	struct crema_file *found = NULL;

	for (unsigned int i = 0; i < CREMA_SHM_FILES; i++) {
		struct crema_file *f = &crema_shm->file[i];

		if (f->state == 2 && f->span == span &&
		    (full ? f->path && !strcmp(arena_text(f->path), full)
			  : !f->path && f->kind == CREMA_FILE_OTHER))
			found = f;
	}
	free(full);
	return found;
}

/* If a file system's charges are unproven, they are also counted as unsure. */
static void charges_that_are_not_sure(void **state)
{
	static char buf[1 << 17];

	(void)state;
	for (uint32_t unsure = 0; unsure < 2; unsure++) {
		struct harness_task h;
		struct crema_task *t;
		struct op op;
		int fd;

		harness_make_cold(cold_file);
		fd = open(cold_file, O_RDONLY);
		h = harness_begin();
		read_begin(&op, fd, sizeof(buf));
		op.unsure = unsure;
		read_end(&op, fd, 0, syscall(SYS_pread64, fd, buf, sizeof(buf), 0));
		t = harness_end(&h);
		assert_true(t->own.count[CREMA_C_storage_read_bytes] >= sizeof(buf));
		assert_int_equal(t->own.count[CREMA_C_storage_unsure_bytes],
				 unsure ? t->own.count[CREMA_C_storage_read_bytes] : 0);
		close(fd);
		harness_free(&h);
	}
}

/* Small reads are not measured one by one: their charge goes to the segment's file if it has only
 * one; otherwise the file is unknown. */
static void charges_of_small_reads(void **state)
{
	const char *other = harness_file("charged", 1 << 18);
	struct harness_task h = harness_begin();
	struct crema_file *one, *two, *rest;
	struct crema_task *t = task_slot(h.owner);
	uint64_t first, charged;
	char buf[16];
	int fd;

	(void)state;
	t->span = arena_id("charges", 7);
	read_cold(cold_file, 4096);
	segment_cut(thread_self());
	one = row_of(cold_file, t->span);
	first = t->own.count[CREMA_C_storage_read_bytes];
	assert_non_null(one);
	assert_int_equal(one->storage_read_bytes, first);
	assert_in_range(first, 1 << 20, (1 << 20) + (1 << 17));
	/* measured: these are this file's in any case, and each is returned, cached or beyond */
	charged = one->large_read_bytes + one->readahead_bytes - one->cached_bytes;
	read_cold(cold_file, 1 << 16);
	assert_in_range(one->storage_read_bytes - first, 1 << 20, (1 << 20) + (1 << 17));
	assert_int_equal(one->large_read_bytes + one->readahead_bytes - one->cached_bytes - charged,
			 one->storage_read_bytes - first);
	fd = open(cold_file, O_RDONLY);
	for (int i = 0; i < 4000; i++) /* until no wait is expected */
		assert_int_equal(pread(fd, buf, sizeof(buf), 0), sizeof(buf));
	close(fd);
	read_cold(other, 4096);
	harness_end(&h);
	two = row_of(other, t->span);
	rest = row_of(NULL, t->span);
	assert_non_null(rest);
	assert_int_equal(one->storage_read_bytes + two->storage_read_bytes +
				 rest->storage_read_bytes,
			 t->own.count[CREMA_C_storage_read_bytes]);
	assert_true(rest->storage_read_bytes > 0);
	assert_int_equal(one->read_bytes, (2 << 20) + 4000 * sizeof(buf));
	assert_int_equal(two->read_bytes, 1 << 18);
	assert_int_equal(two->size_bytes, 1 << 18);
	/* What large reads returned came from storage or from the cache. */
	assert_int_equal(one->large_read_bytes + two->large_read_bytes,
			 t->own.count[CREMA_C_large_read_bytes]);
	assert_int_equal(one->cached_bytes + two->cached_bytes, t->own.count[CREMA_C_cached_bytes]);
	assert_int_equal(one->readahead_bytes + two->readahead_bytes,
			 t->own.count[CREMA_C_readahead_bytes]);
	assert_in_range(one->large_read_bytes, 1 << 20, 2 << 20);
	harness_free(&h);
	unlink(other);
}

static void writes_are_kept_by_file(void **state)
{
	const char *out = harness_file("written", 0);
	struct harness_task h = harness_begin();
	int fd = open(out, O_WRONLY);

	(void)state;
	assert_int_equal(write(fd, "0123456789", 10), 10);
	assert_int_equal(write(fd, "012", 3), 3);
	close(fd);
	harness_end(&h);
	assert_int_equal(row_of(out, 0)->write_calls, 2);
	assert_int_equal(row_of(out, 0)->write_bytes, 13);
	harness_free(&h);
	unlink(out);
}

/* A row for another task's span: the same file, with the same size. */
static void a_file_has_a_row_for_each_span(void **state)
{
	int fd = open(cold_file, O_RDONLY);
	struct stat st;
	char buf[64];

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	for (int i = 0; i < 2; i++) {
		struct harness_task h = harness_begin();
		uint32_t span = arena_id(i ? "span-b" : "span-a", 6);
		struct crema_file *row;

		task_slot(h.owner)->span = span;
		assert_int_equal(pread(fd, buf, (size_t)(20 + i), 5), 20 + i);
		harness_end(&h);
		row = row_of(cold_file, span);
		assert_non_null(row);
		assert_int_equal(row->read_bytes, 20 + i);
		assert_int_equal(row->size_bytes, st.st_size);
		assert_int_equal(row->dev, st.st_dev);
		assert_int_equal(row->ino, st.st_ino);
		harness_free(&h);
	}
	close(fd);
}

static const struct crema_codec_row *codec_row(int id, uint32_t span)
{
	for (unsigned int i = 0; i < CREMA_SHM_CODEC_ROWS; i++) {
		const struct crema_codec_row *r = &crema_shm->codec[i];

		if (r->state == 2 && r->codec == (uint32_t)id && r->span == span)
			return r;
	}
	return NULL;
}

static void assert_codec(const struct crema_codec_row *r, const uint64_t *count, uint64_t times)
{
	uint64_t due[] = {3 * times, 500 * times, 7000 * times, 90000 * times, 110000 * times};

	assert_non_null(r);
	assert_int_equal(r->calls, due[0]);
	assert_int_equal(r->in_bytes, due[1]);
	assert_int_equal(r->out_bytes, due[2]);
	assert_int_equal(r->cpu_ns, due[3]);
	assert_int_equal(r->wall_ns, due[4]);
	assert_int_equal(r->time_unknown, 0);
	assert_memory_equal(count, due, sizeof(due));
}

static void codecs_are_kept_by_span(void **state)
{
	static const struct codec_sum sum = {3, 500, 7000, 90000, 110000, 0};
	const int d = CREMA_CODEC_zlib_decompress, c = CREMA_CODEC_zlib_compress;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct harness_task h = harness_begin();
		struct crema_task *t = task_slot(h.owner);

		t->span = arena_id(i == 1 ? "other" : "codec", 5);
		codec_count(d, 1, &sum);
		codec_count(c, 0, &sum);
		codec_count(c, 0, &sum);
		harness_end(&h);
		if (i < 2) {
			assert_codec(codec_row(d, t->span), &t->own.count[CREMA_C_decompress_calls],
				     1);
			assert_codec(codec_row(c, t->span), &t->own.count[CREMA_C_compress_calls],
				     2);
		} else {
			assert_int_equal(codec_row(d, t->span)->calls, 6);
			assert_int_equal(codec_row(c, t->span)->wall_ns, 4 * 110000);
		}
		assert_int_equal(unknown_counts(t), 0);
		harness_free(&h);
	}
}

/* During an import: separate from everything else. */
static void codecs_of_imports_are_apart(void **state)
{
	static const struct codec_sum sum = {3, 500, 7000, 90000, 110000, 0};
	struct harness_task h = harness_begin();
	uint32_t span = arena_id("imports", 7);
	struct crema_task *t = task_slot(h.owner);

	(void)state;
	t->span = span;
	codec_importing = 1;
	codec_count(CREMA_CODEC_zlib_decompress, 1, &sum);
	codec_importing = 0;
	harness_end(&h);
	assert_int_equal(t->own.count[CREMA_C_import_decompress_calls], 3);
	assert_int_equal(t->own.count[CREMA_C_import_decompress_out_bytes], 7000);
	assert_int_equal(t->own.count[CREMA_C_decompress_calls], 0);
	assert_null(codec_row(CREMA_CODEC_zlib_decompress, span));
	harness_free(&h);
}

static void codecs_without_times(void **state)
{
	static const struct codec_sum sum = {1, 2, 3, 0, 0, 1};
	struct crema_totals *totals = &crema_shm->totals;
	uint64_t times[2] = {CREMA_COUNT_BIT(compress_cpu_ns) | CREMA_COUNT_BIT(compress_wall_ns),
			     CREMA_COUNT_BIT(decompress_cpu_ns) |
				     CREMA_COUNT_BIT(decompress_wall_ns)};
	uint64_t before = totals->count_unknown;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct harness_task h = harness_begin();
		struct crema_task *t = task_slot(h.owner);
		int id = i ? CREMA_CODEC_cramjam_zstd_d : CREMA_CODEC_cramjam_zstd_c;

		totals->count_unknown = 0;
		codec_count(id, i, &sum);
		harness_end(&h);
		assert_int_equal(unknown_counts(t), times[i]);
		assert_int_equal(totals->count_unknown, times[i]);
		assert_int_equal(codec_row(id, 0)->time_unknown, 1);
		harness_free(&h);
	}
	totals->count_unknown = before;
}

/* Writes of a library that compresses internally: none of it can be counted. */
static void writes_of_packed_files(void **state)
{
	const uint64_t due = CREMA_COUNT_BIT(compress_calls) | CREMA_COUNT_BIT(compress_in_bytes) |
			     CREMA_COUNT_BIT(compress_out_bytes) |
			     CREMA_COUNT_BIT(compress_cpu_ns) | CREMA_COUNT_BIT(compress_wall_ns);
	struct crema_totals *totals = &crema_shm->totals;
	uint64_t before = totals->count_unknown;
	const char *path = harness_file("packed", 4096);
	int fd;

	(void)state;
	if (packed_mark(path))
		fd_forget_files();
	for (int i = 0; i < 2; i++) {
		struct harness_task h = harness_begin();
		struct crema_task *t = task_slot(h.owner);

		totals->count_unknown = 0;
		fd = open(path, i ? O_WRONLY : O_RDONLY);
		assert_true(fd >= 0);
		if (i)
			assert_int_equal(write(fd, "x", 1), 1);
		else
			assert_int_equal(read(fd, &(char){0}, 1), 1);
		close(fd);
		harness_end(&h);
		assert_int_equal(unknown_counts(t), i ? due : 0);
		assert_int_equal(totals->count_unknown, i ? due : 0);
		harness_free(&h);
	}
	totals->count_unknown = before;
	unlink(path);
}

static void *ask_for_a_block(void *arg)
{
	*(struct crema_thread **)arg = thread_self();
	return NULL;
}

static void a_thread_without_a_block_is_counted(void **state)
{
	uint64_t refused = crema_shm->totals.threads_refused;
	struct crema_thread *block = NULL;
	uint8_t taken[CREMA_SHM_THREADS] = {0};
	pthread_t thread;

	(void)state;
	for (unsigned int i = 0; i < CREMA_SHM_THREADS; i++) {
		taken[i] = crema_shm->thread[i].state == 0;
		crema_shm->thread[i].state = 1;
	}
	pthread_create(&thread, NULL, ask_for_a_block, &block);
	pthread_join(thread, NULL);
	for (unsigned int i = 0; i < CREMA_SHM_THREADS; i++)
		if (taken[i])
			crema_shm->thread[i].state = 0;
	assert_null(block);
	assert_true(crema_shm->totals.threads_refused > refused);
	assert_in_range(crema_shm->totals.threads_refused, refused + 1, refused + 4);
}

static uint64_t armed_at[2][3];

static void clocks_at(uint64_t *at)
{
	at[0] = clock_of(CLOCK_MONOTONIC);
	at[1] = clock_of(CLOCK_BOOTTIME);
	at[2] = clock_of(CLOCK_REALTIME);
}

/* A tick and the clock at the same moment: the fastest of several readings. */
static void look_at_both(uint64_t *tick, uint64_t *clock)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 100; i++) {
		uint64_t before = clock_of(CLOCK_MONOTONIC), t = ticks(),
			 after = clock_of(CLOCK_MONOTONIC);

		if (after - before >= least)
			continue;
		least = after - before;
		*tick = t;
		*clock = before + least / 2;
	}
}

/* The tolerance is how much the kernel may adjust its clock. */
static void ticks_are_nanoseconds(void **state)
{
	uint64_t tick[2] = {0}, clock[2] = {0}, wall;

	(void)state;
	look_at_both(&tick[0], &clock[0]);
	usleep(200000);
	look_at_both(&tick[1], &clock[1]);
	wall = clock[1] - clock[0];
	assert_in_range(ticks_ns(tick[1] - tick[0]), wall - wall / 10000, wall + wall / 10000);
}

static void the_header_is_of_this_process(void **state)
{
	const struct crema_shm *m = crema_shm;
	uintmax_t start = 0;
	FILE *f = fopen("/proc/self/stat", "re");

	(void)state;
	assert_true(f && fscanf(f,
				"%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u "
				"%*u %*d %*d %*d %*d %*d %*d %ju",
				&start) == 1);
	fclose(f);
	assert_int_equal(m->start_ticks, start);
	assert_int_equal(m->pid, getpid());
	assert_int_equal(m->uid, getuid());
	assert_int_equal(m->abi, CREMA_SHM_ABI);
	assert_int_equal(m->total_bytes, sizeof(*m));
	assert_int_equal(m->header_bytes, (const char *)m->task - (const char *)m);
	assert_int_equal(m->task_bytes, sizeof(m->task[0]));
	assert_int_equal(m->thread_bytes, sizeof(m->thread[0]));
	assert_int_equal(m->file_bytes, sizeof(m->file[0]));
	assert_int_equal(m->tasks, COUNT_OF(m->task));
	assert_int_equal(m->threads, COUNT_OF(m->thread));
	assert_int_equal(m->files, COUNT_OF(m->file));
	assert_in_range(m->armed_mono_ns, armed_at[0][0], armed_at[1][0]);
	assert_in_range(m->armed_boot_ns, armed_at[0][1], armed_at[1][1]);
	assert_in_range(m->armed_real_ns, armed_at[0][2], armed_at[1][2]);
	assert_in_range(ticks_ns(ticks() - m->armed_tsc),
			(clock_of(CLOCK_MONOTONIC) - armed_at[1][0]) * 999 / 1000,
			(clock_of(CLOCK_MONOTONIC) - armed_at[0][0]) * 1001 / 1000 + MS);
}

static void *write_and_end(void *unused)
{
	(void)unused;
	harness_spin(5 * MS);
	harness_file("by-a-thread", 1 << 20);
	return NULL;
}

static void usage_of(int who, uint64_t *cpu, uint64_t *in, uint64_t *out)
{
	struct rusage ru;

	getrusage(who, &ru);
	*cpu = (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000 * MS +
	       (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000;
	*in = (uint64_t)ru.ru_inblock;
	*out = (uint64_t)ru.ru_oublock;
}

/* Differences between two snapshots against getrusage's: all threads are included, even an ended
 * one. */
static void a_snapshot_is_getrusages(void **state)
{
	struct crema_snapshot before, *now = &crema_shm->snapshot;
	uint64_t inner[3], outer[3], last[3], children[2][3], boot[2], mono[2], in_flight;
	struct harness_task h;
	pthread_t thread;
	int pid;

	(void)state;
	usage_of(RUSAGE_SELF, &outer[0], &outer[1], &outer[2]);
	shim_snapshot();
	before = *now;
	in_flight = before.in_flight;
	usage_of(RUSAGE_SELF, &inner[0], &inner[1], &inner[2]);
	usage_of(RUSAGE_CHILDREN, &children[0][0], &children[0][1], &children[0][2]);
	pthread_create(&thread, NULL, write_and_end, NULL);
	pthread_join(thread, NULL);
	h = harness_begin();
	read_cold(cold_file, 4096);
	pid = fork();
	if (pid == 0) {
		harness_spin(20 * MS);
		harness_file("by-a-child", 1 << 16);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	usage_of(RUSAGE_CHILDREN, &children[1][0], &children[1][1], &children[1][2]);
	usage_of(RUSAGE_SELF, &last[0], &last[1], &last[2]);
	inner[0] = last[0] - inner[0];
	boot[0] = clock_of(CLOCK_BOOTTIME);
	mono[0] = clock_of(CLOCK_MONOTONIC);
	shim_snapshot();
	boot[1] = clock_of(CLOCK_BOOTTIME);
	mono[1] = clock_of(CLOCK_MONOTONIC);
	usage_of(RUSAGE_SELF, &last[0], &last[1], &last[2]);
	assert_int_equal(now->flags, 1);
	assert_in_range(now->boot_ns, boot[0], boot[1]);
	assert_in_range(now->mono_ns, mono[0], mono[1]);
	assert_int_equal(now->in_flight, in_flight + 1);
	/* Each sum of getrusage is truncated to microseconds twice. */
	assert_in_range(now->process_cpu_ns - before.process_cpu_ns + 4000, inner[0],
			last[0] - outer[0] + 8000);
	assert_int_equal(now->process_inblock - before.process_inblock, last[1] - inner[1]);
	assert_int_equal(now->process_oublock - before.process_oublock, last[2] - inner[2]);
	assert_int_equal(now->seen_inblock - before.seen_inblock, last[1] - inner[1]);
	assert_int_equal(now->seen_oublock - before.seen_oublock, last[2] - inner[2]);
	assert_true(last[1] > inner[1] && last[2] - inner[2] >= 2048);
	assert_in_range(now->seen_cpu_ns - before.seen_cpu_ns,
			(now->process_cpu_ns - before.process_cpu_ns) * 95 / 100,
			now->process_cpu_ns - before.process_cpu_ns + MS);
	assert_int_equal(now->children_cpu_ns - before.children_cpu_ns,
			 children[1][0] - children[0][0]);
	assert_int_equal(now->children_inblock - before.children_inblock,
			 children[1][1] - children[0][1]);
	assert_int_equal(now->children_oublock - before.children_oublock,
			 children[1][2] - children[0][2]);
	assert_true(children[1][0] - children[0][0] >= 20 * MS);
	harness_end(&h);
	harness_free(&h);
}

/* From now on they are unknown, for running tasks and for all later ones. */
static void what_cannot_be_counted_stays_unknown(void **state)
{
	const uint64_t bits = CREMA_COUNT_BIT(basket_calls) | CREMA_COUNT_BIT(late_bytes);
	struct harness_task running = harness_begin(), ended = harness_begin(), next;

	(void)state;
	harness_end(&ended);
	tasks_cannot_count(bits, CREMA_TASK_POOL_UNSEEN);
	next = harness_begin();
	assert_int_equal(unknown_counts(task_slot(running.owner)), bits);
	assert_int_equal(task_slot(running.owner)->flags, CREMA_TASK_POOL_UNSEEN);
	assert_int_equal(unknown_counts(task_slot(ended.owner)), 0);
	assert_int_equal(task_slot(ended.owner)->flags, 0);
	assert_int_equal(unknown_counts(task_slot(next.owner)), bits);
	assert_int_equal(task_slot(next.owner)->flags, CREMA_TASK_POOL_UNSEEN);
	task_counts_unknown(task_name(next.owner), 1);
	assert_int_equal(unknown_counts(task_slot(next.owner)), bits | 1);
	task_time_unknown(next.owner, CREMA_T_sleep);
	assert_int_equal(task_slot(next.owner)->time_unknown, 1u << CREMA_T_sleep);
	harness_end(&next);
	harness_end(&running);
	harness_free(&next);
	harness_free(&ended);
	harness_free(&running);
}

/* A Python with other pools: no count of a task may appear complete without them. */
static void pools_that_cannot_be_followed(void **state)
{
	struct harness_task h = harness_begin();

	(void)state;
	missing_say(patch_futures, "concurrent.futures.thread");
	assert_int_equal(task_slot(h.owner)->flags, CREMA_TASK_POOL_UNSEEN);
	assert_true(task_slot(h.owner)->count_unknown == UINT64_MAX);
	harness_end(&h);
	harness_free(&h);
}

__attribute__((visibility("default"))) char thing_of_1234_bytes[1234];

static void a_symbol_has_its_size(void **state)
{
	(void)state;
	assert_int_equal(real_symbol_bytes("thing_of_1234_bytes", thing_of_1234_bytes), 1234);
	assert_int_equal(real_symbol_bytes("thing_of_1234_bytes", thing_of_1234_bytes + 1), 0);
	assert_int_equal(real_symbol_bytes("there_is_no_such_thing", thing_of_1234_bytes), 0);
}

static int arm(void **state)
{
	(void)state;
	clocks_at(armed_at[0]);
	harness_arm();
	clocks_at(armed_at[1]);
	cold_file = harness_file("cold", 1 << 20);
	mapped_file = harness_file("mapped", 1 << 20);
	return 0;
}

static int clean(void **state)
{
	char name[64];

	(void)state;
	snprintf(name, sizeof(name), "rm -f crema-*-by-a-thread crema-*-by-a-child");
	return unlink(cold_file) | unlink(mapped_file) | (system(name) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_header_is_of_this_process),
		cmocka_unit_test(ticks_are_nanoseconds),
		cmocka_unit_test(a_tasks_counts_are_the_kernels),
		cmocka_unit_test(a_pool_threads_counts_are_the_tasks),
		cmocka_unit_test(segments_nest),
		cmocka_unit_test(charges_that_are_not_sure),
		cmocka_unit_test(charges_of_small_reads),
		cmocka_unit_test(writes_are_kept_by_file),
		cmocka_unit_test(a_file_has_a_row_for_each_span),
		cmocka_unit_test(codecs_are_kept_by_span),
		cmocka_unit_test(codecs_of_imports_are_apart),
		cmocka_unit_test(codecs_without_times),
		cmocka_unit_test(writes_of_packed_files),
		cmocka_unit_test(a_thread_without_a_block_is_counted),
		cmocka_unit_test(a_snapshot_is_getrusages),
		cmocka_unit_test(a_symbol_has_its_size),
		cmocka_unit_test(what_cannot_be_counted_stays_unknown),
		cmocka_unit_test(pools_that_cannot_be_followed),
	};

	return cmocka_run_group_tests_name("shim counts", tests, arm, clean);
}
