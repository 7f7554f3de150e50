/* SPDX-License-Identifier: MIT */
/* find_python.c - see find_python.h. */
#define _POSIX_C_SOURCE 200809L /* popen */
#include "bindings/python/find_python.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Prints the interpreter, its version, and where its library may be. */
static const char question[] =
    "import os, sys, sysconfig\n"
    "var = sysconfig.get_config_var\n"
    "print(sys.executable)\n"
    "print(\"%d.%d\" % sys.version_info[:2])\n"
    "lib = var(\"LIBDIR\") or \"\"\n"
    "for name in (var(\"INSTSONAME\"), var(\"LDLIBRARY\")):\n"
    "  if name and (\".so\" in name or \".dylib\" in name):\n"
    "    for folder in (lib, os.path.join(lib, var(\"MULTIARCH\") or \"\"),\n"
    "                   os.path.join(sys.base_prefix, \"lib\")):\n"
    "      path = os.path.join(folder, name)\n"
    "      if os.path.exists(path): print(path)\n";

/* Appends a line to the names of libraries. */
static void add(FoundPython *f, const char *line) {
  char *end = f->text + sizeof f->text;
  int n = 0;
  char *at = f->text;
  while (f->library[n])
    at = (char *)f->library[n] + strlen(f->library[n]) + 1, n++;
  if (n + 1 >= (int)(sizeof f->library / sizeof *f->library) ||
      (size_t)(end - at) <= strlen(line))
    return;
  f->library[n] = strcpy(at, line);
}

/* Writes the path in quotes for the shell; 0 if there is no room. */
static int quote(char *out, size_t room, const char *path) {
  size_t n = 0;
  out[n++] = '\'';
  for (; *path && n + 8 < room; path++)
    if (*path == '\'') n += (size_t)sprintf(out + n, "'\\''");
    else out[n++] = *path;
  out[n++] = '\'';
  out[n] = '\0';
  return *path == '\0';
}

static int read_line(char *out, int room, FILE *from) {
  if (fgets(out, room, from) == NULL) return 0;
  out[strcspn(out, "\n")] = '\0';
  return 1;
}

/* Runs an interpreter; returns whether it is one. */
static int ask(FoundPython *f, const char *program) {
  char command[4096], line[1024];
  int minor = 0;
  if (!quote(command, 2048, program)) return 0;
  snprintf(command + strlen(command), sizeof command - strlen(command),
           " -I -S -c '%s' 2>/dev/null </dev/null", question);
  FILE *answer = popen(command, "r");
  if (answer == NULL) return 0;
  if (read_line(f->program, sizeof f->program, answer) &&
      read_line(f->version, sizeof f->version, answer))
    while (read_line(line, sizeof line, answer)) add(f, line);
  if (pclose(answer) != 0 || sscanf(f->version, "3.%d", &minor) != 1) {
    f->program[0] = f->version[0] = '\0';
    return 0;
  }
  snprintf(line, sizeof line, "libpython%s.so.1.0", f->version);
  add(f, line);
  snprintf(line, sizeof line, "libpython%s.dylib", f->version);
  add(f, line);
  f->status = minor < 8 ? PYTHON_TOO_OLD : PYTHON_FOUND;
  return 1;
}

static void add_usual_names(FoundPython *f) {
  char name[64];
  for (int minor = 14; minor >= 8; minor--) {
    snprintf(name, sizeof name, "libpython3.%d.so.1.0", minor);
    add(f, name);
  }
  f->status = PYTHON_FOUND;
}

static int is_folder(const char *path) {
  struct stat s;
  return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static int is_library(const char *path) {
  const char *name = strrchr(path, '/');
  name = name ? name + 1 : path;
  return strncmp(name, "libpython", 9) == 0;
}

/* What the user chose: a library, an environment or an interpreter. */
static void take_choice(FoundPython *f, const char *path) {
  char program[1100];
  snprintf(f->choice, sizeof f->choice, "%s", path);
  if (strcmp(path, "none") == 0) {
    f->status = PYTHON_REFUSED;
    return;
  }
  f->status = PYTHON_UNUSABLE;
  if (is_library(path)) {
    add(f, path);
    f->status = PYTHON_FOUND;
  } else if (is_folder(path)) {
    snprintf(program, sizeof program, "%s/bin/python3", path);
    ask(f, program);
  } else ask(f, path);
}

void nl_find_python(FoundPython *f, const char *choice) {
  const char *chosen = getenv("NACRE_PYTHON"), *venv = getenv("VIRTUAL_ENV");
  memset(f, 0, sizeof *f);
  if (choice) {
    f->chosen_by = "the argument";
    take_choice(f, choice);
  } else if (chosen && *chosen) {
    f->chosen_by = "NACRE_PYTHON";
    take_choice(f, chosen);
  } else if (venv && *venv) {
    f->chosen_by = "VIRTUAL_ENV";
    take_choice(f, venv);
  } else if (!ask(f, "python3")) add_usual_names(f);
}

int nl_python_has(const char *program, const char *modules) {
  char command[4096], names[1024];
  if (strspn(modules, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                      "0123456789_. ") != strlen(modules) ||
      strlen(modules) >= sizeof names || !quote(command, 2048, program))
    return 0;
  snprintf(command + strlen(command), sizeof command - strlen(command),
           " -c 'import sys\nfor name in sys.argv[1:]: __import__(name)' %s"
           " >/dev/null 2>&1 </dev/null",
           modules);
  return system(command) == 0;
}
