/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * procfs.h - small readers of /proc and cgroup files.
 *
 * Each opens, reads and closes; false or -errno if the kernel does not report the value, and then
 * the outputs are untouched. No memory is allocated, except by procfs_slurp_all().
 *
 * The shim has its own readers (shim/count): it may not call a libc function that a program can
 * interpose, and keeps descriptors open for what it reads often.
 */
#ifndef CREMA_COMMON_PROCFS_H
#define CREMA_COMMON_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/pack.h"

struct procfs_stat {
	char state;
	bool exiting; /* its main thread is exiting */
	int ppid;
	uint64_t threads;
	uint64_t start_ticks;
};

/* Reads a file into buf and ends it with a NUL: its length or -errno. */
ssize_t procfs_slurp(char *buf, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Reads all of a file, 8 MiB at most, and adds two NULs: 0 or -errno. */
int procfs_slurp_all(struct buf *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* In a line of stat: the letter of the state; 0: there is none. */
char procfs_state_in(const char *stat);
/* In the text of schedstat. */
bool procfs_schedstat_in(const char *schedstat, uint64_t *cpu_ns, uint64_t *runqueue_ns);
/* The number after `name` at the beginning of a line of text. */
bool procfs_number(const char *text, const char *name, uint64_t *out);
/* The same as a msgpack pair: key, number * scale (or nil). text NULL: nil. */
void procfs_pack(msgpack_packer *pk, const char *key, const char *text, const char *name,
		 uint64_t scale);
/* tid 0: of the whole process; else of that thread of it. */
int procfs_stat(int pid, int tid, struct procfs_stat *out);
/* True if it ended with all its threads, or its pid now belongs to another process. */
bool procfs_ended(int pid, uint64_t start_ticks);
bool procfs_rss(int pid, uint64_t *bytes);
/* tid 0: of the whole process. */
bool procfs_io(int pid, int tid, uint64_t *read_bytes, uint64_t *write_bytes);
bool procfs_schedstat(int pid, int tid, uint64_t *cpu_ns, uint64_t *runqueue_ns);
/* CPU time of a whole process. */
bool procfs_cpu(int pid, uint64_t *cpu_ns);
/*
 * The file that counts the out-of-memory kills of a process's memory cgroup: memory.oom_control of
 * version 1, memory.events of version 2. It can still be read after the process has ended.
 */
bool procfs_oom_file(int pid, char *out, size_t size);
bool procfs_oom_kills(const char *file, uint64_t *kills);

#endif
