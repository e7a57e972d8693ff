/* Matrix products, tile by tile. */
#pragma once
#include "stages.h"
#include <omp.h>

/* A tile is `rows` rows by `vectors` vectors of outputs, its sums in registers. Of a strip of weights: as many
 * rows by a slice as registers hold beside the addresses of their numbers; FEW_ROWS or less by the whole strip,
 * as one slice alone would leave them waiting for their own last sum. Of a panel of the cache, which is at hand
 * already: 6 rows, which are weighed in larger pieces. */
#if REGISTERS == 32
#define STRIP_ROWS 9
#define PANEL_VECTORS 4
#define ASKING_TILES 2
#else
#define STRIP_ROWS 6
#define PANEL_VECTORS 2
#define ASKING_TILES 1
#endif
#define MOST_VECTORS 4
#define FEW_ROWS 2
#define TILE 6

/* Sums stay in registers only if the compiler unrolls every loop over rows and vectors. */
#define UNROLL _Pragma("GCC unroll 9")

/* What a tile asks the memory for while it computes: `share` bytes from `next` on at every step; 0: nothing. */
typedef struct {
    const uint8_t *next;
    int64_t share;
} Ahead;

/* Into the second-level cache, which holds a strip and its next. Always inlined: a function of nothing but
 * prefetches counts as one without effect, and the compiler drops its calls. */
static inline __attribute__((always_inline)) void ask(Ahead *ahead) {
    _mm_prefetch((const char *)ahead->next, _MM_HINT_T1);
    _mm_prefetch((const char *)ahead->next + 64, _MM_HINT_T1);
    ahead->next += ahead->share;
}

/* Vector `v` of a step: two of a slice lie beside each other, and slices `slice` bytes apart. */
static inline const uint8_t *vector_at(const uint8_t *step, int v, int64_t slice) {
    return step + v / 2 * slice + v % 2 * (LANES * 4);
}

/* The products of one number of each row with vectors of weights, added to the sums. */
static inline __attribute__((always_inline)) void add_outer(const int rows, const int vectors, const uint8_t *x,
                                                            int64_t stride, const floats *w,
                                                            floats sum[STRIP_ROWS][MOST_VECTORS]) {
    UNROLL
    for (int r = 0; r < rows; r++) {
        floats a = splat(*(const float *)(x + r * stride));
        UNROLL
        for (int v = 0; v < vectors; v++) add_product(&sum[r][v], a, w[v]);
    }
}

/* Sums over `steps` steps of float32 or bfloat16 numbers, on top of what `out` holds if `more`. */
static inline __attribute__((always_inline)) void multiply_float(
    const int kind, const int rows, const int vectors, const uint8_t *x, int64_t stride, const uint8_t *weights,
    int64_t step_bytes, int64_t slice, int steps, const int more, Ahead ahead, float *out, int64_t out_stride) {
    const int wide = kind == BFLOAT16 && !DOT_BFLOAT16 ? 8 : 4;
    floats sum[STRIP_ROWS][MOST_VECTORS], w[MOST_VECTORS];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[r][v] = more ? V(load_ps)(out + r * out_stride + LANES * v) : splat(0.f);
    for (int s = 0; s < steps; s++, weights += step_bytes, x += wide) {
        if (rows > FEW_ROWS && ahead.share) ask(&ahead);
        if (kind == FLOAT32) {
            UNROLL
            for (int v = 0; v < vectors; v++) w[v] = V(load_ps)((const float *)vector_at(weights, v, slice));
            add_outer(rows, vectors, x, stride, w, sum);
            continue;
        }
#if DOT_BFLOAT16
        UNROLL
        for (int v = 0; v < vectors; v++) w[v] = V(load_ps)((const float *)vector_at(weights, v, slice));
        UNROLL
        for (int r = 0; r < rows; r++) {
            floats a = splat(*(const float *)(x + r * stride));
            UNROLL
            for (int v = 0; v < vectors; v++) __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum[r][v]) : "v"(a), "v"(w[v]));
        }
#else
        UNROLL
        for (int v = 0; v < vectors; v++)
            w[v] = as_floats(V(slli_epi32)(load_ints(vector_at(weights, v, slice)), 16));
        add_outer(rows, vectors, x, stride, w, sum);
        UNROLL
        for (int v = 0; v < vectors; v++)
            w[v] = as_floats(
                and_ints(load_ints(vector_at(weights, v, slice)), V(set1_epi32)((int32_t)0xffff0000)));
        add_outer(rows, vectors, x + 4, stride, w, sum);
#endif
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int v = 0; v < vectors; v++) V(store_ps)(out + r * out_stride + LANES * v, sum[r][v]);
}

