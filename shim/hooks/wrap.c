/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wrap.c - the interposed functions.
 *
 * While the process is not armed, a wrapper makes only the real call. Otherwise its family's begin
 * and end run around it, and errno is as the real call left it. Nothing here may touch shared state
 * when a vfork child runs it: the DROP and OPEN families compare the process first.
 */
#define _GNU_SOURCE
#include "shim/libc/real.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "shim/count/call.h"
#include "shim/hooks/bootstrap.h"
#include "shim/count/exchange.h"
#include "shim/count/extent.h"
#include "shim/count/op.h"
#include "shim/shim.h"
#include "shim/python/notify.h"
#include "shim/count/stream.h"
#include "shim/count/timer.h"

#define EXPORT __attribute__((visibility("default")))

/* glibc's headers mark some of these parameters nonnull or the functions noreturn: the definitions
 * below only pass them on. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wpedantic"

static void duplicated(int fd, int copy)
{
	if (fd == copy)
		return;
	notify_fd_opened(copy);
	position_shared(fd);
	position_shared(copy);
}

#define WRAP_OTHER(ret, name, params, args, fd, size)
#define WRAP_FIND(ret, name, params, args, fd, size)

#define FIRST(first, ...) first

/* The real call, published to the agent while it lasts. */
#define TOLD(op, name, args, object)                                                               \
	do {                                                                                       \
		if ((op)->t)                                                                       \
			call_begin((op)->t, CREMA_CALL_##name, (uint64_t)(object), (op)->start);   \
		result = real.name args;                                                           \
		if ((op)->t)                                                                       \
			call_end((op)->t);                                                         \
	} while (0)

/* A call that is counted: its family's begin sets op.t if the end is needed. */
#define WRAP_COUNTED(ret, name, params, args, fd, begin, end)                                      \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		struct op op;                                                                      \
		ret result;                                                                        \
		if (likely(!shim_armed()))                                                         \
			return real.name args;                                                     \
		begin;                                                                             \
		TOLD(&op, name, args, fd);                                                         \
		if (op.t)                                                                          \
			end;                                                                       \
		return result;                                                                     \
	}

#define WRAP_READ(ret, name, params, args, fd, size)                                               \
	WRAP_COUNTED(ret, name, params, args, fd, read_begin(&op, fd, size),                       \
		     read_end(&op, fd, EXTENT_HERE, result))

#define WRAP_PREAD(ret, name, params, args, fd, size)                                              \
	WRAP_COUNTED(ret, name, params, args, fd, read_begin(&op, fd, size),                       \
		     read_end(&op, fd, o, result))

#define WRAP_WRITE(ret, name, params, args, fd, sent)                                              \
	WRAP_COUNTED(ret, name, params, args, fd, write_begin(&op, fd),                            \
		     write_end(&op, fd, result, result > 0 ? sent : sent_buffer(NULL, 0)))

#define WRAP_FILE(ret, name, params, args, begin, end)                                             \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		struct stream_op op;                                                               \
		ret result;                                                                        \
		if (likely(!shim_armed()))                                                         \
			return real.name args;                                                     \
		begin;                                                                             \
		TOLD(&op.op, name, args, op.fd);                                                   \
		if (op.op.t)                                                                       \
			end;                                                                       \
		return result;                                                                     \
	}

#define WRAP_STREAM(ret, name, params, args, stream, size)                                         \
	WRAP_FILE(ret, name, params, args, stream_begin(&op, stream, size), stream_end(&op))

#define WRAP_FWRITE(ret, name, params, args, stream, bytes)                                        \
	WRAP_FILE(ret, name, params, args, stream_write_begin(&op, stream),                        \
		  stream_write_end(&op, bytes))

#define WRAP_FSEEK(ret, name, params, args, stream, whence)                                        \
	WRAP_FILE(ret, name, params, args, stream_seek_begin(&op, stream, whence),                 \
		  stream_seek_end(&op, result))

#define WRAP_COPY(ret, name, params, args, in, out)                                                \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		struct op from, to;                                                                \
		ret result;                                                                        \
		if (likely(!shim_armed()))                                                         \
			return real.name args;                                                     \
		read_begin(&from, in, SIZE_MAX);                                                   \
		write_begin(&to, out);                                                             \
		TOLD(&from, name, args, in);                                                       \
		if (to.t)                                                                          \
			write_end(&to, out, result, sent_buffer(NULL, 0));                         \
		if (from.t)                                                                        \
			read_end(&from, in, i &&result > 0 ? (int64_t)*i - result : EXTENT_HERE,   \
				 result);                                                          \
		return result;                                                                     \
	}

