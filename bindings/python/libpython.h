/* SPDX-License-Identifier: MIT */
/*
** libpython.h - the functions of Python's shared library that the bridge calls.
**
** They are found by name when the library is opened, so that the build needs no
** headers of Python and one program works with each version from 3.8 on. All
** are of the stable ABI, except PyGILState_Check and the buffer protocol, whose
** functions and struct have not changed since 3.0; no other struct of Python is
** read.
*/
#ifndef bindings_python_libpython_h
#define bindings_python_libpython_h

#include <stddef.h>
#include <wchar.h>

typedef struct PyObject PyObject;
typedef struct PyThreadState PyThreadState;
typedef ptrdiff_t Py_ssize_t;
typedef PyObject *PyFunction(PyObject *self, PyObject *args);

typedef struct PyMethodDef {
  const char *name;
  PyFunction *f;
  int flags;                  /* PY_VARARGS */
  const char *doc;
} PyMethodDef;

typedef struct Py_buffer {
  void *buf;
  PyObject *obj;
  Py_ssize_t len, itemsize;
  int readonly, ndim;
  char *format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void *internal;
} Py_buffer;

enum {
  PY_VARARGS = 1,
  PY_BUFFER_WRITABLE = 0x1,
  PY_BUFFER_STRIDED = 0x1c,   /* with format, shape and strides */
  PY_FILE_INPUT = 257, PY_EVAL_INPUT = 258,
  PY_LT = 0, PY_LE = 1
};

/* Bits of PyType_GetFlags: of which class a type is a subclass. */
#define PY_IS_INT   (1ul << 24)
#define PY_IS_LIST  (1ul << 25)
#define PY_IS_TUPLE (1ul << 26)
#define PY_IS_BYTES (1ul << 27)
#define PY_IS_STR   (1ul << 28)
#define PY_IS_DICT  (1ul << 29)
#define PY_IS_TYPE  (1ul << 31)

