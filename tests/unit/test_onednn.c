/* SPDX-License-Identifier: MIT */
/*
** test_onednn.c - what core/cpu/product/onednn.h declares of oneDNN is what
** the header of oneDNN says, where that is installed.
*/
#include "core/cpu/product/onednn.h"

#include "tests/unit/unit.h"

#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>

static void test_constants(void **state) {
  assert_int_equal(dnnl_cpu, DNN_CPU);
  assert_int_equal(dnnl_stream_in_order, DNN_IN_ORDER);
  assert_int_equal(dnnl_scratchpad_mode_user, DNN_USER_SCRATCHPAD);
  assert_int_equal(dnnl_forward_training, DNN_FORWARD_TRAINING);
  assert_int_equal(dnnl_convolution_direct, DNN_DIRECT);
  assert_int_equal(dnnl_format_tag_any, DNN_ANY_LAYOUT);
  assert_int_equal(dnnl_f16, DNN_F16);
  assert_int_equal(dnnl_bf16, DNN_BF16);
  assert_int_equal(dnnl_f32, DNN_F32);
}

static void test_queries(void **state) {
  assert_int_equal(dnnl_query_impl_info_str, DNN_QUERY_NAME);
  assert_int_equal(dnnl_query_src_md, DNN_QUERY_SOURCE);
  assert_int_equal(dnnl_query_diff_src_md, DNN_QUERY_SOURCE + 1);
  assert_int_equal(dnnl_query_weights_md, DNN_QUERY_WEIGHT);
  assert_int_equal(dnnl_query_diff_weights_md, DNN_QUERY_WEIGHT + 1);
  assert_int_equal(dnnl_query_dst_md, DNN_QUERY_RESULT);
  assert_int_equal(dnnl_query_diff_dst_md, DNN_QUERY_RESULT + 1);
  assert_int_equal(dnnl_query_scratchpad_md, DNN_QUERY_SCRATCHPAD);
}

static void test_arguments(void **state) {
  assert_int_equal(DNNL_ARG_SRC, DNN_ARG_SOURCE);
  assert_int_equal(DNNL_ARG_DST, DNN_ARG_RESULT);
  assert_int_equal(DNNL_ARG_WEIGHTS, DNN_ARG_WEIGHT);
  assert_int_equal(DNNL_ARG_BIAS, DNN_ARG_BIAS);
  assert_int_equal(DNNL_ARG_DIFF_SRC, DNN_ARG_SOURCE + DNN_ARG_GRADIENT);
  assert_int_equal(DNNL_ARG_DIFF_DST, DNN_ARG_RESULT + DNN_ARG_GRADIENT);
  assert_int_equal(DNNL_ARG_DIFF_WEIGHTS, DNN_ARG_WEIGHT + DNN_ARG_GRADIENT);
  assert_int_equal(DNNL_ARG_SCRATCHPAD, DNN_ARG_SCRATCHPAD);
  assert_int_equal(DNNL_ARG_FROM, DNN_ARG_SOURCE);
  assert_int_equal(DNNL_ARG_TO, DNN_ARG_RESULT);
}

#if DNNL_VERSION_MAJOR == 2
static void test_structs(void **state) {
  assert_true(sizeof(dnnl_memory_desc_t) <= sizeof((DnnArray *)0)->room);
  assert_true(sizeof(dnnl_convolution_desc_t) <= DNN_OPERATION);
  assert_true(sizeof(dnnl_matmul_desc_t) <= DNN_OPERATION);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_constants),
    cmocka_unit_test(test_queries),
    cmocka_unit_test(test_arguments),
#if DNNL_VERSION_MAJOR == 2
    cmocka_unit_test(test_structs),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) {
  puts("skip: the header of oneDNN is not installed");
  return 77;
}
#endif
