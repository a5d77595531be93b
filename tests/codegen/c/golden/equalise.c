/* equalise: scheduled by tilesmith with method hand.
   Grey values spread over the whole range.
   Compile with OpenMP for threads. */
#define TILESMITH_SUPPORT
#include "equalise.h"

#define INPUT_0(y) (input_0_data + (((y) - input_0_min1) * input_0_stride1 - input_0_min0))

int32_t tilesmith_equalise(tilesmith_buffer *input_0, float gain_0, tilesmith_buffer *output_0,
  tilesmith_buffer *output_1) {
  (void)gain_0;
  const int query = (input_0 && !input_0->data) || (output_0 && !output_0->data) || (output_1 && !output_1->data);
  if (UNLIKELY(!ts_is_image(input_0, 2, query) || !ts_is_image(output_0, 2, 0)
    || !ts_is_image(output_1, 2, 0))) return TILESMITH_E_ARGUMENT;
  if (UNLIKELY(output_1->min[0] != output_0->min[0]
    || output_1->extent[0] != output_0->extent[0])) return TILESMITH_E_ARGUMENT;
  if (UNLIKELY(output_1->min[1] != output_0->min[1]
    || output_1->extent[1] != output_0->extent[1])) return TILESMITH_E_ARGUMENT;
  const int64_t input_0_min0 = input_0->min[0];
  const int64_t input_0_extent0 = input_0->extent[0];
  const int64_t input_0_min1 = input_0->min[1];
  const int64_t input_0_extent1 = input_0->extent[1];
  const int64_t output_0_min0 = output_0->min[0];
  const int64_t output_0_extent0 = output_0->extent[0];
  const int64_t output_0_min1 = output_0->min[1];
  const int64_t output_0_extent1 = output_0->extent[1];
  const int64_t output_1_min0 = output_1->min[0];
  const int64_t output_1_min1 = output_1->min[1];

  /* what the requested region needs of every stage and input */
  const int64_t output_x_hi_0 = output_0_extent0 + output_0_min0 - 1;
  const int64_t output_y_hi_0 = output_0_extent1 + output_0_min1 - 1;
  if (UNLIKELY(ts_far(0, ts_max(0, input_0_extent0 - 1)) || ts_far(0,
    ts_max(0, input_0_extent1 - 1)))) return TILESMITH_E_ARGUMENT;
  const int64_t input_x_lo_0 = ts_min(0, output_0_min0);
  const int64_t input_x_hi_0 = ts_max(ts_max(0, input_0_extent0 - 1), output_x_hi_0);
  const int64_t input_y_lo_0 = ts_min(0, output_0_min1);
  const int64_t input_y_hi_0 = ts_max(ts_max(0, input_0_extent1 - 1), output_y_hi_0);
  if (UNLIKELY(ts_far(input_x_lo_0, input_x_hi_0) || ts_far(input_y_lo_0, input_y_hi_0))) return TILESMITH_E_ARGUMENT;
  const int64_t input_0_lo[] = {input_x_lo_0, input_y_lo_0};
  const int64_t input_0_hi[] = {input_x_hi_0, input_y_hi_0};
  if (UNLIKELY(query || !ts_covers(input_0, 2, input_0_lo, input_0_hi))) {
    ts_require(input_0, 2, input_0_lo, input_0_hi);
    return TILESMITH_E_REGION;
  }

  int32_t status = TILESMITH_E_MEMORY;
  ts_slot own[BLOCKS] = {{0}};
  ts_slot *const slots = __atomic_test_and_set(&ts_busy, __ATOMIC_ACQUIRE) ? own : ts_kept;
  tilesmith_buffer input_0_image = *input_0;
  if (UNLIKELY(!ts_dense(slots, &input_0_image, (const int[]){0, 1}, sizeof(uint8_t), 1))) goto finish;
  tilesmith_buffer output_0_image = *output_0;
  if (UNLIKELY(!ts_dense(slots, &output_0_image, (const int[]){0, 1}, sizeof(float), 0))) goto finish;
  tilesmith_buffer output_1_image = *output_1;
  if (UNLIKELY(!ts_dense(slots, &output_1_image, (const int[]){0, 1}, sizeof(uint8_t), 0))) goto finish;
  const uint8_t *restrict const input_0_data = input_0_image.data;
  const int64_t input_0_stride1 = input_0_image.stride[1];
  float *restrict const output_0_data = output_0_image.data;
  const int64_t output_0_stride1 = output_0_image.stride[1];
  uint8_t *restrict const output_1_data = output_1_image.data;
  const int64_t output_1_stride1 = output_1_image.stride[1];

  uint32_t *restrict const histogram_0 = ts_take(slots, ts_block(256, sizeof(uint32_t)));
  if (UNLIKELY(!histogram_0)) goto finish;

  /* histogram: i.inner */
  for (int64_t i_0 = 0; i_0 <= 255; i_0++) {
    histogram_0[i_0] = 0u;
  }

  /* update 0 of histogram: ry, rx */
  for (int64_t ry_0 = 0; ry_0 <= input_0_extent1 - 1; ry_0++) {
    const uint8_t *const input_1 = INPUT_0(ry_0);
    for (int64_t rx_0 = 0; rx_0 <= input_0_extent0 - 1; rx_0++) {
      const _Bool t_0 = input_1[rx_0] > 0;
      if (t_0) {
        const int64_t i_1 = (int64_t)input_1[rx_0];
        histogram_0[i_1] = (uint32_t)(histogram_0[i_1] + 1u);
      }
    }
  }

  /* update 1 of histogram: r */
  for (int64_t r_0 = 1; r_0 <= 255; r_0++) {
    histogram_0[r_0] = (uint32_t)(histogram_0[r_0] + histogram_0[r_0 - 1]);
  }

  /* output: y.inner, x.inner */
  for (int64_t y_0 = output_0_min1; y_0 <= output_y_hi_0; y_0++) {
    const uint8_t *const input_4 = INPUT_0(y_0);
    float *const output_2 = output_0_data + ((y_0 - output_0_min1) * output_0_stride1 - output_0_min0);
    uint8_t *const output_3 = output_1_data + ((y_0 - output_1_min1) * output_1_stride1 - output_1_min0);
    for (int64_t x_0 = output_0_min0; x_0 <= output_x_hi_0; x_0++) {
      const uint8_t input_5 = input_4[x_0];
      output_2[x_0] = (float)histogram_0[((int64_t)input_5)] * gain_0;
      output_3[x_0] = input_5;
    }
  }
  ts_give(slots, histogram_0);

  ts_undense(&output_0_image, output_0, sizeof(float));
  ts_undense(&output_1_image, output_1, sizeof(uint8_t));
  status = TILESMITH_OK;
finish:
  ts_end(slots, TILESMITH_KEEP && slots == ts_kept && status == TILESMITH_OK);
  return status;
}

int32_t tilesmith_equalise_argv(void **args) {
  return tilesmith_equalise(args[0], *(const float *)args[1], args[2], args[3]);
}

/* Also when the library is unloaded. What a call has is that call's to give back. */
__attribute__((destructor)) void tilesmith_equalise_release(void) {
  if (!__atomic_test_and_set(&ts_busy, __ATOMIC_ACQUIRE)) ts_end(ts_kept, 0);
}
