/* The nouns of the kernels, shared with fused_native.py.
 *
 * Every matrix is cut into strips of 32 outputs. A strip is a sequence of steps; a step holds 4 bytes of
 * each output (4 int8, 2 bfloat16 or 1 float32 weights), 128 bytes in all. A row of activations is read
 * 4 bytes a step and broadcast, so one loop serves the three kinds of number. Keys and values are cached in
 * panels of the same make, 64 wide. A row's sums are made in one order whatever rows are computed beside
 * it: a token verified in a block gets the very numbers that it gets alone.
 */
#pragma once
#include <immintrin.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define STRIP 32      /* outputs of a strip of weights: 2 vectors */
#define STRIP_ROWS 12 /* rows of a tile of a strip: 24 sums stay in registers */
#define PANEL 64      /* positions of a panel of keys, numbers of a panel of values: 4 vectors */
#define VECTORS 4
#define TILE 6        /* rows of a tile of a panel */
#define GROUP 64      /* activations that share an int8 scale */
#define MAX_HEAD 256  /* widest head */
#define ROW_BLOCK 96  /* rows of one task of a product */
#define ATTEND_ROWS 48 /* query rows attended together */
#define HIDDEN -1e30f  /* the score of a position that is not seen: its share is exactly zero */

enum { FLOAT32 = 0, BFLOAT16 = 1, INT8 = 2 };
enum { STORE = 0, ADD = 1, SWIGLU = 2 };

typedef struct {
    const uint8_t *strips;
    const float *scale; /* int8: of each output */
    const float *bias;  /* of each output, or null */
    int32_t outputs;    /* true number of outputs */
    int32_t inputs;     /* padded number of inputs */
} Matrix;

typedef struct {
    const float *input_norm, *q_norm, *k_norm, *post_norm;
    Matrix qkv, output, gate_up, down;
} Layer;

typedef struct {
    const Layer *layers;
    const float *final_norm, *cos, *sin;
    const uint16_t *embedding; /* bfloat16, or null */
    const float *embedding32;  /* float32, or null */
    Matrix head;
    int32_t n_layers, hidden, hidden_stride, heads, kv_heads, head_dim, head_stride;
    int32_t kind, kv_kind;
    float eps;
} Model;

typedef struct {
    uint8_t *cache;    /* [layers, 2, kv_heads, capacity, head_stride] */
    int64_t capacity;
    int32_t start, first_row, rows, pad;
} Span;

typedef struct {
    const int64_t *tokens;
    const int32_t *positions, *wanted;
    const Span *spans;
    float *logits;
    int32_t rows, n_wanted, n_spans, threads;
} Pass;

/* Buffers of one pass, each for the most rows of a pass. */
typedef struct {
    float *residual, *joint, *mixed, *inner;
    uint8_t *query, *operand;
    float *operand_scale;
    int32_t *operand_offset;
} Workspace;

/* An activation matrix in the kind of number that the product takes. */
typedef struct {
    const uint8_t *data; /* row stride: 4 bytes a step */
    const float *scale;  /* int8: [rows, groups] */
    const int32_t *offset;
} Operand;

static int round_up(int value, int step) { return (value + step - 1) / step * step; }

static int element_bytes(int kind) { return kind == FLOAT32 ? 4 : kind == BFLOAT16 ? 2 : 1; }

/* e^x to about 1e-7 relative: 2^n * p(r), p the degree-6 Taylor polynomial on |r| <= ln 2 / 2. */
static inline __m512 exp16(__m512 x) {
    x = _mm512_max_ps(_mm512_min_ps(x, _mm512_set1_ps(88.f)), _mm512_set1_ps(-110.f));
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 0);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
    __m512 p = _mm512_set1_ps(1.f / 720);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.f / 120));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.f / 24));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.f / 6));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.f));
    return _mm512_scalef_ps(p, n);
}

static inline __m512 widen16(const uint16_t *source) {
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)source));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

/* Round to the nearest even, as the framework's conversion does. */
static inline __m256i narrow16(__m512 x) {
#ifdef __AVX512BF16__
    return (__m256i)_mm512_cvtneps_pbh(x);
#else
    __m512i bits = _mm512_castps_si512(x);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    bits = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16));
#endif
}

static inline uint16_t narrow1(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
