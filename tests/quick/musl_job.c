/* SPDX-License-Identifier: BSD-3-Clause */
/* musl_job.c - calls that the shim wraps, in a program that test_musl.py links with musl. */
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int done;

static void *read_passwords(void *unused)
{
	FILE *file = fopen("/etc/passwd", "r");
	char text[4096];
	long n = file ? (long)fread(text, 1, sizeof(text), file) : -1;

	(void)unused;
	if (file)
		fclose(file);
	pthread_mutex_lock(&mutex);
	done = 1;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&mutex);
	return (void *)n;
}

static long of_thread(void)
{
	pthread_t thread;
	void *result;

	pthread_create(&thread, NULL, read_passwords, NULL);
	pthread_mutex_lock(&mutex);
	while (!done)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, &result);
	return (long)result;
}

static long of_file(void)
{
	char text[64];
	int fd = open("/etc/passwd", O_RDONLY);
	long n = read(fd, text, 10) + pread(fd, text, 20, 0);
	void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	close(fd);
	return n + (map == MAP_FAILED ? 1000 : munmap(map, 4096));
}

static long of_sockets(void)
{
	struct addrinfo *found = NULL;
	struct timespec short_time = {0, 1000};
	int pair[2];
	char byte;
	long n = socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	struct pollfd ready = {pair[1], POLLIN, 0};

	n += write(pair[0], "x", 1) + poll(&ready, 1, 1000) + recv(pair[1], &byte, 1, 0);
	n += getaddrinfo("127.0.0.1", "80", NULL, &found);
	freeaddrinfo(found);
	return n + nanosleep(&short_time, NULL);
}

static long of_child(void)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(3);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

int main(void)
{
	printf("%ld %ld %ld %ld\n", of_thread(), of_file(), of_sockets(), of_child());
	return 0;
}
