/* SPDX-License-Identifier: MIT */
/*
** doctor.c - --version and --doctor: the version, the devices and libraries
** that were found, the terminal. session_commands.lua adds the files.
*/

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lua.h>

#include "bindings/tensors/defaults.h"
#include "repl/host/repl.h"
#include "core/accelerator.h"
#include "core/library.h"

void sh_version(void) {
  printf(SH_NAME " " SH_VERSION "%s  " LUA_RELEASE "\n", sh_commit);
}

void sh_longversion(void) {
  char text[512];
  sh_version();
  printf("editor    %s\n", sh_editorname());
  nl_configtext(text, sizeof text);
  printf("%s\n", text);
#ifdef __VERSION__
  printf("compiler  " __VERSION__ "\n");
#endif
}

extern char **environ;

static void variable(const char *name, size_t n, const char *value) {
  char text[4096];
  printf("variable  %.*s=%s\n", (int)n, name,
         nc_printable(text, sizeof text, value, strlen(value)));
}

/* Variables that say how the program works. */
static void environment(void) {
  static const char *const others[] = {
    "LUA_INIT_5_4",         "LUA_INIT",   "LUA_PATH_5_4", "LUA_PATH",
    "LUA_CPATH_5_4",        "LUA_CPATH",  "NO_COLOR",     "CLICOLOR_FORCE",
    "CUDA_VISIBLE_DEVICES", "VIRTUAL_ENV"
  };
  for (char **entry = environ; *entry; entry++)
    if (strncmp(*entry, "NACRE_", 6) == 0)
      variable(*entry, strcspn(*entry, "="), strchr(*entry, '=') + 1);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (getenv(others[i]))
      variable(others[i], strlen(others[i]), getenv(others[i]));
}

char *sh_terminaltext(char text[NC_TEXT]) {
  snprintf(text, NC_TEXT, "%d columns, %s, %s", sh_columns(),
           sh_utf8() ? "UTF-8" : "no UTF-8",
           sh_color(STDOUT_FILENO) ? "colours" : "no colours");
  return text;
}

static void place(const char *terminal) {
  char text[NC_TEXT];
  printf("memory    %s free\n", nc_bytestext(text, (double)nc_hostavailable()));
  printf("terminal  %s\n", terminal);
  environment();
}

static void rooms(const Accelerator *a) {
  for (int i = 0; i < a->count; i++) {
    char room[NC_TEXT], total[NC_TEXT];
    MemoryInfo m;
    if (a->memory(i, &m) != NC_OK) {
      printf("%-9s %s\n", a->device[i]->name, nc_lasterror()->text);
      continue;
    }
    nc_bytestext(room, (double)m.free);
    nc_bytestext(total, (double)m.total);
    printf("%-9s %s free of %s\n", a->device[i]->name, room, total);
  }
}

static void cuda(void) {
  const Accelerator *a;
  const char *text;
  if (nc_accelerator(&a) != NC_OK) {
    const Error *e = nc_lasterror();
    printf("cuda      %s\n", e->text);
    if (e->hint[0]) printf("          %s\n", e->hint);
    return;
  }
  for (int i = 0; (text = a->fact(i)) != NULL; i++)
    printf("cuda      %s\n", text);
  rooms(a);
}

/* A library that is opened when needed. */
static void library(const char *what, const char *name) {
  if (name) printf("%-9s %s\n", what, name);
  else printf("%-9s none: %s\n", what, nc_lasterror()->text);
}

void sh_doctor(const char *terminal) {
  if (nc_openlibraries() != NC_OK) puts(nc_lasterror()->text);
  sh_longversion();
  library("images", nc_pnglibrary());
  library("jpeg", nc_jpeglibrary());
  library("npz", nc_ziplibrary());
  library("hdf5", nc_hdf5library());
  library("pictures", sh_rsvg_library());
  library("notebooks", sh_zmq_library());
  library("", sh_sodium_library());
  place(terminal);
  cuda();
}
