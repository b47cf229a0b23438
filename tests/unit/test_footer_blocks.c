/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_footer_blocks.c - of a segment with many runs, a report of one reads only the blocks with
 * its data, and equals the report made from the whole segment. An index that lies costs time, but
 * no record is lost or counted twice.
 */
#include "report_fixture.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/model/footer.h"
#include "collector/model/footer_blocks.h"
#include "collector/print/render.h"
#include "collector/retain/footers.h"
#include "collector/runs/read_runs.h"
#include "own_dir.h"

#define RUNS 20
#define RUN_MS 1000000 /* from one run to the next: far more than a minute */
#define TASKS 5
#define PADDING UINT64_C(350000) /* bytes of each run */
#define NAME "00000000000000000001-journal.crema"

/* TSan is for the threads that read, whatever the lie is about. */
#ifdef __SANITIZE_THREAD__
#define STRIDE 4
#else
#define STRIDE 1
#endif
#define REPORTS (sizeof(reported) / sizeof(*reported))

/* The first and the last run, and some that begin a block. */
static const char *const reported[] = {"span-00", "span-01", "span-06", "span-07",
				       "span-09", "span-12", "span-15", "span-19"};
static uint64_t bytes_read; /* by pread */

/* Overrides the C library's. */
ssize_t pread(int fd, void *to, size_t n, off_t offset)
{
	ssize_t got = syscall(SYS_pread64, fd, to, n, offset);

	bytes_read += got > 0 ? (uint64_t)got : 0;
	return got;
}

/* A message of a newer agent, which no reader interprets, and that does not compress. */
static void pad(struct fixture *fx, int worker, const char *span, uint64_t *seed)
{
	static unsigned char bytes[PADDING];
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	for (size_t i = 0; i < sizeof(bytes); i++) {
		*seed = *seed * UINT64_C(6364136223846793005) + 1;
		bytes[i] = (unsigned char)(*seed >> 56);
	}
	fx_begin(&pk, &b, 99, 2);
	pack_kv_text(&pk, "span", span);
	pack_text(&pk, "padding");
	pack_bin(&pk, bytes, sizeof(bytes));
	fx_end(fx, worker, &b);
}

static void totals(struct fixture *fx, int worker, int ms, uint64_t done)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_TOTALS, 3);
	pack_kv_u64(&pk, "boot_ns", AT(ms));
	pack_kv_u64(&pk, "tasks_done", done);
	pack_text(&pk, "tasks");
	pack_map(&pk, 1);
	pack_kv_u64(&pk, "read_bytes", 1000 * done);
	fx_end(fx, worker, &b);
}

static void row(struct fixture *fx, int worker, const char *span, uint64_t read)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_FILE, 4);
	pack_kv_text(&pk, "path", "/data/f.root");
	pack_kv_text(&pk, "span", span);
	pack_kv_text(&pk, "kind", "data");
	pack_kv_u64(&pk, "read_bytes", read);
	fx_end(fx, worker, &b);
}

/* The state of the sampling of lines, and what the worker does; for no span. */
static void states(struct fixture *fx, int worker, int ms)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_LINES, 5);
	pack_kv_u64(&pk, "table", 1);
	pack_kv_u64(&pk, "boot_ns", AT(ms));
	pack_kv_u64(&pk, "cpu_ns", AT(ms));
	pack_kv_text(&pk, "state", "on");
	pack_text(&pk, "rows");
	pack_array(&pk, 0);
	fx_end(fx, worker, &b);
	fx_map(fx, worker, CREMA_MSG_DOING, "boot_ns", AT(ms), NULL);
}

static void long_wait(struct fixture *fx, int worker, const char *span, uint64_t number, int ms)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_STACK, 6);
	pack_kv_u64(&pk, "number", number);
	pack_kv_text(&pk, "wait", "network_wait_ns");
	pack_kv_u64(&pk, "waited_ns", 1000000 * number);
	pack_kv_text(&pk, "span", span);
	pack_kv_u64(&pk, "end_boot_ns", AT(ms));
	pack_text(&pk, "frames");
	pack_array(&pk, 2);
	pack_u64(&pk, 0);
	pack_u64(&pk, 64);
	fx_end(fx, worker, &b);
}

/* Each run has tasks, a row, a long wait, samples, totals and a probe. The row of the first run
 * comes last. Half of the runs share two workers, of which only one has totals between runs; one
 * task of run 7 is alone on worker 3. */
