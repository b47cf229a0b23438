/* SPDX-License-Identifier: BSD-3-Clause */
/* test_code_names.c - files of code that was sent without their names (code_names.h). */
#include "findings_fixture.h"

#include "collector/report/code_names.h"

#define CODE                                                                                       \
	"[[\"/home/a/analysis.py\", [[\"P.process\", 5, 9], [\"P.process.<locals>.<lambda>\", 7, " \
	"7], "                                                                                     \
	"[\"both\", 20, 30]]], [\"In[3]\", [[\"fill\", 1, 4], [\"both\", 25, 35], [3], \"x\"]], "  \
	"7]"

static const char *named(const char *function, uint64_t line, const char *file)
{
	const struct fx_place place = {function, file, line, true};
	struct fixture *fx = fx_new();
	json_t *code = json_loads(CODE, 0, NULL);
	const struct line_place *p;
	static char found[64];

	fx_hello(fx, 1, "{}");
	fx_samples(fx, 1, 1, true, 1, 1, &place);
	assert_int_equal(code_names_set(&fx->m, code), 0);
	assert_int_equal(fx->m.lines.rows.n, 1);
	p = fx->m.lines.rows.v[0]->list->place[0];
	assert_true(p->line == line && !strcmp(p->function, function));
	snprintf(found, sizeof(found), "%s", p->file);
	json_decref(code);
	fx_free(fx);
	return found;
}

static void test_places(void **state)
{
	static const char dynamic[] = "<dynamic-code>", script[] = "/home/a/analysis.py";

	(void)state;
	assert_string_equal(named("P.process", 5, dynamic), script);
	assert_string_equal(named("process", 9, dynamic), script); /* Python 3.10 */
	assert_string_equal(named("P.process.<locals>.<lambda>", 7, dynamic), script);
	assert_string_equal(named("fill", 1, dynamic), "In[3]");
	assert_string_equal(named("both", 24, dynamic), script);
	assert_string_equal(named("both", 35, dynamic), "In[3]");
	/* outside, in two files, of an unknown name, and of a known file */
	assert_string_equal(named("P.process", 4, dynamic), dynamic);
	assert_string_equal(named("P.process", 10, dynamic), dynamic);
	assert_string_equal(named("<lambda>", 8, dynamic), dynamic);
	assert_string_equal(named("both", 25, dynamic), dynamic);
	assert_string_equal(named("process_more", 5, dynamic), dynamic);
	assert_string_equal(named("P.process", 5, "/b.py"), "/b.py");
}

static void test_lines_as_text(void **state)
{
	static const struct {
		const char *line, *due;
	} lines[] = {
		{"<dynamic-code>:6 P.process", "/home/a/analysis.py:6 P.process"},
		{"<dynamic-code>:4 fill", "In[3]:4 fill"},
		{"<dynamic-code>:5 fill", "<dynamic-code>:5 fill"},
		{"<dynamic-code>:", "<dynamic-code>:"},
		{"<dynamic-code>", "<dynamic-code>"},
		{"/b.py:6 P.process", "/b.py:6 P.process"},
	};
	json_t *code = json_loads(CODE, 0, NULL);
	struct opened_line opened = {0};
	struct column_row column = {0};
	struct file_row file = {.opened = {&opened, 1, 1}};
	struct column_row *columns[] = {&column};
	struct file_row *files[] = {&file};
	struct doing doing = {.attempt = 1};
	struct worker worker = {.doing = {&doing, 1, 1}}, *workers[] = {&worker};
	struct model m;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		model_init(&m);
		m.columns.v = columns;
		m.files.v = files;
		m.workers.v = workers;
		m.columns.n = m.files.n = m.workers.n = 1;
		snprintf(doing.line, sizeof(doing.line), "%s", lines[i].line);
		column.line[1] = opened.line = lines[i].line;
		assert_int_equal(code_names_set(&m, code), 0);
		assert_string_equal(column.line[1], lines[i].due);
		assert_string_equal(opened.line, lines[i].due);
		assert_string_equal(doing.line, lines[i].due);
		assert_null(column.line[0]);
		m.columns.v = NULL;
		m.files.v = NULL;
		m.workers.v = NULL;
		m.columns.n = m.files.n = m.workers.n = 0;
		model_release(&m);
	}
	json_decref(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_lines_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
