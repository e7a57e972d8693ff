/* Vectors of this processor: sixteen numbers with AVX-512, eight with AVX2 and FMA. */
#pragma once
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#ifdef __AVX512F__
#define LANES 16
#define REGISTERS 32
typedef __m512 floats;
typedef __m512i ints;
#define V(operation) _mm512_##operation
#else
#define LANES 8
#define REGISTERS 16
typedef __m256 floats;
typedef __m256i ints;
#define V(operation) _mm256_##operation
#endif

/* Whether one instruction multiplies and adds pairs of bfloat16 numbers, or fours of int8. Where it does not,
 * such weights are widened once for all rows of a tile: bfloat16 to float32, int8 to int16. */
#ifdef __AVX512BF16__
#define DOT_BFLOAT16 1
#else
#define DOT_BFLOAT16 0
#endif
#ifdef __AVX512VNNI__
#define DOT_INT8 1
#else
#define DOT_INT8 0
#endif

#if LANES == 16

static inline __mmask16 first_lanes(int64_t count) {
    return count >= LANES ? 0xffff : count <= 0 ? 0 : (__mmask16)((1 << count) - 1);
}

/* The first `count` numbers, and zeros behind them. */
static inline floats load_first(const float *from, int64_t count) {
    return _mm512_maskz_loadu_ps(first_lanes(count), from);
}

static inline void store_first(float *to, int64_t count, floats x) {
    _mm512_mask_storeu_ps(to, first_lanes(count), x);
}

/* `x` in the first `count` lanes, `other` behind them. */
static inline floats keep_first(floats x, int64_t count, floats other) {
    return _mm512_mask_mov_ps(other, first_lanes(count), x);
}

static inline ints load_ints(const void *from) { return _mm512_load_si512(from); }

static inline ints and_ints(ints a, ints b) { return _mm512_and_si512(a, b); }

static inline floats as_floats(ints x) { return _mm512_castsi512_ps(x); }

static inline ints as_ints(floats x) { return _mm512_castps_si512(x); }

static inline floats absolute(floats x) { return _mm512_abs_ps(x); }

static inline float sum_lanes(floats x) { return _mm512_reduce_add_ps(x); }

static inline float peak_lanes(floats x) { return _mm512_reduce_max_ps(x); }

static inline int32_t sum_ints(ints x) { return _mm512_reduce_add_epi32(x); }

/* The low bytes of each number. */
static inline void store_bytes(uint8_t *to, ints x) { _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8(x)); }

static inline void store_shorts(uint16_t *to, ints x) {
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi32_epi16(x));
}

static inline floats nearest(floats x) { return _mm512_roundscale_ps(x, 0); }

/* x * 2^n. */
static inline floats scale_by_power(floats x, floats n) { return _mm512_scalef_ps(x, n); }

#else

static inline __m256i first_lanes(int64_t count) {
    int limit = count >= LANES ? LANES : count <= 0 ? 0 : (int)count;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(limit), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline floats load_first(const float *from, int64_t count) {
    return _mm256_maskload_ps(from, first_lanes(count));
}

static inline void store_first(float *to, int64_t count, floats x) {
    _mm256_maskstore_ps(to, first_lanes(count), x);
}

static inline floats keep_first(floats x, int64_t count, floats other) {
    return _mm256_blendv_ps(other, x, _mm256_castsi256_ps(first_lanes(count)));
}

static inline ints load_ints(const void *from) { return _mm256_load_si256(from); }

static inline ints and_ints(ints a, ints b) { return _mm256_and_si256(a, b); }

static inline floats as_floats(ints x) { return _mm256_castsi256_ps(x); }

static inline ints as_ints(floats x) { return _mm256_castps_si256(x); }

static inline floats absolute(floats x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.f), x); }

static inline float sum_lanes(floats x) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

static inline float peak_lanes(floats x) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

static inline int32_t sum_ints(ints x) {
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    half = _mm_add_epi32(half, _mm_unpackhi_epi64(half, half));
    return _mm_cvtsi128_si32(half) + _mm_extract_epi32(half, 1);
}

/* The low 16 bits of each number. */
static inline __m128i shorts(ints x) {
    ints low = _mm256_and_si256(x, _mm256_set1_epi32(0xffff));
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08));
}

static inline void store_shorts(uint16_t *to, ints x) { _mm_storeu_si128((__m128i *)to, shorts(x)); }

static inline void store_bytes(uint8_t *to, ints x) {
    __m128i low = _mm_and_si128(shorts(x), _mm_set1_epi16(0xff));
    _mm_storel_epi64((__m128i *)to, _mm_packus_epi16(low, low));
}

static inline floats nearest(floats x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline floats power_of_two(ints n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* In two steps, so that a result may be as small as numbers get, or zero. */
static inline floats scale_by_power(floats x, floats n) {
    ints whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    x = _mm256_mul_ps(x, power_of_two(half));
    return _mm256_mul_ps(x, power_of_two(_mm256_sub_epi32(whole, half)));
}

#endif

static inline floats splat(float x) { return V(set1_ps)(x); }

/* Multiply and add, where the sum stays. As assembly, so that no compiler orders sums anew. */
static inline __attribute__((always_inline)) void add_product(floats *sum, floats a, floats b) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(b));
}

/* e^x to about 1e-7 relative: 2^n * p(r), p the degree-6 Taylor polynomial on |r| <= ln 2 / 2. */
static inline floats exponential(floats x) {
    x = V(max_ps)(V(min_ps)(x, splat(88.f)), splat(-110.f));
    floats n = nearest(V(mul_ps)(x, splat(1.44269504f)));
    floats r = V(fnmadd_ps)(n, splat(0.693359375f), x);
    r = V(fnmadd_ps)(n, splat(-2.12194440e-4f), r);
    floats p = splat(1.f / 720);
    p = V(fmadd_ps)(p, r, splat(1.f / 120));
    p = V(fmadd_ps)(p, r, splat(1.f / 24));
    p = V(fmadd_ps)(p, r, splat(1.f / 6));
    p = V(fmadd_ps)(p, r, splat(0.5f));
    p = V(fmadd_ps)(p, r, splat(1.f));
    p = V(fmadd_ps)(p, r, splat(1.f));
    return scale_by_power(p, n);
}

/* As bfloat16, rounded to the nearest even, as the framework's conversion does. */
static inline void store_narrow(uint16_t *to, floats x) {
#if DOT_BFLOAT16
    _mm256_storeu_si256((__m256i *)to, (__m256i)_mm512_cvtneps_pbh(x));
#else
    ints bits = as_ints(x);
    ints odd = and_ints(V(srli_epi32)(bits, 16), V(set1_epi32)(1));
    bits = V(add_epi32)(bits, V(add_epi32)(odd, V(set1_epi32)(0x7fff)));
    store_shorts(to, V(srli_epi32)(bits, 16));
#endif
}

static inline uint16_t narrow1(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static inline float widen1(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float wide;
    memcpy(&wide, &bits, 4);
    return wide;
}
