/* Weights as the products read them. */
#pragma once
#include "nouns.h"

static void widen_row(const uint8_t *weight, int bf16, int64_t row, int width, float *out) {
    if (!bf16) {
        memcpy(out, weight + row * width * 4, (size_t)width * 4);
        return;
    }
    const uint16_t *from = (const uint16_t *)weight + row * width;
    for (int i = 0; i < width; i++) {
        uint32_t bits = (uint32_t)from[i] << 16;
        memcpy(out + i, &bits, 4);
    }
}

/* A row as consecutive numbers of its kind; returns the scale of int8, which is symmetric, stored + 128. */
static float narrow_row(int kind, const float *row, int inputs, uint8_t *out) {
    if (kind == FLOAT32) memcpy(out, row, (size_t)inputs * 4);
    if (kind == BFLOAT16)
        for (int i = 0; i < inputs; i += 16)
            _mm256_storeu_si256((__m256i *)(out + 2 * i), narrow16(_mm512_loadu_ps(row + i)));
    if (kind != INT8) return 1.f;
    __m512 peak = _mm512_setzero_ps();
    for (int i = 0; i < inputs; i += 16) peak = _mm512_max_ps(peak, _mm512_abs_ps(_mm512_loadu_ps(row + i)));
    float most = _mm512_reduce_max_ps(peak);
    __m512 by = _mm512_set1_ps(most > 0 ? 127.f / most : 0.f);
    for (int i = 0; i < inputs; i += 16) {
        __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(row + i), by));
        q = _mm512_add_epi32(q, _mm512_set1_epi32(128));
        _mm_storeu_si128((__m128i *)(out + i), _mm512_cvtepi32_epi8(q));
    }
    return most / 127.f;
}

/* One strip of a matrix `[outputs, width]`; what lies beyond its edges is zero. */
static void pack_strip(const uint8_t *weight, int bf16, int kind, int outputs, int width, int inputs, int strip,
                       uint8_t *strips, float *scale) {
    int steps = inputs * element_bytes(kind) / 4;
    int32_t *to = (int32_t *)(strips + (int64_t)strip * steps * STRIP * 4);
    float row[inputs];
    int32_t words[inputs];
    memset(row, 0, sizeof row);
    for (int lane = 0; lane < STRIP; lane++) {
        int64_t output = (int64_t)strip * STRIP + lane;
        if (output < outputs) widen_row(weight, bf16, output, width, row);
        else memset(row, 0, sizeof row);
        float by = narrow_row(kind, row, inputs, (uint8_t *)words);
        if (scale) scale[output] = by;
        for (int s = 0; s < steps; s++) to[(int64_t)s * STRIP + lane] = words[s];
    }
}
