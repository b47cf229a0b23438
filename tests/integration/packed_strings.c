/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packed_strings.c - an extension module that works like Cython's: it unpacks its strings with zlib
 * while it is imported, three times. It is built without Python's headers, which may be missing.
 */
typedef struct object object;

object *PyImport_ImportModule(const char *name);
object *PyObject_GetAttrString(object *o, const char *name);
object *PyObject_CallFunctionObjArgs(object *f, ...);
object *PyModule_Create2(void *definition, int version);
int PyModule_AddObject(object *module, const char *name, object *value);

static struct {
	long references;
	void *type, *init;
	long index;
	void *copy;
	const char *name, *doc;
	long size;
	void *rest[5];
} definition = {.references = 1, .name = "packed_strings", .size = -1};

object *PyInit_packed_strings(void)
{
	object *packed = PyObject_GetAttrString(PyImport_ImportModule("codec_cases"), "STRINGS");
	object *unpack = PyObject_GetAttrString(PyImport_ImportModule("zlib"), "decompress");
	object *module = PyModule_Create2(&definition, 1013);

	for (int i = 0; i < 3; i++)
		PyModule_AddObject(module, "strings",
				   PyObject_CallFunctionObjArgs(unpack, packed, (object *)0));
	return module;
}
