/* SPDX-License-Identifier: BSD-3-Clause */
/* report_all.h - closes a model and writes all its runs in all forms. */
#ifndef CREMA_TESTS_REPORT_ALL_H
#define CREMA_TESTS_REPORT_ALL_H

#include "collector/model/model.h"

void report_all(struct model *m);

#endif
