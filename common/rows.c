/* SPDX-License-Identifier: BSD-3-Clause */
/* rows.c - the tables of rows.h. */
#include "common/rows.h"

const struct row_number row_file[CREMA_FILE_VALUES] = {
#define FILE_NUMBER(name, cell, title, unit, group, merge, seen, help)                             \
	[CREMA_FILE_N_##name] = {#name, ROW_##merge},
#define FILE_EXTENT(name, help) [CREMA_FILE_E_##name] = {#name, ROW_SUM},
#include "rows.def"
};

const struct row_number row_codec[CREMA_CODEC_NUMBERS] = {
#define CODEC_NUMBER(name, cell, unit, merge, timed, help) {#name, ROW_##merge},
#include "rows.def"
};

const struct row_number row_server[CREMA_SERVER_NUMBERS] = {
#define SERVER_NUMBER(name, cell, unit, merge, help) {#name, ROW_##merge},
#include "rows.def"
};
