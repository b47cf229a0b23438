/* SPDX-License-Identifier: BSD-3-Clause */
/* http_gzip.h - an answer in gzip's format, for those who accept it. */
#ifndef COLLECTOR_HTTP_GZIP_H
#define COLLECTOR_HTTP_GZIP_H

#include <microhttpd.h>
#include <stdbool.h>

#include "common/buf.h"

#define HTTP_GZIP_FROM 1024 /* bytes; smaller answers stay as they are */

/* True: the body has been replaced. False: it is as it was. */
bool http_gzip(struct MHD_Connection *connection, struct buf *body);
/* Does an Accept-Encoding header (NULL: none) ask for gzip? */
bool http_gzip_wanted(const char *accept);

#endif
