/* What is done to a row between products: norms, and turning it into an operand. */
#pragma once
#include "stages.h"

/* Eight bits a number with a scale for every group: the scales, and the numbers as the product takes them. */
static void encode_int8(const Workspace *w, const float *x, int inputs, int row) {
    uint8_t *to = w->operand + (int64_t)row * inputs * operand_bytes(INT8);
    int groups = inputs / GROUP;
    for (int g = 0; g < groups; g++) {
        const float *from = x + g * GROUP;
        floats peak = splat(0.f);
        for (int i = 0; i < GROUP; i += LANES) peak = V(max_ps)(peak, absolute(V(loadu_ps)(from + i)));
        float most = peak_lanes(peak);
        floats by = splat(most > 0 ? 127.f / most : 0.f);
        ints total = V(set1_epi32)(0);
        for (int i = 0; i < GROUP; i += LANES) {
            ints q = V(cvtps_epi32)(V(mul_ps)(V(loadu_ps)(from + i), by));
            total = V(add_epi32)(total, q);
            if (DOT_INT8) store_bytes(to + g * GROUP + i, q);
            else store_shorts((uint16_t *)to + g * GROUP + i, q);
        }
        w->operand_scale[(int64_t)row * groups + g] = most / 127.f;
        w->operand_offset[(int64_t)row * groups + g] = -128 * sum_ints(total);
    }
}

/* Writes a float32 row as operand `row` of a product with `inputs` (padded) inputs. */
static void encode_row(const Workspace *w, int kind, const float *x, int inputs, int row) {
    if (kind == INT8) {
        encode_int8(w, x, inputs, row);
        return;
    }
    int64_t bytes = (int64_t)inputs * operand_bytes(kind);
    uint8_t *to = w->operand + row * bytes;
    if (operand_bytes(kind) == 4) memcpy(to, x, (size_t)bytes);
    else
        for (int i = 0; i < inputs; i += LANES) store_narrow((uint16_t *)to + i, V(loadu_ps)(x + i));
}

/* RMSNorm of `width` numbers; `out` is zero up to the next whole vector. */
static void normalise(const float *x, const float *weight, int width, float eps, float *out) {
    floats total = splat(0.f);
    for (int i = 0; i < width; i += LANES) {
        floats v = load_first(x + i, width - i);
        total = V(fmadd_ps)(v, v, total);
    }
    floats by = splat(1.f / sqrtf(sum_lanes(total) / width + eps));
    for (int i = 0; i < width; i += LANES) {
        floats v = V(mul_ps)(load_first(x + i, width - i), by);
        store_first(out + i, width - i, V(mul_ps)(v, load_first(weight + i, width - i)));
    }
}

static void norm_rows(Stage *stage, const Model *m, const Workspace *w, const float *weight, int rows, int inputs,
                      float *scratch) {
    memset(scratch, 0, (size_t)inputs * 4);
    for (int row; (row = take(stage)) < rows;) {
        const float *x = w->residual + (int64_t)row * m->hidden_stride;
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
