/* SPDX-License-Identifier: MIT */
/* plugin.h - finds and opens the libraries of this program that are opened at
   first use: the accelerator (accelerator.c), a transport (transport.c). */
#ifndef core_base_plugin_h
#define core_base_plugin_h

#include "core/transport.h"

#define NC_MAXPATH 4096

/* What the core passes to a transport; nc_forplugins is the same for devices
   (core/trace/plugin_services.c). */
extern const TransportCore nc_fortransports;

/* path = the file next to the program, or where an installation has it. If
   there is none, fails with a message about the `what' plug-in. */
int nc_find_plugin(char path[NC_MAXPATH], const char *what, const char *file);

/* path = the one that the variable of the environment gives. */
int nc_given_plugin(char path[NC_MAXPATH], const char *given);

/* *entry = the function `symbol' of the library, which stays open. */
int nc_plugin_entry(void *entry, const char *path, const char *symbol);

#endif
