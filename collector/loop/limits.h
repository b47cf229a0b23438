/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.h - how many connections the collector may have.
 */
#ifndef CREMA_COLLECTOR_LOOP_LIMITS_H
#define CREMA_COLLECTOR_LOOP_LIMITS_H

/*
 * Raises the limit of open files to what `most` connections need, as far as allowed. Returns how
 * many connections are possible; if fewer, prints a line with the number and a remedy.
 */
unsigned int limits_connections(unsigned int most);

#endif
