/* SPDX-License-Identifier: BSD-3-Clause */
/* test_section.c - sections: which numbers they get, how they nest, and what is not measured. */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/count/section_row.h"
#include "shim/count/section.h"
#include "shim/count/segment.h"

#define MS UINT64_C(1000000)

static uint64_t begin(const char *name)
{
	return section_begin(name, strlen(name), 0);
}

static struct crema_section *row(const char *path, uint32_t flags)
{
	struct crema_section *found = NULL;

	for (unsigned int i = 0; i < CREMA_SHM_SECTIONS; i++) {
		struct crema_section *s = &crema_shm->section[i];

		if (s->state != 2 || s->flags != flags || s->span ||
		    strcmp(arena_text(s->path), path))
			continue;
		assert_null(found);
		found = s;
	}
	assert_non_null(found);
	return found;
}

static size_t read_all(const char *path)
{
	char block[4096];
	size_t all = 0;
	int fd = open(path, O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	while ((n = read(fd, block, sizeof(block))) > 0)
		all += (size_t)n;
	close(fd);
	return all;
}

static void inner_is_in_outer(void **state)
{
	const char *path = harness_file("section", 10000);
	struct harness_task h = harness_begin();
	const struct crema_section *outer, *inner;
	struct crema_task *t;
	uint64_t a, b;

	(void)state;
	a = begin("outer");
	harness_spin(30 * MS);
	b = begin("inner");
	harness_spin(20 * MS);
	assert_int_equal(read_all(path), 10000);
	section_end(b);
	section_end(a);
	t = harness_end(&h);
	outer = row("outer", 0);
	inner = row("outer/inner", 0);
	assert_in_range(inner->own.time[CREMA_T_cpu], 20 * MS, 30 * MS);
	assert_in_range(outer->own.time[CREMA_T_cpu], 50 * MS, 75 * MS);
	assert_int_equal(inner->own.count[CREMA_C_read_bytes], 10000);
	assert_int_equal(outer->own.count[CREMA_C_read_bytes], 10000);
	/* the task's own numbers are the same as without sections */
	assert_int_equal(t->own.count[CREMA_C_read_bytes], 10000);
	assert_in_range(t->own.time[CREMA_T_cpu], outer->own.time[CREMA_T_cpu], 80 * MS);
	/* the clocks are read one after the other */
	assert_true(inner->wall_ns + MS >= inner->own.time[CREMA_T_cpu]);
	assert_true(outer->wall_ns >= inner->wall_ns + 30 * MS);
	assert_int_equal(outer->count, 1);
	assert_int_equal(outer->begun, 1);
	harness_free(&h);
	unlink(path);
}

/* Consecutive sections cover everything in the task: sums match to the byte. */
static void sums_close_with_the_task(void **state)
{
	const char *path = harness_file("section", 5000);
	struct harness_task h = harness_begin();
	uint64_t token, cpu = 0, bytes = 0, wall = 0;
	struct crema_task *t;
	char name[8];

	(void)state;
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "sum%d", i % 5);
		token = begin(name);
		harness_spin(MS / 20);
		read_all(path);
		section_end(token);
	}
	t = harness_end(&h);
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "sum%d", i);
		assert_int_equal(row(name, 0)->count, 40);
		cpu += row(name, 0)->own.time[CREMA_T_cpu];
		bytes += row(name, 0)->own.count[CREMA_C_read_bytes];
		wall += row(name, 0)->wall_ns;
	}
	assert_int_equal(bytes, 200 * 5000);
	assert_int_equal(t->own.count[CREMA_C_read_bytes], bytes);
	assert_true(cpu <= t->own.time[CREMA_T_cpu] && wall <= harness_wall_ns(t));
	/* the time between them: 200 times a name and a lookup */
	assert_in_range(t->own.time[CREMA_T_cpu] - cpu, 0, cpu / 5);
	harness_free(&h);
	unlink(path);
}

