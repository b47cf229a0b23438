# SPDX-License-Identifier: BSD-3-Clause
# Embeds the parts of the report page into the program: our sources, and d3's modules as packaged by Debian.
D3_DIR ?= /usr/share/nodejs
D3_DOC ?= /usr/share/doc
# in order of dependency
D3_MODULES = array collection color format interpolate path time time-format scale selection shape axis
D3_JS = $(foreach m,$(D3_MODULES),$(D3_DIR)/d3-$m/dist/d3-$m.min.js)
D3_LICENCE = $(D3_MODULES:%=$(D3_DOC)/node-d3-%/copyright)
PAGE_JS = $(addprefix collector/page/,page_format.js page_table.js page_charts.js page_stream.js page_flame.js page_compare.js page_panels.js page.js)
PAGE_GEN = $(BUILD)/gen/page

$(D3_JS) $(D3_LICENCE):
	@echo "no $@: install the packages of scripts/packages.txt"; exit 1

$(PAGE_GEN)/library.js: $(D3_JS) collector/page/page.mk
	@mkdir -p $(@D)
	@if grep -il -e '</script' -e '<!--' $(D3_JS); then echo "cannot stand inside a script element"; exit 1; fi
	$(call say,GEN)
	$(Q)cat $(D3_JS) > $@
$(PAGE_GEN)/licences.txt: $(D3_LICENCE) collector/page/page.mk
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)for f in $(D3_LICENCE); do echo "$$f" | sed 's,.*/\(.*\)/copyright,== \1,'; cat "$$f"; echo; done > $@
$(PAGE_GEN)/page.js: $(PAGE_JS)
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)cat $(PAGE_JS) > $@

$(BUILD)/collector/page/page_assets.o: PROG_FLAGS += -DPAGE_GEN='"$(PAGE_GEN)"'
$(BUILD)/collector/page/page_assets.o: $(PAGE_GEN)/library.js $(PAGE_GEN)/licences.txt $(PAGE_GEN)/page.js \
  collector/page/page.css collector/page/page.html
