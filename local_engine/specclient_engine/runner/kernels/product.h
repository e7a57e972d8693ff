/* Matrix products, tile by tile. */
#pragma once
#include "stages.h"

/* A tile is `rows` rows by `vectors` vectors of outputs, its sums in registers: at most 12 by 2 of a strip of
 * weights, so that a dozen drafted tokens are computed while the weights stream by once, or 6 by 4 of a panel
 * of the cache, which is at hand already and whose rows are weighed in larger pieces. */

/* Sums stay in registers only if the compiler unrolls every loop over rows and vectors. */
#define UNROLL _Pragma("GCC unroll 12")

/* Asks for what comes a kilobyte later: behind a tile of many rows the processor's own guesses do not reach
 * far enough, and memory and arithmetic would take turns. */
static inline void fetch(const uint8_t *weights) {
    _mm_prefetch((const char *)weights + 1024, _MM_HINT_T0);
    _mm_prefetch((const char *)weights + 1088, _MM_HINT_T0);
}

/* Sums over `steps` steps of float32 or bfloat16 numbers, on top of what `out` holds if `more`. */
static inline __attribute__((always_inline)) void multiply_float(
    const int bf16, const int rows, const int vectors, const uint8_t *x, int64_t stride, const uint8_t *weights,
    int steps, const int more, float *out) {
    __m512 sum[STRIP_ROWS][VECTORS];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[r][v] = more ? _mm512_load_ps(out + 16 * (r * vectors + v)) : _mm512_setzero_ps();
    for (int s = 0; s < steps; s++) {
        __m512 w[VECTORS];
        UNROLL
        for (int v = 0; v < vectors; v++)
            w[v] = _mm512_load_ps((const float *)(weights + 64 * ((int64_t)s * vectors + v)));
        UNROLL
        for (int r = 0; r < rows; r++) {
            __m512 a = _mm512_set1_ps(*(const float *)(x + r * stride + 4 * s));
            UNROLL
            for (int v = 0; v < vectors; v++) {
                if (bf16) __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum[r][v]) : "v"(a), "v"(w[v]));
                else __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum[r][v]) : "v"(a), "v"(w[v]));
            }
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int v = 0; v < vectors; v++) _mm512_store_ps(out + 16 * (r * vectors + v), sum[r][v]);
}

/* The same for int8: exact sums over each group, scaled and added up in order. Weights are stored + 128,
 * as the instruction takes unsigned times signed; `offset` takes that out again. */
static inline __attribute__((always_inline)) void multiply_int8(
    const int rows, const uint8_t *x, int64_t stride, const float *scale, const int32_t *offset, int groups,
    const uint8_t *weights, float *out) {
    for (int g = 0; g < groups; g++) {
        __m512i sum[STRIP_ROWS][2];
        UNROLL
        for (int r = 0; r < rows; r++)
            UNROLL
            for (int v = 0; v < 2; v++) sum[r][v] = _mm512_set1_epi32(offset[r * groups + g]);
        for (int s = g * (GROUP / 4); s < (g + 1) * (GROUP / 4); s++) {
            __m512i w[2];
            UNROLL
            for (int v = 0; v < 2; v++) w[v] = _mm512_load_si512(weights + 64 * ((int64_t)s * 2 + v));
            if (rows > 8) fetch(weights + 128 * (int64_t)s);
            UNROLL
            for (int r = 0; r < rows; r++) {
                __m512i a = _mm512_set1_epi32(*(const int32_t *)(x + r * stride + 4 * s));
                UNROLL
                for (int v = 0; v < 2; v++)
                    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum[r][v]) : "v"(w[v]), "v"(a));
            }
        }
        UNROLL
        for (int r = 0; r < rows; r++) {
            __m512 by = _mm512_set1_ps(scale[r * groups + g]);
            UNROLL
            for (int v = 0; v < 2; v++) {
                float *to = out + 16 * (r * 2 + v);
                __m512 before = g ? _mm512_load_ps(to) : _mm512_setzero_ps();
                _mm512_store_ps(to, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][v]), by, before));
            }
        }
    }
}

#define UP_TO_6(CALL) CALL(1) CALL(2) CALL(3) CALL(4) CALL(5) CALL(6)
#define UP_TO_12(CALL) UP_TO_6(CALL) CALL(7) CALL(8) CALL(9) CALL(10) CALL(11) CALL(12)

