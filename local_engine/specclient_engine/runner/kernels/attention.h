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

static void put(uint8_t *to, int kind, int64_t index, float value) {
    if (kind == BFLOAT16) ((uint16_t *)to)[index] = narrow1(value);
    else ((float *)to)[index] = value;
}

/* Turns the queries and keys of a row, keeps the queries, writes keys and values into the cache.
 * Keys: panels of 64 positions by steps of the head. Values: steps of positions by the head. */
static void place_row(const Model *m, const Workspace *w, const Layer *layer, int index, const Pass *pass,
                      const Span *span, int row) {
    int d = m->head_dim, wide = m->head_stride, kind = m->kv_kind, unit = 4 / element_bytes(kind);
    int joint_stride = round_up((m->heads + 2 * m->kv_heads) * d, PANEL);
    float *joint = w->joint + (int64_t)row * joint_stride;
    int position = pass->positions[row], slot = position % PANEL;
    for (int h = 0; h < m->heads; h++) {
        turn(m, joint + h * d, layer->q_norm, position, 1.f / sqrtf((float)d));
        uint8_t *query = w->query + ((int64_t)row * m->heads + h) * wide * element_bytes(kind);
        for (int i = 0; i < d; i++) put(query, kind, i, joint[h * d + i]);
    }
    int64_t plane = span->capacity * wide;
    int64_t panel = (int64_t)(position / PANEL) * PANEL * wide;
    for (int h = 0; h < m->kv_heads; h++) {
        uint8_t *cache = span->cache + (((int64_t)index * 2) * m->kv_heads + h) * plane * element_bytes(kind);
        float *key = joint + (m->heads + h) * d, *value = joint + (m->heads + m->kv_heads + h) * d;
        turn(m, key, layer->k_norm, position, 1.f);
        for (int i = 0; i < d; i++)
            put(cache, kind, panel + ((int64_t)(i / unit) * PANEL + slot) * unit + i % unit, key[i]);
        cache += m->kv_heads * plane * element_bytes(kind);
        for (int i = 0; i < d; i++) {
            int64_t column = (int64_t)(i / PANEL) * PANEL * PANEL + (int64_t)(slot / unit) * PANEL * unit;
            put(cache, kind, panel + column + (i % PANEL) * unit + slot % unit, value[i]);
        }
    }
}

typedef struct {
    _Alignas(64) float scores[ATTEND_ROWS][PANEL];
    _Alignas(64) float sums[MAX_HEAD / PANEL][ATTEND_ROWS][PANEL];
    _Alignas(64) uint8_t query[ATTEND_ROWS * MAX_HEAD * 4];
    _Alignas(64) uint8_t shares[ATTEND_ROWS * PANEL * 4];
    _Alignas(64) float total[ATTEND_ROWS][16];
    float peak[ATTEND_ROWS];
    int32_t position[ATTEND_ROWS];
} Attending;

/* Softmax of one row over one panel, with a running maximum (FlashAttention, arXiv 2205.14135). The lanes
 * of `total` are only added up at the end. */
static void weigh(Attending *a, int row, int first, int kind, int parts) {
    __m512 s[VECTORS], total = _mm512_load_ps(a->total[row]);
    int seen = a->position[row] - first + 1;
    for (int v = 0; v < VECTORS; v++) {
        s[v] = _mm512_load_ps(&a->scores[row][16 * v]);
        if (seen >= PANEL) continue;
        int here = seen - 16 * v;
        __mmask16 mask = here >= 16 ? 0xffff : here <= 0 ? 0 : (__mmask16)((1 << here) - 1);
        s[v] = _mm512_mask_mov_ps(_mm512_set1_ps(HIDDEN), mask, s[v]);
    }
    __m512 peak = _mm512_max_ps(_mm512_max_ps(s[0], s[1]), _mm512_max_ps(s[2], s[3]));
    float top = _mm512_reduce_max_ps(peak), before = a->peak[row];
    if (top > before) {
        __m512 shrink = exp16(_mm512_set1_ps(before - top));
        total = _mm512_mul_ps(total, shrink);
        for (int p = 0; p < parts; p++)
            for (int v = 0; v < VECTORS; v++) {
                float *at = &a->sums[p][row][16 * v];
                _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), shrink));
            }
        a->peak[row] = top;
    } else {
        top = before;
    }
    for (int v = 0; v < VECTORS; v++) {
        s[v] = exp16(_mm512_sub_ps(s[v], _mm512_set1_ps(top)));
        total = _mm512_add_ps(total, s[v]);
        if (kind == BFLOAT16)
            _mm256_storeu_si256((__m256i *)(a->shares + row * PANEL * 2 + 32 * v), narrow16(s[v]));
        else
            _mm512_storeu_ps(a->shares + row * PANEL * 4 + 64 * v, s[v]);
    }
    _mm512_store_ps(a->total[row], total);
}

/* Attention of `count` query rows (rows of the pass by heads of one group) of one key/value head. */
static void attend(const Model *m, const Workspace *w, const Span *span, int index, int kv_head, int row, int rows,
                   Attending *a) {
    int d = m->head_dim, wide = m->head_stride, kind = m->kv_kind, bytes = element_bytes(kind);
    int group = m->heads / m->kv_heads, parts = wide / PANEL, count = rows * group;
    int64_t plane = span->capacity * wide * bytes, panel_bytes = (int64_t)PANEL * wide * bytes;
    const uint8_t *keys = span->cache + (((int64_t)index * 2) * m->kv_heads + kv_head) * plane;
    const uint8_t *values = keys + m->kv_heads * plane;
    for (int i = 0; i < count; i++) {
        int from = row + i / group, head = kv_head * group + i % group;
        memcpy(a->query + (int64_t)i * d * bytes, w->query + ((int64_t)from * m->heads + head) * wide * bytes,
               (size_t)d * bytes);
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
            panel_tile(kind, n, a->query + (int64_t)i * d * bytes, d * bytes, k, d * bytes / 4, 0,
                       &a->scores[i]);
            for (int r = i; r < i + n; r++) {
                if (a->position[r] >= first) weigh(a, r, first, kind, parts);
                else memset(a->shares + r * PANEL * bytes, 0, (size_t)PANEL * bytes);
            }
            for (int p = 0; p < parts; p++)
                panel_tile(kind, n, a->shares + i * PANEL * bytes, PANEL * bytes, v + p * PANEL * PANEL * bytes,
                        PANEL * bytes / 4, 1, &a->sums[p][i]);
        }
    }
    int mixed_stride = m->layers[0].output.inputs;
    for (int i = 0; i < count; i++) {
        float *out = w->mixed + (int64_t)(row + i / group) * mixed_stride + (kv_head * group + i % group) * d;
        float by = 1.f / _mm512_reduce_add_ps(_mm512_load_ps(a->total[i]));
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
