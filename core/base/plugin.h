/* SPDX-License-Identifier: MIT */
/* plugin.h - finds and opens the libraries of this program that are opened at
   first use: the accelerator (accelerator.c), a transport (transport.c). */
#ifndef core_base_plugin_h
#define core_base_plugin_h

#define NC_MAXPATH 4096

/* path = the file beside the program, or where an installation has it.  Without
   one fails and says that there is no `what' plug-in. */
int nc_find_plugin(char path[NC_MAXPATH], const char *what, const char *file);

/* path = the one that the variable of the environment gives. */
int nc_given_plugin(char path[NC_MAXPATH], const char *given);

/* *entry = the function `symbol' of the library, which stays open. */
int nc_plugin_entry(void *entry, const char *path, const char *symbol);

#endif