/* The task's list of sections: how many ended with this path, and their wall time. */
static uint32_t listed(const struct crema_task *t, const char *path, uint64_t *wall_ns)
{
	const struct crema_task_section *s;

	for (uint32_t at = t->sections; at; at = s->next) {
		s = &crema_shm->task_section[at - 1];
		if (strcmp(arena_text(s->path & ~3u), path))
			continue;
		*wall_ns = s->wall_ns;
		return s->calls;
	}
	return 0;
}

/* Tasks with the same sections: each has separate numbers, which add up to the row's. */
static void each_task_has_its_own(void **state)
{
	struct harness_task h[2];
	uint64_t wall[2], inner;

	(void)state;
	for (int i = 0; i < 2; i++) {
		h[i] = harness_begin();
		for (int k = 0; k <= i; k++) {
			uint64_t a = begin("own"), b = begin("in");

			usleep(2000 + 20000 * (unsigned int)i);
			section_end(b);
			section_end(a);
		}
		harness_end(&h[i]);
	}
	assert_int_equal(listed(task_slot(h[0].owner), "own", &wall[0]), 1);
	assert_int_equal(listed(task_slot(h[1].owner), "own", &wall[1]), 2);
	assert_int_equal(listed(task_slot(h[1].owner), "own/in", &inner), 2);
	assert_true(wall[0] >= 2 * MS && wall[1] >= 44 * MS && inner <= wall[1]);
	assert_int_equal(wall[0] + wall[1], row("own", 0)->wall_ns);
	assert_int_equal(task_slot(h[1].owner)->sections_refused, 0);
	harness_free(&h[0]);
	harness_free(&h[1]);
}

/* More names than fit into a task, and more tasks than the table has: counted. */
static void what_finds_no_room_in_a_task_is_counted(void **state)
{
	struct harness_task h = harness_begin(), many[40];
	uint64_t wall;
	uint32_t kept = 0;
	char name[16];

	(void)state;
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "room%d", i);
		section_end(begin(name));
	}
	section_end(begin("room3"));
	section_end(begin("room19"));
	harness_end(&h);
	assert_int_equal(listed(task_slot(h.owner), "room3", &wall), 2);
	assert_int_equal(listed(task_slot(h.owner), "room15", &wall), 1);
	assert_int_equal(listed(task_slot(h.owner), "room16", &wall), 0);
	assert_int_equal(task_slot(h.owner)->sections_refused, 5);
	harness_free(&h);
	for (int k = 0; k < 40; k++) {
		many[k] = harness_begin();
		for (int i = 0; i < 16; i++) {
			snprintf(name, sizeof(name), "room%d", i);
			section_end(begin(name));
			kept += listed(&crema_shm->task[many[k].owner - 1], name, &wall);
		}
		harness_end(&many[k]);
	}
	assert_int_equal(kept, CREMA_SHM_TASK_SECTIONS);
	assert_int_equal(task_slot(many[31].owner)->sections_refused, 0);
	assert_int_equal(task_slot(many[32].owner)->sections_refused, 16);
	for (int k = 0; k < 40; k++)
		harness_free(&many[k]);
	h = harness_begin();
	section_end(begin("room1"));
	harness_end(&h);
	assert_int_equal(listed(task_slot(h.owner), "room1", &wall), 1);
	harness_free(&h);
}

static void what_is_left_open_is_broken(void **state)
{
	struct harness_task h = harness_begin();
	struct section_open *before = section_enter();
	uint64_t a = begin("left"), b = begin("over");

	(void)state;
	assert_true(a && b);
	section_end(a); /* out of order: b was open */
	section_end(b); /* too late */
	section_end(a);
	assert_int_equal(row("left", 0)->count, 1);
	assert_int_equal(row("left/over", 0)->count, 0);
	assert_int_equal(row("left/over", 0)->broken, 1);
	a = begin("left");
	section_leave(before);
	section_end(a);
	assert_int_equal(row("left", 0)->begun, 2);
	assert_int_equal(row("left", 0)->broken, 1);
	harness_end(&h);
	harness_free(&h);
}