/* Exact sums of one step of int8 weights. */
static inline __attribute__((always_inline)) void add_int8(const int rows, const int vectors, const uint8_t *x,
                                                           int64_t stride, const uint8_t *weights, int64_t slice,
                                                           ints sum[STRIP_ROWS][MOST_VECTORS]) {
    ints w[MOST_VECTORS];
#if DOT_INT8
    UNROLL
    for (int v = 0; v < vectors; v++) w[v] = load_ints(vector_at(weights, v, slice));
    UNROLL
    for (int r = 0; r < rows; r++) {
        ints a = V(set1_epi32)(*(const int32_t *)(x + r * stride));
        UNROLL
        for (int v = 0; v < vectors; v++) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum[r][v]) : "v"(w[v]), "v"(a));
    }
#else
    for (int half = 0; half < 2; half++) {
        UNROLL
        for (int v = 0; v < vectors; v++) {
            w[v] = load_ints(vector_at(weights, v, slice));
            w[v] = V(srai_epi16)(half ? w[v] : V(slli_epi16)(w[v], 8), 8);
        }
        UNROLL
        for (int r = 0; r < rows; r++) {
            ints a = V(set1_epi32)(*(const int32_t *)(x + r * stride + 4 * half));
            UNROLL
            for (int v = 0; v < vectors; v++) {
                ints pairs;
                __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
                        : "+v"(sum[r][v]), "=&v"(pairs)
                        : "v"(a), "v"(w[v]));
            }
        }
    }
#endif
}

/* The same for int8: exact sums over each group, scaled and added up in order. */
static inline __attribute__((always_inline)) void multiply_int8(
    const int rows, const int vectors, const uint8_t *x, int64_t stride, const float *scale,
    const int32_t *offset, int groups, const uint8_t *weights, int64_t slice, Ahead ahead, float *out) {
    floats total[STRIP_ROWS][MOST_VECTORS];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int v = 0; v < vectors; v++) total[r][v] = splat(0.f);
    for (int g = 0; g < groups; g++) {
        ints sum[STRIP_ROWS][MOST_VECTORS];
        UNROLL
        for (int r = 0; r < rows; r++)
            UNROLL
            for (int v = 0; v < vectors; v++) sum[r][v] = V(set1_epi32)(DOT_INT8 ? offset[r * groups + g] : 0);
        /* Written out, a group of one row is slower by a fifth: its loads wait for one another in turns. */
#pragma GCC unroll 1
        for (int s = 0; s < GROUP / 4; s++, weights += SLICE * 4, x += 4 * operand_bytes(INT8)) {
            if (rows > FEW_ROWS && ahead.share) ask(&ahead);
            add_int8(rows, vectors, x, stride, weights, slice, sum);
        }
        UNROLL
        for (int r = 0; r < rows; r++) {
            floats by = splat(scale[r * groups + g]);
            UNROLL
            for (int v = 0; v < vectors; v++) add_product(&total[r][v], V(cvtepi32_ps)(sum[r][v]), by);
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int v = 0; v < vectors; v++) V(store_ps)(out + STRIP * r + LANES * v, total[r][v]);
}

#define UP_TO_6(CALL) CALL(1) CALL(2) CALL(3) CALL(4) CALL(5) CALL(6)
#if STRIP_ROWS == 9
#define UP_TO_MOST(CALL) UP_TO_6(CALL) CALL(7) CALL(8) CALL(9)
#else
#define UP_TO_MOST(CALL) UP_TO_6(CALL)
#endif

/* A tile against a strip of weights. */
static void strip_tile(int kind, int rows, Operand x, int row, int inputs, const uint8_t *strip, Ahead ahead,
                       float (*block)[STRIP]) {
    int64_t stride = (int64_t)inputs * operand_bytes(kind), slice = (int64_t)inputs * element_bytes(kind) * SLICE;
    int steps = inputs * element_bytes(kind) / 4, groups = inputs / GROUP;
    const uint8_t *from = x.data + row * stride;
    const float *scale = x.scale + row * groups;
    const int32_t *offset = x.offset + row * groups;
    int together = rows <= FEW_ROWS ? STRIP : SLICE;
    for (int first = 0; first < STRIP; first += together, strip += slice) {
        float *out = block[0] + first;
#define WIDE(N) (((N) <= FEW_ROWS ? STRIP : SLICE) / LANES)
#define FLOATS(KIND, N) \
    multiply_float(KIND, N, WIDE(N), from, stride, strip, SLICE * 4, slice, steps, 0, ahead, out, STRIP)
#define INTS(N) multiply_int8(N, WIDE(N), from, stride, scale, offset, groups, strip, slice, ahead, out)
#define CALL(N) case N: FLOATS(FLOAT32, N); break;
        if (kind == FLOAT32) switch (rows) { UP_TO_MOST(CALL) }
#undef CALL
#define CALL(N) case N: FLOATS(BFLOAT16, N); break;
        if (kind == BFLOAT16) switch (rows) { UP_TO_MOST(CALL) }
#undef CALL
#define CALL(N) case N: INTS(N); break;
        if (kind == INT8) switch (rows) { UP_TO_MOST(CALL) }
#undef CALL
#undef INTS
#undef FLOATS
        ahead.next += ahead.share * steps;
    }
}

