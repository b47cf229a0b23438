/* SPDX-License-Identifier: BSD-3-Clause */
/* harness.c - arming and tasks for the shim's test programs. */
#include "harness.h"
#include "shim/python/notify.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void harness_arm(void)
{
	const char *why = "";

	if (crema_shm)
		return;
	if (shim_arm(&why)) {
		fprintf(stderr, "cannot arm: %s\n", why);
		exit(1);
	}
	unlink(shim_path());
}

int harness_setup(void **state)
{
	(void)state;
	harness_arm();
	return 0;
}

struct harness_task harness_begin(void)
{
	struct harness_task h;

	h.owner = task_open();
	h.before = segment_begin(h.owner, 0);
	notify_task_begins(h.owner);
	return h;
}

struct crema_task *harness_end(struct harness_task *h)
{
	task_stopped(h->owner, segment_end(h->before));
	notify_task_ends(h->owner, CREMA_STATUS_OK);
	return task_slot(h->owner);
}

void harness_free(struct harness_task *h)
{
	crema_shm->slot_word[h->owner - 1] = CREMA_SLOT_FREE;
}

uint64_t harness_wall_ns(const struct crema_task *t)
{
	return t->stop_mono_ns - t->start_mono_ns;
}

uint64_t harness_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void harness_spin(uint64_t ns)
{
	struct timespec t;
	uint64_t start, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	start = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	do {
		for (volatile int i = 0; i < 10000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	} while (now - start < ns);
}

const char *harness_file(const char *name, size_t bytes)
{
	static char path[32][512];
	static int at;
	const char *dir = getenv("CREMA_TEST_TMP");
	char block[65536];
	char *p = path[at++ % (sizeof(path) / sizeof(*path))];
	int fd;

	snprintf(p, sizeof(path[0]), "%s/crema-%d-%s", dir ? dir : ".", (int)getpid(), name);
	fd = open(p, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char)(i * 7 + 3);
	for (size_t done = 0; done < bytes;) {
		size_t n = bytes - done < sizeof(block) ? bytes - done : sizeof(block);
		ssize_t w = write(fd, block, n);

		assert_true(w > 0);
		done += (size_t)w;
	}
	fsync(fd);
	close(fd);
	return p;
}

size_t harness_make_cold(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	fsync(fd);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
	return ((size_t)st.st_size + 4095) & ~(size_t)4095;
}

void harness_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

void harness_connect(int *client, int *server)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(a);

	assert_int_equal(bind(listener, (struct sockaddr *)&a, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &size), 0);
	*client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(*client, (struct sockaddr *)&a, size), 0);
	*server = accept(listener, NULL, NULL);
	assert_true(*server >= 0);
	close(listener);
}

unsigned int harness_descriptors_of(const char *end, int *last)
{
	size_t tail = strlen(end);
	unsigned int found = 0;
	char name[64], to[96];

	for (int fd = 3; fd < 4096; fd++) {
		ssize_t n;

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n = readlink(name, to, sizeof(to));
		if (n > (ssize_t)tail && !memcmp(to + n - tail, end, tail)) {
			*last = fd;
			found++;
		}
	}
	return found;
}