static void a_section_ends_with_its_task_only(void **state)
{
	struct harness_task h = harness_begin();
	uint64_t a = begin("late");

	(void)state;
	harness_end(&h);
	section_end(a);
	assert_int_equal(row("late", 0)->count, 0);
	assert_int_equal(row("late", 0)->broken, 1);
	harness_free(&h);
}

static void without_a_task_nothing_is_measured(void **state)
{
	uint64_t outside = crema_shm->unmeasured.outside;

	(void)state;
	assert_int_equal(begin("nobody"), 0);
	section_value("nobody", 6, 1);
	section_end(0);
	assert_int_equal(crema_shm->unmeasured.outside, outside + 2);
}

static void depth_is_bounded(void **state)
{
	struct harness_task h = harness_begin();
	uint64_t token[SECTION_DEPTH + 3], refused = crema_shm->unmeasured.refused;

	(void)state;
	for (unsigned int i = 0; i < SECTION_DEPTH + 3; i++)
		token[i] = begin("r");
	assert_int_equal(token[SECTION_DEPTH], 0);
	assert_int_equal(crema_shm->unmeasured.refused, refused + 3);
	for (unsigned int i = SECTION_DEPTH + 3; i-- > 0;)
		section_end(token[i]);
	assert_int_equal(row("r", 0)->count, 1);
	assert_int_equal(row("r/r", 0)->count, 1);
	assert_int_equal(row("r/r", 0)->broken, 0);
	harness_end(&h);
	harness_free(&h);
}

static void names_cannot_make_up_a_path(void **state)
{
	struct harness_task h = harness_begin();
	char hostile[600];
	uint64_t a, b;

	(void)state;
	section_end(begin("x/y"));
	a = begin("x");
	section_end(begin("y"));
	section_end(a);
	assert_int_equal(row("x\\/y", 0)->count, 1);
	assert_int_equal(row("x/y", 0)->count, 1);
	/* 127 bytes of room and a two-byte character: it is not split */
	memset(hostile, 'z', 127);
	memcpy(hostile + 127, "\xc3\xa9 and more", 12);
	section_end(begin(hostile));
	hostile[127] = 0;
	assert_int_equal(row(hostile, 0)->count, 1);
	/* a path beyond its limit is refused, the outer sections are not */
	memset(hostile, '/', 128);
	hostile[128] = 0;
	a = begin(hostile);
	assert_true(a != 0);
	b = begin(hostile);
	assert_int_equal(b, 0);
	section_end(a);
	assert_int_equal(begin(""), 0);
	harness_end(&h);
	harness_free(&h);
}

struct piece {
	uint32_t owner;
	const char *path;
	uint64_t token;
};

/* A pool thread's piece of work for the task, with its own section. */
static void *work_for_it(void *arg)
{
	struct piece *p = arg;
	struct owner before = segment_begin(p->owner, 1);
	uint64_t a, b;

	section_end(p->token); /* another thread's: this one cannot end it */
	a = begin("helper");
	harness_spin(10 * MS);
	b = begin("reads");
	read_all(p->path);
	harness_spin(5 * MS);
	section_end(b);
	section_end(a);
	read_all(p->path);
	segment_end(before);
	return NULL;
}

