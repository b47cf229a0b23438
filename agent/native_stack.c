/* SPDX-License-Identifier: BSD-3-Clause */
/* native_stack.c - stacks of waiting threads, by libunwind from outside, in a child. */
#include "agent/native_stack.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/doing_object.h"
#include "agent/modules.h"
#include "common/procfs.h"
#include "common/symbols.h"
#include "common/utf8.h"

/*
 * The part of libunwind's interface for other processes that is used here; the library is opened by
 * name, as in the shim, so that nothing is needed to build or start the agent. Its names contain
 * the machine's.
 */
#if defined(__x86_64__)
#define MACHINE "x86_64"
enum { REG_STACK = 7, REG_CODE = 16 };
#elif defined(__aarch64__)
#define MACHINE "aarch64"
enum { REG_STACK = 31, REG_CODE = 32 };
#endif
enum { UNKNOWN_REGISTER = -3, UNREADABLE = -1 };

/* Newer than the headers of old machines. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define MOST_FDS 65536

struct accessors {
	int (*find_proc_info)(void *space, uint64_t at, void *info, int wanted, void *arg);
	void (*put_unwind_info)(void *space, void *info, void *arg);
	int (*get_dyn_info_list_addr)(void *space, uint64_t *list, void *arg);
	int (*access_mem)(void *space, uint64_t at, uint64_t *value, int write, void *arg);
	int (*access_reg)(void *space, int reg, uint64_t *value, int write, void *arg);
	int (*access_fpreg)(void *space, int reg, void *value, int write, void *arg);
	int (*resume)(void *space, void *cursor, void *arg);
	int (*get_proc_name)(void *space, uint64_t at, char *to, size_t size, uint64_t *offset,
			     void *arg);
	void *later[8]; /* that newer versions have */
};

struct unwinder {
	void *space;
	void *(*create)(int pid);
	void (*destroy)(void *target);
	int (*init_remote)(void *cursor, void *space, void *target);
	int (*step)(void *cursor);
	int (*get_reg)(void *cursor, int reg, uint64_t *value);
	int (*get_proc_info)(void *cursor, void *info);
};

/* Larger than those of any version and machine. */
struct cursor {
	uint64_t opaque[1024];
};
struct proc_info {
	uint64_t opaque[64];
};

/* The accessors' argument is libunwind's own, so what they read has its place here. */
static struct {
	int pid;
	uint64_t code, stack;
} target;

static int read_memory(void *space, uint64_t at, uint64_t *value, int write, void *arg)
{
	(void)space;
	(void)arg;
	return !write && doing_memory(target.pid, at, value, sizeof(*value)) == sizeof(*value)
		       ? 0
		       : UNREADABLE;
}

static int read_register(void *space, int reg, uint64_t *value, int write, void *arg)
{
	(void)space;
	(void)arg;
	if (write || (reg != REG_CODE && reg != REG_STACK))
		return UNKNOWN_REGISTER;
	*value = reg == REG_CODE ? target.code : target.stack;
	return 0;
}

static int no_fp_register(void *space, int reg, void *value, int write, void *arg)
{
	(void)space;
	(void)reg;
	(void)value;
	(void)write;
	(void)arg;
	return UNKNOWN_REGISTER;
}

static int no_resume(void *space, void *cursor, void *arg)
{
	(void)space;
	(void)cursor;
	(void)arg;
	return UNREADABLE;
}

static bool open_unwinder(struct unwinder *u)
{
	/* The second library takes functions of the first. */
	void *walk = dlopen("libunwind-" MACHINE ".so.8", RTLD_NOW | RTLD_GLOBAL);
	void *find = walk ? dlopen("libunwind-ptrace.so.0", RTLD_NOW | RTLD_LOCAL) : NULL;
	void *(*space)(struct accessors *, int);
	struct accessors a = {.access_mem = read_memory,
			      .access_reg = read_register,
			      .access_fpreg = no_fp_register,
			      .resume = no_resume};

	if (!find)
		return false;
	*(void **)&a.find_proc_info = dlsym(find, "_UPT_find_proc_info");
	*(void **)&a.put_unwind_info = dlsym(find, "_UPT_put_unwind_info");
	*(void **)&a.get_dyn_info_list_addr = dlsym(find, "_UPT_get_dyn_info_list_addr");
	*(void **)&a.get_proc_name = dlsym(find, "_UPT_get_proc_name");
	*(void **)&u->create = dlsym(find, "_UPT_create");
	*(void **)&u->destroy = dlsym(find, "_UPT_destroy");
	*(void **)&space = dlsym(walk, "_U" MACHINE "_create_addr_space");
	*(void **)&u->init_remote = dlsym(walk, "_U" MACHINE "_init_remote");
	*(void **)&u->step = dlsym(walk, "_U" MACHINE "_step");
	*(void **)&u->get_reg = dlsym(walk, "_U" MACHINE "_get_reg");
	*(void **)&u->get_proc_info = dlsym(walk, "_U" MACHINE "_get_proc_info");
	if (!a.find_proc_info || !a.put_unwind_info || !a.get_dyn_info_list_addr ||
	    !a.get_proc_name || !u->create || !u->destroy || !space || !u->init_remote ||
	    !u->step || !u->get_reg || !u->get_proc_info)
		return false;
	u->space = space(&a, 0);
	return u->space;
}