static void add_run(struct fixture *fx, int run, uint64_t *seed)
{
	int at = run * RUN_MS, worker = run < RUNS / 2 ? 1 + run % 2 : 1 + run;
	char span[16], key[24], json[96];

	snprintf(span, sizeof(span), "span-%02d", run);
	for (int i = 0; i < TASKS; i++) {
		snprintf(key, sizeof(key), "k-%d-%d", run, i);
		fx_simple(fx, worker, (uint64_t)(run * TASKS + i + 1), key, span, CREMA_TASK_CHUNK,
			  at + i * 1000, at + i * 1000 + 900, "ok");
		fx_map(fx, worker, CREMA_MSG_SAMPLE, "boot_ns", AT(at + i * 1000), "rss_bytes",
		       UINT64_C(1000000) * (uint64_t)(run + i), NULL);
		totals(fx, worker, at + i * 1000, (uint64_t)(run * TASKS + i));
		snprintf(json, sizeof(json),
			 "{\"executing\": %d, \"gc_seconds\": %d, \"digests\": []}", i, run);
		fx_dask(fx, worker, at + i * 1000, json);
	}
	if (run == 7)
		fx_simple(fx, 3, 1, "k-third", span, CREMA_TASK_CHUNK, at, at + 500, "ok");
	long_wait(fx, worker, span, (uint64_t)run + 1, at + 100);
	row(fx, worker, span, (uint64_t)run + 1);
	if (run == 8)
		states(fx, worker, at + RUN_MS / 3);
	if (run == 1)
		fx_dask(fx, worker, at + RUN_MS / 3,
			"{\"executing\": 0, \"closing\": \"worker-close\", \"digests\": []}");
	totals(fx, 1, at + RUN_MS / 2, (uint64_t)(run * TASKS));
	pad(fx, worker, span, seed);
}

static void write_segment(struct buf *frames)
{
	char journal[64];
	struct framefile f;

	snprintf(journal, sizeof(journal), "%s/journal", dir);
	assert_true(!mkdir(journal, 0700) || errno == EEXIST);
	assert_int_equal(framefile_create(&f, journal, "journal", 1, NULL), 0);
	assert_int_equal(framefile_append(&f, frames->data, frames->len), 0);
	framefile_close(&f);
	assert_int_equal(footers_write(dir, journal, 0, UINT64_MAX), 0);
}

static int make_journal(void **state)
{
	struct buf frames = BUF_INIT;
	struct fixture *fx = fx_new();
	uint64_t seed = 1;

	if (make_dir(state))
		return -1;
	fx->file = &frames;
	for (int worker = 1; worker <= RUNS; worker++)
		fx_hello(fx, worker, NULL);
	for (int run = 0; run < RUNS; run++)
		add_run(fx, run, &seed);
	row(fx, 1, "span-00", 777);
	fx_goodbye(fx, 2, RUNS * RUN_MS, "exit");
	write_segment(&frames);
	buf_release(&frames);
	fx_free(fx);
	return 0;
}

static char *report(const char *run, uint64_t whole_bytes)
{
	struct report_request req = {
		.dir = dir, .json = true, .whole_bytes = whole_bytes, .run = run};
	struct buf out = BUF_INIT;

	assert_int_equal(report_render(&req, &out), 0);
	assert_int_equal(buf_add(&out, "", 1), 0);
	return (char *)out.data;
}

static void footer_path(char *path, size_t size, const char *suffix)
{
	snprintf(path, size, "%s/" FOOTER_FOLDER "/" NAME "%s", dir, suffix);
}

static void set_aside(bool back)
{
	char path[128], away[128];

	footer_path(path, sizeof(path), "");
	footer_path(away, sizeof(away), ".away");
	assert_int_equal(back ? rename(away, path) : rename(path, away), 0);
}

/* The report of a run from its segment. */
static char *truth(const char *run)
{
	char *text;

	set_aside(false);
	text = report(run, 1);
	set_aside(true);
	return text;
}

static void test_a_report_reads_blocks_of_its_run(void **state)
{
	uint64_t whole, partly;
	char *is, *has;

	(void)state;
	for (size_t i = 0; i < REPORTS; i++) {
		bytes_read = 0;
		has = truth(reported[i]);
		whole = bytes_read;
		bytes_read = 0;
		is = report(reported[i], 1);
		partly = bytes_read;
		assert_string_equal(is, has);
		assert_true(whole > 2 * RUNS * PADDING);
		assert_in_range(partly, 100000, 5 * FOOTER_BLOCK_BYTES);
		free(is);
		free(has);
	}
}

