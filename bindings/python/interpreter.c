/* SPDX-License-Identifier: MIT */
/*
** interpreter.c - starts Python, holds its lock while it is used, and ends it.
**
** Ctrl-C stays the program's: its handler calls nl_interrupt_python, and
** Python raises KeyboardInterrupt at its next instruction. Code that installs a
** handler of its own for SIGINT has the signal while it runs.
*/
#define _POSIX_C_SOURCE 200809L /* sigaction */
#include "bindings/python/interpreter.h"
#include "bindings/lua_library.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct {
  enum { ABSENT, RUNNING, ENDED } state;
  pthread_t thread;     /* Lua's */
  PyThreadState *saved; /* of that thread, while it does not hold the lock */
  int depth;            /* of nl_hold */
  lua_State *L;
  PyObject *bridge;        /* the module _nacre */
  struct sigaction ctrl_c; /* the program's handler */
} python;

struct BridgeClasses nl_bridge_classes;

static _Atomic(Later *) later;
static volatile sig_atomic_t inside, tripped;

int nl_python_runs(void) {
  return python.state == RUNNING;
}

/* Async-signal-safe. */
void nl_interrupt_python(void) {
  if (!inside) return;
  tripped = 1;
  py.PyErr_SetInterrupt();
}

static void release_all(void) {
  Later *item = atomic_exchange(&later, NULL);
  while (item) {
    Later *next = item->next;
    item->release(item);
    item = next;
  }
}

int nl_enter_lua(void) {
  const int was = inside;
  nl_keep_point(); /* code of Python may have set a locale */
  inside = 0;
  if (atomic_load(&later)) release_all();
  return was;
}

void nl_leave_lua(int was) {
  inside = was;
}

void nl_release_later(Later *item, void (*release)(Later *item)) {
  /* Lua's thread lacks the lock where PyTorch computes gradients, for one */
  if (pthread_equal(pthread_self(), python.thread) && py.PyGILState_Check()) {
    release(item);
    return;
  }
  item->release = release;
  item->next = atomic_load(&later);
  while (!atomic_compare_exchange_weak(&later, &item->next, item)) {
  }
}

lua_State *nl_python_state(void) {
  return python.depth > 0 && pthread_equal(pthread_self(), python.thread)
             ? python.L
             : NULL;
}

void nl_hold(lua_State *L) {
  if (L) python.L = L;
  if (python.depth++ > 0) return;
  py.PyEval_RestoreThread(python.saved);
  inside = 1;
  if (atomic_load(&later)) release_all();
}

/* Code of Python may have replaced the handler of the program. */
static void take_back_signal(void) {
  struct sigaction now;
  if (sigaction(SIGINT, NULL, &now) == 0 &&
      now.sa_handler != python.ctrl_c.sa_handler)
    sigaction(SIGINT, &python.ctrl_c, NULL);
}

void nl_unhold(void) {
  if (--python.depth > 0) return;
  inside = 0;
  if (tripped) { /* and not seen by Python any more: Lua sees it */
    tripped = 0;
    if (py.PyErr_CheckSignals() < 0) py.PyErr_Clear();
  }
  take_back_signal();
  nl_keep_point();
  python.saved = py.PyEval_SaveThread();
}

void nl_forget(PyObject *o) {
  if (o) py.Py_DecRef(o);
}

void nl_forget_collected(lua_State *L, PyObject *o) {
  lua_State *outer = python.L;
  nl_hold(L);
  nl_forget(o);
  nl_unhold();
  python.L = outer;
}

/*
** The functions of Lua
*/
int nl_call_python(lua_State *L, lua_CFunction f) {
  lua_State *outer = python.L;
  const int was = inside;
  int status;
  luaL_checkstack(L, 10, NULL);
  if (nc_interrupted) nl_check(L, nc_fail(NC_EINTR, "interrupted"));
  if (!nl_python_runs()) return nl_error(L, "python", "Python has ended");
  lua_pushcfunction(L, f);
  lua_insert(L, 1);
  nl_hold(L);
  inside = 1;
  status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  nl_unhold();
  inside = was;
  python.L = outer;
  if (status == LUA_OK) return lua_gettop(L);
  if (lua_type(L, -1) == LUA_TSTRING) /* of luaL_argerror, without a name */
    luaL_gsub(L, lua_tostring(L, -1), " to '?'", "");
  return lua_error(L);
}

/* Upvalue 1 is the function. */
static int entry(lua_State *L) {
  return nl_call_python(L, lua_tocfunction(L, lua_upvalueindex(1)));
}

void nl_push_entry(lua_State *L, lua_CFunction f) {
  lua_pushcfunction(L, f);
  lua_pushcclosure(L, entry, 1);
}

/*
** Start and end
*/
PyObject *nl_bridge(const char *name) {
  PyObject *o = py.PyObject_GetAttrString(python.bridge, name);
  nl_forget(o); /* the module keeps it */
  return o;
}

PyObject *nl_call_object(PyObject *f, PyObject *a, PyObject *b) {
  PyObject *args = f ? py.PyTuple_New((a != NULL) + (b != NULL)) : NULL;
  if (args == NULL) return NULL;
  if (a) py.Py_IncRef(a);
  if (b) py.Py_IncRef(b);
  if (a) py.PyTuple_SetItem(args, 0, a); /* takes the reference */
  if (b) py.PyTuple_SetItem(args, 1, b);
  PyObject *result = py.PyObject_Call(f, args, NULL);
  nl_forget(args);
  return result;
}

