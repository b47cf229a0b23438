/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dask_config.h - one setting of Dask's configuration, as `dask.config.get` would return it.
 *
 * Searched in the environment (DASK_DISTRIBUTED__COMM__TLS__CA_FILE), then in the YAML files of
 * $DASK_CONFIG, ~/.config/dask, etc/dask of the environment ($VIRTUAL_ENV, $CONDA_PREFIX), and
 * $DASK_ROOT_CONFIG or /etc/dask: the first that has it. What a program sets at run time is not
 * seen.
 */
#ifndef CREMA_COMMON_DASK_CONFIG_H
#define CREMA_COMMON_DASK_CONFIG_H

#include <stddef.h>

/*
 * key: "distributed.comm.tls.ca-file". 0 with its text in out; -ENOENT: not set (or null);
 * -ENAMETOOLONG. Files that cannot be read or are not YAML are skipped, as if they did not have it.
 */
int dask_config_get(const char *key, char *out, size_t size);

#endif
