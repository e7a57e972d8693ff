/* What is done to a row between products: norms, and turning it into an operand. */
#pragma once
#include "stages.h"

/* Writes a float32 row as operand `row` of a product with `inputs` (padded) inputs. */
static void encode_row(const Workspace *w, int kind, const float *x, int inputs, int row) {
    uint8_t *to = w->operand + (int64_t)row * inputs * element_bytes(kind);
    if (kind == FLOAT32) {
        memcpy(to, x, (size_t)inputs * 4);
        return;
    }
    if (kind == BFLOAT16) {
        for (int i = 0; i < inputs; i += 16)
            _mm256_storeu_si256((__m256i *)(to + 2 * i), narrow16(_mm512_loadu_ps(x + i)));
        return;
    }
    int groups = inputs / GROUP;
    for (int g = 0; g < groups; g++) {
        const float *from = x + g * GROUP;
        __m512 peak = _mm512_setzero_ps();
        for (int i = 0; i < GROUP; i += 16) peak = _mm512_max_ps(peak, _mm512_abs_ps(_mm512_loadu_ps(from + i)));
        float most = _mm512_reduce_max_ps(peak);
        __m512 by = _mm512_set1_ps(most > 0 ? 127.f / most : 0.f);
        __m512i total = _mm512_setzero_si512();
        for (int i = 0; i < GROUP; i += 16) {
            __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(from + i), by));
            total = _mm512_add_epi32(total, q);
            _mm_storeu_si128((__m128i *)(to + g * GROUP + i), _mm512_cvtepi32_epi8(q));
        }
        w->operand_scale[(int64_t)row * groups + g] = most / 127.f;
        w->operand_offset[(int64_t)row * groups + g] = -128 * _mm512_reduce_add_epi32(total);
    }
}

/* RMSNorm of `width` numbers; `out` is zero up to the next whole vector. */
static void normalise(const float *x, const float *weight, int width, float eps, float *out) {
    __m512 total = _mm512_setzero_ps();
    for (int i = 0; i < width; i += 16) {
        __mmask16 mask = width - i >= 16 ? 0xffff : (__mmask16)((1 << (width - i)) - 1);
        __m512 v = _mm512_maskz_loadu_ps(mask, x + i);
        total = _mm512_fmadd_ps(v, v, total);
    }
    __m512 by = _mm512_set1_ps(1.f / sqrtf(_mm512_reduce_add_ps(total) / width + eps));
    for (int i = 0; i < width; i += 16) {
        __mmask16 mask = width - i >= 16 ? 0xffff : (__mmask16)((1 << (width - i)) - 1);
        __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), by);
        _mm512_mask_storeu_ps(out + i, mask, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(mask, weight + i)));
    }
}

static void norm_rows(Stage *stage, const Model *m, const Workspace *w, const float *weight,
                      const int32_t *chosen, int rows, int inputs, float *scratch) {
    memset(scratch, 0, (size_t)inputs * 4);
    for (int row; (row = take(stage)) < rows;) {
        const float *x = w->residual + (int64_t)(chosen ? chosen[row] : row) * m->hidden_stride;
        normalise(x, weight, m->hidden, m->eps, scratch);
        encode_row(w, m->kind, scratch, inputs, row);
        finished(stage);
    }
    await_tasks(stage, rows);
}

static void encode_rows(Stage *stage, int kind, const Workspace *w, const float *x, int rows, int inputs) {
    for (int row; (row = take(stage)) < rows;) {
        encode_row(w, kind, x + (int64_t)row * inputs, inputs, row);
        finished(stage);
    }
    await_tasks(stage, rows);
}
