/* SPDX-License-Identifier: MIT */
/*
** interpreter.h - what the files of the bridge to Python share.
**
** Python has one interpreter in the process. The thread that runs Lua holds
** its lock (the GIL) only while a function of Python runs, so that threads of
** Python go on while Lua computes or the prompt waits. nl_hold and nl_unhold
** enclose all uses of nl_py; a C function for Lua gets that from
** nl_push_entry, which also protects it: an error of Lua must not skip
** nl_unhold. A reference to a Python object is held by a box, a userdata,
** wherever a call of the Lua API may raise an error.
**
** A function of nl_py that fails leaves an exception and gives NULL or -1. The
** functions below that give a PyObject * do the same; those that push raise it
** as a Lua error.
*/
#ifndef bindings_python_interpreter_h
#define bindings_python_interpreter_h

#include "bindings/binding.h"
#include "bindings/python/libpython.h"

#define py nl_py
#define PY_NONE py._Py_NoneStruct

/*
** The interpreter (interpreter.c)
*/
/* Starts Python, unless it runs. Raises an error. [-0, +0, e] */
void nl_start_python(lua_State *L, const char *choice);
/* Is it there: started, and not yet ended? */
int nl_python_runs(void);
void nl_hold(lua_State *L);   /* L may be NULL: for work without Lua */
void nl_unhold(void);
/* The Lua state that runs, of the innermost nl_hold; NULL for another thread
   than Lua's, or if there is none. */
lua_State *nl_python_state(void);
/* While Lua runs inside of Python, Ctrl-C is Lua's. nl_leave_lua takes what
   nl_enter_lua gave. */
int nl_enter_lua(void);
void nl_leave_lua(int was);
/* Calls f with the arguments on the stack between nl_hold and nl_unhold,
   protected, and returns how many results there are. [-n, +n, e] */
int nl_call_python(lua_State *L, lua_CFunction f);
/* Pushes a function that does that. [-0, +1, m] */
void nl_push_entry(lua_State *L, lua_CFunction f);
/* The attribute of the module that python_bridge.py is; borrowed. */
PyObject *nl_bridge(const char *name);
/* f(a, b), or f(a), f() if b, a are NULL; all are borrowed. nl_ask calls a
   function of the bridge; nl_ask_yes one that tells yes or no, and raises the
   exception. */
PyObject *nl_call_object(PyObject *f, PyObject *a, PyObject *b);
PyObject *nl_ask(const char *name, PyObject *a, PyObject *b);
int nl_ask_yes(lua_State *L, const char *name, PyObject *a, PyObject *b);
extern struct BridgeClasses {
  PyObject *function, *tensor;
} nl_bridge_classes;
/* Calls release(item) on Lua's thread with the lock of Python: now, or when
   Python is next used. From any thread, with the lock or without. */
typedef struct Later {        /* the first field of the item */
  struct Later *next;
  void (*release)(struct Later *item);
} Later;
void nl_release_later(Later *item, void (*release)(Later *item));
void nl_forget(PyObject *o);  /* Py_DecRef; o may be NULL */
/* The same for the collector of Lua, which runs without the lock: what is
   destroyed may call Lua. */
void nl_forget_collected(lua_State *L, PyObject *o);

/*
** Errors (exceptions.c)
*/
/* Raises the exception of Python as a Lua error. [-0, +0, v] */
int nl_raise(lua_State *L);
/* The same, with a hint. */
int nl_raise_hint(lua_State *L, const char *hint);
/* Raises it if o is NULL; else gives o. [-0, +0, e] */
PyObject *nl_need(lua_State *L, PyObject *o);
/* Pops the Lua error on top, and makes it an exception of Python.
   [-1, +0, -] */
void nl_set_exception(lua_State *L);
/* Are there n? Else there is an exception. For what Python calls. */
int nl_has_arguments(PyObject *args, int n);
/* Clears an exception; was it of this class? */
int nl_clear_if(PyObject *class);

/*
** Values (lua_to_python.c, python_to_lua.c)
*/
/* A new reference; NULL, with an exception, for what Python cannot have.
   [-0, +0, e] */
PyObject *nl_to_python(lua_State *L, int i);
/* The same in a box, which is pushed; raises exceptions. [-0, +1, e] */
PyObject *nl_push_converted(lua_State *L, int i);
/* The table at index i as a list or a tuple of its elements, or as a dict.
   [-0, +0, e] */
PyObject *nl_list_of(lua_State *L, int i);
PyObject *nl_tuple_of(lua_State *L, int i);
PyObject *nl_dict_of(lua_State *L, int i);
/* Pushes a tuple of the values at indices from to last, in a box.
   [-0, +1, e] */
PyObject *nl_push_tuple(lua_State *L, int from, int last);
/* Pushes the object as a value of Lua, or as a box. Takes the reference, which
   may be NULL: then it raises the exception. [-0, +1, e] */
void nl_push_value(lua_State *L, PyObject *o);
/* The same, always as a box. */
void nl_push_object(lua_State *L, PyObject *o);
/* The same, but None becomes py.none. [-0, +1, e] */
void nl_push_element(lua_State *L, PyObject *o);
/* Before the end of Python: a class that is kept keeps its whole module. */
void nl_forget_classes(void);
unsigned long nl_type_flags(PyObject *o);
int nl_is_a(PyObject *o, PyObject *type);     /* exactly of this type? */

/*
** Boxes (python_object.c)
*/
/* Pushes an empty box. [-0, +1, m] */
PyObject **nl_new_object(lua_State *L);
/* The object of the box at index i, borrowed; NULL for another value.
   [-0, +0, -] */
PyObject *nl_object_at(lua_State *L, int i);
PyObject *nl_check_object(lua_State *L, int i);
void nl_open_objects(lua_State *L);
/* Makes the table on top, of functions that look at objects for the shell, the
   field `looks' of their metatable. [-1, +0, m] */
void nl_describe_objects(lua_State *L);
#define NL_PYTHON_KWARGS "nacre.python_kwargs" /* the metatable of py.kwargs */
/* iter(object): what `for' needs for its values. A lua_CFunction. */
int nl_python_iter(lua_State *L);

/*
** Functions of Lua in Python (lua_function.c)
*/
/* A new object that calls the value at index i. [-0, +0, e] */
PyObject *nl_new_function(lua_State *L, int i);
/* A capsule that keeps the value at index i, and that value. */
PyObject *nl_new_reference(lua_State *L, int i);
/* Pushes the value; 0, with nothing pushed, for another object or if it is of
   another Lua state. [-0, +(0|1), m] */
int nl_push_referenced(lua_State *L, PyObject *capsule);
extern PyMethodDef nl_function_calls;         /* the module's `call' */
void nl_open_references(lua_State *L);

/*
** Tensors (tensor_to_python.c, tensor_from_python.c)
*/
PyObject *nl_share_tensor(lua_State *L, int i);
/* Pushes the tensor that the capsule of a shared object keeps; 0 for another
   object. [-0, +(0|1), e] */
int nl_push_shared(lua_State *L, PyObject *capsule);
extern PyMethodDef nl_export_dlpack;
/* tensor(object): pushes a tensor of its memory. A lua_CFunction. */
int nl_tensor_of(lua_State *L);

/* Output (python_output.c) */
extern PyMethodDef nl_python_write;

#endif
