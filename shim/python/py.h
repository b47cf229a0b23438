/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py.h - the part of CPython's C API that the shim uses, as weak symbols.
 *
 * No Python headers: one library serves each CPython (contract/pythons.def) and programs without
 * Python. In programs without Python every name below is NULL; py_complete() checks that all
 * required ones exist. Objects are opaque; the layouts used are PyMethodDef, Py_buffer and, after a
 * check at run time, the method pointer of a builtin function (py_codec.c).
 */
#ifndef CREMA_SHIM_PYTHON_PY_H
#define CREMA_SHIM_PYTHON_PY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct _object PyObject;
typedef ssize_t Py_ssize_t;
typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);

typedef struct {
	const char *ml_name;
	void *ml_meth;
	int ml_flags;
	const char *ml_doc;
} PyMethodDef;

typedef struct {
	void *buf;
	PyObject *obj;
	Py_ssize_t len, itemsize;
	int readonly, ndim;
	char *format;
	Py_ssize_t *shape, *strides, *suboffsets;
	void *internal;
	void *spare[4]; /* room in case a later release adds fields */
} Py_buffer;

#define METH_VARARGS 0x0001
#define METH_KEYWORDS 0x0002
#define METH_NOARGS 0x0004
#define METH_O 0x0008
#define METH_FASTCALL 0x0080
#define METH_METHOD 0x0200
#define METH_CALL_MASK                                                                             \
	(METH_VARARGS | METH_KEYWORDS | METH_NOARGS | METH_O | METH_FASTCALL | METH_METHOD)
#define PY_FILE_INPUT 257

