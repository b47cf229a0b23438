/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agent_distrust.c - unknown file systems, bad texts, and shared memory full of garbage. */
#include "tests/unit/fake_shm.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "agent/ending.h"
#include "agent/hello.h"
#include "agent/rows.h"
#include "agent/sampler.h"
#include "agent/sweep.h"

static void test_filesystems(void **state)
{
	struct fake *f = *state;
	struct crema_task *t;

	f->shm->filesystem[0] = (struct crema_filesystem){.state = 2, .f_type = 0xEF53};
	f->shm->filesystem[1] = (struct crema_filesystem){.state = 2, .f_type = 0x65735546};
	f->shm->filesystem[2] = (struct crema_filesystem){.state = 2, .f_type = 0x01021994};
	assert_true(fskinds_poll(&f->kinds, &f->view, getpid()));
	assert_false(fskinds_poll(&f->kinds, &f->view, getpid()));
	t = start(f, 0, 1);
	t->fs_mask = 5;
	t = start(f, 1, 2);
	t->fs_mask = 7;
	t->count_unknown = 0;
	t = start(f, 2, 3);
	t->fs_mask = 1u << 31;
	poll_and_look(f, 1);
	assert_int_equal(f->n, 3);
	assert_true(TASK_COUNT_KNOWN(&f->r[0], storage_read_bytes));
	assert_false(TASK_KNOWN(&f->r[0], fs_unknown));
	/* The shim counts the charges of fuse separately, so the rest of them is known. */
	assert_true(TASK_COUNT_KNOWN(&f->r[1], storage_read_bytes));
	assert_true(TASK_COUNT_KNOWN(&f->r[1], storage_unsure_bytes));
	assert_true(text_is(f->r[1].fs_unknown, "fuse"));
	assert_true(TASK_KNOWN(&f->r[2], fs_unknown));
	assert_false(TASK_COUNT_KNOWN(&f->r[2], storage_read_bytes));
}

static bool is_good(void *arg, const char *path)
{
	char *seen = arg;

	strcat(strcat(seen, path), "|");
	return strstr(path, "bad") == NULL;
}

static void test_overlay_options(void **state)
{
	char seen[256] = "";

	(void)state;
	assert_true(
		fskind_layers("rw,lowerdir=/a:/b\\:c::/d,upperdir=/u,workdir=/w", is_good, seen));
	assert_string_equal(seen, "/a|/b:c|/d|/u|");
	seen[0] = '\0';
	assert_false(fskind_layers("rw,lowerdir=/a,upperdir=/bad", is_good, seen));
	seen[0] = '\0';
	assert_true(fskind_layers("ro,lowerdir+=/x\\054y,datadir+=/z\n", is_good, seen));
	assert_string_equal(seen, "/x,y|/z|");
	assert_false(fskind_layers("rw,lowerdir=rel/ative", is_good, seen));
	assert_false(fskind_layers("rw,relatime", is_good, seen));
	assert_false(fskind_layers("", is_good, seen));
}

/* Whatever the memory contains: no crash, and valid frames. ASan detects more. */
static void test_garbage(void **state)
{
	struct fake *f = *state;
	unsigned char *p = (unsigned char *)f->shm;
	struct rows *rows = calloc(1, sizeof(*rows));
	struct sampler sampler;
	struct ending ending;
	struct buf hello = BUF_INIT;

	rows_init(rows, &f->view, &f->out, &f->kinds);
	sampler_init(&sampler, &f->view, &f->out, getpid(), NULL);
	ending_init(&ending, getpid());
	for (int round = 0; round < 6; round++) {
		srand((unsigned int)round);
		for (size_t i = 0; i < sizeof(*f->shm); i += 4) {
			int r = rand();

			/* Often small numbers, so that states and sizes are plausible. */
			r = r % 3 ? r : r % 8;
			memcpy(p + i, &r, 4);
		}
		fskinds_poll(&f->kinds, &f->view, getpid());
		drain_poll(&f->drain, 1, f->now, f->now);
		f->now += SECOND;
		rows_files(rows, round % 2);
		rows_codecs(rows, round % 2);
		rows_servers(rows, round % 2);
		rows_dask(rows);
		rows_totals(rows, &f->drain.unknown, round % 2, f->now);
		sampler_worker(&sampler, 1, 0, f->now, f->now);
		ending_goodbye(&ending, &f->view, &f->out, 5, 1, f->now);
		buf_clear(&hello);
		assert_int_equal(hello_frame(&hello, &f->view, &f->kinds, NULL, 1), 0);
		outbox_flush(&f->out);
		drain_end(&f->drain);
		outbox_flush(&f->out);
		for (struct outbox_frame *o = f->out.head; o; o = o->next) {
			struct frame frame;
			struct unpack u;
			const unsigned char *raw;

			assert_int_equal(frame_decode(&frame, o->data, o->bytes), o->bytes);
			assert_int_equal(frame_payload(&frame, &hello, &raw), 0);
			assert_int_equal(unpack_open(&u, raw, frame.head.raw_bytes), 0);
			unpack_release(&u);
		}
		ack_all(f);
	}
	buf_release(&hello);
	rows_release(rows);
	free(rows);
}

