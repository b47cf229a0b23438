/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - clocks in nanoseconds. */
#ifndef CREMA_COMMON_CLOCK_H
#define CREMA_COMMON_CLOCK_H

#include <stdint.h>

uint64_t clock_boot_ns(void);	/* CLOCK_BOOTTIME: task times, same for all processes of a host */
uint64_t clock_mono_ns(void);	/* CLOCK_MONOTONIC: durations */
uint64_t clock_thread_ns(void); /* CPU of the calling thread */
uint64_t clock_real_ns(void);	/* CLOCK_REALTIME: what people see */

#endif
