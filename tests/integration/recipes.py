"""docs/recipes.md, as a user would type it."""

import re

import cluster
import venvs


def sections():
    """{title: text} of the recipes."""
    parts = re.split(r"^## ", (cluster.ROOT / "docs" / "recipes.md").read_text(), flags=re.M)[1:]
    return {part.split("\n", 1)[0]: part.split("\n", 1)[1] for part in parts}


def blocks(title):
    """The indented blocks of a recipe."""
    found = re.findall(r"(?:^(?:    .*)?\n)+", sections()[title], re.M)
    return [re.sub(r"^    ", "", block, flags=re.M).strip("\n") + "\n" for block in found if block.strip()]


def beside(name):
    """The bin directory of a Python with tests/NAME.txt in addition to all that is here."""
    return venvs.beside(name, cluster.ROOT / "tests" / f"{name}.txt")


def without_collector(procs):
    """An environment without a collector's address."""
    return {name: value for name, value in procs.env.items() if name != "CREMA_COLLECTOR"}
