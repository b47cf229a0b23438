/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * retain_carry.h - what of segments that are to be unlinked is still needed afterwards.
 *
 * carry_read() goes through the present file of dropped runs and the segments before a time;
 * carry_write() appends DROPPED and the CARRY and CARRIED frames (model/dropped.h). For a child.
 */
#ifndef CREMA_COLLECTOR_RETAIN_RETAIN_CARRY_H
#define CREMA_COLLECTOR_RETAIN_RETAIN_CARRY_H

#include "collector/model/model.h"
#include "common/buf.h"

struct carry;

/* 0 or -errno; *out is to be released in either case. */
int carry_read(struct carry **out, const char *journal_dir, uint64_t below_ns);
void carry_free(struct carry *carry);
/*
 * Segments before number `first_kept` of the model, which has read all, are those that go. `head`
 * gets the DROPPED frame, `rest` the others. 0 or -errno.
 */
int carry_write(struct carry *carry, struct model *m, size_t first_kept, uint64_t below_ns,
		struct buf *head, struct buf *rest);

#endif
