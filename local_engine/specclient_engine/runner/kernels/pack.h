/* Weights as the products read them. */
#pragma once
#include "nouns.h"

#define PIECE 128 /* numbers of a row that are packed at once */

/* `count` numbers of a row from `first` on; what lies beyond its `width`, and a row that is null, is zero. */
static void widen_piece(const uint8_t *row, int bf16, int width, int first, int count, float *out) {
    int there = !row || first >= width ? 0 : first + count <= width ? count : width - first;
    if (bf16)
        for (int i = 0; i < there; i++) out[i] = widen1(((const uint16_t *)row)[first + i]);
    else if (there) memcpy(out, row + (int64_t)first * 4, (size_t)there * 4);
    memset(out + there, 0, (size_t)(count - there) * 4);
}

/* The largest magnitude of a row. */
static float peak_of_row(const uint8_t *row, int bf16, int width) {
    float piece[PIECE];
    floats peak = splat(0.f);
    for (int first = 0; first < width; first += PIECE) {
        widen_piece(row, bf16, width, first, PIECE, piece);
        for (int i = 0; i < PIECE; i += LANES) peak = V(max_ps)(peak, absolute(V(loadu_ps)(piece + i)));
    }
    return peak_lanes(peak);
}

/* Numbers in eight bits, symmetric. For the instruction that multiplies unsigned with signed numbers 128 is
 * added; where weights are widened instead, the middle two of each step change places, so that its first two
 * are the low bytes of the step's two halves. */
static void narrow_int8(const float *from, int count, float most, uint8_t *out) {
    floats by = splat(most > 0 ? 127.f / most : 0.f);
    for (int i = 0; i < count; i += LANES) {
        ints q = V(cvtps_epi32)(V(mul_ps)(V(loadu_ps)(from + i), by));
        store_bytes(out + i, DOT_INT8 ? V(add_epi32)(q, V(set1_epi32)(128)) : q);
    }
    for (int i = 0; !DOT_INT8 && i < count; i += 4) {
        uint8_t second = out[i + 1];
        out[i + 1] = out[i + 2];
        out[i + 2] = second;
    }
}

/* Numbers of a row, whose largest is `most`, as they are in its steps. */
static void narrow(int kind, const float *from, int count, float most, uint8_t *out) {
    if (kind == INT8) narrow_int8(from, count, most, out);
    else if (kind == FLOAT32) memcpy(out, from, (size_t)count * 4);
    else
        for (int i = 0; i < count; i += LANES) store_narrow((uint16_t *)out + i, V(loadu_ps)(from + i));
}

/* Where the steps of an output begin; each is SLICE words behind the one before. */
static int64_t first_step(int64_t output, int steps) {
    int64_t slice = output / SLICE;
    return slice * steps * SLICE + output % SLICE;
}

/* One slice of a matrix whose rows begin at the addresses `rows`. A piece of all its rows at a time: line by
 * line is how memory wants to be written. */
static void pack_slice(const uint8_t *const *rows, int bf16, int kind, int outputs, int width, int inputs,
                       int slice, uint8_t *strips, float *scale) {
    int bytes = element_bytes(kind), steps = inputs * bytes / 4;
    int32_t *to = (int32_t *)strips + first_step((int64_t)slice * SLICE, steps);
    const uint8_t *row[SLICE];
    float piece[PIECE], most[SLICE];
    int32_t words[SLICE][PIECE];
    for (int r = 0; r < SLICE; r++) {
        int output = slice * SLICE + r;
        row[r] = output < outputs ? rows[output] : 0;
        most[r] = kind == INT8 ? peak_of_row(row[r], bf16, width) : 0.f;
        if (scale) scale[output] = kind == INT8 ? most[r] / 127.f : 1.f;
    }
    for (int first = 0; first < inputs; first += PIECE) {
        int count = first + PIECE <= inputs ? PIECE : inputs - first;
        for (int r = 0; r < SLICE; r++) {
            widen_piece(row[r], bf16, width, first, count, piece);
            narrow(kind, piece, count, most[r], (uint8_t *)words[r]);
        }
        for (int s = 0; s < count * bytes / 4; s++, to += SLICE)
            for (int r = 0; r < SLICE; r++) to[r] = words[r][s];
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
