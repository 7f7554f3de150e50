/* SPDX-License-Identifier: MIT */
/*
** test_plugin.c - why there is no CUDA device, in one clear error each; and
** that a plug-in is opened where there is one.  What was found holds until
** the process ends, so each case has its own.  The arguments: a library that is
** no plug-in, and the emulated plug-in if it was built.
*/
#define _XOPEN_SOURCE 700
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"
#include "core/accelerator.h"

static const char *emulated, *other;

/* With NACRE_CUDA=wish, does the error hold these words, twice? */
static int refuses(const char *wish, const char *words) {
  const Accelerator *a;
  setenv("NACRE_CUDA", wish, 1);
  for (int i = 0; i < 2; i++) {
    if (nc_accelerator(&a) != NC_EDEVICE || a || nc_open_accelerator())
      return 0;
    if (strncmp(nc_lasterror()->text, "no usable CUDA device: ", 23) != 0 ||
        strstr(nc_lasterror()->text, words) == NULL) {
      fprintf(stderr, "%s: %s\n", wish, nc_lasterror()->text);
      return 0;
    }
    nc_fail(NC_EVALUE, "something else");
  }
  return 1;
}

static int opens(const char *wish, const char *unused) {
  const Accelerator *a, *again;
  const Device *d;
  setenv("NACRE_CUDA", wish, 1);
  return nc_open_accelerator() == NULL && nc_accelerator(&a) == NC_OK &&
         nc_accelerator(&again) == NC_OK && a == again &&
         nc_open_accelerator() == a && a->count >= 1 && a->emulated &&
         nc_finddevice(&d, "cuda") == NC_OK && d == a->device[0] &&
         nc_finddevice(&d, "cuda:0") == NC_OK &&
         nc_finddevice(&d, "cuda:99") == NC_EDEVICE;
}

static void inchild(int (*test)(const char *, const char *), const char *a,
                    const char *b) {
  int status = -1;
  pid_t pid = fork();
  if (pid == 0) _exit(test(a, b) ? 0 : 1);
  assert_true(pid > 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (status != 0) fail_msg("NACRE_CUDA=%s", a);
}

static void test_refusals(void **state) {
  inchild(refuses, "off", "NACRE_CUDA=off turns it off");
  inchild(refuses, "on", "NACRE_CUDA is 'on', not off, emulated or the path");
  inchild(refuses, "/no/such/file.so", "/no/such/file.so is missing");
  inchild(refuses, "/dev/null", "its plug-in cannot be loaded");
  inchild(refuses, other, "is not a plug-in of this program");
  inchild(refuses, "", "this build has no CUDA plug-in (");
}

static void test_opens(void **state) {
  if (*emulated == '\0') skip();
  inchild(opens, emulated, NULL);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_refusals),
                                      cmocka_unit_test(test_opens) };
  if (argc < 2) return 2;
  other = argv[1];
  emulated = argc > 2 ? argv[2] : "";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
