/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_forked.c - a forked child that is measured itself, as the workers of a pool of processes
 * are: nothing that its parent has found out about its own shared memory counts there.
 */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/count/byte_sample.h"
#include "shim/count/fd.h"
#include "shim/count/opener.h"
#include "shim/count/runqueue.h"
#include "shim/python/first_use.h"
#include "shim/python/notify.h"
#include "shim/python/py_xrootd_file.h"

#define MS 1000000ull

/* A child that uses CPU and ends. */
static void spin_in_a_child(uint64_t ns)
{
	pid_t child = fork();

	if (!child) {
		harness_spin(ns);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static uint64_t children_cpu_ns(void)
{
	struct rusage ru;

	getrusage(RUSAGE_CHILDREN, &ru);
	return ((uint64_t)ru.ru_utime.tv_sec + (uint64_t)ru.ru_stime.tv_sec) * 1000 * MS +
	       ((uint64_t)ru.ru_utime.tv_usec + (uint64_t)ru.ru_stime.tv_usec) * 1000;
}

/* Runs the scene in a forked child that has been armed; it returns 0 if all is as it should be. */
static void in_an_armed_child(int (*scene)(void))
{
	const char *why;
	int status = -1;
	pid_t child = fork();

	if (!child) {
		notify_forked();
		if (shim_arm(&why))
			_exit(100);
		unlink(shim_path());
		_exit(scene());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int counts_its_own_children(void)
{
	const struct crema_snapshot *s = &crema_shm->snapshot;

	/* before the first snapshot, too: a pool's process takes none until its first task ends */
	spin_in_a_child(20 * MS);
	shim_snapshot();
	if (s->children_cpu_ns != children_cpu_ns() || s->children_cpu_ns < 20 * MS)
		return 1;
	spin_in_a_child(20 * MS);
	shim_snapshot();
	return s->children_cpu_ns != children_cpu_ns() || s->children_cpu_ns < 40 * MS ? 2 : 0;
}

static int has_no_children(void)
{
	shim_snapshot();
	return crema_shm->snapshot.children_cpu_ns || crema_shm->snapshot.children_inblock ||
	       crema_shm->snapshot.children_oublock;
}

/* The kernel counts a forked child's own children from 0. */
static void children_are_the_childs_own(void **state)
{
	(void)state;
	shim_snapshot();
	in_an_armed_child(has_no_children);
	in_an_armed_child(counts_its_own_children);
}

/* In the place of the interpreter: strings, sets of one key, and a File that has a URL. */

struct text {
	PyObject head;
	const char *text;
};

static const char *url;

/* As an interpreter does, it keeps them. */
PyObject *PyUnicode_InternFromString(const char *text)
{
	static struct text kept[32];
	static size_t n;

	assert_true(n < sizeof(kept) / sizeof(kept[0]));
	kept[n].text = text;
	return &kept[n++].head;
}

const char *PyUnicode_AsUTF8AndSize(PyObject *o, Py_ssize_t *n)
{
	(void)n;
	return ((struct text *)o)->text;
}

PyObject *PyObject_GetAttr(PyObject *o, PyObject *name)
{
	(void)name;
	return o;
}

PyObject *PyObject_Vectorcall(PyObject *f, PyObject *const *args, size_t n, PyObject *names)
{
	(void)f, (void)n, (void)names;
	return PyUnicode_InternFromString(((struct text *)args[0])->text[0] == 'L' ? url
										   : "server");
}

PyObject PyUnicode_Type;

PyObject *PyObject_Type(PyObject *o)
{
	(void)o;
	return &PyUnicode_Type;
}

PyObject *PyLong_FromUnsignedLongLong(unsigned long long n)
{
	(void)n;
	return &PyUnicode_Type;
}

PyObject *PySet_New(PyObject *of)
{
	(void)of;
	return PyUnicode_InternFromString(NULL);
}

int PySet_Add(PyObject *set, PyObject *key)
{
	(void)key;
	((struct text *)set)->text = "";
	return 0;
}

Py_ssize_t PySet_Size(PyObject *set)
{
	return ((struct text *)set)->text != NULL;
}

void PyErr_Clear(void)
{
}

void Py_DecRef(PyObject *o)
{
	(void)o;
}

static uint32_t id_of(const char *text)
{
	return arena_id(text, (uint32_t)strlen(text));
}

static uint32_t strings, name_id, span_id;

/* The new shared memory has the same numbers for other texts. */
static int names_another_file(void)
{
	static const char name[] = "root://host//store/2.root";
	const struct crema_file *f;
	uint32_t span;

	crema_shm->strings_used = strings;
	span = id_of("coffea-2");
	f = &crema_shm->file[file_row_by_name(name, span) - 1];
	if (span != span_id || id_of(name) != name_id)
		return 1;
	return f->state != 2 ? 2 : strcmp(arena_text(f->path), name) ? 3 : 0;
}

static void a_file_of_that_number_is_another(void **state)
{
	static const char name[] = "root://host//store/1.root";

	(void)state;
	strings = crema_shm->strings_used;
	span_id = id_of("coffea-1");
	assert_true(file_row_by_name(name, span_id) > 0);
	name_id = id_of(name);
	in_an_armed_child(names_another_file);
}

static PyObject *xrootd_file;

static int asks_the_file_again(void)
{
	struct xrootd_file f;

	if (id_of("a text before it") == 0)
		return 1;
	xrootd_file_get(xrootd_file, &f);
	return strcmp(arena_text(f.url), url) != 0 ||
	       strcmp(arena_text(f.address), "server") != 0 || !xrootd_file_speaks_root(&f);
}

static void an_open_xrootd_file_has_other_texts(void **state)
{
	struct xrootd_file f;

	(void)state;
	url = "root://host//store/3.root";
	assert_true(xrootd_file_ready());
	xrootd_file = PyUnicode_InternFromString("a File");
	xrootd_file_get(xrootd_file, &f);
	assert_string_equal(arena_text(f.url), url);
	in_an_armed_child(asks_the_file_again);
}

/* A task of the same name and attempt as `like`. */
static struct harness_task begin_like(const struct harness_task *like, uint64_t attempt)
{
	struct harness_task h;

	do {
		crema_shm->next_attempt = attempt - 1;
		h = harness_begin();
		if (h.owner != like->owner)
			harness_end(&h);
	} while (h.owner != like->owner);
	return h;
}

static struct harness_task parents;
static uint64_t parents_attempt;

static int uses_it_first(void)
{
	struct harness_task h = begin_like(&parents, parents_attempt);
	uint64_t name = task_name(h.owner);
	int first = first_use(name, h.owner, 5), again = first_use(name, h.owner, 5);

	return first != 1 || again != 0;
}

static void a_task_of_that_name_is_another(void **state)
{
	uint64_t name;

	(void)state;
	parents = harness_begin();
	parents_attempt = task_slot(parents.owner)->attempt;
	name = task_name(parents.owner);
	assert_int_equal(first_use(name, parents.owner, 5), 1);
	assert_int_equal(first_use(name, parents.owner, 5), 0);
	in_an_armed_child(uses_it_first);
	harness_end(&parents);
	harness_free(&parents);
}

enum { SAMPLED = 1 << 20 };

static uint64_t sampled(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < CREMA_SHM_BYTE_STACKS; i++)
		sum += crema_shm->byte_stack[i].bytes[CREMA_LINES_B_read];
	return sum;
}

static int samples_its_own_bytes(void)
{
	struct harness_task h;

	crema_shm->next_attempt = parents_attempt - 1;
	crema_shm->byte_samples = 1;
	h = harness_begin();
	if (task_slot(h.owner)->attempt != parents_attempt)
		return 1;
	for (int i = 0; i < 3; i++)
		byte_sample(thread_self(), CREMA_LINES_B_read, SAMPLED, NULL);
	return sampled() < SAMPLED || sampled() > 3 * SAMPLED ? 2 : 0;
}

/* What the parent's task could not record is nothing of the child's task with that number. */
static void bytes_without_a_row_stay_with_the_parent(void **state)
{
	(void)state;
	crema_shm->byte_samples = 1;
	for (uint32_t i = 0; i < CREMA_SHM_BYTE_STACKS; i++)
		crema_shm->byte_stack[i].state = 1;
	parents = harness_begin();
	parents_attempt = task_slot(parents.owner)->attempt;
	for (int i = 0; i < 20; i++)
		byte_sample(thread_self(), CREMA_LINES_B_read, SAMPLED, NULL);
	assert_int_equal(sampled(), 0);
	in_an_armed_child(samples_its_own_bytes);
	harness_end(&parents);
	harness_free(&parents);
	for (uint32_t i = 0; i < CREMA_SHM_BYTE_STACKS; i++)
		crema_shm->byte_stack[i].state = 0;
	crema_shm->byte_samples = 0;
}

static int has_room_for_lines(void)
{
	struct crema_line line = {.file = 4 * OPENER_LINES, .line = 1};

	if (opener_take("expected") != 0)
		return 1;
	opener_expect("another", &line);
	return opener_take("another") == 0;
}

static void no_line_has_opened_anything(void **state)
{
	struct crema_line line = {.file = 8};

	(void)state;
	for (line.line = 1; line.line <= OPENER_LINES; line.line++)
		opener_expect("expected", &line);
	in_an_armed_child(has_room_for_lines);
	assert_int_equal(opener_take("expected"), OPENER_LINES);
}

/* A thread of the child arms it, while the one that forked waits. */
static void *arms(void *arg)
{
	const char *why;

	notify_forked();
	if (shim_arm(&why))
		return NULL;
	unlink(shim_path());
	runqueue_keep();
	return runqueue_delay_ns() >= 0 ? arg : NULL;
}

static unsigned int kept(void)
{
	int fd;

	return harness_descriptors_of("/schedstat", &fd);
}

static int counts_in_its_own_block(void)
{
	const struct crema_shm *parents_shm = crema_shm;
	const struct crema_thread *t;
	struct harness_task h;
	pthread_t thread;
	void *armed = NULL;
	char c;
	const char *path = harness_file("forked", 1);
	int fd = open(path, O_RDONLY);

	unlink(path);
	if (pthread_create(&thread, NULL, arms, &c) || pthread_join(thread, &armed) || !armed)
		return 1;
	if (crema_shm == parents_shm || kept() != 1)
		return 2;
	t = thread_self();
	if (!t || (size_t)(t - crema_shm->thread) >= CREMA_SHM_THREADS ||
	    t->tid != (uint32_t)gettid())
		return 3;
	runqueue_keep();
	if (runqueue_delay_ns() < 0 || kept() != 2)
		return 4;
	h = harness_begin();
	if (read(fd, &c, 1) != 1 || harness_end(&h)->own.count[CREMA_C_read_bytes] != 1)
		return 5;
	return task_slot(h.owner)->thread_sequence == 1 ? 0 : 6;
}

/* Its other threads are new; this one has all that its parent's thread-local memory had. */
static void a_thread_of_the_child_may_arm_it(void **state)
{
	uint64_t before;
	struct harness_task h = harness_begin();
	int status = -1;
	pid_t child;

	(void)state;
	harness_end(&h);
	harness_free(&h);
	runqueue_keeps = 1;
	runqueue_keep();
	assert_true(runqueue_delay_ns() >= 0);
	assert_int_equal(kept(), 1);
	before = thread_self()->seg.count[CREMA_C_read_bytes];
	child = fork();
	if (!child)
		_exit(counts_in_its_own_block());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(thread_self()->seg.count[CREMA_C_read_bytes], before);
	runqueue_drop();
	runqueue_keeps = 0;
}

/* Those that ended before the process was armed are not its workers' work. */
static int arm(void **state)
{
	spin_in_a_child(60 * MS);
	return harness_setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_of_that_number_is_another),
		cmocka_unit_test(an_open_xrootd_file_has_other_texts),
		cmocka_unit_test(a_task_of_that_name_is_another),
		cmocka_unit_test(bytes_without_a_row_stay_with_the_parent),
		cmocka_unit_test(no_line_has_opened_anything),
		cmocka_unit_test(children_are_the_childs_own),
		cmocka_unit_test(a_thread_of_the_child_may_arm_it),
	};

	return cmocka_run_group_tests_name("shim in forked children", tests, arm, NULL);
}
