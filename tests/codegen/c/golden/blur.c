/* blur: scheduled by tilesmith with method hand.
   The 3x3 box filter of TACO 2019's running example, as two passes of integer means; Halide's app "blur".
   Compile with OpenMP for threads. */
#define TILESMITH_SUPPORT
#include "blur.h"

#define BLUR_X_0(y) (blur_x_0 + (blur_x_stride_0 * ((y) & 3) - blur_y_0_min0))

int32_t tilesmith_blur(tilesmith_buffer *input_0, tilesmith_buffer *blur_y_0) {
  const int query = (input_0 && !input_0->data) || (blur_y_0 && !blur_y_0->data);
  if (UNLIKELY(!ts_is_image(input_0, 2, query) || !ts_is_image(blur_y_0, 2, 0))) return TILESMITH_E_ARGUMENT;
  const int64_t input_0_min0 = input_0->min[0];
  const int64_t input_0_min1 = input_0->min[1];
  const int64_t blur_y_0_min0 = blur_y_0->min[0];
  const int64_t blur_y_0_extent0 = blur_y_0->extent[0];
  const int64_t blur_y_0_min1 = blur_y_0->min[1];
  const int64_t blur_y_0_extent1 = blur_y_0->extent[1];

  /* what the requested region needs of every stage and input */
  const int64_t blur_y_x_hi_0 = blur_y_0_extent0 + blur_y_0_min0 - 1;
  const int64_t blur_y_y_hi_0 = blur_y_0_extent1 + blur_y_0_min1 - 1;
  if (UNLIKELY(ts_far(0, blur_y_y_hi_0 + 2))) return TILESMITH_E_ARGUMENT;
  if (UNLIKELY(ts_far(0, blur_y_x_hi_0 + 2))) return TILESMITH_E_ARGUMENT;
  const int64_t input_0_lo[] = {blur_y_0_min0, blur_y_0_min1};
  const int64_t input_0_hi[] = {blur_y_x_hi_0 + 2, blur_y_y_hi_0 + 2};
  if (UNLIKELY(query || !ts_covers(input_0, 2, input_0_lo, input_0_hi))) {
    ts_require(input_0, 2, input_0_lo, input_0_hi);
    return TILESMITH_E_REGION;
  }

  int32_t status = TILESMITH_E_MEMORY;
  ts_slot own[BLOCKS] = {{0}};
  ts_slot *const slots = __atomic_test_and_set(&ts_busy, __ATOMIC_ACQUIRE) ? own : ts_kept;
  tilesmith_buffer input_0_image = *input_0;
  if (UNLIKELY(!ts_dense(slots, &input_0_image, (const int[]){0, 1}, sizeof(uint16_t), 1))) goto finish;
  tilesmith_buffer blur_y_0_image = *blur_y_0;
  if (UNLIKELY(!ts_dense(slots, &blur_y_0_image, (const int[]){0, 1}, sizeof(uint16_t), 0))) goto finish;
  const uint16_t *restrict const input_0_data = input_0_image.data;
  const int64_t input_0_stride1 = input_0_image.stride[1];
  uint16_t *restrict const blur_y_0_data = blur_y_0_image.data;
  const int64_t blur_y_0_stride1 = blur_y_0_image.stride[1];

  /* blur_y: y.outer, x.outer, y.inner, x.inner */
  const int64_t blur_x_x_size_0 = ts_max(blur_y_x_hi_0 - blur_y_0_min0 + 1, 32);

  /* buffers of every thread */
  int64_t scratch0_bytes = 0;
  const int64_t blur_x_stride_0 = ts_pitch(blur_x_x_size_0, sizeof(uint16_t));
  const int64_t blur_x_0_at = ts_reserve(&scratch0_bytes, ts_times(blur_x_stride_0, 4) + 64, sizeof(uint16_t));
  char *const scratch0 = ts_take(slots, ts_times(scratch0_bytes, THREADS));
  if (UNLIKELY(!scratch0)) goto finish;

  /* y.outer of blur_y */
  PARALLEL(ts_share(((blur_y_y_hi_0 - blur_y_0_min1) >> 7) + 1))
  for (int64_t y_0 = blur_y_0_min1; y_0 <= blur_y_y_hi_0; y_0 += 128) {
    char *const mine_scratch0 = scratch0 + scratch0_bytes * THREAD;
    uint16_t *restrict const blur_x_0 = (uint16_t *)(mine_scratch0 + blur_x_0_at);
    const int64_t y_hi_0 = ts_min(blur_y_y_hi_0, y_0 + 127);
    int64_t blur_x_y_done_0 = y_0;

    /* y.inner of blur_y, 2 ahead to fill windows */
    for (int64_t y_1 = y_0 - 2; y_1 <= y_hi_0; y_1++) {
      const int64_t y_lo_0 = ts_max(y_0, y_1);

      /* blur_x: computed at y.inner, stored at x.outer */
      for (int64_t y_2 = blur_x_y_done_0; y_2 <= y_1 + 2; y_2++) {
        const uint16_t *const input_1 = input_0_data + ((y_2 - input_0_min1) * input_0_stride1 - input_0_min0);
        uint16_t *const blur_x_1 = BLUR_X_0(y_2);
        const int64_t x_first_0 = blur_y_0_min0;
        const int64_t x_last_0 = ts_last_vector(x_first_0, blur_y_x_hi_0 - 31, 32);
        const int64_t x_from_0 = x_first_0, x_to_0 = x_last_0 + 32;
        for (int64_t x_step_0 = x_first_0; x_step_0 <= x_last_0 + 31; x_step_0 += 32) {
          const int64_t xv_0 = x_step_0 < x_last_0 ? x_step_0 : x_last_0;
          STORE(u16x32, blur_x_1 + xv_0, (LOAD(u16x32, input_1 + xv_0) + LOAD(u16x32, input_1 + (xv_0 + 1))
            + LOAD(u16x32, input_1 + (xv_0 + 2))) / 3);
        }
        for (int64_t x_0 = blur_y_0_min0; x_0 <= blur_y_x_hi_0; x_0++) {
          if (x_0 == x_from_0 && (x_0 = x_to_0) > blur_y_x_hi_0) break;
          blur_x_1[x_0] = ts_div_u16((uint16_t)((uint16_t)(input_1[x_0] + input_1[x_0 + 1]) + input_1[x_0 + 2]), 3);
        }
      }
      for (int64_t y_3 = y_lo_0; y_3 <= y_1; y_3++) {
        uint16_t *const blur_x_2 = BLUR_X_0(y_3);
        uint16_t *const blur_x_4 = BLUR_X_0(y_3 + 1);
        uint16_t *const blur_x_6 = BLUR_X_0(y_3 + 2);
        uint16_t *const blur_y_1 = blur_y_0_data + ((y_3 - blur_y_0_min1) * blur_y_0_stride1 - blur_y_0_min0);
        const int64_t x_first_1 = blur_y_0_min0;
        const int64_t x_last_1 = ts_last_vector(x_first_1, blur_y_x_hi_0 - 31, 32);
        const int64_t x_from_1 = x_first_1, x_to_1 = x_last_1 + 32;
        for (int64_t x_step_1 = x_first_1; x_step_1 <= x_last_1 + 31; x_step_1 += 32) {
          const int64_t xv_1 = x_step_1 < x_last_1 ? x_step_1 : x_last_1;
          STORE(u16x32, blur_y_1 + xv_1, (LOAD(u16x32, blur_x_2 + xv_1) + LOAD(u16x32, blur_x_4 + xv_1)
            + LOAD(u16x32, blur_x_6 + xv_1)) / 3);
        }
        for (int64_t x_1 = blur_y_0_min0; x_1 <= blur_y_x_hi_0; x_1++) {
          if (x_1 == x_from_1 && (x_1 = x_to_1) > blur_y_x_hi_0) break;
          blur_y_1[x_1] = ts_div_u16((uint16_t)((uint16_t)(blur_x_2[x_1] + blur_x_4[x_1]) + blur_x_6[x_1]), 3);
        }
      }
      blur_x_y_done_0 = ts_max(blur_x_y_done_0, y_1 + 3);
    }
  }

  ts_undense(&blur_y_0_image, blur_y_0, sizeof(uint16_t));
  status = TILESMITH_OK;
finish:
  ts_end(slots, TILESMITH_KEEP && slots == ts_kept && status == TILESMITH_OK);
  return status;
}

int32_t tilesmith_blur_argv(void **args) {
  return tilesmith_blur(args[0], args[1]);
}

/* Also when the library is unloaded. What a call has is that call's to give back. */
__attribute__((destructor)) void tilesmith_blur_release(void) {
  if (!__atomic_test_and_set(&ts_busy, __ATOMIC_ACQUIRE)) ts_end(ts_kept, 0);
}
