# SPDX-License-Identifier: BSD-3-Clause
"""crema.preload() measures the workers of a cluster that this Python starts.

    crema.preload()
    client = Client(LocalCluster())

It does for a notebook with a running kernel what `crema run -- python analysis.py` does for a script.
"""

import os
import subprocess

from crema.program import CremaError, find

VARIABLE = "LD_PRELOAD"
TRIAL_SECONDS = 60
OFF = ("off", "no", "false", "0")  # of contract/switch.h


def library():
    """A path of libcrema.so that LD_PRELOAD can hold; `crema run` finds the library and tests it."""
    env = {name: value for name, value in os.environ.items() if name != VARIABLE}
    try:
        done = subprocess.run([find(), "run", "--", "/bin/sh", "-c", f'printf %s "${VARIABLE}"'], env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TRIAL_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise CremaError(f"cannot preload: 'crema run' failed: {error}") from None
    if done.returncode or not done.stdout:
        why = (done.stderr.strip().splitlines() or [f"'crema run' ended with status {done.returncode}"])[-1]
        raise CremaError("cannot preload: " + why.removeprefix("crema: ").removeprefix("run: ").removeprefix("running unmeasured: "))
    return done.stdout


def preload(quiet=False):
    """Puts crema's library into LD_PRELOAD of every process that this one starts from now on, and prints that it did.

    Call it before LocalCluster(...) or SpecCluster(...). Only Dask workers are measured; in other processes
    the library does nothing. It cannot reach workers that are already running, workers on other machines, or
    LocalCluster(processes=False), whose workers are this process: start these with `crema run -- COMMAND`.

    Returns {"LD_PRELOAD": ...}, for the environment of processes that other programs start.
    Calling it again changes nothing. Raises CremaError if the library is missing or does not load.
    """
    path = library()
    before = [name for name in os.environ.get(VARIABLE, "").replace(" ", ":").split(":") if name]
    if path not in before:
        os.environ[VARIABLE] = ":".join([path, *before])
    if not quiet:
        print(f"crema: Dask workers that start from now on are measured ({path})" if os.environ.get("CREMA")not in OFF else
              f"crema: CREMA={os.environ['CREMA']} is set, so no worker is measured")
    return {VARIABLE: os.environ[VARIABLE]}
