/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pylines.h - which line of Python the threads of tasks are at, and whether they compute or wait:
 * sampled, sent as LINES messages.
 *
 * While tasks run, each of their threads is sampled CREMA_SAMPLE_HZ times a second at most, at
 * irregular times, and seldom enough that sampling takes PYLINES_SHARE of a core at most. A sample
 * of a thread stands for the time since the previous sample: its state in /proc, what the shim's
 * word shows that it waits for, and its Python stack, read from outside. The worker does no work
 * for it. A thread that can run computes or waits for a core: the row includes its clocks, which
 * give the proportion. A task that began after a gap of more than the usual length counts from its
 * start.
 *
 * For each thread that waits for the interpreter lock, the row of the stack that holds the lock
 * gets the time, if the lock has not changed hands between the samples of both threads
 * (pylines_holder.c). What holds it outside of tasks has a separate row, without samples. The
 * thread that owns a pthread mutex or a lock of Python's is known, too, for records of long waits.
 *
 * What tasks read and received is sampled by the byte, and each long wait is counted, by the shim
 * with the thread's stack; here these are added to the same rows (pylines_bytes.c), and so are the
 * large allocations that the shim records (pylines_large.c).
 *
 * Rows are cumulative and sent when they changed: each PYLINES_SEND_NS while tasks run, and once
 * when none does. When the table is full all of it is sent and a new one begins. One thread.
 */
#ifndef CREMA_AGENT_PYLINES_H
#define CREMA_AGENT_PYLINES_H

#include "agent/outbox.h"
#include "agent/py_lock.h"
#include "agent/pyline_table.h"
#include "common/view.h"

#define PYLINES_HZ 100u
#define PYLINES_SHARE 0.005 /* of a core */
#define PYLINES_IDLE_NS                                                                            \
	UINT64_C(1000000000) /* after this time without a task samples wait for the agent */
#define PYLINES_GAP_NS UINT64_C(1000000000) /* what one sample stands for at most */
#define PYLINES_QUIET_NS                                                                           \
	UINT64_C(500000000) /* after this time without a task everything new is sent */
#define PYLINES_FULL_NS UINT64_C(1000000000) /* between two tables */
#define PYLINES_SEND_NS UINT64_C(10000000000)

#define PYLINES_HELD 16u /* latest samples of each thread that waited for a lock */

/* Who held it in one of these. */
struct pylines_held {
	uint64_t boot_ns;
	uint32_t table; /* low bits */
	uint32_t row;	/* number in that table + 1; 0: unknown */
	uint32_t wait;	/* class: CREMA_T_gil_wait or CREMA_T_lock_wait */
};

/* The lock of Python's for which a thread waits. */
struct pylines_lock {
	bool known; /* `lock` is that of the present call */
	struct py_lock lock;
	uint32_t holder;      /* index of its block + 1; 0: not found */
	uint64_t search_look; /* the sample in which it is searched for again */
	uint64_t looks;	      /* from that search to the next one */
};

/* State of one thread block's thread. */
struct pylines_thread {
	uint32_t tid; /* 0: none */
	int stat_fd, sched_fd;
	uint64_t attempt, look;	      /* of its last sample */
	uint64_t cpu_ns, runqueue_ns; /* its clocks then */
	uint64_t ran_ns, queued_ns;   /* since it was last seen able to run */
	uint64_t word, word_start;    /* the call whose class this is */
	uint8_t class;
	struct pyline_row *row; /* of the sample `row_look` */
	uint64_t row_look;
	struct pylines_held held[PYLINES_HELD];
	uint32_t held_next;
	struct pylines_lock lock;
};

/* A thread that waits for the interpreter lock, a pthread mutex or a lock of Python's, and who held
 * it then. */
struct pylines_waiter {
	uint64_t object, ns;	/* object: the condition variable, the mutex, or the semaphore */
	struct py_gil gil;	/* of other locks only the holder */
	uint32_t span, thread;	/* thread: index of its block */
	uint32_t wait;		/* class */
	uint32_t call;		/* CREMA_CALL_... */
	uint32_t owner;		/* tid; 0: of the interpreter lock, or unknown */
	uint64_t lock;		/* address of the lock of Python's; 0: it waits for another one */
	struct pyline_row *row; /* of the holder; NULL: it was not the same all the time */
};