/* PY(ret, name, params): required; PY_DATA: a required object. */
#define PY_TABLE                                                                                   \
	PY(int, Py_IsInitialized, (void))                                                          \
	PY(int, PyGILState_Ensure, (void))                                                         \
	PY(void, PyGILState_Release, (int))                                                        \
	PY(void *, PyGILState_GetThisThreadState, (void))                                          \
	PY(void *, PyThreadState_GetInterpreter, (void *))                                         \
	PY(void *, PyInterpreterState_Main, (void))                                                \
	PY(void *, PyInterpreterState_Head, (void))                                                \
	PY(int, PySys_AddAuditHook, (int (*)(const char *, PyObject *, void *), void *))           \
	PY(void, Py_IncRef, (PyObject *))                                                          \
	PY(void, Py_DecRef, (PyObject *))                                                          \
	PY(PyObject *, PyImport_GetModuleDict, (void))                                             \
	PY(PyObject *, PyImport_ImportModule, (const char *))                                      \
	PY(PyObject *, PyModule_GetDict, (PyObject *))                                             \
	PY(PyObject *, PyDict_New, (void))                                                         \
	PY(PyObject *, PyDict_GetItem, (PyObject *, PyObject *))                                   \
	PY(PyObject *, PyDict_GetItemString, (PyObject *, const char *))                           \
	PY(int, PyDict_SetItemString, (PyObject *, const char *, PyObject *))                      \
	PY(PyObject *, PyObject_GetAttr, (PyObject *, PyObject *))                                 \
	PY(PyObject *, PyObject_GetAttrString, (PyObject *, const char *))                         \
	PY(int, PyObject_SetAttrString, (PyObject *, const char *, PyObject *))                    \
	PY(PyObject *, PyObject_Type, (PyObject *))                                                \
	PY(Py_ssize_t, PyObject_Hash, (PyObject *))                                                \
	PY(PyObject *, PyObject_Str, (PyObject *))                                                 \
	PY(PyObject *, PyObject_Call, (PyObject *, PyObject *, PyObject *))                        \
	PY(PyObject *, PyObject_CallObject, (PyObject *, PyObject *))                              \
	PY(PyObject *, PyObject_GetIter, (PyObject *))                                             \
	PY(PyObject *, PyIter_Next, (PyObject *))                                                  \
	PY(Py_ssize_t, PyObject_Size, (PyObject *))                                                \
	PY(int, PyObject_IsTrue, (PyObject *))                                                     \
	PY(int, PyObject_IsInstance, (PyObject *, PyObject *))                                     \
	PY(int, PyObject_GetBuffer, (PyObject *, Py_buffer *, int))                                \
	PY(void, PyBuffer_Release, (Py_buffer *))                                                  \
	PY(const char *, PyExceptionClass_Name, (PyObject *))                                      \
	PY(PyObject *, PyException_GetCause, (PyObject *))                                         \
	PY(PyObject *, PyErr_Occurred, (void))                                                     \
	PY(void, PyErr_Clear, (void))                                                              \
	PY(void, PyErr_Fetch, (PyObject **, PyObject **, PyObject **))                             \
	PY(void, PyErr_Restore, (PyObject *, PyObject *, PyObject *))                              \
	PY(PyObject *, PyUnicode_FromString, (const char *))                                       \
	PY(PyObject *, PyUnicode_InternFromString, (const char *))                                 \
	PY(const char *, PyUnicode_AsUTF8AndSize, (PyObject *, Py_ssize_t *))                      \
	PY(PyObject *, PyUnicode_Join, (PyObject *, PyObject *))                                   \
	PY(PyObject *, PyLong_FromUnsignedLongLong, (unsigned long long))                          \
	PY(unsigned long long, PyLong_AsUnsignedLongLong, (PyObject *))                            \
	PY(long long, PyLong_AsLongLong, (PyObject *))                                             \
	PY(double, PyFloat_AsDouble, (PyObject *))                                                 \
	PY(PyObject *, PyEval_GetFrame, (void))                                                    \
	PY(PyObject *, PyFrame_GetBack, (PyObject *))                                              \
	PY(PyObject *, PyFrame_GetCode, (PyObject *))                                              \
	PY(int, PyFrame_GetLineNumber, (PyObject *))                                               \
	PY(PyObject *, PyTuple_New, (Py_ssize_t))                                                  \
	PY(Py_ssize_t, PyTuple_Size, (PyObject *))                                                 \
	PY(PyObject *, PyTuple_GetItem, (PyObject *, Py_ssize_t))                                  \
	PY(int, PyTuple_SetItem, (PyObject *, Py_ssize_t, PyObject *))                             \
	PY(PyObject *, PySet_New, (PyObject *))                                                    \
	PY(int, PySet_Add, (PyObject *, PyObject *))                                               \
	PY(Py_ssize_t, PySet_Size, (PyObject *))                                                   \
	PY(Py_ssize_t, PyList_Size, (PyObject *))                                                  \
	PY(PyObject *, PyList_GetItem, (PyObject *, Py_ssize_t))                                   \
	PY(int, PyList_Sort, (PyObject *))                                                         \
	PY(PyObject *, PySequence_List, (PyObject *))                                              \
	PY(PyObject *, PyCFunction_NewEx, (PyMethodDef *, PyObject *, PyObject *))                 \
	PY(void *, PyCFunction_GetFunction, (PyObject *))                                          \
	PY(int, PyCFunction_GetFlags, (PyObject *))                                                \
	PY(PyObject *, PyCFunction_GetSelf, (PyObject *))                                          \
	PY(PyObject *, PyDescr_NewMethod, (PyObject *, PyMethodDef *))                             \
	PY(PyObject *, PyStaticMethod_New, (PyObject *))                                           \
	PY(PyObject *, PyCapsule_New, (void *, const char *, void (*)(PyObject *)))                \
	PY(void *, PyCapsule_GetPointer, (PyObject *, const char *))                               \
	PY(void *, PyCapsule_GetContext, (PyObject *))                                             \
	PY(int, PyCapsule_SetContext, (PyObject *, void *))                                        \
	PY(int, PyCallable_Check, (PyObject *))                                                    \
	PY(PyObject *, PyContextVar_New, (const char *, PyObject *))                               \
	PY(int, PyContextVar_Get, (PyObject *, PyObject *, PyObject **))                           \
	PY(PyObject *, PyContextVar_Set, (PyObject *, PyObject *))                                 \
	PY(int, PyContextVar_Reset, (PyObject *, PyObject *))                                      \
	PY(PyObject *, PyEval_GetBuiltins, (void))                                                 \
	PY(PyObject *, PyEval_EvalCode, (PyObject *, PyObject *, PyObject *))                      \
	PY(PyObject *, Py_CompileString, (const char *, const char *, int))                        \
	PY(const char *, Py_GetVersion, (void))                                                    \
	PY_DATA(_Py_NoneStruct)                                                                    \
	PY_DATA(PyCFunction_Type)                                                                  \
	PY_DATA(PyTuple_Type)                                                                      \
	PY_DATA(PyList_Type)                                                                       \
	PY_DATA(PyDict_Type)                                                                       \
	PY_DATA(PySet_Type)                                                                        \
	PY_DATA(PyUnicode_Type)                                                                    \
	PY_DATA(PyCode_Type)                                                                       \
	PY_DATA(PyBytes_Type)

#define PY(ret, name, params) extern ret name params __attribute__((weak));
#define PY_DATA(name) extern struct _object name __attribute__((weak));
struct _object {
	ssize_t refcount_is_not_read_here;
};
PY_TABLE
#undef PY
#undef PY_DATA

/* Since 3.13: a new reference in *item. Returns 1, 0 (none) or -1 (an exception). */
extern int PyDict_GetItemRef(PyObject *, PyObject *, PyObject **) __attribute__((weak));
/* Since 3.13; without the GIL they hold the object's lock, but not while the thread waits. */
struct py_section {
	uintptr_t word[2];
};
extern void PyCriticalSection_Begin(struct py_section *, PyObject *) __attribute__((weak));
extern void PyCriticalSection_End(struct py_section *) __attribute__((weak));

