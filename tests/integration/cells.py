"""Which cells a run of the tests has. scripts/test has the fewest, .ci/run adds further ones, and --all has every one."""

import os

FURTHER = bool({"CREMA_ALL_CELLS", "CREMA_FURTHER_CELLS"} & set(os.environ))
