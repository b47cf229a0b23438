/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uplink_frames.h - the uplink's inner side: what each frame of the collector means, and the clock.
 */
#ifndef CREMA_AGENT_UPLINK_FRAMES_H
#define CREMA_AGENT_UPLINK_FRAMES_H

#include "agent/uplink.h"

/* Handles one frame: 0 or -errno (hang up). */
int uplink_frame(struct uplink *u, const struct frame *f, uint64_t now);
/* Puts the source's hello into what is to be sent: 0 or -ENOMEM. */
int uplink_hello(struct uplink *u);
bool uplink_clock_due(struct uplink *u, uint64_t now);
void uplink_clock_send(struct uplink *u);
void uplink_trouble(struct uplink *u, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
