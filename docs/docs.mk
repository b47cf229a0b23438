# SPDX-License-Identifier: BSD-3-Clause
# A program prints each of these documents from its table; it may use the collector's code.
DOCS = metrics findings options pythons wire

$(BUILD)/docs/gen_%: docs/gen_%.c $(wildcard contract/*.def) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(PROG_FLAGS) -o $@ $< $(LIB) $(COLLECTOR_LIBS)

# The man pages: text in man/, everything else from the tables of commands and options.
MAN = $(patsubst man/%.txt,$(BUILD)/man/%.1,$(wildcard man/*.txt))
$(BUILD)/docs/gen_man: docs/gen_man.c $(LIB)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(PROG_FLAGS) -o $@ $< $(LIB) $(COLLECTOR_LIBS)
$(BUILD)/man/crema.1: $(BUILD)/docs/gen_man $(wildcard man/*.txt)
	@mkdir -p $(@D)
	$(call say,MAN)
	$(Q)$< man $(@D)
# Completion for shells, from the same tables.
COMPLETIONS = $(BUILD)/completion/crema $(BUILD)/completion/_crema $(BUILD)/completion/crema.fish
$(BUILD)/completion/crema: SHELL_NAME = bash
$(BUILD)/completion/_crema: SHELL_NAME = zsh
$(BUILD)/completion/crema.fish: SHELL_NAME = fish
$(COMPLETIONS): $(BUILD)/docs/gen_completion
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)$< $(SHELL_NAME) > $@.new && mv $@.new $@
completion: $(COMPLETIONS) ## completion for bash, zsh and fish

man: $(BUILD)/man/crema.1 ## the man pages

$(DOCS:%=docs/%.md): docs/%.md: $(BUILD)/docs/gen_%
	$(call say,GEN)
	$(Q)$< > $@.new && mv $@.new $@

docs: $(DOCS:%=docs/%.md) ## documents made from the tables

check-docs: $(DOCS:%=$(BUILD)/docs/gen_%) ## the generated documents are up to date
	@for d in $(DOCS); do $(BUILD)/docs/gen_$$d | cmp -s - docs/$$d.md || \
	  { echo "docs/$$d.md is out of date: make docs"; exit 1; }; done

.PHONY: docs check-docs man completion
