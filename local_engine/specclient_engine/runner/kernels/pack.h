/* Weights as the products read them. */
#pragma once
#include "nouns.h"

static void widen_row(const uint8_t *weight, int bf16, int64_t row, int width, float *out) {
    if (!bf16) {
        memcpy(out, weight + row * width * 4, (size_t)width * 4);
        return;
    }
    const uint16_t *from = (const uint16_t *)weight + row * width;
    for (int i = 0; i < width; i++) out[i] = widen1(from[i]);
}

/* A row in eight bits, symmetric; returns its scale. For the instruction that multiplies unsigned with signed
 * numbers 128 is added; where weights are widened instead, the middle two of each step change places, so that
 * its first two are the low bytes of the step's two halves. */
static float narrow_int8(const float *row, int inputs, uint8_t *out) {
    floats peak = splat(0.f);
    for (int i = 0; i < inputs; i += LANES) peak = V(max_ps)(peak, absolute(V(loadu_ps)(row + i)));
    float most = peak_lanes(peak);
    floats by = splat(most > 0 ? 127.f / most : 0.f);
    for (int i = 0; i < inputs; i += LANES) {
        ints q = V(cvtps_epi32)(V(mul_ps)(V(loadu_ps)(row + i), by));
        store_bytes(out + i, DOT_INT8 ? V(add_epi32)(q, V(set1_epi32)(128)) : q);
    }
    for (int i = 0; !DOT_INT8 && i < inputs; i += 4) {
        uint8_t second = out[i + 1];
        out[i + 1] = out[i + 2];
        out[i + 2] = second;
    }
    return most / 127.f;
}

/* A row as the numbers of its steps; returns its scale. */
static float narrow_row(int kind, const float *row, int inputs, uint8_t *out) {
    if (kind == INT8) return narrow_int8(row, inputs, out);
    if (kind == FLOAT32) memcpy(out, row, (size_t)inputs * 4);
    else
        for (int i = 0; i < inputs; i += LANES) store_narrow((uint16_t *)out + i, V(loadu_ps)(row + i));
    return 1.f;
}

/* Where the steps of an output begin; each is SLICE words behind the one before. */
static int64_t first_step(int64_t output, int steps) {
    int64_t slice = output / SLICE;
    return slice * steps * SLICE + output % SLICE;
}

/* One strip of a matrix `[outputs, width]`; what lies beyond its edges is zero. */
static void pack_strip(const uint8_t *weight, int bf16, int kind, int outputs, int width, int inputs, int strip,
                       uint8_t *strips, float *scale) {
    int steps = inputs * element_bytes(kind) / 4;
    float row[inputs];
    int32_t words[inputs];
    memset(row, 0, sizeof row);
    for (int64_t output = (int64_t)strip * STRIP; output < (int64_t)(strip + 1) * STRIP; output++) {
        if (output < outputs) widen_row(weight, bf16, output, width, row);
        else memset(row, 0, sizeof row);
        float by = narrow_row(kind, row, inputs, (uint8_t *)words);
        if (scale) scale[output] = by;
        int32_t *to = (int32_t *)strips + first_step(output, steps);
        for (int s = 0; s < steps; s++) to[(int64_t)s * SLICE] = words[s];
    }
}

/* Output `index` of a packed matrix as float32 numbers, `inputs` of them: a token's embedding. */
static void unpack_row(const Matrix *m, int kind, int64_t index, float *out) {
    int per_step = 4 / element_bytes(kind), steps = m->inputs / per_step;
    const int32_t *from = (const int32_t *)m->strips + first_step(index, steps);
    for (int s = 0; s < steps; s++) {
        int32_t word = from[(int64_t)s * SLICE];
        float *to = out + s * per_step;
        if (kind == FLOAT32) memcpy(to, &word, 4);
        else if (kind == BFLOAT16) {
            to[0] = widen1((uint16_t)word);
            to[1] = widen1((uint16_t)((uint32_t)word >> 16));
        } else {
            int8_t bytes[4];
            memcpy(bytes, &word, 4);
            for (int i = 0; i < 4; i++) {
                int from_byte = DOT_INT8 || i == 0 || i == 3 ? i : 3 - i;
                int value = DOT_INT8 ? (uint8_t)bytes[from_byte] - 128 : bytes[from_byte];
                to[i] = value * m->scale[index];
            }
        }
    }
}
