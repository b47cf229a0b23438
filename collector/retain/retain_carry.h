/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * retain_carry.h - what reports still need of segments that are to be unlinked: the CARRY and
 * CARRIED frames of the file of dropped runs (model/dropped.h). By the segments' footers, where
 * they have one that is believed, else by the segments; and by the present file. For a child.
 */
#ifndef CREMA_COLLECTOR_RETAIN_RETAIN_CARRY_H
#define CREMA_COLLECTOR_RETAIN_RETAIN_CARRY_H

#include "collector/model/model.h"
#include "collector/retain/retain.h"
#include "common/buf.h"

/* Appends them. Segments before number `first_kept` of the model, which has read all, are those
 * that go. 0 or -errno. */
int carry_pack(const struct retain_config *config, const struct model *m, size_t first_kept,
	       struct buf *out);

#endif