/* clang-format off */
#define PYTHON_FUNCTIONS(X)                                                   \
  X(const char *, Py_GetVersion, (void))                                      \
  X(wchar_t *, Py_DecodeLocale, (const char *, size_t *))                     \
  X(void, Py_SetProgramName, (const wchar_t *))                               \
  X(int, Py_IsInitialized, (void))                                            \
  X(void, Py_InitializeEx, (int))                                             \
  X(int, Py_FinalizeEx, (void))                                               \
  X(PyThreadState *, PyEval_SaveThread, (void))                               \
  X(void, PyEval_RestoreThread, (PyThreadState *))                            \
  X(int, PyGILState_Check, (void))                                            \
  X(void, Py_IncRef, (PyObject *))                                            \
  X(void, Py_DecRef, (PyObject *))                                            \
  X(PyObject *, PyErr_Occurred, (void))                                       \
  X(void, PyErr_Fetch, (PyObject **, PyObject **, PyObject **))               \
  X(void, PyErr_NormalizeException, (PyObject **, PyObject **, PyObject **))  \
  X(int, PyException_SetTraceback, (PyObject *, PyObject *))                  \
  X(void, PyErr_SetObject, (PyObject *, PyObject *))                          \
  X(void, PyErr_SetString, (PyObject *, const char *))                        \
  X(void, PyErr_Clear, (void))                                                \
  X(int, PyErr_ExceptionMatches, (PyObject *))                                \
  X(int, PyErr_CheckSignals, (void))                                          \
  X(void, PyErr_SetInterrupt, (void))                                         \
  X(PyObject *, PyImport_ImportModule, (const char *))                        \
  X(PyObject *, PyImport_AddModule, (const char *))                           \
  X(PyObject *, PyModule_GetDict, (PyObject *))                               \
  X(PyObject *, Py_CompileString, (const char *, const char *, int))          \
  X(PyObject *, PyEval_EvalCode, (PyObject *, PyObject *, PyObject *))        \
  X(PyObject *, PyObject_Type, (PyObject *))                                  \
  X(unsigned long, PyType_GetFlags, (PyObject *))                             \
  X(int, PyType_IsSubtype, (PyObject *, PyObject *))                          \
  X(PyObject *, PyObject_GetAttr, (PyObject *, PyObject *))                   \
  X(PyObject *, PyObject_GetAttrString, (PyObject *, const char *))           \
  X(int, PyObject_SetAttr, (PyObject *, PyObject *, PyObject *))              \
  X(PyObject *, PyObject_GetItem, (PyObject *, PyObject *))                   \
  X(int, PyObject_SetItem, (PyObject *, PyObject *, PyObject *))              \
  X(int, PyObject_DelItem, (PyObject *, PyObject *))                          \
  X(PyObject *, PyObject_Call, (PyObject *, PyObject *, PyObject *))          \
  X(int, PyObject_IsTrue, (PyObject *))                                       \
  X(Py_ssize_t, PyObject_Size, (PyObject *))                                  \
  X(PyObject *, PyObject_Str, (PyObject *))                                   \
  X(PyObject *, PyObject_Repr, (PyObject *))                                  \
  X(PyObject *, PyObject_GetIter, (PyObject *))                               \
  X(int, PyIter_Check, (PyObject *))                                          \
  X(PyObject *, PyIter_Next, (PyObject *))                                    \
  X(int, PyObject_RichCompareBool, (PyObject *, PyObject *, int))             \
  X(int, PyCallable_Check, (PyObject *))                                      \
  X(int, PyMapping_Check, (PyObject *))                                       \
  X(PyObject *, PyNumber_Add, (PyObject *, PyObject *))                       \
  X(PyObject *, PyNumber_Subtract, (PyObject *, PyObject *))                  \
  X(PyObject *, PyNumber_Multiply, (PyObject *, PyObject *))                  \
  X(PyObject *, PyNumber_TrueDivide, (PyObject *, PyObject *))                \
  X(PyObject *, PyNumber_FloorDivide, (PyObject *, PyObject *))               \
  X(PyObject *, PyNumber_Remainder, (PyObject *, PyObject *))                 \
  X(PyObject *, PyNumber_Power, (PyObject *, PyObject *, PyObject *))         \
  X(PyObject *, PyNumber_And, (PyObject *, PyObject *))                       \
  X(PyObject *, PyNumber_Or, (PyObject *, PyObject *))                        \
  X(PyObject *, PyNumber_Xor, (PyObject *, PyObject *))                       \
  X(PyObject *, PyNumber_Lshift, (PyObject *, PyObject *))                    \
  X(PyObject *, PyNumber_Rshift, (PyObject *, PyObject *))                    \
  X(PyObject *, PyNumber_Negative, (PyObject *))                              \
  X(PyObject *, PyNumber_Invert, (PyObject *))                                \
  X(PyObject *, PyLong_FromLongLong, (long long))                             \
  X(long long, PyLong_AsLongLongAndOverflow, (PyObject *, int *))             \
  X(PyObject *, PyFloat_FromDouble, (double))                                 \
  X(double, PyFloat_AsDouble, (PyObject *))                                   \
  X(PyObject *, PyBool_FromLong, (long))                                      \
  X(PyObject *, PyUnicode_FromStringAndSize, (const char *, Py_ssize_t))      \
  X(PyObject *, PyUnicode_AsUTF8String, (PyObject *))                         \
  X(PyObject *, PyBytes_FromStringAndSize, (const char *, Py_ssize_t))        \
  X(int, PyBytes_AsStringAndSize, (PyObject *, char **, Py_ssize_t *))        \
  X(PyObject *, PyTuple_New, (Py_ssize_t))                                    \
  X(Py_ssize_t, PyTuple_Size, (PyObject *))                                   \
  X(PyObject *, PyTuple_GetItem, (PyObject *, Py_ssize_t))                    \
  X(int, PyTuple_SetItem, (PyObject *, Py_ssize_t, PyObject *))               \
  X(PyObject *, PyList_New, (Py_ssize_t))                                     \
  X(int, PyList_SetItem, (PyObject *, Py_ssize_t, PyObject *))                \
  X(PyObject *, PyDict_New, (void))                                           \
  X(PyObject *, PyDict_Copy, (PyObject *))                                    \
  X(int, PyDict_Update, (PyObject *, PyObject *))                             \
  X(int, PyDict_SetItem, (PyObject *, PyObject *, PyObject *))                \
  X(int, PyDict_Next, (PyObject *, Py_ssize_t *, PyObject **, PyObject **))   \
  X(PyObject *, PyCapsule_New, (void *, const char *, void (*)(PyObject *)))  \
  X(void *, PyCapsule_GetPointer, (PyObject *, const char *))                 \
  X(int, PyCapsule_IsValid, (PyObject *, const char *))                       \
  X(int, PyCapsule_SetName, (PyObject *, const char *))                       \
  X(PyObject *, PyCFunction_NewEx, (PyMethodDef *, PyObject *, PyObject *))   \
  X(int, PyObject_GetBuffer, (PyObject *, Py_buffer *, int))                  \
  X(void, PyBuffer_Release, (Py_buffer *))

/* Objects; those of exceptions are variables that hold a pointer. */
#define PYTHON_OBJECTS(X) \
  X(_Py_NoneStruct) X(PyBool_Type) X(PyFloat_Type) X(PyLong_Type)
#define PYTHON_EXCEPTIONS(X)                                            \
  X(AttributeError) X(BufferError) X(KeyboardInterrupt) X(MemoryError)  \
  X(RuntimeError) X(TypeError) X(ValueError) X(KeyError) X(IndexError)
/* clang-format on */

typedef struct Python {
#define X(result, name, parameters) result(*name) parameters;
  PYTHON_FUNCTIONS(X)
#undef X
#define X(name) PyObject *name;
  PYTHON_OBJECTS(X)
#undef X
#define X(name) PyObject **name;
  PYTHON_EXCEPTIONS(X)
#undef X
} Python;

extern Python nl_py;          /* filled by nl_open_libpython */

/* Opens the library once; later calls give the same result. `choice' is the
   path of an interpreter, of an environment or of a library, or NULL: see
   find_python.c. Returns a status; the record of an error says what to
   install. */
int nl_open_libpython(const char *choice);
const char *nl_libpython(void);     /* the library that is open, or NULL */
/* The interpreter to which the library belongs, or NULL if it is not known. */
const char *nl_python_program(void);

#endif
