/* SPDX-License-Identifier: MIT */
/*
** fakenvrtc.c - a libnvrtc that does what FAKE_NVRTC says, for test_nvrtc.py:
** "old" is of CUDA 11, "refuses" finds an error in each text, "fails" for
** another reason, "garbage" gives code that no driver loads, "dies" has none of
** the functions that it names its version by.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, COMPILATION = 6, INTERNAL = 11, IMAGE = 65536 };

static const char said[] =
    "fused.cu(3): error: identifier \"x\" is undefined\n";

static int is(const char *what) {
  const char *mode = getenv("FAKE_NVRTC");
  return mode && strcmp(mode, what) == 0;
}

int nvrtcVersion(int *major, int *minor) {
  *major = is("old") ? 11 : 13;
  *minor = 0;
  return is("dies") ? INTERNAL : SUCCESS;
}

const char *nvrtcGetErrorString(int status) {
  return status == INTERNAL ? "NVRTC_ERROR_INTERNAL_ERROR" : "?";
}

int nvrtcCreateProgram(void **p, const char *text, const char *file, int n,
                       const char *const *headers, const char *const *names) {
  (void)file, (void)n, (void)headers, (void)names;
  *p = malloc(1);
  return text && *p ? SUCCESS : INTERNAL;
}

int nvrtcDestroyProgram(void **p) {
  free(*p);
  *p = NULL;
  return SUCCESS;
}

int nvrtcCompileProgram(void *p, int n, const char *const *options) {
  (void)p, (void)n, (void)options;
  return is("refuses") ? COMPILATION : is("fails") ? INTERNAL : SUCCESS;
}

int nvrtcAddNameExpression(void *p, const char *name) {
  (void)p, (void)name;
  return SUCCESS;
}

int nvrtcGetLoweredName(void *p, const char *name, const char **lowered) {
  (void)p;
  *lowered = name;
  return SUCCESS;
}

int nvrtcGetPTXSize(void *p, size_t *n) {
  (void)p;
  *n = 0;
  return SUCCESS;
}

int nvrtcGetPTX(void *p, char *ptx) {
  (void)p, (void)ptx;
  return SUCCESS;
}

int nvrtcGetCUBINSize(void *p, size_t *n) {
  (void)p;
  *n = IMAGE;
  return SUCCESS;
}

int nvrtcGetCUBIN(void *p, char *cubin) {
  (void)p;
  memset(cubin, 'x', IMAGE);
  return SUCCESS;
}

int nvrtcGetProgramLogSize(void *p, size_t *n) {
  (void)p;
  *n = is("refuses") ? sizeof said : 1;
  return SUCCESS;
}

int nvrtcGetProgramLog(void *p, char *log) {
  (void)p;
  if (is("refuses")) memcpy(log, said, sizeof said);
  else *log = '\0';
  return SUCCESS;
}

int nvrtcGetNumSupportedArchs(int *n) {
  *n = 1;
  return SUCCESS;
}

int nvrtcGetSupportedArchs(int *list) {
  list[0] = 90;
  return SUCCESS;
}