/* What a child has read of the worker; it is never released. */
struct reading {
	int pid;
	struct unwinder unwinder;
	struct modules modules;
	struct library {
		struct library *next;
		const char *path;
		struct symbols symbols;
	} * libraries;
};

static const struct symbols *symbols_of(struct reading *r, const struct module *m)
{
	char path[4200];
	struct library *l;

	for (l = r->libraries; l; l = l->next)
		if (!strcmp(l->path, m->path))
			return &l->symbols;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	/* Through its own root, in case it runs in a container. A file that was replaced is called
	 * "(deleted)". */
	snprintf(path, sizeof(path), "/proc/%d/root%s", r->pid, m->path);
	symbols_open_any(&l->symbols, path);
	l->path = m->path;
	l->next = r->libraries;
	r->libraries = l;
	return &l->symbols;
}

/* The functions in which CPython runs Python's frames: from here on its own stack tells more. */
static bool is_interpreter(const char *name)
{
	return name &&
	       (!strncmp(name, "_PyEval_EvalFrame", 17) || !strncmp(name, "_TAIL_CALL_", 11));
}

/* False: from here on the frames are Python's. caller: the address is one after a call. */
static bool take_frame(struct reading *r, struct native_stack *s, uint64_t address, bool caller)
{
	uint64_t place;
	const struct module *m = modules_find(&r->modules, address - caller, &place);
	const char *base = m ? strrchr(m->path, '/') + 1 : NULL, *name = NULL;
	const struct symbols *symbols = m ? symbols_of(r, m) : NULL;
	char plain[NATIVE_FRAME_BYTES], *to;

	if (m && !strncmp(base, "libcrema.so", 11))
		return true;
	if (symbols)
		name = symbols_name(symbols, place);
	if (is_interpreter(name) || s->frames == NATIVE_FRAMES)
		return false;
	to = s->frame[s->frames++];
	if (name)
		snprintf(to, NATIVE_FRAME_BYTES, "%.90s %.60s",
			 symbols_plain(name, plain, sizeof(plain)), base);
	else if (m)
		snprintf(to, NATIVE_FRAME_BYTES, "%.100s+0x%" PRIx64, base, place);
	else
		snprintf(to, NATIVE_FRAME_BYTES, "0x%" PRIx64, address);
	to[utf8_whole(to, strlen(to))] = '\0';
	return true;
}

/* Goes on to the caller. 1; 0: there is none; negative: it is unknown. */
static int step(const struct unwinder *u, struct cursor *cursor, uint64_t *code, uint64_t *stack)
{
	static struct proc_info info;
	uint64_t before = *stack;
	int rc;

	/* Without a table libunwind would guess the caller. */
	if (u->get_proc_info(cursor, &info))
		return -1;
	rc = u->step(cursor);
	if (rc <= 0)
		return rc;
	if (u->get_reg(cursor, REG_CODE, code) || u->get_reg(cursor, REG_STACK, stack))
		return -1;
	return *code && *stack > before ? 1 : -1;
}

static void walk(struct reading *r, void *process, uint64_t entry, struct native_stack *s)
{
	const struct unwinder *u = &r->unwinder;
	static struct cursor cursor;
	uint64_t code = target.code, stack = target.stack, at, from;
	int rc = 1;

	if (u->init_remote(&cursor, u->space, process))
		return;
	s->known = true;
	for (bool caller = false; rc > 0; caller = true) {
		at = code;
		from = stack;
		rc = step(u, &cursor, &code, &stack);
		if (rc > 0 && entry >= from && entry < stack)
			return;
		if (!take_frame(r, s, at, caller))
			return;
	}
	if (rc < 0 && s->frames < NATIVE_FRAMES)
		strcpy(s->frame[s->frames++], "?");
}

/* False: it runs, or may not be seen. */
static bool read_registers(int pid, uint32_t tid, char *text, size_t size)
{
	const char *code, *stack;

	if (procfs_slurp(text, size, "/proc/%d/task/%" PRIu32 "/syscall", pid, tid) <= 0)
		return false;
	code = strrchr(text, ' ');
	if (!code)
		return false;
	for (stack = code; stack > text && stack[-1] != ' ';)
		stack--;
	target.pid = pid;
	target.code = strtoull(code, NULL, 16);
	target.stack = strtoull(stack, NULL, 16);
	return stack > text && target.code && target.stack;
}