#define WRAP_ADVISE(ret, name, params, args, fd, size)                                             \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		struct file_owner owner;                                                           \
		ret result;                                                                        \
		if (likely(!shim_armed()))                                                         \
			return real.name args;                                                     \
		advise_begin(&owner, fd);                                                          \
		result = real.name args;                                                           \
		advise_end(&owner);                                                                \
		return result;                                                                     \
	}

/* Peeked bytes will be received again. */
#define WRAP_RECV(ret, name, params, args, fd, flags)                                              \
	WRAP_COUNTED(ret, name, params, args, fd, socket_begin(&op, fd),                           \
		     recv_end(&op, fd, (flags)&MSG_PEEK ? -1 : result))

#define WRAP_SEND(ret, name, params, args, fd, sent)                                               \
	WRAP_COUNTED(ret, name, params, args, fd, send_begin(&op, fd),                             \
		     send_end(&op, fd, result, result > 0 ? sent : sent_buffer(NULL, 0)))

#define WRAP_OPEN(ret, name, params, args, fd, size)                                               \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		ret result = real.name args;                                                       \
		if (shim_armed() && result >= 0 && shim_same_process())                            \
			notify_fd_opened(result);                                                  \
		return result;                                                                     \
	}

#define WRAP_ACCEPT(ret, name, params, args, fd, size)                                             \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		ret result = real.name args;                                                       \
		if (shim_armed() && result >= 0 && shim_same_process()) {                          \
			notify_fd_opened(result);                                                  \
			exchange_leave_out(result);                                                \
		}                                                                                  \
		return result;                                                                     \
	}

#define WRAP_DUP(ret, name, params, args, fd, size)                                                \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		ret result = real.name args;                                                       \
		if (shim_armed() && result >= 0 && shim_same_process())                            \
			duplicated(fd, result);                                                    \
		return result;                                                                     \
	}

#define WRAP_SEEK(ret, name, params, args, fd, size)                                               \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		ret result = real.name args;                                                       \
		if (shim_armed() && result >= 0)                                                   \
			position_set(fd, (uint64_t)result);                                        \
		return result;                                                                     \
	}

#define WRAP_DROP(ret, name, params, args, fd, size)                                               \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		if (shim_armed() && shim_same_process())                                           \
			notify_fd_closed(fd);                                                      \
		return real.name args;                                                             \
	}

#define WRAP_MAP(ret, name, params, args, fd, size)                                                \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		ret result = real.name args;                                                       \
		if (unlikely(shim_armed() && fd >= 0 && result != (ret)-1)) {                      \
			int saved = errno;                                                         \
			map_end(fd, size, p);                                                      \
			errno = saved;                                                             \
		}                                                                                  \
		return result;                                                                     \
	}

#define WRAP_WAITING(ret, name, params, args, begin, object, end)                                  \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		struct op op;                                                                      \
		int saved;                                                                         \
		ret result;                                                                        \
		if (likely(!shim_armed()) || !wait_matters())                                      \
			return real.name args;                                                     \
		begin;                                                                             \
		TOLD(&op, name, args, object);                                                     \
		if (op.t) {                                                                        \
			saved = errno;                                                             \
			end;                                                                       \
			errno = saved;                                                             \
		}                                                                                  \
		return result;                                                                     \
	}

#define WRAP_BLOCKING(ret, name, params, args, class, object, end)                                 \
	WRAP_WAITING(ret, name, params, args, block_begin(&op, class), object, end)