static void pool_threads_count_within_and_apart(void **state)
{
	const char *path = harness_file("section", 7000);
	struct harness_task h = harness_begin();
	struct piece p = {h.owner, path, begin("main")};
	const struct crema_section *main_row, *helper, *reads;
	struct crema_task *t;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, work_for_it, &p), 0);
	pthread_join(thread, NULL);
	harness_spin(3 * MS);
	section_end(p.token);
	t = harness_end(&h);
	main_row = row("main", 0);
	helper = row("helper", CREMA_SECTION_POOL);
	reads = row("helper/reads", CREMA_SECTION_POOL);
	assert_int_equal(main_row->count, 1);
	assert_int_equal(main_row->own.count[CREMA_C_read_bytes], 14000);
	assert_in_range(main_row->own.time[CREMA_T_cpu], 3 * MS, 10 * MS);
	assert_in_range(main_row->pool_time[CREMA_T_cpu], 15 * MS, 25 * MS);
	assert_int_equal(helper->own.count[CREMA_C_read_bytes], 7000);
	assert_int_equal(reads->own.count[CREMA_C_read_bytes], 7000);
	assert_in_range(helper->own.time[CREMA_T_cpu], 15 * MS, 25 * MS);
	assert_in_range(reads->own.time[CREMA_T_cpu], 5 * MS, 9 * MS);
	assert_int_equal(helper->pool_time[CREMA_T_cpu], 0);
	/* cutting segments makes no pieces of work */
	assert_int_equal(t->own.count[CREMA_C_pool_segments], 1);
	assert_in_range(t->own.count[CREMA_C_pool_wall_ns], 15 * MS, 60000 * MS);
	harness_free(&h);
	unlink(path);
}

static struct crema_gauge *gauge(const char *name, uint32_t flags)
{
	for (unsigned int i = 0; i < CREMA_SHM_GAUGES; i++) {
		struct crema_gauge *g = &crema_shm->gauge[i];

		if (g->state == 2 && g->flags == flags && !strcmp(arena_text(g->path), name))
			return g;
	}
	return NULL;
}

static void values_are_summed(void **state)
{
	static const double told[] = {3, -1.5, 8, 0.25};
	uint64_t bad = crema_shm->unmeasured.values;
	struct harness_task h = harness_begin();
	const struct crema_stat *s;

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		section_value("jets", 4, told[i]);
	section_value("jets", 4, __builtin_nan(""));
	section_value("jets", 4, -__builtin_inf());
	s = &gauge("jets", 0)->stat[0];
	assert_int_equal(s->count, 4);
	assert_true(s->sum == 9.75 && s->min == -1.5 && s->max == 8 && s->last == 0.25);
	assert_int_equal(crema_shm->unmeasured.values, bad + 2);
	harness_end(&h);
	harness_free(&h);
}

static void memory_is_seen_at_both_ends(void **state)
{
	enum { BYTES = 64 << 20 };
	struct harness_task h = harness_begin();
	uint64_t token = section_begin("block", 5, 1);
	const struct crema_gauge *g;
	char *block = malloc(BYTES);

	(void)state;
	assert_non_null(block);
	memset(block, 1, BYTES);
	section_end(token);
	g = gauge("block", CREMA_SECTION_MEMORY);
	assert_non_null(g);
	assert_int_equal(g->stat[2].count, 1);
	assert_true(g->stat[1].last - g->stat[0].last == g->stat[2].last);
	assert_true(g->stat[2].last >= 0.98 * BYTES && g->stat[2].last <= 1.1 * BYTES);
	assert_int_equal(g->stat[3].count, 1);
	assert_true(g->stat[3].last >= g->stat[1].last - (1 << 20));
	free(block);
	token = section_begin("block", 5, 1);
	section_end(token); /* far below the peak so far: the section's peak is unknown */
	assert_int_equal(g->stat[2].count, 2);
	assert_int_equal(g->stat[3].count, 1);
	harness_end(&h);
	harness_free(&h);
}

/* Both ends, the change between them, and the peak if it is known. */
static void memory_of_known_sizes(void **state)
{
	static const double due[4][4] = {/* min, max, sum, last */
					 {7, 10, 17, 7},
					 {5, 25, 30, 5},
					 {-2, 15, 13, -2},
					 {40, 40, 40, 40}};
	struct crema_gauge g = {.open = 2};

	(void)state;
	gauge_memory(&g, 10, 25, 40);
	gauge_memory(&g, 7, 5, 0);
	assert_int_equal(g.open, 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(g.stat[i].count, i == 3 ? 1 : 2);
		assert_true(g.stat[i].min == due[i][0] && g.stat[i].max == due[i][1]);
		assert_true(g.stat[i].sum == due[i][2] && g.stat[i].last == due[i][3]);
	}
}