static void read_stack(struct reading *r, const struct native_want *want, struct native_stack *s)
{
	char before[256], after[256];
	void *process;

	if (!read_registers(r->pid, want->tid, before, sizeof(before)))
		return;
	process = r->unwinder.create(r->pid);
	if (!process)
		return;
	walk(r, process, want->entry, s);
	r->unwinder.destroy(process);
	if (!read_registers(r->pid, want->tid, after, sizeof(after)) || strcmp(before, after))
		memset(s, 0, sizeof(*s));
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Nothing of the agent may live on in it: neither locks and connections, nor blocked signals. */
static void become_child(pid_t agent, int to)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != agent)
		_exit(1);
	if (syscall(SYS_close_range, (unsigned int)to + 1, ~0u, 0) ||
	    (to && syscall(SYS_close_range, 0, (unsigned int)to - 1, 0)))
		for (int fd = 0; fd < MOST_FDS; fd++)
			if (fd != to)
				close(fd);
	signal(SIGALRM, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	alarm(NATIVE_ROUND_SECONDS);
}

static void read_all(const struct native *n, int to)
{
	static struct reading r;
	static struct native_found found;
	bool can;

	r.pid = n->pid;
	r.modules.no_ids = true;
	can = open_unwinder(&r.unwinder) && !modules_read(&r.modules, n->pid);
	for (size_t i = 0; i < n->reading; i++) {
		memset(&found, 0, sizeof(found));
		if (can)
			read_stack(&r, &n->want[i], &found.stack);
		found.cpu_ns = cpu_ns();
		if (write(to, &found, sizeof(found)) != sizeof(found))
			break;
	}
}

static void start(struct native *n, uint64_t boot_ns)
{
	pid_t agent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return;
	n->reading = n->wanted;
	n->found = 0;
	n->child = fork();
	if (!n->child) {
		become_child(agent, ends[1]);
		read_all(n, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	if (n->child < 0) {
		n->child = 0;
		close(ends[0]);
		return;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	n->from = ends[0];
	n->wanted = 0;
	n->began_boot_ns = boot_ns;
	n->charged_ns = 0;
}

static void charge(struct native *n, uint64_t cpu_ns)
{
	uint64_t more = cpu_ns > n->charged_ns ? cpu_ns - n->charged_ns : 0;

	n->charged_ns += more;
	n->credit_ns -= more < n->credit_ns ? more : n->credit_ns;
}

/* It has written all that it will write. What it did not get to is unknown. */
static void end(struct native *n)
{
	if (waitpid(n->child, NULL, WNOHANG) == 0)
		return;
	close(n->from);
	n->child = 0;
	for (; n->found < n->reading; n->found++) {
		memset(&n->result[n->found], 0, sizeof(*n->result));
		n->result[n->found].ticket = n->want[n->found].ticket;
	}
}

static void take_results(struct native *n, uint64_t boot_ns)
{
	ssize_t got = -1;

	while (n->found < n->reading) {
		struct native_found *to = &n->result[n->found];

		got = read(n->from, to, sizeof(*to));
		if (got != (ssize_t)sizeof(*to))
			break;
		/* whatever it wrote: its result is the next one of those that were wanted */
		to->ticket = n->want[n->found++].ticket;
		charge(n, to->cpu_ns);
	}
	if (boot_ns > n->began_boot_ns + (NATIVE_ROUND_SECONDS + 1) * UINT64_C(1000000000)) {
		kill(n->child, SIGKILL); /* it ends once its file server lets it */
		charge(n, NATIVE_BURST_NS);
	}
	if (got == 0 || n->found == n->reading)
		end(n);
}

void native_turn(struct native *n, uint64_t boot_ns)
{
	if (n->child)
		take_results(n, boot_ns);
	if (n->credit_boot_ns && boot_ns > n->credit_boot_ns)
		n->credit_ns += (uint64_t)((double)(boot_ns - n->credit_boot_ns) * NATIVE_SHARE);
	if (n->credit_ns > NATIVE_BURST_NS)
		n->credit_ns = NATIVE_BURST_NS;
	n->credit_boot_ns = boot_ns;
	if (!n->child && n->wanted && n->credit_ns)
		start(n, boot_ns);
}

uint32_t native_want(struct native *n, uint32_t tid, uint64_t entry)
{
	/* a child's results are told from each other by `want` until it has ended */
	if (n->child || n->wanted == NATIVE_ROUND)
		return 0;
	if (!++n->tickets)
		n->tickets = 1;
	n->want[n->wanted++] = (struct native_want){tid, n->tickets, entry};
	return n->tickets;
}

bool native_take(const struct native *n, uint32_t ticket, struct native_stack *s)
{
	for (size_t i = 0; i < n->found; i++) {
		if (n->result[i].ticket != ticket)
			continue;
		*s = n->result[i].stack;
		return true;
	}
	return false;
}

void native_init(struct native *n, int pid)
{
	memset(n, 0, sizeof(*n));
	n->pid = pid;
	n->credit_ns = NATIVE_BURST_NS;
}

void native_release(struct native *n)
{
	if (!n->child)
		return;
	kill(n->child, SIGKILL);
	close(n->from);
	waitpid(n->child, NULL, WNOHANG);
	n->child = 0;
}