#define WRAP_BLOCK(ret, name, params, args, class, object)                                         \
	WRAP_BLOCKING(ret, name, params, args, CREMA_T_##class, object, wait_end(&op, 0);          \
		      if (CREMA_T_##class == CREMA_T_storage_wait) sync_count(&op))

#define WRAP_LOOKUP(ret, name, params, args, host, size)                                           \
	WRAP_WAITING(ret, name, params, args, lookup_begin(&op), (uintptr_t)(host),                \
		     lookup_end(&op, host))

#define WRAP_CONNECT(ret, name, params, args, fd, size)                                            \
	WRAP_BLOCKING(ret, name, params, args, CREMA_T_network_wait, fd,                           \
		      if (result && saved == EINPROGRESS) timer_asked(fd);                         \
		      wait_end(&op, 0))

/* The program's arguments are read only after the kernel has read them. */
#define WRAP_POLL(ret, name, params, args, any, class)                                             \
	WRAP_BLOCKING(ret, name, params, args, (any) ? CREMA_T_network_wait : CREMA_T_sleep,       \
		      (uintptr_t)(FIRST args), poll_end(&op, result, result >= 0 ? (class) : -1))

#define WRAP_WAIT(ret, name, params, args, object, size)                                           \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		struct op op;                                                                      \
		ret result;                                                                        \
		if (likely(!shim_armed()))                                                         \
			return real.name args;                                                     \
		wait_begin(&op, object);                                                           \
		TOLD(&op, name, args, (uintptr_t)(object));                                        \
		if (op.t)                                                                          \
			wait_end_woken(&op, result);                                               \
		return result;                                                                     \
	}

#define HOOK(family, ret, name, params, args, fd, size)                                            \
	WRAP_##family(ret, name, params, args, fd, size)
#include "hooks.def"
#undef HOOK

/* The calling thread, if it waits in open() (for a FIFO, a file server) for a task. */
static struct crema_thread *opens(enum crema_call call, const char *path)
{
	struct crema_thread *t = shim_armed() ? thread_block : NULL;

	if (!t || t->owner == OWNER_NONE)
		return NULL;
	call_begin(t, call, (uintptr_t)path, ticks());
	return t;
}

#define WRAP_VARIADIC_OPEN(name, params, call)                                                     \
	EXPORT int name params                                                                     \
	{                                                                                          \
		struct crema_thread *t;                                                            \
		mode_t mode = 0;                                                                   \
		va_list ap;                                                                        \
		int r;                                                                             \
		/* O_TMPFILE contains O_DIRECTORY's bit, and both take a mode */                   \
		if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {                         \
			va_start(ap, flags);                                                       \
			mode = va_arg(ap, mode_t);                                                 \
			va_end(ap);                                                                \
		}                                                                                  \
		t = opens(CREMA_CALL_##name, path);                                                \
		r = call;                                                                          \
		if (t)                                                                             \
			call_end(t);                                                               \
		if (unlikely(bootstrap_watching))                                                  \
			bootstrap_opened(path);                                                    \
		if (shim_armed() && shim_same_process())                                           \
			notify_opened(r, path);                                                    \
		return r;                                                                          \
	}

#include <fcntl.h>
WRAP_VARIADIC_OPEN(open, (const char *path, int flags, ...), real.open(path, flags, mode))
WRAP_VARIADIC_OPEN(open64, (const char *path, int flags, ...), real.open64(path, flags, mode))
WRAP_VARIADIC_OPEN(openat, (int dir, const char *path, int flags, ...),
		   real.openat(dir, path, flags, mode))
WRAP_VARIADIC_OPEN(openat64, (int dir, const char *path, int flags, ...),
		   real.openat64(dir, path, flags, mode))

/* Commands that wait for a lock on a file. */
#define LOCKS(command) ((command) == F_SETLKW || (command) == F_OFD_SETLKW)

#define WRAP_FCNTL(name)                                                                           \
	EXPORT int name(int fd, int command, ...)                                                  \
	{                                                                                          \
		void *argument;                                                                    \
		struct op op;                                                                      \
		va_list ap;                                                                        \
		int r, saved;                                                                      \
		va_start(ap, command);                                                             \
		argument = va_arg(ap, void *);                                                     \
		va_end(ap);                                                                        \
		op.t = NULL;                                                                       \
		if (unlikely(shim_armed() && LOCKS(command) && wait_matters()))                    \
			block_begin(&op, CREMA_T_lock_wait);                                       \
		if (unlikely(op.t != NULL))                                                        \
			call_begin(op.t, CREMA_CALL_##name, (uint64_t)fd, op.start);               \
		r = real.name(fd, command, argument);                                              \
		if (unlikely(op.t != NULL)) {                                                      \
			call_end(op.t);                                                            \
			saved = errno;                                                             \
			wait_end(&op, 0);                                                          \
			errno = saved;                                                             \
		}                                                                                  \
		if (shim_armed() && r >= 0 &&                                                      \
		    (command == F_DUPFD || command == F_DUPFD_CLOEXEC) && shim_same_process())     \
			duplicated(fd, r);                                                         \
		return r;                                                                          \
	}
WRAP_FCNTL(fcntl)
WRAP_FCNTL(fcntl64)

EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
	if (shim_armed() && shim_same_process() && !(flags & 4 /* CLOSE_RANGE_CLOEXEC */))
		notify_fds_closed(first, last);
	return real.close_range(first, last, flags);
}

EXPORT void closefrom(int first)
{
	if (shim_armed() && first >= 0 && shim_same_process())
		notify_fds_closed((unsigned int)first, ~0u);
	real.closefrom(first);
}

/* Only a mutex that another thread holds costs anything: it is tried first. */
EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	struct op op;
	int r, saved;

	if (likely(!shim_armed()) || !wait_matters())
		return real.pthread_mutex_lock(mutex);
	r = real.pthread_mutex_trylock(mutex);
	if (likely(r != EBUSY))
		return r;
	wait_begin(&op, mutex);
	if (op.t)
		call_begin(op.t, CREMA_CALL_pthread_mutex_lock, (uintptr_t)mutex, op.start);
	r = real.pthread_mutex_lock(mutex);
	if (op.t) {
		call_end(op.t);
		saved = errno;
		wait_end(&op, r);
		errno = saved;
	}
	return r;
}
