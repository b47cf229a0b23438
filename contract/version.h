/* SPDX-License-Identifier: BSD-3-Clause */
/* version.h - the version of all programs of this tree. */
#ifndef CREMA_CONTRACT_VERSION_H
#define CREMA_CONTRACT_VERSION_H
#define CREMA_VERSION "0.1.0"
#endif
