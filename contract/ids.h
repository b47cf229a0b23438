/* SPDX-License-Identifier: BSD-3-Clause */
/* ids.h - the numbers of counters, codecs, frames and messages, made from the tables. */
#ifndef CREMA_CONTRACT_IDS_H
#define CREMA_CONTRACT_IDS_H

#include <stdint.h>

enum crema_time_id {
#define TIME(id, ...) CREMA_T_##id,
#define COUNT(id, unit, ...)
#include "counters.def"
#undef TIME
#undef COUNT
	CREMA_TIMES
};

enum crema_count_id {
#define TIME(id, ...)
#define COUNT(id, unit, ...) CREMA_C_##id,
#include "counters.def"
#undef TIME
#undef COUNT
	CREMA_COUNTS
};
enum crema_layer_id {
#define LAYER(id, ...) CREMA_L_##id,
#include "counters.def"
	CREMA_LAYERS
};
/* A set of counts, such as the unknown ones, consists of these bits. */
#define CREMA_COUNT_BIT(name) (UINT64_C(1) << CREMA_C_##name)
#define CREMA_NETWORK_COUNTS                                                                       \
	(CREMA_COUNT_BIT(network_read_bytes) | CREMA_COUNT_BIT(network_write_bytes))

enum crema_codec_id {
#define CODEC(id, module, path, codec, direction, input, into) CREMA_CODEC_##id,
#include "codecs.def"
#undef CODEC
	CREMA_CODECS
};

/* Numbers of a FILE row: what the shim counts, then what the agent computes from extents. */
enum crema_file_number {
#define FILE_NUMBER(name, ...) CREMA_FILE_N_##name,
#include "rows.def"
	CREMA_FILE_NUMBERS,
	CREMA_FILE_NUMBERS_END_ = CREMA_FILE_NUMBERS - 1,
#define FILE_EXTENT(name, help) CREMA_FILE_E_##name,
#include "rows.def"
	CREMA_FILE_VALUES
};
enum crema_opened_number {
#define FILE_OPENED(name, ...) CREMA_OPENED_N_##name,
#include "rows.def"
	CREMA_OPENED_NUMBERS
};
enum crema_codec_number {
#define CODEC_NUMBER(name, ...) CREMA_CODEC_N_##name,
#include "rows.def"
	CREMA_CODEC_NUMBERS
};
enum crema_section_number {
#define SECTION_NUMBER(name, ...) CREMA_SECTION_N_##name,
#include "rows.def"
	CREMA_SECTION_NUMBERS
};
enum crema_column_number {
#define COLUMN_NUMBER(name, ...) CREMA_COLUMN_N_##name,
#include "rows.def"
	CREMA_COLUMN_NUMBERS
};
enum crema_gauge_number {
#define GAUGE_NUMBER(name, ...) CREMA_GAUGE_N_##name,
#include "rows.def"
	CREMA_GAUGE_NUMBERS
};
enum crema_gauge_part {
#define GAUGE_PART(name, ...) CREMA_GAUGE_P_##name,
#include "rows.def"
	CREMA_GAUGE_STATS
};
enum crema_totals_number {
#define TOTALS_NUMBER(name, ...) CREMA_TOTALS_N_##name,
#include "rows.def"
	CREMA_TOTALS_NUMBERS
};
enum crema_totals_amount {
#define TOTALS_AMOUNT(part, name, help) CREMA_TOTALS_A_##part##_##name,
#include "rows.def"
	CREMA_TOTALS_AMOUNTS
};
enum crema_host_number {
#define HOST_NUMBER(name, ...) CREMA_HOST_N_##name,
#include "rows.def"
	CREMA_HOST_NUMBERS
};
enum crema_sample_number {
#define SAMPLE_NUMBER(name, ...) CREMA_SAMPLE_N_##name,
#include "rows.def"
	CREMA_SAMPLE_NUMBERS
};
enum crema_server_number {
#define SERVER_NUMBER(name, ...) CREMA_SERVER_N_##name,
#include "rows.def"
	CREMA_SERVER_NUMBERS
};

enum crema_lines_byte {
#define LINES_BYTES(name, ...) CREMA_LINES_B_##name,
#include "rows.def"
	CREMA_LINES_BYTES
};

enum crema_lines_large {
#define LINES_LARGE(name, ...) CREMA_LINES_L_##name,
#include "rows.def"
	CREMA_LINES_LARGE
};

enum crema_frame_type {
#define FRAME(id, number, help) CREMA_FRAME_##id = number,
#define MESSAGE(id, number, help)
#include "messages.def"
#undef FRAME
#undef MESSAGE
};

enum crema_message_type {
#define FRAME(id, number, help)
#define MESSAGE(id, number, help) CREMA_MSG_##id = number,
#include "messages.def"
#undef FRAME
#undef MESSAGE
};

/* Bits of a task's flags, in shared memory and on the wire. */
#define CREMA_TASK_ASYNC (1u << 0)   /* ran in the event loop: wall only */
#define CREMA_TASK_CHUNK (1u << 1)   /* has a coffea WorkItem: dataset, file, entry range */
#define CREMA_TASK_METRICS (1u << 2) /* has coffea's savemetrics values */
#define CREMA_TASK_MERGE (1u << 3)   /* coffea's _reduce */
#define CREMA_TASK_ACTOR (1u << 4)   /* a method call of a Dask actor */
#define CREMA_TASK_NESTED (1u << 5)  /* ran inside another task's thread of control */
#define CREMA_TASK_KEY_CUT (1u << 6) /* the key's text is cut */
#define CREMA_TASK_FAULT_STORAGE                                                                   \
	(1u << 7) /* waited for storage in page faults, too: its wait is an estimate */
#define CREMA_TASK_SECEDED (1u << 8)	   /* left its thread pool while it ran */
#define CREMA_TASK_PREPROCESSING (1u << 9) /* coffea's metadata task */
#define CREMA_TASK_TREE_READ                                                                       \
	(1u << 10) /* a chunk that uproot's read_tree described, not a WorkItem */
#define CREMA_TASK_READS_DIFFER                                                                    \
	(1u << 11) /* its reads are not of one chunk: an earlier record had too much */
#define CREMA_TASK_ELSEWHERE (1u << 12)	  /* an executor ran it in another process: wall only */
#define CREMA_TASK_POOL_UNSEEN (1u << 13) /* what it hands to other threads cannot be followed */
#define CREMA_TASK_SCATTER (1u << 14)	  /* coffea's: passes the processor to the chunks */
#define CREMA_TASK_USERS_SPAN (1u << 15)  /* its span is not Dask's own choice */
#define CREMA_TASK_THREAD_REFUSED                                                                  \
	(1u << 16) /* a thread beyond the table of threads worked for it: wall only */
#define CREMA_TASK_TEXT_REFUSED (1u << 17) /* its span or prefix found no room among the texts */

/* The tag of the span that crema.measure() opens, and the annotation of all tasks that its block
 * submits: the span's id. Also in python/crema/measurement.py. */
#define CREMA_BLOCK_SPAN "crema"
#define CREMA_BLOCK_ANNOTATION "crema_span"

#endif