static void read_run(struct model *m, struct runs *runs, const char *span)
{
	const struct runs_source source = {.dir = dir, .whole_bytes = 1};
	struct run *run;

	model_init(m);
	memset(runs, 0, sizeof(*runs));
	assert_int_equal(runs_read(m, runs, &source, &span, &run, 1), 1);
	assert_non_null(run);
}

static void assert_same_worker(const struct worker *a, const struct worker *b)
{
	assert_memory_equal(a->id, b->id, sizeof(a->id));
	assert_int_equal(a->left_out, b->left_out);
	assert_int_equal(a->history.n, b->history.n);
	for (size_t i = 0; i < a->history.n; i++)
		assert_memory_equal(&a->history.v[i], &b->history.v[i], sizeof(*a->history.v));
	assert_int_equal(a->samples.n, b->samples.n);
	assert_int_equal(a->probes.n, b->probes.n);
	assert_int_equal(a->stacks.ranges.bytes, b->stacks.ranges.bytes);
	assert_int_equal(a->closing != NULL, b->closing != NULL);
}

/* Also what these reports do not show: points of totals before the run, why Dask closed a worker,
 * and whether a worker had other tasks. */
static void test_workers_are_the_same(void **state)
{
	struct model whole, partly;
	struct runs runs;

	(void)state;
	for (size_t i = 0; i < REPORTS; i++) {
		set_aside(false);
		read_run(&whole, &runs, reported[i]);
		runs_release(&runs);
		set_aside(true);
		read_run(&partly, &runs, reported[i]);
		runs_release(&runs);
		assert_int_equal(whole.workers.n, partly.workers.n);
		assert_int_equal(whole.attempts.n, partly.attempts.n);
		/* other tasks are read only in blocks with records or rows of the run: two */
		assert_in_range(partly.left_out, whole.left_out, whole.left_out + 4 * TASKS + 1);
		for (size_t k = 0; k < whole.workers.n; k++)
			assert_same_worker(whole.workers.v[k], partly.workers.v[k]);
		model_release(&whole);
		model_release(&partly);
	}
}

/* Footers whose blocks lie */

enum lie {
	AS_IT_WAS,
	SHIFTED, /* the first frame of the next block is in this one */
	LATER_END,
	MORE_FRAMES,
	NO_SPANS,
	MISSING,
	TWICE,
	NO_TIMES_LIST,
	SHORT_ITEM,
	LIES
};

struct copying {
	struct items items;
	struct buf out;
	enum lie lie;
	uint64_t at, blocks; /* the block to change; number of blocks so far */
};

static uint64_t frame_bytes(uint64_t offset)
{
	struct crema_frame_header head;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/journal/" NAME, dir);
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fseek(file, (long)offset, SEEK_SET), 0);
	assert_int_equal(fread(&head, sizeof(head), 1, file), 1);
	fclose(file);
	assert_int_equal(head.magic, CREMA_WIRE_MAGIC);
	return sizeof(head) + head.stored_bytes;
}

/* Packs value i of block `at`, or of the next one. */
static void pack_lie(const struct copying *c, msgpack_packer *pk, const msgpack_object *v,
		     uint32_t i)
{
	bool here = c->blocks == c->at;

	if (c->lie == SHIFTED && i <= 2)
		pack_u64(pk, v[i].via.u64 + (i == 1 ? here ? frame_bytes(v[i].via.u64) : 0
					     : here ? 1u
						    : UINT64_MAX));
	else if (here && ((c->lie == LATER_END && i == 1) || (c->lie == MORE_FRAMES && i == 2)))
		pack_u64(pk, v[i].via.u64 + 1);
	else if (here && c->lie == NO_SPANS && i == 4)
		pack_array(pk, 0);
	else if (here && c->lie == NO_TIMES_LIST && i == 5)
		pack_nil(pk);
	else
		msgpack_pack_object(pk, v[i]);
}

static void pack_item(struct copying *c, unsigned int kind, const msgpack_object *v, uint32_t n)
{
	bool lies = kind == FOOTER_BLOCK && c->blocks >= c->at && c->blocks <= c->at + 1;
	uint32_t i, values = lies && c->lie == SHORT_ITEM ? n - 1 : n;
	msgpack_packer *pk = items_add(&c->items, kind, values - 1);

	for (i = 1; i < values; i++) {
		if (lies)
			pack_lie(c, pk, v, i);
		else
			msgpack_pack_object(pk, v[i]);
	}
}

