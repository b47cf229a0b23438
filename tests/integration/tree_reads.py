"""Tasks that read as dask-awkward's do: uproot's own reader objects, called on a worker."""


class Failing:
    """A form mapping whose reads fail once the file is open."""

    def __init__(self, info):
        self.info = info

    def __getattr__(self, name):
        return getattr(self.info, name)

    def load_buffers(self, *args):
        raise OSError("on purpose")


def reader(path, dataset=None, fails=False, forgiven=False):
    import awkward
    import uproot
    from uproot import _dask

    with uproot.open(path) as file:
        form = _dask._get_ttree_form(awkward, file["Events"], ["MET_pt"], False)
    expected, info = _dask._mapping_of(None, form)
    if dataset:
        info.metadata = {"dataset": dataset}
    if fails:
        info = Failing(info)
    return _dask._UprootOpenAndRead(None, False, {}, ["MET_pt"], {"ak_add_doc": False}, base_form=form, expected_form=expected,
                                    form_mapping_info=info, allow_read_errors_with_report=forgiven,
                                    decompression_executor=None, interpretation_executor=None)


def read(parts, **options):
    """parts: (path, entrystart, entrystop) or (path, step, steps, "step"); returns the entries that were read."""
    n = 0
    for path, first, second, *step in parts:
        found = reader(path, **options)((path, "Events", first, second, not step))
        n += len(found[0] if options.get("forgiven") else found)
    return n
