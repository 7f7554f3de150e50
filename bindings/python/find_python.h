/* SPDX-License-Identifier: MIT */
/* find_python.h - which Python, and how its shared library may be called. */
#ifndef bindings_python_find_python_h
#define bindings_python_find_python_h

typedef struct FoundPython {
  enum {
    PYTHON_ABSENT,            /* nothing says where one is */
    PYTHON_FOUND,             /* library[] is to be tried */
    PYTHON_TOO_OLD,
    PYTHON_UNUSABLE,          /* what was chosen is no Python */
    PYTHON_REFUSED            /* the choice is "none" */
  } status;
  const char *chosen_by;      /* "NACRE_PYTHON"; NULL: nobody chose */
  char choice[1024];          /* what was chosen */
  char program[1024];         /* the interpreter, or "" */
  char version[16];           /* "3.11", or "" if it is not known */
  char text[8192];            /* what library[] points into */
  const char *library[32];    /* paths and names, which NULL ends */
} FoundPython;

/* Looks at `choice', or, if that is NULL, at NACRE_PYTHON, VIRTUAL_ENV and
   PATH, in this order; what is found first decides. An interpreter is run once
   and asked for its library. Without any the usual names are left. */
void nl_find_python(FoundPython *f, const char *choice);

/* Can the interpreter import the modules, names separated by blanks? They are
   imported in a process of their own. */
int nl_python_has(const char *program, const char *modules);

#endif
