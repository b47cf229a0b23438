# SPDX-License-Identifier: BSD-3-Clause
$(BUILD)/docs/gen_metrics: docs/gen_metrics.c contract/metrics.def
	@mkdir -p $(@D)
	$(CC) $(COMMON_FLAGS) -o $@ $<

docs/metrics.md: $(BUILD)/docs/gen_metrics
	$< > $@.new && mv $@.new $@

docs: docs/metrics.md ## documents made from the tables

check-docs: $(BUILD)/docs/gen_metrics ## the generated documents are up to date
	@$< | cmp -s - docs/metrics.md || { echo "docs/metrics.md is out of date: make docs"; exit 1; }

.PHONY: docs check-docs
