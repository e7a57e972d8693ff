/* Matrix products, tile by tile. */
#pragma once
#include "stages.h"

typedef float Block[TILE][PANEL];

/* What to bring into the cache meanwhile: `lines` cache lines a step. */
typedef struct {
    const uint8_t *from;
    int lines;
} Ahead;

static inline void fetch(Ahead ahead, int step) {
    for (int i = 0; i < ahead.lines; i++)
        _mm_prefetch((const char *)ahead.from + 64 * ((int64_t)step * ahead.lines + i), _MM_HINT_T1);
}

/* rows x 64 sums over `steps` steps of float32 or bfloat16 numbers, on top of what `out` holds if `more`. */
static inline __attribute__((always_inline)) void multiply_float(
    const int bf16, const int rows, const uint8_t *x, int64_t stride, const uint8_t *panel, int steps, int more,
    Ahead ahead, float (*out)[PANEL]) {
    __m512 sum[TILE][VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++)
            sum[r][v] = more ? _mm512_load_ps(&out[r][16 * v]) : _mm512_setzero_ps();
    for (int s = 0; s < steps; s++) {
        __m512i w[VECTORS];
        for (int v = 0; v < VECTORS; v++) w[v] = _mm512_load_si512(panel + 256 * (int64_t)s + 64 * v);
        fetch(ahead, s);
        for (int r = 0; r < rows; r++) {
            __m512i a = _mm512_set1_epi32(*(const int32_t *)(x + r * stride + 4 * s));
            for (int v = 0; v < VECTORS; v++) {
#ifdef __AVX512BF16__
                if (bf16) {
                    sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)a, (__m512bh)w[v]);
                    continue;
                }
#endif
                sum[r][v] = _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(w[v]), sum[r][v]);
            }
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++) _mm512_store_ps(&out[r][16 * v], sum[r][v]);
}

/* The same for int8: exact sums over each group, scaled and added up in order. Weights are stored + 128,
 * as the instruction takes unsigned times signed; `offset` takes that out again. */
static inline __attribute__((always_inline)) void multiply_int8(
    const int rows, const uint8_t *x, int64_t stride, const float *scale, const int32_t *offset, int groups,
    const uint8_t *panel, Ahead ahead, float (*out)[PANEL]) {
    for (int g = 0; g < groups; g++) {
        __m512i sum[TILE][VECTORS];
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_set1_epi32(offset[r * groups + g]);
        for (int s = g * (GROUP / 4); s < (g + 1) * (GROUP / 4); s++) {
            __m512i w[VECTORS];
            for (int v = 0; v < VECTORS; v++) w[v] = _mm512_load_si512(panel + 256 * (int64_t)s + 64 * v);
            fetch(ahead, s);
            for (int r = 0; r < rows; r++) {
                __m512i a = _mm512_set1_epi32(*(const int32_t *)(x + r * stride + 4 * s));
                for (int v = 0; v < VECTORS; v++)
                    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum[r][v]) : "v"(w[v]), "v"(a));
            }
        }
        for (int r = 0; r < rows; r++) {
            __m512 by = _mm512_set1_ps(scale[r * groups + g]);
            for (int v = 0; v < VECTORS; v++) {
                __m512 before = g ? _mm512_load_ps(&out[r][16 * v]) : _mm512_setzero_ps();
                __m512 value = _mm512_cvtepi32_ps(sum[r][v]);
                _mm512_store_ps(&out[r][16 * v], _mm512_fmadd_ps(value, by, before));
            }
        }
    }
}

#define EACH_TILE(CALL)                                                                                     \
    switch (rows) {                                                                                         \
    case 1: CALL(1); break;                                                                                 \
    case 2: CALL(2); break;                                                                                 \
    case 3: CALL(3); break;                                                                                 \
    case 4: CALL(4); break;                                                                                 \
    case 5: CALL(5); break;                                                                                 \
    default: CALL(6);                                                                                       \
    }

static void tile_float32(int rows, const uint8_t *x, int64_t stride, const uint8_t *panel, int steps, int more,
                         Ahead ahead, float (*out)[PANEL]) {
#define CALL(N) multiply_float(0, N, x, stride, panel, steps, more, ahead, out)
    EACH_TILE(CALL)
#undef CALL
}

