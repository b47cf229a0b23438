# SPDX-License-Identifier: BSD-3-Clause
$(BUILD)/tests/unit/test_%: tests/unit/test_%.c $(LIB_OBJ)
	@mkdir -p $(@D)
	$(CC) $(PROG_FLAGS) -o $@ $< $(LIB_OBJ) $(COLLECTOR_LIBS) -lcmocka

unit-test: $(UNIT_BIN) ## cmocka unit tests
	@set -e; for t in $(UNIT_BIN); do "$$t"; done
