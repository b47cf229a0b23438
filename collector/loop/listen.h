/* SPDX-License-Identifier: BSD-3-Clause */
/* listen.h - opens listening sockets at the addresses of the command line. */
#ifndef CREMA_COLLECTOR_LOOP_LISTEN_H
#define CREMA_COLLECTOR_LOOP_LISTEN_H

#include <stdbool.h>

#include "common/net.h"
#include "common/options.h"

/* Opens a listening socket; its real address goes into `text`. -errno after printing a line that
 * begins with the command's name. */
int listen_open(const char *command, enum option_id option, const char *given, uint16_t port,
		char *text, size_t size, struct net_address *address);
bool listen_is_loopback(int fd);

#endif
