/* SPDX-License-Identifier: BSD-3-Clause */
/* py_xrootd_file.h - which server and which file an XRootD File object reads. GIL held. */
#ifndef CREMA_SHIM_PYTHON_PY_XROOTD_FILE_H
#define CREMA_SHIM_PYTHON_PY_XROOTD_FILE_H

#include <stdint.h>

#include "shim/python/py.h"

struct xrootd_file {
	uint32_t scheme, address, url; /* string ids; 0: unknown */
};

/* 0: a file of this machine, for which no request is sent. */
int xrootd_file_get(PyObject *file, struct xrootd_file *f);
/* 1 if its server uses XRootD's own protocol; 0 for an unknown scheme. */
int xrootd_file_speaks_root(const struct xrootd_file *f);
/* 1 if a plug-in of the client uses another protocol for it; 0 for an unknown scheme. */
int xrootd_file_has_plugin(const struct xrootd_file *f);
/* Of a FileSystem, only the scheme. */
void xrootd_filesystem_get(PyObject *filesystem, struct xrootd_file *f);
/* String id of a URL's scheme; 0: it has none. */
uint32_t xrootd_scheme(const char *url);
/* The object opens or closes. */
void xrootd_file_changes(PyObject *file);
/* For a forked child: all objects will be determined again. */
void xrootd_files_forget(void);
/* 1 once the names it needs are made; 0: out of memory. */
int xrootd_file_ready(void);

#endif
