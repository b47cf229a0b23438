/* SPDX-License-Identifier: BSD-3-Clause */
/* doing_object.c - names for descriptors, locks and processes of the worker. */
#include "agent/doing_object.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/redact.h"
#include "common/calls.h"
#include "common/procfs.h"
#include "fnv.h"

#define PEER_LINES 65536 /* maximum lines of /proc/PID/net/tcp that are read */

size_t doing_memory(int pid, uint64_t address, void *to, size_t bytes)
{
	struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)address, bytes};
	ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	return got > 0 ? (size_t)got : 0;
}

/* Peers */

/* An address of /proc/net/tcp: words in the host's byte order. */
static bool peer_text(const char *hex, unsigned int port, char *out, size_t size)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint32_t word[4] = {0};
	char host[INET6_ADDRSTRLEN];
	size_t n = strlen(hex) / 8;
	const void *address = word;

	if ((n != 1 && n != 4) || !port)
		return false;
	for (size_t i = 0; i < n; i++)
		if (sscanf(hex + 8 * i, "%8" SCNx32, &word[i]) != 1)
			return false;
	if (n == 4 && !memcmp(word, mapped, sizeof(mapped))) {
		address = &word[3];
		n = 1;
	}
	if (!inet_ntop(n == 1 ? AF_INET : AF_INET6, address, host, sizeof(host)))
		return false;
	return snprintf(out, size, n == 1 ? "%s:%u" : "[%s]:%u", host, port) > 0;
}

/* "1.2.3.4:80" of the socket with this inode, in the worker's namespace. */
static bool peer_of(int pid, unsigned long inode, char *out, size_t size)
{
	static const char *const tables[] = {"tcp", "tcp6"};
	char path[64], line[512], hex[33];
	unsigned long of;
	unsigned int port;
	bool found = false;

	for (int i = 0; i < 2 && !found; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, tables[i]);
		f = fopen(path, "re");
		for (int n = 0; f && n < PEER_LINES && fgets(line, sizeof(line), f); n++) {
			if (sscanf(line,
				   " %*u: %*[0-9A-Fa-f]:%*x %32[0-9A-Fa-f]:%x %*x %*s %*s %*s %*u "
				   "%*u %lu",
				   hex, &port, &of) != 3 ||
			    of != inode)
				continue;
			found = peer_text(hex, port, out, size);
			break;
		}
		if (f)
			fclose(f);
	}
	return found;
}

/* Objects */

static void put_file(struct doing_object *o, const struct view *v, const char *path)
{
	struct text shown = redact_file(v->redact, (struct text){path, strlen(path)});

	o->kind = "file";
	snprintf(o->text, sizeof(o->text), "%.*s", (int)shown.len, shown.ptr);
}

/* "" if the process has closed it. */
static void link_of(int pid, int fd, char *to, size_t size)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", pid, fd);
	n = readlink(link, to, size - 1);
	to[n > 0 ? n : 0] = '\0';
}

static void of_descriptor(struct doing_object *o, const struct view *v, int pid, int fd)
{
	unsigned long inode;
	char path[512];

	link_of(pid, fd, path, sizeof(path));
	if (path[0] == '/') {
		put_file(o, v, path);
	} else if (sscanf(path, "socket:[%lu]", &inode) == 1) {
		o->kind = "peer";
		if (!peer_of(pid, inode, o->text, sizeof(o->text)))
			snprintf(o->text, sizeof(o->text), "a socket without a TCP peer");
	} else if (!strncmp(path, "pipe:", 5)) {
		snprintf(o->text, sizeof(o->text), "a pipe");
	} else if (!strncmp(path, "anon_inode:", 11)) {
		snprintf(o->text, sizeof(o->text), "%.255s", path + 11);
	}
}

/* Reads a text of the worker; "" if it cannot be read. */
static void text_at(int pid, uint64_t address, char *to, size_t size)
{
	size_t left = 4096 - address % 4096, n = doing_memory(pid, address, to, size - 1);

	if (!n) /* it may end before the page does */
		n = doing_memory(pid, address, to, left < size - 1 ? left : size - 1);
	to[n] = '\0';
}

