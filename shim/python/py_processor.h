/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_processor.h - the processor that coffea's work function is given: as it is, or, as coffea
 * sends it to other processes, as the compressed text of its pickle.
 *
 * All functions: GIL held, no exception left.
 */
#ifndef CREMA_SHIM_PYTHON_PY_PROCESSOR_H
#define CREMA_SHIM_PYTHON_PY_PROCESSOR_H

#include <stdint.h>

#include "shim/python/py.h"

/* coffea.processor.executor, once. */
void processor_module(PyObject *module);

/* Of the text: the same for all chunks of a run. Of an object: of its class, in this process. */
uint64_t processor_hash(PyObject *given);

/* Name of its class; NULL until processor_load() has learned it. */
const char *processor_name(uint64_t hash);

/*
 * Learns the name. What the work function can be given instead of a text, loaded as it would
 * itself; NULL: give it what there is. New reference.
 */
PyObject *processor_load(PyObject *given, uint64_t hash);

#endif