/* What the task could not measure is unknown in its sections, too, if they were open then. */
static void unknown_numbers_are_the_sections_too(void **state)
{
	struct harness_task h = harness_begin();
	struct crema_task *t = task_slot(h.owner);
	uint64_t token = begin("half known");
	const struct crema_section *s;

	(void)state;
	t->time_unknown = 1u << CREMA_T_gil_wait;
	t->count_unknown = CREMA_COUNT_BIT(late_bytes);
	t->fs_mask = 6;
	section_end(token);
	s = row("half known", 0);
	assert_int_equal(s->time_unknown, 1u << CREMA_T_gil_wait);
	assert_int_equal(s->count_unknown, CREMA_COUNT_BIT(late_bytes));
	assert_int_equal(s->fs_mask, 6);
	assert_int_equal(s->unsure, 0);
	t->flags |= CREMA_TASK_POOL_UNSEEN;
	section_end(begin("half known"));
	assert_int_equal(s->unsure, 1);
	harness_end(&h);
	harness_free(&h);
}

/* Numbers found by another instrument: long names are truncated between characters. */
static void found_numbers_have_rows(void **state)
{
	struct harness_task h = harness_begin();
	const struct crema_task *t = task_slot(h.owner);
	const struct crema_section *s;
	const struct crema_stat *stat;
	char name[160];

	(void)state;
	memset(name, 'q', 127);
	memcpy(name + 127, "\xc3\xa9 and more", 12);
	section_found(t, name, strlen(name), 1234567);
	section_found(t, name, strlen(name), 1000);
	section_found_memory(t, name, strlen(name), 4096.5);
	section_found_value(t, name, strlen(name), CREMA_SECTION_BYTES, 77);
	section_value(name, strlen(name), -5);
	name[127] = 0;
	s = row(name, CREMA_SECTION_FOUND);
	assert_int_equal(s->begun, 2);
	assert_int_equal(s->count, 2);
	assert_int_equal(s->wall_ns, 1235567);
	stat = gauge(name, CREMA_SECTION_FOUND | CREMA_SECTION_MEMORY)->stat;
	assert_true(stat[2].count == 1 && stat[2].sum == 4096.5 && stat[0].count == 0);
	stat = gauge(name, CREMA_SECTION_FOUND | CREMA_SECTION_BYTES)->stat;
	assert_true(stat[0].count == 1 && stat[0].sum == 77);
	assert_true(gauge(name, 0)->stat[0].last == -5);
	section_found(t, "a/b", 3, 5);
	assert_int_equal(row("a\\/b", CREMA_SECTION_FOUND)->wall_ns, 5);
	harness_end(&h);
	harness_free(&h);
}

static const struct crema_section *of_dataset(const char *path, const char *dataset, uint32_t flags)
{
	const struct crema_section *found = NULL;

	for (unsigned int i = 0; i < CREMA_SHM_SECTIONS; i++) {
		const struct crema_section *s = &crema_shm->section[i];

		if (s->state != 2 || s->flags != flags || strcmp(arena_text(s->path), path) ||
		    strcmp(arena_text(s->dataset), dataset))
			continue;
		assert_null(found);
		found = s;
	}
	return found;
}

static void task_of(struct crema_task *t, const char *dataset)
{
	t->dataset = arena_id(dataset, (uint32_t)strlen(dataset));
}