/* Not exported before 3.11; py_vectorcall() works without it. */
extern PyObject *PyObject_Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *)
	__attribute__((weak));

extern char _PyRuntime[] __attribute__((weak));

/* The attached thread state: its name before 3.13, and since; py_in_main() works with either. */
extern void *_PyThreadState_UncheckedGet(void) __attribute__((weak));
extern void *PyThreadState_GetUnchecked(void) __attribute__((weak));

#define PY_NONE (&_Py_NoneStruct)

/* 1 if every name of the table is there. */
int py_complete(void);

/* 1 if this thread holds the GIL of the main interpreter. Any thread of any program may call this.
 * Once there is another interpreter, PyGILState_Check() returns 1 in every thread. */
int py_in_main(void);
/* 1 if this thread, which holds a GIL, runs another interpreter. py_complete(). */
int py_in_another(void);

/* 1 in a free-threaded build. Python is initialised. */
int py_without_gil(void);

/*
 * Where there is no GIL, turns take its place for what the functions of this folder share: one
 * thread at a time has one, and like the GIL it is lost to others while the thread waits or lets
 * Python run. With the GIL all of this does nothing. Where a comment asks for the GIL, a turn is
 * meant, too.
 *
 * Each function that Python calls begins with PY_TURN, which holds until it returns; inside of
 * another one it does nothing. What the host program would do anyhow, and all that may take long,
 * runs between py_turn_pause() and py_turn_resume(), or by py_original() and py_original_call().
 */
struct py_turn {
	struct py_section section;
	int mine;
};
#define PY_TURN                                                                                    \
	struct py_turn turn __attribute__((cleanup(py_turn_end)));                                 \
	py_turn_begin(&turn)
void py_turn_begin(struct py_turn *t);
void py_turn_end(struct py_turn *t);
/* NULL: this thread had none. */
struct py_turn *py_turn_pause(void);
void py_turn_resume(struct py_turn *t);
/* Before any other thread exists. 0, or -ENOTSUP: a free-threaded Python that has no such lock. */
int py_turns_ready(void);

/* 1 if type(o) is exactly `type`. */
int py_is(PyObject *o, PyObject *type);

PyObject *py_vectorcall(PyObject *f, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
/* f(...) without this thread's turn. */
PyObject *py_original(PyObject *f, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *py_original_call(PyObject *f, PyObject *args, PyObject *kwargs);

/* dict[key], a new reference; NULL: none, without an exception. For a dict that other threads may
 * change meanwhile. */
PyObject *py_item(PyObject *dict, PyObject *key);
PyObject *py_item_string(PyObject *dict, const char *key);

/* Attribute or NULL without an exception; new reference. `name` is an interned str. */
PyObject *py_attr(PyObject *o, PyObject *name);
PyObject *py_attr_string(PyObject *o, const char *name);

/* Module of sys.modules, NULL if absent or not fully imported yet; new reference. */
PyObject *py_module(const char *name);
/* The same; *is_there: 1 also if it is not fully imported yet. */
PyObject *py_module_of(const char *name, int *is_there);

/* Id in the arena of str(o) (NULL, None: 0). Never leaves an exception. */
unsigned py_text_id(PyObject *o);
unsigned py_bulk_id(PyObject *o); /* by arena_bulk_id() */

/* A builtin function named `name`, METH_FASTCALL | METH_KEYWORDS unless *def differs; new
 * reference. */
PyObject *py_builtin(PyMethodDef *def, PyObject *self, const char *module);

/* (self,) + args, with args[0] replaced by `first` if there is one; new reference. */
PyObject *py_with_self(PyObject *self, PyObject *args, PyObject *first);

/* Calls a replaced method of a class, without this thread's turn: original(self, *args, **kwargs).
 */
PyObject *py_call_original(PyObject *original, PyObject *self, PyObject *args, PyObject *kwargs);
/* Replaces class.(def->ml_name) with the method of *def, which must stay valid, and keeps the old
 * one in *original. 0, or -ENOENT: the class (may be NULL) has no such method. */
int py_replace(PyObject *class, PyMethodDef *def, PyObject **original);
/* The same for a function of a module, whose name is given. */
int py_replace_function(PyObject *module, const char *name, PyMethodDef *def, PyObject **original);
/* The same for a module's class. */
int py_replace_in(PyObject *module, const char *class, PyMethodDef *def, PyObject **original);

/* o.method(), o.method(a) or o.method(a, b), and o.method(i); new reference. */
PyObject *py_call(PyObject *o, const char *method, PyObject *a, PyObject *b);
PyObject *py_call_index(PyObject *o, const char *method, Py_ssize_t i);

/* Keeps the exception that is set, if any, across shim work. */
struct py_error {
	PyObject *type, *value, *trace;
};
void py_error_save(struct py_error *e);
void py_error_restore(struct py_error *e);

/* Records what the agent needs to find this thread's Python stack. */
void py_thread_tell(void);

#endif
