/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loaded.h - names libraries that work where no intercepted call shows it (contract/libraries.def),
 * as those of GPUs do, once the process has loaded them, however it did.
 *
 * Called at imports and before tasks, not from an intercepted call: the loader's list has a lock.
 */
#ifndef CREMA_SHIM_HOOKS_LOADED_H
#define CREMA_SHIM_HOOKS_LOADED_H

/* Looks at what was loaded since the last call; at the first also for the interpreter's code, which
 * thread_is_native() needs. Armed process, GIL held. */
void loaded_look(void);

#endif