static void strip_float(int kind, int rows, const uint8_t *x, int64_t stride, const uint8_t *strip, int steps,
                        float *out) {
#define CALL(N) case N: multiply_float(0, N, 2, x, stride, strip, steps, 0, out); return;
    if (kind == FLOAT32) switch (rows) { UP_TO_12(CALL) }
#undef CALL
#define CALL(N) case N: multiply_float(1, N, 2, x, stride, strip, steps, 0, out); return;
    switch (rows) { UP_TO_12(CALL) }
#undef CALL
}

static void strip_int8(int rows, const uint8_t *x, int64_t stride, const float *scale, const int32_t *offset,
                       int groups, const uint8_t *strip, float *out) {
#define CALL(N) case N: multiply_int8(N, x, stride, scale, offset, groups, strip, out); return;
    switch (rows) { UP_TO_12(CALL) }
#undef CALL
}

/* A tile against a panel of the cache: `more` adds to what is there. */
static void panel_tile(int kind, int rows, const uint8_t *x, int64_t stride, const uint8_t *panel, int steps,
                       int more, float (*out)[PANEL]) {
#define CALL(N) case N: multiply_float(0, N, VECTORS, x, stride, panel, steps, more, out[0]); return;
    if (kind == FLOAT32) switch (rows) { UP_TO_6(CALL) }
#undef CALL
#define CALL(N) case N: multiply_float(1, N, VECTORS, x, stride, panel, steps, more, out[0]); return;
    switch (rows) { UP_TO_6(CALL) }
#undef CALL
}

/* Puts a tile where it belongs. SWIGLU: the strip holds 16 gates, then the 16 values they open. */
static void settle(int mode, const Matrix *m, int strip, int rows, float (*block)[STRIP], float *out,
                   int64_t stride) {
    int64_t column = (int64_t)strip * STRIP;
    for (int r = 0; r < rows; r++) {
        float *row = out + r * stride;
        __m512 y[2];
        for (int v = 0; v < 2; v++) {
            y[v] = _mm512_load_ps(&block[r][16 * v]);
            __m512 bias = m->bias ? _mm512_loadu_ps(m->bias + column + 16 * v) : _mm512_setzero_ps();
            y[v] = m->scale ? _mm512_fmadd_ps(y[v], _mm512_loadu_ps(m->scale + column + 16 * v), bias)
                            : _mm512_add_ps(y[v], bias);
        }
        if (mode == SWIGLU) {
            __m512 below = _mm512_add_ps(exp16(_mm512_sub_ps(_mm512_setzero_ps(), y[0])), _mm512_set1_ps(1.f));
            _mm512_storeu_ps(row + strip * 16, _mm512_mul_ps(_mm512_div_ps(y[0], below), y[1]));
            continue;
        }
        for (int v = 0; v < 2; v++) {
            int64_t left = m->outputs - column - 16 * v;
            __mmask16 mask = left >= 16 ? 0xffff : left <= 0 ? 0 : (__mmask16)((1 << left) - 1);
            float *to = row + column + 16 * v;
            if (mode == ADD) y[v] = _mm512_add_ps(y[v], _mm512_maskz_loadu_ps(mask, to));
            _mm512_mask_storeu_ps(to, mask, y[v]);
        }
    }
}

static void product(Stage *stage, int kind, int mode, const Matrix *m, Operand x, int rows, float *out,
                    int64_t out_stride) {
    int strips = round_up(m->outputs, STRIP) / STRIP, blocks = round_up(rows, ROW_BLOCK) / ROW_BLOCK;
    int64_t stride = (int64_t)m->inputs * element_bytes(kind);
    int steps = stride / 4, groups = m->inputs / GROUP;
    _Alignas(64) float block[STRIP_ROWS][STRIP];
    for (int task; (task = take(stage)) < strips * blocks;) {
        int strip = task % strips, first = task / strips * ROW_BLOCK;
        int end = first + ROW_BLOCK < rows ? first + ROW_BLOCK : rows;
        const uint8_t *weights = m->strips + (int64_t)strip * steps * STRIP * 4;
        for (int row = first; row < end; row += STRIP_ROWS) {
            int n = end - row < STRIP_ROWS ? end - row : STRIP_ROWS;
            const uint8_t *a = x.data + row * stride;
            if (kind == INT8)
                strip_int8(n, a, stride, x.scale + row * groups, x.offset + row * groups, groups, weights, block[0]);
            else
                strip_float(kind, n, a, stride, weights, steps, block[0]);
            settle(mode, m, strip, n, block, out + row * out_stride, out_stride);
        }
        finished(stage);
    }
    await_tasks(stage, strips * blocks);
}
