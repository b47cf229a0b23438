/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calibrate.h - `crema doctor --calibrate`: are a file system's storage charges right?
 *
 * Reads a file there in the ways of ways.h, adds a line for each to the doctor's list, and keeps
 * the verdict (common/calibration.h). Changes nothing else: the file has no name.
 */
#ifndef CREMA_COLLECTOR_DOCTOR_CALIBRATE_H
#define CREMA_COLLECTOR_DOCTOR_CALIBRATE_H

#include "collector/doctor/doctor.h"

/* Wrong charges, and what prevents a calibration, are lines with DOCTOR_BAD. */
void doctor_calibrate(struct doctor *d, const char *path);
/* Lines about the verdicts on what is mounted here. */
void doctor_calibrations(struct doctor *d);

#endif
