/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.h - how many connections the collector may have.
 */
#ifndef CREMA_COLLECTOR_LOOP_LIMITS_H
#define CREMA_COLLECTOR_LOOP_LIMITS_H

/*
 * Raises the limit of open files as far as it is allowed and as `most` connections need it. How
 * many connections that leaves; if it is fewer, a line reports it and what to do.
 */
unsigned int limits_connections(unsigned int most);

#endif
