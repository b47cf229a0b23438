/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sort.h - sorts long lists by a number.
 *
 * For lists of a million: several times faster than qsort(), and the compared number is in the list
 * itself. Equal numbers keep their order, so sorting by a second number and then by the first sorts
 * by both. 0 or -ENOMEM: it needs as much memory again.
 */
#ifndef CREMA_COMMON_SORT_H
#define CREMA_COMMON_SORT_H

#include <stddef.h>
#include <stdint.h>

struct numbered {
	uint64_t number;
	union {
		size_t place;
		const void *item;
	};
};

int sort_numbered(struct numbered *v, size_t n);
/* A number with the order of the given real numbers, which must not be NAN. */
uint64_t sort_real(double d);

#endif
