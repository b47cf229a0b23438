/* SPDX-License-Identifier: BSD-3-Clause */
/* notify.c - which functions receive each event. */
#include "shim/python/notify.h"

#include "shim/count/byte_sample.h"
#include "shim/count/codec.h"
#include "shim/count/column.h"
#include "shim/count/exchange.h"
#include "shim/count/extent.h"
#include "shim/count/fd.h"
#include "shim/count/file_owner.h"
#include "shim/count/large.h"
#include "shim/count/loop.h"
#include "shim/count/net.h"
#include "shim/count/opener.h"
#include "shim/python/first_use.h"
#include "shim/python/patch.h"
#include "shim/python/py_xrootd_file.h"
#include "shim/count/runqueue.h"
#include "shim/count/section.h"
#include "shim/count/task.h"
#include "shim/count/timer.h"
#include "shim/count/xrootd.h"
#include "shim/python/unseen.h"
#include "unseen_io.h"

void notify_fd_closed(int fd)
{
	if ((unsigned int)fd >= FD_TABLE)
		return;
	fd_forget(fd);
	exchange_forget(fd);
	timer_forget(fd);
	net_forget(fd);
	position_forget(fd);
	file_owner_forget(fd);
}

void notify_fd_opened(int fd)
{
	notify_fd_closed(fd);
	file_owner_opened(fd);
	position_set(fd, 0);
}

void notify_opened(int fd, const char *path)
{
	uint32_t line = unlikely(opener_expects()) ? opener_take(path) : 0;

	if (fd < 0)
		return;
	notify_fd_opened(fd);
	fd_opened_at(fd, line);
	if (unlikely(path && crema_is_gpu_device(path)))
		crema_unseen_io(crema_shm, CREMA_UNSEEN_GPU, 0);
}

void notify_fds_closed(unsigned int first, unsigned int last)
{
	for (unsigned int i = first; i < FD_TABLE && i <= last; i++) {
		if (fd_is_known((int)i)) {
			notify_fd_closed((int)i);
		} else {
			file_owner_forget((int)i);
			position_forget((int)i);
		}
	}
}

void notify_task_begins(uint32_t owner)
{
	if (!task_slot(owner))
		return;
	loop_task_begins(owner, task_name(owner));
	unseen_task_begins(owner);
	task_running(owner);
}

void notify_task_ends(uint32_t owner, uint32_t status)
{
	if (task_slot(owner)) {
		exchange_task_ends(task_name(owner));
		unseen_task_ends(owner);
	}
	task_close(owner, status);
	large_task_ends(owner);
}

void notify_forked_thread(void)
{
	thread_forget();
	runqueue_keep_none();
	codec_forget();
	section_forget();
	column_forget();
	task_forget();
	opener_forget();
	byte_sample_forget();
}

void notify_forked(void)
{
	notify_forked_thread();
	exchange_forget_all(); /* before the descriptors: none of it is counted */
	for (int fd = 0; fd < FD_TABLE; fd++)
		notify_fd_closed(fd);
	position_inherited();
	file_names_forget();
	xrootd_files_forget();
	xrootd_forget();
	first_use_forget();
	runqueue_drop_all();
	pool_forget();
}
