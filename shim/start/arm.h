/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arm.h - this process becomes a measured one.
 *
 * A process is armed once, by py_arm(): by its first Dask Worker (py_worker.c) or by its first call
 * of coffea's work function (py_executor.c). A forked child inherits what its parent had patched,
 * but is dormant; it may arm itself again, with a worker id of its own. GIL held, outside of any
 * library's constructor.
 */
#ifndef CREMA_SHIM_START_ARM_H
#define CREMA_SHIM_START_ARM_H

/*
 * 0 = armed, now or before; else -errno, and this process has said why in one line. `usual` is
 * where to send to when CREMA_COLLECTOR does not say: "host:port". With `say` that is said, too.
 * forked(): this process is a forked child, and forgets what it has of its parent.
 */
int arm_process(const char *usual, int say, void (*forked)(void));

#endif
