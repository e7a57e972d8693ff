/* Rotary embedding, the cache, and attention over it. */
#pragma once
#include "product.h"
#include "rows.h"

/* Rotates halves in place, after an RMSNorm of the head where the model has one, and scales. */
static void turn(const Model *m, float *head, const float *norm, int position, float scale) {
    int half = m->head_dim / 2;
    const float *c = m->cos + (int64_t)position * half, *s = m->sin + (int64_t)position * half;
    if (norm) normalise(head, norm, m->head_dim, m->eps, head);
    for (int i = 0; i < half; i++) {
        float a = head[i], b = head[i + half];
        head[i] = (a * c[i] - b * s[i]) * scale;
        head[i + half] = (b * c[i] + a * s[i]) * scale;
    }
}

static void put(uint8_t *to, int bytes, int64_t index, float value) {
    if (bytes == 2) ((uint16_t *)to)[index] = narrow1(value);
    else ((float *)to)[index] = value;
}

/* Turns the queries and keys of a row, keeps the queries, writes keys and values into the cache.
 * Keys: panels of 64 positions by steps of the head. Values: steps of positions by the head. */
static void place_row(const Model *m, const Workspace *w, const Layer *layer, int index, const Pass *pass,
                      const Span *span, int row) {
    int d = m->head_dim, wide = m->head_stride, bytes = element_bytes(m->kv_kind), unit = 4 / bytes;
    int asked = operand_bytes(m->kv_kind);
    int joint_stride = round_up((m->heads + 2 * m->kv_heads) * d, PANEL);
    float *joint = w->joint + (int64_t)row * joint_stride;
    int position = pass->positions[row], slot = position % PANEL;
    for (int h = 0; h < m->heads; h++) {
        turn(m, joint + h * d, layer->q_norm, position, 1.f / sqrtf((float)d));
        uint8_t *query = w->query + ((int64_t)row * m->heads + h) * wide * asked;
        for (int i = 0; i < d; i++) put(query, asked, i, joint[h * d + i]);
    }
    int64_t plane = span->capacity * wide;
    int64_t panel = (int64_t)(position / PANEL) * PANEL * wide;
    for (int h = 0; h < m->kv_heads; h++) {
        uint8_t *cache = span->cache + (((int64_t)index * 2) * m->kv_heads + h) * plane * bytes;
        float *key = joint + (m->heads + h) * d, *value = joint + (m->heads + m->kv_heads + h) * d;
        turn(m, key, layer->k_norm, position, 1.f);
        for (int i = 0; i < d; i++)
            put(cache, bytes, panel + ((int64_t)(i / unit) * PANEL + slot) * unit + i % unit, key[i]);
        cache += m->kv_heads * plane * bytes;
        for (int i = 0; i < d; i++) {
            int64_t column = (int64_t)(i / PANEL) * PANEL * PANEL + (int64_t)(slot / unit) * PANEL * unit;
            put(cache, bytes, panel + column + (i % PANEL) * unit + slot % unit, value[i]);
        }
    }
}

typedef struct {
    _Alignas(64) float scores[ATTEND_ROWS][PANEL];
    _Alignas(64) float sums[MAX_HEAD / PANEL][ATTEND_ROWS][PANEL];
    _Alignas(64) uint8_t query[ATTEND_ROWS * MAX_HEAD * 4];
    _Alignas(64) uint8_t shares[ATTEND_ROWS * PANEL * 4];
    _Alignas(64) float total[ATTEND_ROWS][LANES];
    float peak[ATTEND_ROWS];
    int32_t position[ATTEND_ROWS];
} Attending;

/* Softmax of one row over one panel, with a running maximum (FlashAttention, arXiv 2205.14135). The lanes
 * of `total` are only added up at the end. */
static void weigh(Attending *a, int row, int first, int asked, int parts) {
    floats s[PANEL / LANES], total = V(load_ps)(a->total[row]), peak = splat(HIDDEN);
    int seen = a->position[row] - first + 1;
    for (int v = 0; v < PANEL / LANES; v++) {
        s[v] = keep_first(V(load_ps)(&a->scores[row][LANES * v]), seen - LANES * v, splat(HIDDEN));
        peak = V(max_ps)(peak, s[v]);
    }
    float top = peak_lanes(peak), before = a->peak[row];
    if (top > before) {
        floats shrink = exponential(splat(before - top));
        total = V(mul_ps)(total, shrink);
        for (int p = 0; p < parts; p++)
            for (int i = 0; i < PANEL; i += LANES) {
                float *at = &a->sums[p][row][i];
                V(store_ps)(at, V(mul_ps)(V(load_ps)(at), shrink));
            }
        a->peak[row] = top;
    } else {
        top = before;
    }
    uint8_t *shares = a->shares + row * PANEL * asked;
    for (int v = 0; v < PANEL / LANES; v++) {
        floats share = exponential(V(sub_ps)(s[v], splat(top)));
        total = V(add_ps)(total, share);
        if (asked == 2) store_narrow((uint16_t *)shares + LANES * v, share);
        else V(storeu_ps)((float *)shares + LANES * v, share);
    }
    V(store_ps)(a->total[row], total);
}