/* A tile against a panel of the cache: `more` adds to what is there. */
static void panel_tile(int kind, int rows, const uint8_t *x, int64_t stride, const uint8_t *panel, int steps,
                       int more, float (*block)[PANEL]) {
    const int64_t pair = LANES * 8;
    const Ahead nothing = {0, 0};
    for (int first = 0; first < PANEL; first += PANEL_VECTORS * LANES, panel += PANEL_VECTORS * LANES * 4) {
        float *out = block[0] + first;
#define FLOATS(KIND, N) \
    multiply_float(KIND, N, PANEL_VECTORS, x, stride, panel, PANEL * 4, pair, steps, more, nothing, out, PANEL)
#define CALL(N) case N: FLOATS(FLOAT32, N); break;
        if (kind == FLOAT32) switch (rows) { UP_TO_6(CALL) }
#undef CALL
#define CALL(N) case N: FLOATS(BFLOAT16, N); break;
        if (kind == BFLOAT16) switch (rows) { UP_TO_6(CALL) }
#undef CALL
#undef FLOATS
    }
}

/* Puts a tile where it belongs. SWIGLU: the strip holds 16 gates, then the 16 values they open. */
static void settle(int mode, const Matrix *m, int strip, int rows, float (*block)[STRIP], float *out,
                   int64_t stride) {
    int64_t column = (int64_t)strip * STRIP;
    for (int r = 0; r < rows; r++) {
        float *row = out + r * stride;
        floats y[STRIP / LANES];
        for (int v = 0; v < STRIP / LANES; v++) {
            y[v] = V(load_ps)(&block[r][LANES * v]);
            floats bias = m->bias ? V(loadu_ps)(m->bias + column + LANES * v) : splat(0.f);
            y[v] = m->scale ? V(fmadd_ps)(y[v], V(loadu_ps)(m->scale + column + LANES * v), bias)
                            : V(add_ps)(y[v], bias);
        }
        for (int v = 0; mode == SWIGLU && v < STRIP / LANES / 2; v++) {
            floats gate = y[v], below = V(add_ps)(exponential(V(sub_ps)(splat(0.f), gate)), splat(1.f));
            floats opened = V(mul_ps)(V(div_ps)(gate, below), y[v + STRIP / LANES / 2]);
            V(storeu_ps)(row + strip * (STRIP / 2) + LANES * v, opened);
        }
        for (int v = 0; mode != SWIGLU && v < STRIP / LANES; v++) {
            int64_t left = m->outputs - column - LANES * v;
            float *to = row + column + LANES * v;
            if (mode == ADD) y[v] = V(add_ps)(y[v], load_first(to, left));
            store_first(to, left, y[v]);
        }
    }
}

/* Rows against one strip, in tiles as even as can be. ASKING_TILES or more compute longer than their weights take
 * to come: meanwhile each asks for its part of the next strip's. */
static void strip_of_product(int kind, int mode, const Matrix *m, Operand x, int strip, int first, int end,
                             float *out, int64_t out_stride) {
    int64_t strip_bytes = (int64_t)m->inputs * element_bytes(kind) * STRIP;
    const uint8_t *weights = m->strips + strip * strip_bytes;
    int rows = end - first, tiles = (rows + STRIP_ROWS - 1) / STRIP_ROWS;
    _Alignas(64) float block[STRIP_ROWS][STRIP];
    for (int tile = 0; tile < tiles; tile++) {
        int row = first + rows * tile / tiles, n = first + rows * (tile + 1) / tiles - row;
        Ahead ahead = {weights + strip_bytes + strip_bytes * (row - first) / rows, 0};
        if (tiles >= ASKING_TILES) ahead.share = SLICE * 4 * n / rows;
        strip_tile(kind, n, x, row, m->inputs, weights, ahead, block);
        settle(mode, m, strip, n, block, out + row * out_stride, out_stride);
    }
}

static void product(Stage *stage, int kind, int mode, const Matrix *m, Operand x, int rows, float *out,
                    int64_t out_stride) {
    int strips = round_up(m->outputs, STRIP) / STRIP, blocks = round_up(rows, ROW_BLOCK) / ROW_BLOCK;
    for (int task, count; (count = take_run(stage, strips * blocks, omp_get_num_threads(), &task));) {
        for (int t = task; t < task + count; t++) {
            int first = t / strips * ROW_BLOCK, end = first + ROW_BLOCK < rows ? first + ROW_BLOCK : rows;
            strip_of_product(kind, mode, m, x, t % strips, first, end, out, out_stride);
        }
        finished_run(stage, count);
    }
    await_tasks(stage, strips * blocks);
}
