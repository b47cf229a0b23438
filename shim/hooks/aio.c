/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aio.c - POSIX aio, as XRootD's client uses it for local files: libc reads and writes in threads
 * of its own, by calls that nobody else sees (contract/unseen_io.h). Each request shows its task.
 */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>

#include "unseen_io.h"
#include "shim/count/task.h"
#include "shim/count/thread.h"
#include "shim/libc/real.h"
#include "shim/shim.h"

#define EXPORT __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wpedantic"

/* A request of this thread: for its task, or, from a library's own thread, for any that runs. */
static void asked(void)
{
	uint32_t owner = segment_owner();

	crema_unseen_in_process(crema_shm, CREMA_UNSEEN_AIO);
	if (owner == OWNER_NONE)
		tasks_running_cannot_count(CREMA_FILE_COUNTS, 0);
	else
		task_counts_unknown(task_name(owner), CREMA_FILE_COUNTS);
}

/* libc before 2.34 has them in librt, which may be loaded late: each is looked up at its first
 * call. */
#define WRAP_AIO(name, params, args)                                                               \
	EXPORT int name params                                                                     \
	{                                                                                          \
		static int(*behind) params;                                                        \
		int(*real_one) params = LOAD(&behind);                                             \
		if (unlikely(!real_one)) {                                                         \
			int saved = errno;                                                         \
			real_one = (int(*) params)real_find(#name, NULL);                          \
			STORE(&behind, real_one);                                                  \
			errno = saved;                                                             \
		}                                                                                  \
		if (unlikely(!real_one)) {                                                         \
			errno = ENOSYS;                                                            \
			return -1;                                                                 \
		}                                                                                  \
		if (shim_armed() && shim_same_process())                                           \
			asked();                                                                   \
		return real_one args;                                                              \
	}

WRAP_AIO(aio_read, (struct aiocb * a), (a))
WRAP_AIO(aio_read64, (struct aiocb64 * a), (a))
WRAP_AIO(aio_write, (struct aiocb * a), (a))
WRAP_AIO(aio_write64, (struct aiocb64 * a), (a))
WRAP_AIO(lio_listio, (int m, struct aiocb *const *l, int n, struct sigevent *s), (m, l, n, s))
WRAP_AIO(lio_listio64, (int m, struct aiocb64 *const *l, int n, struct sigevent *s), (m, l, n, s))
