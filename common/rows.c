/* SPDX-License-Identifier: BSD-3-Clause */
/* rows.c - the tables of rows.h. */
#include "common/rows.h"

const struct row_number row_file[CREMA_FILE_VALUES] = {
#define FILE_NUMBER(name, cell, title, unit, group, merge, seen, help)                             \
	[CREMA_FILE_N_##name] = {#name, ROW_##merge},
#define FILE_EXTENT(name, help) [CREMA_FILE_E_##name] = {#name, ROW_SUM},
#include "rows.def"
};

const uint8_t row_file_seen[CREMA_FILE_NUMBERS] = {
#define FILE_NUMBER(name, cell, title, unit, group, merge, seen, help) ROW_##seen,
#include "rows.def"
};

const struct row_number row_codec[CREMA_CODEC_NUMBERS] = {
#define CODEC_NUMBER(name, cell, title, unit, merge, timed, help) {#name, ROW_##merge},
#include "rows.def"
};

const struct row_number row_server[CREMA_SERVER_NUMBERS] = {
#define SERVER_NUMBER(name, cell, title, unit, merge, help) {#name, ROW_##merge},
#include "rows.def"
};

const struct row_number row_section[CREMA_SECTION_NUMBERS] = {
#define SECTION_NUMBER(name, cell, title, unit, merge, help) {#name, ROW_##merge},
#include "rows.def"
};

const struct row_number row_column[CREMA_COLUMN_NUMBERS] = {
#define COLUMN_NUMBER(name, cell, title, unit, merge, help) {#name, ROW_##merge},
#include "rows.def"
};

const struct row_column_from row_column_from[CREMA_COLUMN_NUMBERS] = {
#define COLUMN_TIME(name, cell, title, id, help) [CREMA_COLUMN_N_##name] = {ROW_TIME, CREMA_T_##id},
#define COLUMN_COUNT(name, cell, title, unit, id, help)                                            \
	[CREMA_COLUMN_N_##name] = {ROW_COUNT, CREMA_C_##id},
#include "rows.def"
};

#define UNIT_calls false
#define UNIT_bytes false
#define UNIT_ns true

const struct row_cell row_section_cells[CREMA_SECTION_NUMBERS] = {
#define SECTION_NUMBER(name, cell, title, unit, merge, help) {cell, UNIT_##unit},
#include "rows.def"
};

const char *const row_gauge_parts[CREMA_GAUGE_STATS] = {
#define GAUGE_PART(name, help) #name,
#include "rows.def"
};

#define OF_WORKER true
#define OF_RUN false

const struct row_total row_totals[CREMA_TOTALS_NUMBERS] = {
#define TOTALS_NUMBER(name, shown, help) {#name, help, OF_##shown},
#include "rows.def"
};

const struct row_amount row_amounts[CREMA_TOTALS_AMOUNTS] = {
#define TOTALS_AMOUNT(part, name, help) {#part, #name, help},
#include "rows.def"
};

const char *const row_sample[CREMA_SAMPLE_NUMBERS] = {
#define SAMPLE_NUMBER(name, ...) #name,
#include "rows.def"
};

const char *const row_host[CREMA_HOST_NUMBERS] = {
#define HOST_NUMBER(name, ...) #name,
#include "rows.def"
};

const struct row_time row_times[CREMA_TIMES] = {
#define TIME(id, name, column, short, head, words, label, part, mark, help)                        \
	{#id, #name, short, head, words, label, part, mark},
#include "counters.def"
};

const struct row_line_bytes row_line_bytes[CREMA_LINES_BYTES] = {
#define LINES_BYTES(name, cell, shown, head, count, wait, help)                                    \
	{#name, shown, #count, CREMA_T_##wait},
#include "rows.def"
};

const struct row_line_large row_line_large[CREMA_LINES_LARGE] = {
#define LINES_LARGE(name, kind, cell, shown, help) {#name, shown, LARGE_##kind},
#include "rows.def"
};

#define IN_calls false
#define IN_bytes false
#define IN_ns true

const struct row_count row_counts[CREMA_COUNTS] = {
#define COUNT(id, unit, name, column, help) {#id, #name, help, IN_##unit},
#include "counters.def"
};

const struct row_layer row_layers[CREMA_LAYERS] = {
#define LAYER(id, count, from, label) {#id, #count, label},
#include "counters.def"
};

uint64_t rows_moved_bytes(const uint64_t *count)
{
	return count[CREMA_C_read_bytes] + count[CREMA_C_mapped_bytes] +
	       count[CREMA_C_write_bytes] + count[CREMA_C_network_read_bytes] +
	       count[CREMA_C_network_write_bytes];
}
