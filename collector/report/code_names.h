/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * code_names.h - the files of code that cloudpickle sent to the workers without their names.
 *
 * cloudpickle 3.1.3 and newer name the file of each function that they send by value
 * "<dynamic-code>": those of the main script, of notebooks, and of modules that were registered for
 * it. The client's record (python/crema/client.py) lists the functions of these files: "code" is
 * [[FILE, [[FUNCTION, FIRST LINE, LAST LINE], ...]], ...]. A place without a file gets the file
 * that has a function of its name around its line; if several files have one, it stays as it is.
 * A library's function that was sent by value can be taken for one of the same name and lines.
 */
#ifndef CREMA_COLLECTOR_REPORT_CODE_NAMES_H
#define CREMA_COLLECTOR_REPORT_CODE_NAMES_H

#include <jansson.h>

#include "collector/model/model.h"

/* Names the places, columns' lines, opening lines and running tasks' lines of the whole model,
 * before a report is gathered from it: 0 or -ENOMEM. */
int code_names_set(struct model *m, const json_t *code);

#endif
