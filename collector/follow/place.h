/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.h - where a record is in a journal: "SEGMENT/FRAME/ITEM" as text.
 *
 * SEGMENT is the number that the segment's name begins with, FRAME the frame's number in it, from
 * 1, of those that are whole; ITEM the message's number in the frame, from 0. Segments are only
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
/* False: it is none. */
bool place_read(struct place *p, const char *text);

#endif
