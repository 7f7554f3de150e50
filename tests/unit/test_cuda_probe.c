/* SPDX-License-Identifier: MIT */
/*
** test_cuda_probe.c - what is said of drivers that are of no use.  The first
** argument is a driver library that says what it is told to (fakecuda.c), the
** second a library that is no driver.
*/
#define _XOPEN_SOURCE 700
#include "cuda/runtime/probe.h"
#include "tests/unit/unit.h"
#include "core/accelerator.h"

static const char *fake, *nodriver, *code = "75-real 80-real 90";

/* Probes a driver that answers with these numbers. */
static int answer(const char *driver) {
  setenv("NACRE_CUDA_DRIVER", fake, 1);
  setenv("FAKECUDA", driver, 1);
  return nc_probe(&nc_forplugins, 13000, code);
}

static void refuses(const char *driver, const char *text, const char *hint) {
  fails(answer(driver), NC_EDEVICE, text);
  hints(hint);
}

static void test_missing(void **state) {
  setenv("NACRE_CUDA_DRIVER", "/no/such/libcuda.so.1", 1);
  fails(nc_probe(&nc_forplugins, 13000, code), NC_EDEVICE,
        "there is no NVIDIA driver on this machine");
  hints("--gpus all");
  setenv("NACRE_CUDA_DRIVER", nodriver, 1);
  fails(nc_probe(&nc_forplugins, 13000, code), NC_EDEVICE,
        "is not an NVIDIA driver");
}

static void test_good(void **state) {
  ok(answer("0 13000 1 9 0"));
  ok(answer("0 13010 8 7 5"));
  setenv("FAKECUDA", "0 12040 1 9 0", 1);
  ok(nc_probe(&nc_forplugins, 12060, code)); /* one of 12.x runs all of 12 */
  ok(nc_probe(&nc_forplugins, 12080, code));
  setenv("FAKECUDA", "0 12030 1 9 0", 1);
  ok(nc_probe(&nc_forplugins, 12060, code));
}

/* What the program wraps around it keeps signals from a driver's threads. */
static void test_signals(void **state) {
  sigset_t before, after;
  ok(answer("0 13000 1 9 0"));
  assert_string_equal(getenv("FAKECUDA_SIGINT"), "free");
  nc_holdsignals(&before);
  ok(answer("0 13000 1 9 0"));
  nc_freesignals(&before);
  assert_string_equal(getenv("FAKECUDA_SIGINT"), "held");
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  assert_false(sigismember(&after, SIGINT));
}

static void test_old(void **state) {
  refuses("0 12020 1 9 0",
          "too old: it supports CUDA 12.2, this build needs "
          "13.0",
          "update the driver (to R580");
  refuses("0 13000 1 6 1",
          "its compute capability is 6.1, this build needs 7.5", "");
}

/* Code that CUDA 12.8 and later compress is not for all drivers of CUDA 12. */
static void test_compressed(void **state) {
  answer("0 12030 1 9 0");
  fails(nc_probe(&nc_forplugins, 12080, code), NC_EDEVICE,
        "it supports CUDA 12.3, this build needs 12.4");
  hints("R550");
}

/* A build without code for the GPU is told before anything is begun. */
static void test_nocode(void **state) {
  const char *all = code;
  code = "90";
  refuses("0 13000 1 7 5",
          "no code for the GPU: its compute capability is 7.5, "
          "the code is for 90",
          "build it with -DNACRE_CUDA_ARCH=75");
  refuses("0 13000 2 8 9", "its compute capability is 8.9",
          "NACRE_CUDA_ARCH=89");
  ok(answer("0 13000 1 9 0"));
  ok(answer("0 13000 1 12 0")); /* the driver compiles it */
  code = "90-real";
  refuses("0 13000 1 12 0", "its compute capability is 12.0", "ARCH=120");
  code = "";
  ok(answer("0 13000 1 8 9"));
  code = all;
}

static void test_codefor(void **state) {
  static const struct {
    const char *code;
    int cc;
    Code found;
  } cases[] = {
    { "75-real 80-real 90", 75, CODE_READY },
    { "75-real 80-real 90", 86, CODE_READY },
    { "75-real 80-real 90", 89, CODE_READY },
    { "75-real 80-real 90", 90, CODE_READY },
    { "75-real 80-real 90", 100, CODE_COMPILED },
    { "75-real 80-real 90", 120, CODE_COMPILED },
    { "86-real", 80, CODE_NONE },
    { "86-real", 89, CODE_READY },
    { "90-virtual", 90, CODE_COMPILED },
    { "90-virtual", 89, CODE_NONE },
    { "90a-real", 90, CODE_READY },
    { "90a", 100, CODE_NONE },
    { "100-real 120", 103, CODE_READY },
    { "100-real 120", 110, CODE_NONE },
    { "100-real 120", 121, CODE_READY },
    { "120-real 75", 90, CODE_COMPILED },
  };
  for (int i = 0; i < COUNT(cases); i++)
    if (nc_codefor(cases[i].code, cases[i].cc) != cases[i].found)
      fail_msg("%s for %d", cases[i].code, cases[i].cc);
}

static void test_none(void **state) {
  unsetenv("CUDA_VISIBLE_DEVICES");
  refuses("100 13000 0 0 0", "reports no GPU", "nvidia-smi");
  refuses("0 13000 0 0 0", "reports no GPU", "nvidia-smi");
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  refuses("100 13000 0 0 0", "reports no GPU",
          "CUDA_VISIBLE_DEVICES='7' hides");
}

static void test_broken(void **state) {
  refuses("34 0 0 0 0", "the toolkit's stub", "LD_LIBRARY_PATH");
  refuses("802 13000 0 0 0", "is not ready yet", "nvidia-fabricmanager");
  refuses("803 13000 0 0 0", "of different versions", "reboot");
  refuses("804 13000 0 0 0", "compatibility package", "LD_LIBRARY_PATH");
  refuses("999 13000 0 0 0", "failed to start (error 999)", "nvidia_uvm");
  refuses("304 13000 0 0 0", "failed to start (error 304)", "nvidia_uvm");
  refuses("1 13000 0 0 0", "failed to start (error 1)", "nvidia-smi");
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_missing), cmocka_unit_test(test_good),
    cmocka_unit_test(test_old),     cmocka_unit_test(test_none),
    cmocka_unit_test(test_broken),  cmocka_unit_test(test_compressed),
    cmocka_unit_test(test_nocode),  cmocka_unit_test(test_codefor),
    cmocka_unit_test(test_signals)
  };
  if (argc < 3) return 2;
  fake = argv[1];
  nodriver = argv[2];
  return cmocka_run_group_tests(tests, NULL, NULL);
}
