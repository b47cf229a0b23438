/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calibrate.h - `crema doctor --calibrate`: tests whether a file system's storage charges are
 * right.
 *
 * It reads a file there in the ways of ways.h, adds a line for each to the doctor's list, and
 * stores the verdict (common/calibration.h). It changes nothing else: the file has no name.
 */
#ifndef CREMA_COLLECTOR_DOCTOR_CALIBRATE_H
#define CREMA_COLLECTOR_DOCTOR_CALIBRATE_H

#include "collector/doctor/doctor.h"

/* Wrong charges, and obstacles to a calibration, are lines with DOCTOR_BAD. */
void doctor_calibrate(struct doctor *d, const char *path);
/* Adds lines about the verdicts on file systems mounted here. */
void doctor_calibrations(struct doctor *d);

#endif
