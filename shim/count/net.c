/* SPDX-License-Identifier: BSD-3-Clause */
/* net.c - owners of sockets. */
#include "shim/count/net.h"

#include "shim/count/byte_sample.h"
#include "shim/count/exchange.h"
#include "shim/count/fd.h"
#include "shim/count/http2.h"
#include "shim/count/loop.h"
#include "shim/count/task.h"
#include "shim/count/timer.h"

#define MANAGED (1ull << 63) /* an asyncio transport: only its write() binds */
#define COMM (1ull << 62)    /* Dask's own */
#define SHARED (1ull << 61)  /* serves several tasks at once */
#define NAME (SHARED - 1)

/* 0, or flags and the name of a task; private memory, a word per descriptor. */
static uint64_t owners[FD_TABLE];
/* Numbers of the stacks that requested what a managed descriptor receives (byte_sample.h). */
static uint32_t stacks[FD_TABLE];

void net_forget(int fd)
{
	if (!LOAD(&owners[fd]))
		return;
	STORE(&owners[fd], 0);
	STORE(&stacks[fd], 0);
}

void net_send_binds(int fd)
{
	uint32_t owner = segment_owner();
	uint64_t name = owner == OWNER_NONE ? 0 : task_name(owner), have;

	if ((unsigned int)fd >= FD_TABLE)
		return;
	have = LOAD(&owners[fd]);
	if (!(have & (MANAGED | COMM | SHARED)) && have != name)
		STORE(&owners[fd], name);
}

/* From now on it is unknown what that task receives and sends there. */
static void shares(uint64_t name)
{
	task_counts_unknown(name, CREMA_NETWORK_COUNTS);
}

static uint64_t own_name(const struct crema_thread *t)
{
	return t && t->owner != OWNER_NONE ? task_name(t->owner) : 0;
}

void net_bind(int fd, uint64_t name, uint32_t stack)
{
	uint64_t word = (unsigned int)fd < FD_TABLE ? LOAD(&owners[fd]) : COMM;

	if (word & SHARED)
		shares(name);
	if (word & (COMM | SHARED))
		return;
	STORE(&stacks[fd], stack);
	STORE(&owners[fd], MANAGED | name);
	loop_wrote(fd, name);
}

int net_is_bound(int fd)
{
	return (unsigned int)fd < FD_TABLE && LOAD(&owners[fd]) & MANAGED;
}

void net_mark_shared(int fd)
{
	if ((unsigned int)fd >= FD_TABLE || LOAD(&owners[fd]) & COMM)
		return;
	STORE(&owners[fd], SHARED);
	exchange_leave_out(fd);
}

void net_mark_comm(int fd)
{
	if ((unsigned int)fd >= FD_TABLE)
		return;
	STORE(&owners[fd], COMM);
	exchange_leave_out(fd);
}

/* Another thread's task: directly into its slot. */
static void count_elsewhere(uint64_t name, int id, uint64_t bytes)
{
	uint32_t owner = task_ref_name(name);

	task_add(owner, id, bytes); /* unattributed: its record is already gone */
	task_unref(owner);
}

void net_unseen(int fd)
{
	if ((unsigned int)fd < FD_TABLE)
		task_unseen_name(LOAD(&owners[fd]) & NAME);
}

static void count(int fd, int id, int comm_id, uint64_t bytes)
{
	struct crema_thread *t = thread_self();
	uint64_t word = (unsigned int)fd < FD_TABLE ? LOAD(&owners[fd]) : 0;
	uint64_t mine = own_name(t);

	if (word & SHARED && mine)
		shares(mine);
	if (!t || word & SHARED || ((word & NAME) && (word & NAME) != mine))
		count_elsewhere(word & NAME, id, bytes);
	else
		t->seg.count[word & COMM ? comm_id : id] += bytes;
}

/* word: the owner of fd. */
static void sample(int fd, uint64_t word, uint64_t bytes)
{
	struct crema_thread *t = thread_self();
	struct byte_request of = {word & NAME, 0};

	if (!t || (unsigned int)fd >= FD_TABLE || word & (COMM | SHARED))
		return;
	of.stack = LOAD(&stacks[fd]);
	byte_sample(t, CREMA_LINES_B_received, bytes, of.task ? &of : NULL);
}

static int is_for_anyone(void)
{
	return thread_is_native() && segment_owner() == OWNER_NONE;
}

void net_received(int fd, uint64_t bytes)
{
	uint64_t word = (unsigned int)fd < FD_TABLE ? LOAD(&owners[fd]) : 0;

	if (word & MANAGED)
		loop_received(fd, word & NAME, bytes);
	else if (word & SHARED)
		ADD(&crema_shm->totals.shared_network_read_bytes, bytes);
	if (unlikely(exchange_received(fd, bytes)) && is_for_anyone())
		net_native_asks();
	timer_answered(fd, bytes);
	count(fd, CREMA_C_network_read_bytes, CREMA_C_comm_read_bytes, bytes);
	sample(fd, word, bytes);
}

static const char *native_note = "a library requests data in native threads of its own: what "
				 "tasks that run meanwhile receive and send is unknown";
static int grpc_tells;

void net_native_note(const char *text)
{
	STORE(&native_note, text);
}

void net_grpc_tells(void)
{
	STORE(&grpc_tells, 1);
}

void net_native_asks(void)
{
	static uint64_t marked; /* all tasks that had begun by then */
	static uint32_t told;	/* in that epoch */
	uint64_t begun = tasks_begun();

	if (LOAD(&marked) != begun) {
		tasks_running_cannot_count(CREMA_NETWORK_COUNTS, 0);
		STORE(&marked, begun);
	}
	if (LOAD(&told) == shim_epoch)
		return;
	STORE(&told, shim_epoch);
	shim_note(LOAD(&native_note));
}

/* 1 if what is sent on fd, whose owner is that, may be a request for any task. */
static int is_natives(int fd, uint64_t word, struct sent sent)
{
	if (likely(word & ~SHARED) || !is_for_anyone())
		return 0;
	return word ? !LOAD(&grpc_tells) : exchange_is_clients(fd, sent);
}

void net_sent(int fd, uint64_t bytes, struct sent sent, uint64_t start)
{
	uint64_t word = (unsigned int)fd < FD_TABLE ? LOAD(&owners[fd]) : 0;

	timer_asked(fd);
	if (!(word & (COMM | SHARED)) && http2_begins(sent)) {
		net_mark_shared(fd);
		word = (unsigned int)fd < FD_TABLE ? LOAD(&owners[fd]) : 0;
	}
	if (word & SHARED)
		ADD(&crema_shm->totals.shared_network_write_bytes, bytes);
	else if (!(word & COMM))
		exchange_sent(fd, word & NAME, sent, bytes, start);
	if (is_natives(fd, word, sent))
		net_native_asks();
	count(fd, CREMA_C_network_write_bytes, CREMA_C_comm_write_bytes, bytes);
}