struct pylines {
	const struct view *view;
	struct outbox *out;
	int pid;
	unsigned int hz;	    /* 0: off */
	const char *state;	    /* on the wire; changes are sent */
	const char *sent_state;	    /* NULL: none yet */
	struct pyline_table *table; /* NULL: not yet */
	uint64_t table_id;
	struct py_process process;
	struct pylines_thread thread[CREMA_SHM_THREADS];
	struct pylines_waiter waiter[CREMA_SHM_THREADS]; /* of this sample */
	size_t waiters;
	uint64_t search_look; /* the latest sample with a search for the holder of a lock */
	uint64_t random;
	uint64_t look;				     /* number of samples so far */
	uint64_t last_ns, next_ns, busy_ns, sent_ns; /* CLOCK_MONOTONIC; busy: a task ran */
	uint64_t cost_ns;			     /* mean of the latest with tasks */
	uint64_t cpu_ns;			     /* of all samples with tasks */
	uint64_t interval_ns;			     /* the present mean */
	uint32_t byte_idle[CREMA_SHM_BYTE_STACKS];   /* samples in which a row was unused */
	uint64_t large_seq;			     /* of the numbers that were read last */
	uint64_t large_number[CREMA_LARGE_ROWS];     /* of the rows whose stacks are known */
	struct crema_py_frame large_frame[CREMA_LARGE_ROWS][CREMA_BYTE_DEPTH];
	bool clocks; /* run queue separated from the CPU */
	bool unsent;
};

void pylines_init(struct pylines *l, const struct view *v, struct outbox *out, int pid);
void pylines_release(struct pylines *l);
/* Time of the next sample, CLOCK_MONOTONIC; UINT64_MAX: in the agent's next round. */
uint64_t pylines_due(const struct pylines *l);
void pylines_look(struct pylines *l, uint64_t mono_ns);
/* Part of a sample: the row of the thread's stack, and whether inner frames are missing. */
struct pyline_row *pylines_row(struct pylines *l, struct pyline_row *like, uint64_t python,
			       uint32_t tid, bool *cut);
/* A call that waits for a semaphore, as Python's locks do. */
bool pylines_is_semaphore(uint32_t call);
/* Part of a sample: a thread waits; and once all threads were sampled. */
void pylines_waits(struct pylines *l, const struct pylines_waiter *waiter);
void pylines_blame(struct pylines *l);
/* The waits of one class of a thread in some time. */
struct pylines_wait {
	uint32_t tid, wait;
	uint64_t from_boot_ns, to_boot_ns;
};

/* The row that held the lock in most samples of it, in how many, and of how many. NULL: unknown. */
struct pyline_row *pylines_held_by(struct pylines *l, const struct pylines_wait *wait,
				   uint32_t *samples, uint32_t *of);
/* The row of a stack that the shim recorded. like->why: the reason if there are no frames. */
struct pyline_row *pylines_recorded(struct pylines *l, struct pyline_row *like,
				    const struct crema_py_frame *recorded, size_t n);
/* Takes the shim's large allocations. The worker may have ended. */
void pylines_large(struct pylines *l);
/* Takes the shim's samples by the byte and its long waits. The worker may have ended. */
void pylines_bytes(struct pylines *l);
/* The row of the shim's stack with that hash. NULL: it has no places. */
struct pyline_row *pylines_named(struct pylines *l, uint64_t hash);
/* Sends this row if it was not yet, for a message that refers to it. */
void pylines_tell(struct pylines *l, struct pyline_row *r, uint64_t boot_ns);
/* All rows are sent again. */
void pylines_forget(struct pylines *l);
/* Sends what there is to send. `last`: the worker has ended; sends all that was not sent. */
void pylines_send(struct pylines *l, bool last, uint64_t mono_ns, uint64_t boot_ns);

#endif