/* Attention of `count` query rows (rows of the pass by heads of one group) of one key/value head. */
static void attend(const Model *m, const Workspace *w, const Span *span, int index, int kv_head, int row, int rows,
                   Attending *a) {
    int d = m->head_dim, wide = m->head_stride, kind = m->kv_kind;
    int bytes = element_bytes(kind), asked = operand_bytes(kind);
    int group = m->heads / m->kv_heads, parts = wide / PANEL, count = rows * group;
    int64_t plane = span->capacity * wide * bytes, panel_bytes = (int64_t)PANEL * wide * bytes;
    const uint8_t *keys = span->cache + (((int64_t)index * 2) * m->kv_heads + kv_head) * plane;
    const uint8_t *values = keys + m->kv_heads * plane;
    for (int i = 0; i < count; i++) {
        int from = row + i / group, head = kv_head * group + i % group;
        memcpy(a->query + (int64_t)i * d * asked, w->query + ((int64_t)from * m->heads + head) * wide * asked,
               (size_t)d * asked);
        a->position[i] = span->start + from - span->first_row;
        a->peak[i] = HIDDEN;
        memset(a->total[i], 0, sizeof a->total[i]);
        for (int p = 0; p < parts; p++) memset(a->sums[p][i], 0, sizeof a->sums[p][i]);
    }
    int last = a->position[count - 1];
    for (int first = 0; first <= last; first += PANEL) {
        const uint8_t *k = keys + first / PANEL * panel_bytes, *v = values + first / PANEL * panel_bytes;
        for (int i = 0; i < count; i += TILE) {
            int n = count - i < TILE ? count - i : TILE;
            panel_tile(kind, n, a->query + (int64_t)i * d * asked, d * asked, k, d * bytes / 4, 0,
                       &a->scores[i]);
            for (int r = i; r < i + n; r++) {
                if (a->position[r] >= first) weigh(a, r, first, asked, parts);
                else memset(a->shares + r * PANEL * asked, 0, (size_t)PANEL * asked);
            }
            for (int p = 0; p < parts; p++)
                panel_tile(kind, n, a->shares + i * PANEL * asked, PANEL * asked, v + p * PANEL * PANEL * bytes,
                        PANEL * bytes / 4, 1, &a->sums[p][i]);
        }
    }
    int mixed_stride = m->layers[0].output.inputs;
    for (int i = 0; i < count; i++) {
        float *out = w->mixed + (int64_t)(row + i / group) * mixed_stride + (kv_head * group + i % group) * d;
        float by = 1.f / sum_lanes(V(load_ps)(a->total[i]));
        for (int j = 0; j < d; j++) out[j] = a->sums[j / PANEL][i][j % PANEL] * by;
    }
}

static void attend_all(Stage *stage, const Model *m, const Workspace *w, const Pass *pass, int index,
                       Attending *a) {
    int group = m->heads / m->kv_heads, block = ATTEND_ROWS / group, handed = 0, mine = take(stage);
    for (int s = 0; s < pass->n_spans; s++) {
        const Span *span = &pass->spans[s];
        for (int first = 0; first < span->rows; first += block)
            for (int h = 0; h < m->kv_heads; h++) {
                if (handed++ != mine) continue;
                int rows = span->rows - first < block ? span->rows - first : block;
                attend(m, w, span, index, h, span->first_row + first, rows, a);
                finished(stage);
                mine = take(stage);
            }
    }
    await_tasks(stage, handed);
}

static void place_all(Stage *stage, const Model *m, const Workspace *w, const Pass *pass, int index) {
    for (int row; (row = take(stage)) < pass->rows;) {
        const Span *span = pass->spans;
        while (row >= span->first_row + span->rows) span++;
        place_row(m, w, &m->layers[index], index, pass, span, row);
        finished(stage);
    }
    await_tasks(stage, pass->rows);
}