/* One name in two datasets and in none: three rows with separate distributions. */
static void datasets_have_rows_of_their_own(void **state)
{
	static const char *const names[] = {"", "ttbar", "wjets"};
	static const uint64_t walls[3][3] = {
		{7 * MS, 0, 1500}, {1000, 2000, 3000}, {50 * MS, 40 * MS, 60 * MS}};
	struct harness_task h = harness_begin();
	const struct crema_section *r;
	uint64_t in_buckets;

	(void)state;
	for (int i = 0; i < 9; i++) {
		task_of(task_slot(h.owner), names[i % 3]);
		section_found(task_slot(h.owner), "spread", 6, walls[i % 3][i / 3]);
	}
	for (int d = 0; d < 3; d++) {
		const uint64_t *w = walls[d];

		r = of_dataset("spread", names[d], CREMA_SECTION_FOUND);
		assert_non_null(r);
		assert_int_equal(r->count, 3);
		assert_int_equal(r->wall_ns, w[0] + w[1] + w[2]);
		assert_int_equal(r->wall_min_ns, d == 0 ? 0 : d == 1 ? 1000 : 40 * MS);
		assert_int_equal(r->wall_max_ns, d == 0 ? 7 * MS : d == 1 ? 3000 : 60 * MS);
		in_buckets = 0;
		for (uint32_t i = 0; i < CREMA_WALL_BUCKETS; i++)
			in_buckets += r->wall_bucket[i];
		assert_int_equal(in_buckets, 3);
		for (int i = 0; i < 3; i++)
			assert_true(r->wall_bucket[crema_wall_bucket(w[i])] > 0);
	}
	harness_end(&h);
	harness_free(&h);
}

/* Each bucket begins where the previous one ends, a quarter of an octave later. */
static void buckets_of_walls_have_their_ends(void **state)
{
	double low = 1024;

	(void)state;
	assert_int_equal(crema_wall_bucket(0), 0);
	assert_int_equal(crema_wall_bucket(1023), 0);
	for (uint32_t i = 1; i < CREMA_WALL_BUCKETS; i++, low *= 1.189207115002721) {
		assert_int_equal(crema_wall_bucket((uint64_t)(low * 1.000001) + 1), i);
		assert_int_equal(crema_wall_bucket((uint64_t)(low * 0.999999) - 1), i - 1);
	}
	assert_int_equal(crema_wall_bucket(UINT64_MAX), CREMA_WALL_BUCKETS - 1);
}

/* Too many datasets: those that do not fit share one row, and the names of sections keep the room
 * that they have without datasets. */
static void too_many_datasets_share_a_row(void **state)
{
	struct harness_task h = harness_begin();
	const struct crema_section *beyond, *one;
	uint64_t told = 0, plain = 0;
	char name[32];

	(void)state;
	for (unsigned int i = CREMA_SHM_SECTIONS_BY_DATASET; i < CREMA_SHM_SECTIONS; i++)
		plain += crema_shm->section[i].state == 2;
	for (int i = 0; i < 400; i++) {
		snprintf(name, sizeof(name), "set %d", i);
		task_of(task_slot(h.owner), name);
		section_end(begin("crowd"));
		one = of_dataset("crowd", name, 0);
		told += one ? one->count : 0;
	}
	beyond = of_dataset("crowd", "", CREMA_SECTION_BEYOND);
	assert_non_null(beyond);
	assert_in_range(told, CREMA_SHM_SECTIONS_BY_DATASET * 3 / 4, CREMA_SHM_SECTIONS_BY_DATASET);
	assert_int_equal(told + beyond->count, 400);
	for (unsigned int i = CREMA_SHM_SECTIONS_BY_DATASET; i < CREMA_SHM_SECTIONS; i++)
		plain -= crema_shm->section[i].state == 2;
	assert_int_equal(plain, (uint64_t)-1);
	/* its existing row, not a second one */
	task_of(task_slot(h.owner), "set 5");
	section_end(begin("crowd"));
	assert_int_equal(of_dataset("crowd", "set 5", 0)->count, 2);
	harness_end(&h);
	harness_free(&h);
}

