/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_processor.h - the processor that coffea's work function receives: as it is, or, as coffea
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

/* For the text: the same for all chunks of a run. For an object: of its class, in this process. */
uint64_t processor_hash(PyObject *given);

/* Name of its class; NULL until processor_load() has found it. */
const char *processor_name(uint64_t hash);

/*
 * Finds the name. Returns what the work function can take instead of a text, loaded as it would
 * load it; NULL: pass the original. New reference.
 */
PyObject *processor_load(PyObject *given, uint64_t hash);

#endif