static int copy_item(void *arg, const msgpack_object_array *item)
{
	struct copying *c = arg;
	uint64_t kind;
	bool here;

	assert_true(items_u64(item, 0, &kind));
	here = kind == FOOTER_BLOCK && c->blocks == c->at;
	if (!here || c->lie != MISSING)
		pack_item(c, (unsigned int)kind, item->ptr, item->size);
	if (here && c->lie == TWICE)
		pack_item(c, (unsigned int)kind, item->ptr, item->size);
	c->blocks += kind == FOOTER_BLOCK;
	return 0;
}

/* Number of blocks. */
static uint64_t write_lie(enum lie lie, uint64_t at)
{
	struct copying c = {.at = at, .lie = lie};
	char path[128], folder[64];
	uint64_t bytes;

	footer_path(path, sizeof(path), ".away");
	snprintf(folder, sizeof(folder), "%s/" FOOTER_FOLDER, dir);
	items_begin(&c.items, &c.out, CREMA_FRAME_FOOTER);
	assert_int_equal(items_read(path, CREMA_FRAME_FOOTER, copy_item, &c, &bytes), 0);
	assert_true(items_end(&c.items) > 0);
	assert_int_equal(framefile_replace(folder, NAME, "footer", 1, &c.out), 0);
	buf_release(&c.out);
	return c.blocks;
}

/* How many of the reports have read the whole segment. */
static unsigned int check_reports(char *const *has)
{
	unsigned int whole = 0;
	char *is;

	for (size_t i = 0; i < REPORTS; i++) {
		bytes_read = 0;
		is = report(reported[i], 1);
		whole += bytes_read > RUNS * PADDING;
		assert_string_equal(is, has[i]);
		free(is);
	}
	return whole;
}

static void test_an_index_that_lies(void **state)
{
	char *has[REPORTS];
	uint64_t at, n;
	unsigned int whole;
	enum lie lie;

	(void)state;
	for (size_t i = 0; i < REPORTS; i++)
		has[i] = truth(reported[i]);
	set_aside(false);
	n = write_lie(AS_IT_WAS, 0);
	assert_in_range(n, 4, 10);
	assert_int_equal(check_reports(has), 0);
	for (lie = AS_IT_WAS + 1; lie < LIES; lie++) {
		whole = 0;
		for (at = 0; at + (lie == SHIFTED) < n; at += STRIDE) {
			write_lie(lie, at);
			whole += check_reports(has);
		}
		if (!whole)
			fail_msg("lie %d has no effect", (int)lie);
	}
	for (size_t i = 0; i < REPORTS; i++)
		free(has[i]);
	set_aside(true);
}

/* A footer of an earlier version has no index. */
static int without_blocks(void *arg, const msgpack_object_array *item)
{
	struct copying *c = arg;
	uint64_t kind;

	assert_true(items_u64(item, 0, &kind));
	if (kind == FOOTER_SEGMENT)
		pack_item(c, FOOTER_SEGMENT, item->ptr, item->size - 1);
	else if (kind != FOOTER_BLOCK)
		pack_item(c, (unsigned int)kind, item->ptr, item->size);
	return 0;
}

static void test_a_footer_without_an_index(void **state)
{
	struct copying c = {.at = UINT64_MAX - 1};
	char path[128], folder[64], journal[64], *has = truth("span-07"), *is;
	uint64_t bytes;

	(void)state;
	set_aside(false);
	footer_path(path, sizeof(path), ".away");
	snprintf(folder, sizeof(folder), "%s/" FOOTER_FOLDER, dir);
	snprintf(journal, sizeof(journal), "%s/journal", dir);
	items_begin(&c.items, &c.out, CREMA_FRAME_FOOTER);
	assert_int_equal(items_read(path, CREMA_FRAME_FOOTER, without_blocks, &c, &bytes), 0);
	assert_true(items_end(&c.items) > 0);
	assert_int_equal(framefile_replace(folder, NAME, "footer", 1, &c.out), 0);
	buf_release(&c.out);
	assert_true(footer_is_good(journal, folder, NAME)); /* so it is not written again */
	bytes_read = 0;
	is = report("span-07", 1);
	assert_in_range(bytes_read, RUNS * PADDING, 2 * RUNS * PADDING - 1); /* no survey */
	assert_string_equal(is, has);
	free(is);
	free(has);
	set_aside(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_report_reads_blocks_of_its_run),
		cmocka_unit_test(test_workers_are_the_same),
		cmocka_unit_test(test_an_index_that_lies),
		cmocka_unit_test(test_a_footer_without_an_index),
	};

	return cmocka_run_group_tests(tests, make_journal, remove_dir);
}
