/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.h - the position of a record in a journal: "SEGMENT/FRAME/ITEM" as text.
 *
 * SEGMENT is the number at the start of the segment's name, FRAME the number of the frame among its
 * whole frames, from 1; ITEM the number of the message in the frame, from 0. Segments are only
 * appended to, so a record keeps its place; places are in the order of reading. No state.
 */
#ifndef CREMA_COLLECTOR_FOLLOW_PLACE_H
#define CREMA_COLLECTOR_FOLLOW_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACE_BYTES 64

struct place {
	uint64_t segment_ns; /* 0: before all records */
	uint64_t frame, item;
};

/* As strcmp(). */
int place_order(const struct place *a, const struct place *b);
/* Returns out, which has PLACE_BYTES. */
char *place_text(char *out, const struct place *p);
/* False: not a place. */
bool place_read(struct place *p, const char *text);

#endif