static void of_path(struct doing_object *o, const struct view *v, int pid, uint64_t address)
{
	char path[512];

	text_at(pid, address, path, sizeof(path));
	if (*path)
		put_file(o, v, path);
}

static void of_host(struct doing_object *o, int pid, uint64_t address)
{
	text_at(pid, address, o->text, sizeof(o->text));
	if (*o->text)
		o->kind = "host";
}

/* Only the first descriptor of the list is named. */
static void of_poll(struct doing_object *o, const struct view *v, int pid, uint64_t address)
{
	struct pollfd first;

	if (doing_memory(pid, address, &first, sizeof(first)) == sizeof(first) && first.fd >= 0)
		of_descriptor(o, v, pid, first.fd);
}

static void of_process(struct doing_object *o, const struct view *v, int child)
{
	struct text words;
	char name[64];

	o->kind = "process";
	if (child <= 0) {
		snprintf(o->text, sizeof(o->text), "any child");
		return;
	}
	if (procfs_slurp(name, sizeof(name), "/proc/%d/comm", child) <= 0)
		name[0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	words = redact_words(v->redact, (struct text){name, strlen(name)});
	snprintf(o->text, sizeof(o->text), "%d%s%.*s%s", child, words.len ? " (" : "",
		 (int)words.len, words.ptr ? words.ptr : "", words.len ? ")" : "");
}

static void of_lock(struct doing_object *o, const struct view *v, uint64_t address)
{
	uint64_t start = v->shm->python_runtime, bytes = v->shm->python_runtime_bytes;

	if (start && address - start < bytes) {
		o->kind = "GIL";
		return;
	}
	o->kind = "lock";
	snprintf(o->text, sizeof(o->text), "%#" PRIx64, address);
}

static void of_argument(struct doing_object *o, const struct view *v, int pid, enum call_on on,
			uint64_t argument)
{
	switch (on) {
	case CALL_ON_FD:
		of_descriptor(o, v, pid, (int)(uint32_t)argument);
		break;
	case CALL_ON_LOCK:
		of_lock(o, v, argument);
		break;
	case CALL_ON_PATH:
		of_path(o, v, pid, argument);
		break;
	case CALL_ON_HOST:
		of_host(o, pid, argument);
		break;
	case CALL_ON_POLL:
		of_poll(o, v, pid, argument);
		break;
	case CALL_ON_PROCESS:
		of_process(o, v, (int)(uint32_t)argument);
		break;
	case CALL_ON_NOTHING:
		break;
	}
}

void doing_object_of_word(struct doing_object *o, const struct view *v, int pid,
			  const struct crema_thread *t)
{
	uint32_t call = crema_call_of(t->call);
	struct text about = view_text(v, t->about);
	const char *name = call_name(call);

	memset(o, 0, sizeof(*o));
	if (!name)
		return;
	snprintf(o->call, sizeof(o->call), "%s", name);
	if (about.ptr) {
		about = redact_file(v->redact, about);
		o->kind = "url";
		snprintf(o->text, sizeof(o->text), "%.*s", (int)about.len, about.ptr);
		return;
	}
	of_argument(o, v, pid, call_on(call), crema_call_object(t->call));
}

/* System calls that may block and are not intercepted, and the argument with their object. */
static const struct {
	long number;
	const char *name;
	enum call_on on;
	unsigned int argument;
} kernel_calls[] = {
	{SYS_read, "read", CALL_ON_FD, 0},
	{SYS_write, "write", CALL_ON_FD, 0},
	{SYS_pread64, "pread64", CALL_ON_FD, 0},
	{SYS_pwrite64, "pwrite64", CALL_ON_FD, 0},
	{SYS_recvfrom, "recvfrom", CALL_ON_FD, 0},
	{SYS_recvmsg, "recvmsg", CALL_ON_FD, 0},
	{SYS_sendto, "sendto", CALL_ON_FD, 0},
	{SYS_sendmsg, "sendmsg", CALL_ON_FD, 0},
	{SYS_connect, "connect", CALL_ON_FD, 0},
	{SYS_accept4, "accept4", CALL_ON_FD, 0},
	{SYS_fstat, "fstat", CALL_ON_FD, 0},
	{SYS_fsync, "fsync", CALL_ON_FD, 0},
	{SYS_fdatasync, "fdatasync", CALL_ON_FD, 0},
	{SYS_close, "close", CALL_ON_FD, 0},
	{SYS_getdents64, "getdents64", CALL_ON_FD, 0},
	{SYS_ftruncate, "ftruncate", CALL_ON_FD, 0},
	{SYS_openat, "openat", CALL_ON_PATH, 1},
	{SYS_newfstatat, "stat", CALL_ON_PATH, 1},
	{SYS_statx, "statx", CALL_ON_PATH, 1},
	{SYS_faccessat, "access", CALL_ON_PATH, 1},
	{SYS_readlinkat, "readlink", CALL_ON_PATH, 1},
	{SYS_unlinkat, "unlink", CALL_ON_PATH, 1},
	{SYS_mkdirat, "mkdir", CALL_ON_PATH, 1},
	{SYS_renameat2, "rename", CALL_ON_PATH, 1},
	{SYS_statfs, "statfs", CALL_ON_PATH, 0},
	{SYS_wait4, "wait4", CALL_ON_PROCESS, 0},
	{SYS_waitid, "waitid", CALL_ON_PROCESS, 1},
	{SYS_futex, "futex", CALL_ON_LOCK, 0},
	{SYS_nanosleep, "nanosleep", CALL_ON_NOTHING, 0},
	{SYS_clock_nanosleep, "clock_nanosleep", CALL_ON_NOTHING, 0},
	{SYS_ppoll, "ppoll", CALL_ON_POLL, 0},
	{SYS_epoll_pwait, "epoll_pwait", CALL_ON_FD, 0},
#if defined(__x86_64__)
	{SYS_open, "open", CALL_ON_PATH, 0},
	{SYS_stat, "stat", CALL_ON_PATH, 0},
	{SYS_lstat, "lstat", CALL_ON_PATH, 0},
	{SYS_access, "access", CALL_ON_PATH, 0},
	{SYS_readlink, "readlink", CALL_ON_PATH, 0},
	{SYS_unlink, "unlink", CALL_ON_PATH, 0},
	{SYS_mkdir, "mkdir", CALL_ON_PATH, 0},
	{SYS_rename, "rename", CALL_ON_PATH, 0},
	{SYS_poll, "poll", CALL_ON_POLL, 0},
	{SYS_epoll_wait, "epoll_wait", CALL_ON_FD, 0},
#endif
};

bool doing_object_of_kernel(struct doing_object *o, const struct view *v, int pid, uint32_t tid,
			    uint64_t *place)
{
	uint64_t a[3];
	char text[256];
	long number;
	size_t i;

	memset(o, 0, sizeof(*o));
	if (procfs_slurp(text, sizeof(text), "/proc/%d/task/%" PRIu32 "/syscall", pid, tid) <= 0 ||
	    sscanf(text, "%ld %" SCNx64 " %" SCNx64 " %" SCNx64, &number, &a[0], &a[1], &a[2]) !=
		    4 ||
	    number < 0)
		return false;
	*place = crema_hash_more(CREMA_HASH_BEGIN, text, strlen(text));
	for (i = 0; i < sizeof(kernel_calls) / sizeof(*kernel_calls); i++)
		if (kernel_calls[i].number == number)
			break;
	if (i == sizeof(kernel_calls) / sizeof(*kernel_calls)) {
		snprintf(o->call, sizeof(o->call), "system call %ld", number);
		return true;
	}
	snprintf(o->call, sizeof(o->call), "%s", kernel_calls[i].name);
	of_argument(o, v, pid, kernel_calls[i].on, a[kernel_calls[i].argument]);
	return true;
}