static void test_texts(void **state)
{
	struct fake *f = *state;
	uint32_t id = text(f, "good"), huge = 0xfffffff0u;

	assert_true(text_is(view_text(&f->view, id), "good"));
	assert_null(view_text(&f->view, 0).ptr);
	assert_null(view_text(&f->view, id + 1).ptr);
	assert_null(view_text(&f->view, UINT32_MAX - 3).ptr);
	assert_null(view_text(&f->view, CREMA_SHM_STRINGS).ptr);
	assert_null(view_text(&f->view, CREMA_SHM_STRINGS - 4).ptr);
	memcpy(f->shm->strings + id, &huge, 4);
	assert_null(view_text(&f->view, id).ptr);
	huge = 3; /* no terminating NUL */
	memcpy(f->shm->strings + id, &huge, 4);
	assert_null(view_text(&f->view, id).ptr);
}

static void test_cut_key(void **state)
{
	struct fake *f = *state;
	struct crema_task *t = start(f, 0, 1);

	strcpy(t->key, "ab\xc3\xa9");
	poll_and_look(f, 1);
	assert_int_equal(f->r[0].key.len, 4);
	t = start(f, 1, 2);
	strcpy(t->key, "ab\xe2\x82"); /* a character that was truncated */
	ack_all(f);
	poll_and_look(f, 1);
	assert_int_equal(f->r[0].key.len, 2);
}

static int make_shm(char *path, const char *dir, char c, uint64_t armed, uint32_t pid)
{
	struct crema_shm *m = calloc(1, sizeof(*m));
	int fd;

	m->agent_heartbeat_boot_ns = c == 'd' ? armed + 90 * SECOND : 0;
	m->armed_boot_ns = armed;
	m->pid = pid;
	m->start_ticks = 1; /* no process has these */
	sprintf(path, "%s/crema-%032d", dir, 0);
	path[strlen(path) - 1] = c;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, m, sizeof(*m)), sizeof(*m));
	free(m);
	return fd;
}

static void test_sweep(void **state)
{
	char dir[] = "/tmp/crema-test-XXXXXX", old[128], young[128], held[128], none[128],
	     beating[128];
	uint64_t now = 1000 * SECOND;
	struct view v;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	close(make_shm(old, dir, 'a', now - 100 * SECOND, (uint32_t)getpid()));
	close(make_shm(young, dir, 'b', now - 10 * SECOND, (uint32_t)getpid()));
	close(make_shm(beating, dir, 'd', now - 100 * SECOND, (uint32_t)getpid()));
	fd = make_shm(held, dir, 'c', now - 100 * SECOND, (uint32_t)getpid());
	assert_int_equal(view_open(&v, held, (uint32_t)getpid(), 1), -EPROTO); /* no magic */
	assert_int_equal(pwrite(fd, "CREAMEM1", 8, 0), 8);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	sprintf(none, "%s/other-name", dir);
	assert_int_equal(sweep_shm(none, now), 0);
	assert_int_equal(sweep_shm(held, now), 1);
	assert_int_not_equal(access(old, F_OK), 0);
	close(fd);
	assert_int_equal(sweep_shm(held, now), 1);
	assert_int_equal(sweep_shm(held, now), 0);
	assert_int_equal(access(young, F_OK), 0);
	assert_int_equal(access(beating, F_OK), 0);
	assert_int_equal(sweep_shm(held, now + 60 * SECOND), 2);
	assert_int_equal(rmdir(dir), 0);
}

/* A shim's header with one difference each time. */
static void test_other_builds(void **state)
{
	char dir[] = "/tmp/crema-test-XXXXXX", path[128];
	struct crema_shm *m = calloc(1, sizeof(*m));
	struct view v;
	int fd, i;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fd = make_shm(path, dir, 'a', 1, (uint32_t)getpid());
	for (i = 0; i < 6; i++) {
		memset(m, 0, sizeof(*m));
		m->magic = CREMA_SHM_MAGIC;
		m->abi = CREMA_SHM_ABI + (i == 1);
		m->header_bytes = offsetof(struct crema_shm, task);
		m->total_bytes = sizeof(*m);
		m->tables = crema_shm_tables() ^ (i == 2);
		m->task_bytes = sizeof(struct crema_task) + (i == 3);
		m->thread_bytes = sizeof(struct crema_thread) + (i == 4);
		m->file_bytes = sizeof(struct crema_file) + (i == 5);
		m->tasks = CREMA_SHM_TASKS;
		m->threads = CREMA_SHM_THREADS;
		m->files = CREMA_SHM_FILES;
		m->pid = (uint32_t)getpid();
		assert_int_equal(pwrite(fd, m, sizeof(*m), 0), sizeof(*m));
		assert_int_equal(view_open(&v, path, (uint32_t)getpid(), 0), i ? -EPROTO : 0);
		view_close(&v, false);
		assert_int_equal(view_look(&v, path), i ? -EPROTO : 0);
		view_close(&v, true);
	}
	assert_int_equal(access(path, F_OK), 0); /* view_look() removes nothing */
	assert_int_equal(view_look(&v, dir), -EINVAL);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(view_look(&v, path), -EPROTO);
	close(fd);
	free(m);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_filesystems), T(test_overlay_options), T(test_garbage),	    T(test_texts),
		T(test_cut_key),     T(test_sweep),	      T(test_other_builds),
	};

	return cmocka_run_group_tests_name("agent distrust", tests, NULL, NULL);
}