PyObject *nl_ask(const char *name, PyObject *a, PyObject *b) {
  return nl_call_object(nl_bridge(name), a, b);
}

int nl_ask_yes(lua_State *L, const char *name, PyObject *a, PyObject *b) {
  PyObject *answer = nl_need(L, nl_ask(name, a, b));
  const int yes = py.PyObject_IsTrue(answer) == 1;
  nl_forget(answer);
  return yes;
}

static int add_to(PyObject *dict, const char *name, PyObject *value) {
  PyObject *key =
      py.PyUnicode_FromStringAndSize(name, (Py_ssize_t)strlen(name));
  const int r = key && value ? py.PyDict_SetItem(dict, key, value) : -1;
  nl_forget(key);
  nl_forget(value);
  return r;
}

static int add_functions(PyObject *dict) {
  PyMethodDef *const list[] = { &nl_function_calls, &nl_python_write,
                                &nl_export_dlpack };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if (add_to(dict, list[i]->name, py.PyCFunction_NewEx(list[i], NULL, NULL)) <
        0)
      return -1;
  return 0;
}

/* Runs python_bridge.py as the module _nacre. Returns -1, with an exception, if
   that fails. */
static int run_bridge(void) {
  const Embedded *e = nl_embedded;
  while (strcmp(e->name, "nacre.python_bridge") != 0) e++;
  char *text = malloc(e->size + 1);
  PyObject *code, *done = NULL;
  if (text == NULL) return -1;
  memcpy(text, e->text, e->size);
  text[e->size] = '\0';
  code = py.Py_CompileString(text, "<nacre>", PY_FILE_INPUT);
  free(text);
  python.bridge = py.PyImport_AddModule("_nacre");
  if (code && python.bridge) {
    PyObject *dict = py.PyModule_GetDict(python.bridge);
    py.Py_IncRef(python.bridge);
    if (add_to(dict, "__builtins__", py.PyImport_ImportModule("builtins")) ==
            0 &&
        add_functions(dict) == 0)
      done = py.PyEval_EvalCode(code, dict, dict);
  }
  nl_forget(code);
  if (done == NULL) return -1;
  nl_forget(done);
  nl_bridge_classes.function = nl_bridge("Function");
  nl_bridge_classes.tensor = nl_bridge("Tensor");
  done = nl_ask("start", NULL, NULL);
  nl_forget(done);
  return done ? 0 : -1;
}

/* Not in a handler of exit(): others, which ran before, have destroyed what
   Python's libraries need. From within Python it cannot be ended. */
void nl_end_python(lua_State *L) {
  if (python.state != RUNNING || python.depth > 0) return;
  python.L = L;
  py.PyEval_RestoreThread(python.saved);
  python.depth++; /* what is released now takes no lock */
  release_all();
  nl_forget_classes();
  inside = 1; /* Ctrl-C ends the wait for threads */
  py.Py_FinalizeEx();
  inside = 0;
  python.state = ENDED;
}

/* In the child of a fork nothing of Python is ended: it is the parent's. */
static void forget_python(void) {
  python.state = python.state == RUNNING ? ENDED : python.state;
}

/* Python runs: may it be what is chosen now? */
static void check_choice(lua_State *L, const char *choice) {
  const char *program = nl_python_program();
  if (choice == NULL || strchr(choice, '/') == NULL ||
      strcmp(choice, nl_libpython()) == 0 ||
      (program && strncmp(program, choice, strlen(choice)) == 0))
    return;
  nl_error(L, "python", "Python is already running: %s; a process has only one",
           program ? program : nl_libpython());
}

/* With less memory Python 3.11 may try without end to import its modules. */
static void check_room(lua_State *L) {
  const int64_t least = 16 << 20, room = nc_hostavailable();
  if (room >= least) return;
  nl_check_as(L,
              nc_fail(NC_ENOMEM,
                      "Python needs 16 MiB of memory to start, %lld MiB are "
                      "free",
                      (long long)(room >> 20)),
              "python");
}

void nl_start_python(lua_State *L, const char *choice) {
  int failed;
  if (python.state == ENDED)
    nl_error(L, "python",
             "Python has ended, and can start only once in a "
             "process");
  if (python.state == RUNNING) {
    check_choice(L, choice);
    return;
  }
  nl_check_as(L, nl_open_libpython(choice), "python");
  check_room(L);
  python.thread = pthread_self();
  sigaction(SIGINT, NULL, &python.ctrl_c);
  if (nl_python_program()) {
    wchar_t *name = py.Py_DecodeLocale(nl_python_program(), NULL);
    if (name) py.Py_SetProgramName(name); /* which keeps it */
  }
  py.Py_InitializeEx(0);
  failed = run_bridge() < 0;
  take_back_signal();
  if (failed)
    nl_check_as(L, nc_fail(NC_EFILE, "Python did not start"), "python");
  python.state = RUNNING;
  python.saved = py.PyEval_SaveThread();
  pthread_atfork(NULL, NULL, forget_python);
}
