/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * retain_carry.h - data of segments to be unlinked that reports still need: the CARRY and CARRIED
 * frames of the file of dropped runs (model/dropped.h).
 *
 * It comes from the segments' footers if these are valid, else from the segments, and from the
 * current file of dropped runs. For a child process.
 */
#ifndef CREMA_COLLECTOR_RETAIN_RETAIN_CARRY_H
#define CREMA_COLLECTOR_RETAIN_RETAIN_CARRY_H

#include "collector/model/model.h"
#include "collector/retain/retain.h"
#include "common/buf.h"

/* Appends them. The segments to unlink are those before number `first_kept` of the model, which has
 * read all. 0 or -errno. */
int carry_pack(const struct retain_config *config, const struct model *m, size_t first_kept,
	       struct buf *out);

#endif
