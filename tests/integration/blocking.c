/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocking.c - waits in functions with known names, for test_blocked.py. Each returns the wall time
 * of its one call in nanoseconds, or -1.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define KNOWN __attribute__((noinline, visibility("default")))

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

KNOWN int64_t known_sleep(long ms)
{
	int64_t begin = now();

	pause_ms(ms);
	return now() - begin;
}

/* One read of `bytes` that the page cache cannot shorten. */
KNOWN int64_t known_file_read(const char *path, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_DIRECT);
	void *p = NULL;
	int64_t begin, took = -1;

	if (fd >= 0 && !posix_memalign(&p, 4096, bytes)) {
		begin = now();
		if (read(fd, p, bytes) == (ssize_t)bytes)
			took = now() - begin;
	}
	free(p);
	close(fd);
	return took;
}

/* One read of a pipe that is written to later. */
KNOWN int64_t known_fifo_read(const char *path)
{
	int fd = open(path, O_RDWR);
	int64_t begin = now(), took = -1;
	char c;

	if (fd >= 0 && read(fd, &c, 1) == 1)
		took = now() - begin;
	close(fd);
	return took;
}

/* Requests one byte from a server on this machine. */
KNOWN int64_t known_receive(int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int64_t begin, took = -1;
	char c = '?';

	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 && send(fd, &c, 1, 0) == 1) {
		begin = now();
		if (recv(fd, &c, 1, 0) == 1)
			took = now() - begin;
	}
	close(fd);
	return took;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;

static void *hold(void *ms)
{
	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(&held);
	pause_ms((long)(intptr_t)ms);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

KNOWN int64_t known_lock(long ms)
{
	int64_t begin, took;
	pthread_t t;

	pthread_barrier_init(&held, NULL, 2);
	if (pthread_create(&t, NULL, hold, (void *)(intptr_t)ms))
		return -1;
	pthread_barrier_wait(&held);
	begin = now();
	pthread_mutex_lock(&mutex);
	took = now() - begin;
	pthread_mutex_unlock(&mutex);
	pthread_join(t, NULL);
	return took;
}