/* Last, as it fills the table. */
static void what_does_not_fit_is_counted_together(void **state)
{
	struct harness_task h = harness_begin();
	uint32_t strings = crema_shm->strings_used, named = 0, told = 0;
	uint64_t a, b, wall = harness_now_ns();
	const struct crema_section *other;
	char name[32];

	(void)state;
	task_slot(h.owner)->span = arena_id("a span", 6);
	for (unsigned int i = CREMA_SHM_SECTIONS_BY_DATASET; i < CREMA_SHM_SECTIONS; i++)
		named += crema_shm->section[i].state == 2;
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "made up %d", i);
		a = begin(name);
		b = begin("within");
		harness_spin(MS / 100);
		section_end(b);
		section_end(a);
	}
	wall = harness_now_ns() - wall;
	for (unsigned int i = 0; i < CREMA_SHM_SECTIONS - CREMA_SHM_SECTIONS_OTHER; i++)
		told += (uint32_t)crema_shm->section[i].count * (crema_shm->section[i].span != 0);
	other = &crema_shm->section[CREMA_SHM_SECTIONS - CREMA_SHM_SECTIONS_OTHER];
	assert_int_equal(other->path, 0);
	assert_int_equal(other->span, task_slot(h.owner)->span);
	assert_int_equal(other->count + told, 2000);
	assert_true(told <= CREMA_SHM_SECTIONS - CREMA_SHM_SECTIONS_BY_DATASET - named);
	/* an inner section's time is not added to its outer one's */
	assert_true(other->wall_ns <= wall);
	assert_in_range(other->own.time[CREMA_T_cpu], (other->count / 2) * MS / 100, wall);
	assert_true(crema_shm->strings_used - strings <= 200 * 48);
	harness_end(&h);
	harness_free(&h);
}

static struct crema_section *other_row(void)
{
	return &crema_shm->section[CREMA_SHM_SECTIONS - CREMA_SHM_SECTIONS_OTHER + 1];
}

static void make_safe(const char *begins)
{
	for (unsigned int i = 0; i < CREMA_SHM_SECTIONS; i++) {
		struct crema_section *s = &crema_shm->section[i];

		if (s->path && !strncmp(arena_text(s->path), begins, strlen(begins)))
			s->safe_seq = s->seq;
	}
}

/* ... until rows are safe and not open: those can be reused, others cannot. */
static void rows_that_are_safe_can_go(void **state)
{
	struct harness_task h = harness_begin();
	uint64_t open_one, number;
	struct crema_section *s;

	(void)state;
	make_safe("made up 1");
	open_one = begin("made up 1"); /* without a span: a separate row */
	assert_true(open_one != 0);
	s = row("made up 1", 0);
	number = s->number;
	for (unsigned int i = 0; i < CREMA_SHM_SECTIONS; i++)
		crema_shm->section[i].safe_seq = 0;
	s->safe_seq = s->seq; /* safe, but open */
	section_end(begin("new one"));
	assert_int_equal(other_row()->count, 1);
	assert_int_equal(s->number, number);
	make_safe("made up 2");
	section_end(begin("new one"));
	assert_int_equal(row("made up 1/new one", 0)->count, 1);
	assert_int_equal(row("made up 1/new one", 0)->number, number + 1);
	section_end(open_one);
	assert_int_equal(s->number, number);
	assert_int_equal(s->count, 1);
	harness_end(&h);
	harness_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inner_is_in_outer),
		cmocka_unit_test(sums_close_with_the_task),
		cmocka_unit_test(each_task_has_its_own),
		cmocka_unit_test(what_finds_no_room_in_a_task_is_counted),
		cmocka_unit_test(what_is_left_open_is_broken),
		cmocka_unit_test(a_section_ends_with_its_task_only),
		cmocka_unit_test(without_a_task_nothing_is_measured),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(names_cannot_make_up_a_path),
		cmocka_unit_test(pool_threads_count_within_and_apart),
		cmocka_unit_test(values_are_summed),
		cmocka_unit_test(memory_is_seen_at_both_ends),
		cmocka_unit_test(memory_of_known_sizes),
		cmocka_unit_test(unknown_numbers_are_the_sections_too),
		cmocka_unit_test(found_numbers_have_rows),
		cmocka_unit_test(buckets_of_walls_have_their_ends),
		cmocka_unit_test(datasets_have_rows_of_their_own),
		cmocka_unit_test(too_many_datasets_share_a_row),
		cmocka_unit_test(what_does_not_fit_is_counted_together),
		cmocka_unit_test(rows_that_are_safe_can_go),
	};

	return cmocka_run_group_tests_name("shim section", tests, harness_setup, NULL);
}