static void tile_bfloat16(int rows, const uint8_t *x, int64_t stride, const uint8_t *panel, int steps, int more,
                          Ahead ahead, float (*out)[PANEL]) {
#define CALL(N) multiply_float(1, N, x, stride, panel, steps, more, ahead, out)
    EACH_TILE(CALL)
#undef CALL
}

static void tile_int8(int rows, const uint8_t *x, int64_t stride, const float *scale, const int32_t *offset,
                      int groups, const uint8_t *panel, Ahead ahead, float (*out)[PANEL]) {
#define CALL(N) multiply_int8(N, x, stride, scale, offset, groups, panel, ahead, out)
    EACH_TILE(CALL)
#undef CALL
}

static void tile_of(int kind, int rows, const uint8_t *x, int64_t stride, const uint8_t *panel, int steps,
                    int more, Ahead ahead, float (*out)[PANEL]) {
    if (kind == BFLOAT16) tile_bfloat16(rows, x, stride, panel, steps, more, ahead, out);
    else tile_float32(rows, x, stride, panel, steps, more, ahead, out);
}

/* Puts a tile where it belongs. SWIGLU: the panel holds 32 gates, then the 32 values they open. */
static void settle(int mode, const Matrix *m, int panel, int rows, float (*block)[PANEL], float *out,
                   int64_t stride) {
    for (int r = 0; r < rows; r++) {
        __m512 y[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            int64_t column = (int64_t)panel * PANEL + 16 * v;
            y[v] = _mm512_load_ps(&block[r][16 * v]);
            __m512 bias = m->bias ? _mm512_loadu_ps(m->bias + column) : _mm512_setzero_ps();
            y[v] = m->scale ? _mm512_fmadd_ps(y[v], _mm512_loadu_ps(m->scale + column), bias)
                            : _mm512_add_ps(y[v], bias);
        }
        float *row = out + r * stride;
        for (int v = 0; v < VECTORS; v++) {
            int column = panel * PANEL + 16 * v;
            if (mode == SWIGLU) {
                if (v >= 2) break;
                __m512 down = _mm512_add_ps(exp16(_mm512_sub_ps(_mm512_setzero_ps(), y[v])), _mm512_set1_ps(1.f));
                _mm512_storeu_ps(row + panel * 32 + 16 * v, _mm512_mul_ps(_mm512_div_ps(y[v], down), y[v + 2]));
            } else {
                int left = m->outputs - column;
                if (left <= 0) break;
                __mmask16 mask = left >= 16 ? 0xffff : (__mmask16)((1 << left) - 1);
                if (mode == ADD) y[v] = _mm512_add_ps(y[v], _mm512_maskz_loadu_ps(mask, row + column));
                _mm512_mask_storeu_ps(row + column, mask, y[v]);
            }
        }
    }
}

static void product(Stage *stage, int kind, int mode, const Matrix *m, Operand x, int rows, float *out,
                    int64_t out_stride) {
    int panels = round_up(m->outputs, PANEL) / PANEL, blocks = round_up(rows, ROW_BLOCK) / ROW_BLOCK;
    int64_t stride = (int64_t)m->inputs * element_bytes(kind);
    int steps = stride / 4, groups = m->inputs / GROUP;
    int height = kind == FLOAT32 ? TILE : 4;
    _Alignas(64) Block block;
    for (int task = take(stage), next; task < panels * blocks; task = next) {
        next = take(stage);
        int panel = task % panels, first = task / panels * ROW_BLOCK;
        int end = first + ROW_BLOCK < rows ? first + ROW_BLOCK : rows;
        int tiles = (end - first + height - 1) / height, lines = tiles == 1 ? 4 : tiles < 4 ? 2 : 1;
        const uint8_t *weights = m->panels + (int64_t)panel * steps * 256;
        const uint8_t *later = m->panels + (int64_t)(next % panels) * steps * 256;
        for (int row = first, tile = 0; row < end; row += height, tile++) {
            int n = end - row < height ? end - row : height;
            const uint8_t *a = x.data + row * stride;
            Ahead ahead = {later + (int64_t)tile * steps * 64 * lines, tile * lines < 4 ? lines : 0};
            if (kind == INT8)
                tile_int8(n, a, stride, x.scale + row * groups, x.offset + row * groups, groups, weights, ahead,
                          block);
            else
                tile_of(kind, n, a, stride, weights, steps, 0, ahead, block);
            settle(mode, m, panel, n, block, out + row * out_stride, out_stride);
        }
        finished(stage);
    }
    await_tasks(stage, panels * blocks);
}
