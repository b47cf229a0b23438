/* SPDX-License-Identifier: BSD-3-Clause */
/* zstd_trace.h - libzstd's trace, which the library under test provides. */
#ifndef CREMA_TESTS_SHIM_ZSTD_TRACE_H
#define CREMA_TESTS_SHIM_ZSTD_TRACE_H

#include <stddef.h>

struct trace {
	unsigned int version;
	int streaming;
	unsigned int dictionary;
	int dictionary_is_cold;
	size_t dictionary_bytes, uncompressed_bytes, compressed_bytes;
};
unsigned long long ZSTD_trace_decompress_begin(const void *context);
void ZSTD_trace_decompress_end(unsigned long long started, const struct trace *frame);
unsigned long long ZSTD_trace_compress_begin(const void *context);
void ZSTD_trace_compress_end(unsigned long long started, const struct trace *frame);

#endif
