/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pager.h - sends text for a terminal through a pager: $PAGER, else less -FRX.
 *
 * pager_write() writes to standard output and returns when the reader has left the pager. Without a
 * terminal, with an empty PAGER or one named cat, or if no pager can be started, it is a plain
 * write. -EPIPE is not an error: the reader may quit early.
 */
#ifndef CREMA_COLLECTOR_CMD_PAGER_H
#define CREMA_COLLECTOR_CMD_PAGER_H

#include <stdbool.h>

#include "common/buf.h"

/* Whether standard output is a terminal and a pager is configured. */
bool pager_wanted(void);
/* All of `text`: 0 or -errno. */
int pager_write(const struct buf *text);

#endif
