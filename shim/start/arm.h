/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arm.h - turns this process into a measured one.
 *
 * A process is armed once, by py_arm(): by its first Dask Worker (py_worker.c) or by its first call
 * of coffea's work function (py_executor.c). A forked child inherits its parent's patches but is
 * dormant; it may arm itself again, with a new worker id. GIL held, outside of any library's
 * constructor.
 */
#ifndef CREMA_SHIM_START_ARM_H
#define CREMA_SHIM_START_ARM_H

/*
 * 0 = armed, now or before; else -errno, after printing the reason in one line. `usual` is the
 * destination without CREMA_COLLECTOR: "host:port". `say`: prints the destination, too. forked():
 * called in a forked child, to forget what it has from its parent.
 */
int arm_process(const char *usual, int say, void (*forked)(void));

#endif
