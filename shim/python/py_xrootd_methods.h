/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_xrootd_methods.h - the methods of XRootD's Python client that send requests (py_xrootd.c).
 * X(class, method, position of its callback argument (ARGS_MAX: it takes none), kind)
 */
#ifndef CREMA_SHIM_PYTHON_PY_XROOTD_METHODS_H
#define CREMA_SHIM_PYTHON_PY_XROOTD_METHODS_H

enum kind {
	OPENS,
	READS,
	READS_CHUNKS,
	READS_LINES, /* in pieces that the client chooses */
	COPIES,	     /* in threads of the client */
	ASKS,
};

#define METHODS                                                                                    \
	X(File, open, 4, OPENS)                                                                    \
	X(File, openusingtemplate, 5, OPENS)                                                       \
	X(File, close, 1, OPENS)                                                                   \
	X(File, __exit__, ARGS_MAX, OPENS)                                                         \
	X(File, read, 3, READS)                                                                    \
	X(File, vector_read, 2, READS_CHUNKS)                                                      \
	X(File, readline, ARGS_MAX, READS_LINES)                                                   \
	X(File, readlines, ARGS_MAX, READS_LINES)                                                  \
	X(File, readchunks, ARGS_MAX, READS_LINES)                                                 \
	X(File, __next__, ARGS_MAX, READS_LINES)                                                   \
	X(File, next, ARGS_MAX, READS_LINES)                                                       \
	X(File, stat, 2, ASKS)                                                                     \
	X(File, write, 4, ASKS)                                                                    \
	X(File, sync, 1, ASKS)                                                                     \
	X(File, truncate, 2, ASKS)                                                                 \
	X(File, fcntl, 2, ASKS)                                                                    \
	X(File, visa, 1, ASKS)                                                                     \
	X(File, set_xattr, 2, ASKS)                                                                \
	X(File, get_xattr, 2, ASKS)                                                                \
	X(File, del_xattr, 2, ASKS)                                                                \
	X(File, list_xattr, 1, ASKS)                                                               \
	X(File, clone, 2, ASKS)                                                                    \
	X(FileSystem, copy, ARGS_MAX, COPIES)                                                      \
	X(FileSystem, cat, ARGS_MAX, COPIES)                                                       \
	X(CopyProcess, run, ARGS_MAX, COPIES)                                                      \
	X(FileSystem, stat, 2, ASKS)                                                               \
	X(FileSystem, query, 3, ASKS)                                                              \
	X(FileSystem, locate, 3, ASKS)                                                             \
	X(FileSystem, deeplocate, 3, ASKS)                                                         \
	X(FileSystem, dirlist, 3, ASKS)                                                            \
	X(FileSystem, mv, 3, ASKS)                                                                 \
	X(FileSystem, truncate, 3, ASKS)                                                           \
	X(FileSystem, rm, 2, ASKS)                                                                 \
	X(FileSystem, mkdir, 4, ASKS)                                                              \
	X(FileSystem, rmdir, 2, ASKS)                                                              \
	X(FileSystem, chmod, 3, ASKS)                                                              \
	X(FileSystem, ping, 1, ASKS)                                                               \
	X(FileSystem, statvfs, 2, ASKS)                                                            \
	X(FileSystem, protocol, 1, ASKS)                                                           \
	X(FileSystem, sendinfo, 2, ASKS)                                                           \
	X(FileSystem, prepare, 4, ASKS)                                                            \
	X(FileSystem, set_xattr, 3, ASKS)                                                          \
	X(FileSystem, get_xattr, 3, ASKS)                                                          \
	X(FileSystem, del_xattr, 3, ASKS)                                                          \
	X(FileSystem, list_xattr, 2, ASKS)

#endif
