/* SPDX-License-Identifier: BSD-3-Clause */
/* units.h - "14d" and "20G": lengths of time and amounts as users write them on a command line. */
#ifndef CREMA_COMMON_UNITS_H
#define CREMA_COMMON_UNITS_H

#include <stdint.h>

/*
 * A number (fractions with a point) and a unit: s, m, h, d, w. 0 and nanoseconds; or -EINVAL: not
 * such a text, a negative number, no unit ("14": of what?), or more than 500 years.
 */
int units_time(const char *text, uint64_t *ns);
/*
 * A number and k, M, G, T (of 1000) or Ki, Mi, Gi, Ti (of 1024), each with or without B; no unit:
 * bytes. 0 and bytes, or -EINVAL: not such a text, negative, or beyond 2^63.
 */
int units_bytes(const char *text, uint64_t *bytes);

#endif
