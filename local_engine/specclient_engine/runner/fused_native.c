/* One pass of a Llama-shaped model on AVX-512.
 *
 * Every matrix is cut into panels of 64 outputs. A panel is a sequence of steps; a step holds 4 bytes of
 * each output (4 int8, 2 bfloat16 or 1 float32 weights), 256 bytes in all. A row of activations is read
 * 4 bytes a step and broadcast, so one loop serves the three kinds of number, and keys and values of the
 * cache too. A row's sums are made in one order whatever rows are computed beside it: a token verified
 * in a block gets the very numbers that it gets alone.
 */
#include <immintrin.h>
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define PANEL 64      /* outputs of a panel, and cached positions of a panel of keys or values */
#define VECTORS 4     /* 512-bit vectors of a panel */
#define TILE 6        /* rows computed together: 24 sums stay in registers */
#define GROUP 64      /* activations that share an int8 scale */
#define MAX_HEAD 256  /* widest head */
#define ROW_BLOCK 96  /* rows of one task of a product */
#define ATTEND_ROWS 48

enum { FLOAT32 = 0, BFLOAT16 = 1, INT8 = 2 };
enum { STORE = 0, ADD = 1, SWIGLU = 2 };

typedef struct {
    const uint8_t *panels;
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

/* A stage of the pass: tasks are handed out by `next` and counted when `done`. */
typedef struct {
    _Alignas(64) atomic_int next;
    atomic_int done;
} Stage;

/* ---- threads -------------------------------------------------------------------------------------- */

static int take(Stage *stage) { return atomic_fetch_add_explicit(&stage->next, 1, memory_order_relaxed); }

static void finished(Stage *stage) { atomic_fetch_add_explicit(&stage->done, 1, memory_order_release); }

/* Waits until a stage's tasks are done, not until every thread has come by: on a busy machine a thread
 * that was put to sleep between tasks holds nobody up. */
static void await_tasks(Stage *stage, int tasks) {
    for (int spins = 0; atomic_load_explicit(&stage->done, memory_order_acquire) < tasks; spins++) {
        if (spins < 2000) _mm_pause();
        else sched_yield();
    }
}

/* ---- numbers -------------------------------------------------------------------------------------- */

static int round_up(int value, int step) { return (value + step - 1) / step * step; }

static int element_bytes(int kind) { return kind == FLOAT32 ? 4 : kind == BFLOAT16 ? 2 : 1; }

/* e^x to about 1e-7 relative: 2^n * p(r), p the degree-6 Taylor polynomial on |r| <= ln 2 / 2. */
static inline __m512 exp16(__m512 x) {
    x = _mm512_max_ps(_mm512_min_ps(x, _mm512_set1_ps(88.f)), _mm512_set1_ps(-104.f));
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
    __m512i bits = _mm512_castps_si512(x);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    bits = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16));
}

static inline uint16_t narrow1(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* ---- products ------------------------------------------------------------------------------------- */

typedef float Block[TILE][PANEL];

/* What to bring into the cache meanwhile: `lines` cache lines a step. */
typedef struct {
    const uint8_t *from;
    int lines;
} Ahead;

static inline void fetch(Ahead ahead, int step) {
    for (int i = 0; i < ahead.lines; i++)
        _mm_prefetch((const char *)ahead.from + 64 * ((int64_t)step * ahead.lines + i), _MM_HINT_T1);
}

/* rows x 64 sums over `steps` steps of float32 or bfloat16 numbers, on top of what `out` holds if `more`. */
static inline __attribute__((always_inline)) void multiply_float(
    const int bf16, const int rows, const uint8_t *x, int64_t stride, const uint8_t *panel, int steps, int more,
    Ahead ahead, float (*out)[PANEL]) {
    __m512 sum[TILE][VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++)
            sum[r][v] = more ? _mm512_load_ps(&out[r][16 * v]) : _mm512_setzero_ps();
    for (int s = 0; s < steps; s++) {
        __m512i w[VECTORS];
        for (int v = 0; v < VECTORS; v++) w[v] = _mm512_load_si512(panel + 256 * (int64_t)s + 64 * v);
        fetch(ahead, s);
        for (int r = 0; r < rows; r++) {
            __m512i a = _mm512_set1_epi32(*(const int32_t *)(x + r * stride + 4 * s));
            for (int v = 0; v < VECTORS; v++) {
#ifdef __AVX512BF16__
                if (bf16) {
                    sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)a, (__m512bh)w[v]);
                    continue;
                }
#endif
                sum[r][v] = _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(w[v]), sum[r][v]);
            }
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++) _mm512_store_ps(&out[r][16 * v], sum[r][v]);
}

/* The same for int8: exact sums over each group, scaled and added up in order. Weights are stored + 128,
 * as the instruction takes unsigned times signed; `offset` takes that out again. */
static inline __attribute__((always_inline)) void multiply_int8(
    const int rows, const uint8_t *x, int64_t stride, const float *scale, const int32_t *offset, int groups,
    const uint8_t *panel, Ahead ahead, float (*out)[PANEL]) {
    for (int g = 0; g < groups; g++) {
        __m512i sum[TILE][VECTORS];
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_set1_epi32(offset[r * groups + g]);
        for (int s = g * (GROUP / 4); s < (g + 1) * (GROUP / 4); s++) {
            __m512i w[VECTORS];
            for (int v = 0; v < VECTORS; v++) w[v] = _mm512_load_si512(panel + 256 * (int64_t)s + 64 * v);
            fetch(ahead, s);
            for (int r = 0; r < rows; r++) {
                __m512i a = _mm512_set1_epi32(*(const int32_t *)(x + r * stride + 4 * s));
                for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], w[v], a);
            }
        }
        for (int r = 0; r < rows; r++) {
            __m512 by = _mm512_set1_ps(scale[r * groups + g]);
            for (int v = 0; v < VECTORS; v++) {
                __m512 before = g ? _mm512_load_ps(&out[r][16 * v]) : _mm512_setzero_ps();
                __m512 value = _mm512_cvtepi32_ps(sum[r][v]);
                _mm512_store_ps(&out[r][16 * v], _mm512_fmadd_ps(value, by, before));
            }
        }
    }
}

#define EACH_TILE(CALL)                                                                                     \
    switch (rows) {                                                                                         \
    case 1: CALL(1); break;                                                                                 \
    case 2: CALL(2); break;                                                                                 \
    case 3: CALL(3); break;                                                                                 \
    case 4: CALL(4); break;                                                                                 \
    case 5: CALL(5); break;                                                                                 \
    default: CALL(6);                                                                                       \
    }

static void tile_float32(int rows, const uint8_t *x, int64_t stride, const uint8_t *panel, int steps, int more,
                         Ahead ahead, float (*out)[PANEL]) {
#define CALL(N) multiply_float(0, N, x, stride, panel, steps, more, ahead, out)
    EACH_TILE(CALL)
#undef CALL
}

static void tile_bfloat16(int rows, const uint8_t *x, int64_t stride, const uint8_t *panel, int steps, int more,
                          Ahead ahead, float (*out)[PANEL]) {
#define CALL(N) multiply_float(1, N, x, stride, panel, steps, more, ahead, out)
    EACH_TILE(CALL)
#undef CALL
}

static void tile_int8(int rows, const uint8_t *x, int64_t stride, const float *scale, const int32_t *offset,
                      int groups, const uint8_t *panel, Ahead ahead, float (*out)[PANEL]) {
#define CALL(N) multiply_int8(N, x, stride, scale, offset, groups, panel, ahead, out)
    EACH_TILE(CALL)
#undef CALL
}

static void tile_of(int kind, int rows, const uint8_t *x, int64_t stride, const uint8_t *panel, int steps,
                    int more, Ahead ahead, float (*out)[PANEL]) {
    if (kind == BFLOAT16) tile_bfloat16(rows, x, stride, panel, steps, more, ahead, out);
    else tile_float32(rows, x, stride, panel, steps, more, ahead, out);
}

/* Puts a tile where it belongs. SWIGLU: the panel holds 32 gates, then the 32 values they open. */
static void settle(int mode, const Matrix *m, int panel, int rows, float (*block)[PANEL], float *out,
                   int64_t stride) {
    for (int r = 0; r < rows; r++) {
        __m512 y[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            int64_t column = (int64_t)panel * PANEL + 16 * v;
            y[v] = _mm512_load_ps(&block[r][16 * v]);
            __m512 bias = m->bias ? _mm512_loadu_ps(m->bias + column) : _mm512_setzero_ps();
            y[v] = m->scale ? _mm512_fmadd_ps(y[v], _mm512_loadu_ps(m->scale + column), bias)
                            : _mm512_add_ps(y[v], bias);
        }
        float *row = out + r * stride;
        for (int v = 0; v < VECTORS; v++) {
            int column = panel * PANEL + 16 * v;
            if (mode == SWIGLU) {
                if (v >= 2) break;
                __m512 down = _mm512_add_ps(exp16(_mm512_sub_ps(_mm512_setzero_ps(), y[v])), _mm512_set1_ps(1.f));
                _mm512_storeu_ps(row + panel * 32 + 16 * v, _mm512_mul_ps(_mm512_div_ps(y[v], down), y[v + 2]));
            } else {
                int left = m->outputs - column;
                if (left <= 0) break;
                __mmask16 mask = left >= 16 ? 0xffff : (__mmask16)((1 << left) - 1);
                if (mode == ADD) y[v] = _mm512_add_ps(y[v], _mm512_maskz_loadu_ps(mask, row + column));
                _mm512_mask_storeu_ps(row + column, mask, y[v]);
            }
        }
    }
}

static void product(Stage *stage, int kind, int mode, const Matrix *m, Operand x, int rows, float *out,
                    int64_t out_stride) {
    int panels = round_up(m->outputs, PANEL) / PANEL, blocks = round_up(rows, ROW_BLOCK) / ROW_BLOCK;
    int64_t stride = (int64_t)m->inputs * element_bytes(kind);
    int steps = stride / 4, groups = m->inputs / GROUP;
    int height = kind == FLOAT32 ? TILE : 4;
    _Alignas(64) Block block;
    for (int task = take(stage), next; task < panels * blocks; task = next) {
        next = take(stage);
        int panel = task % panels, first = task / panels * ROW_BLOCK;
        int end = first + ROW_BLOCK < rows ? first + ROW_BLOCK : rows;
        int tiles = (end - first + height - 1) / height, lines = tiles == 1 ? 4 : tiles < 4 ? 2 : 1;
        const uint8_t *weights = m->panels + (int64_t)panel * steps * 256;
        const uint8_t *later = m->panels + (int64_t)(next % panels) * steps * 256;
        for (int row = first, tile = 0; row < end; row += height, tile++) {
            int n = end - row < height ? end - row : height;
            const uint8_t *a = x.data + row * stride;
            Ahead ahead = {later + (int64_t)tile * steps * 64 * lines, tile * lines < 4 ? lines : 0};
            if (kind == INT8)
                tile_int8(n, a, stride, x.scale + row * groups, x.offset + row * groups, groups, weights, ahead,
                          block);
            else
                tile_of(kind, n, a, stride, weights, steps, 0, ahead, block);
            settle(mode, m, panel, n, block, out + row * out_stride, out_stride);
        }
        finished(stage);
    }
    await_tasks(stage, panels * blocks);
}

/* ---- rows ----------------------------------------------------------------------------------------- */

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

static void encode_rows(Stage *stage, const Model *m, const Workspace *w, const float *x, int rows,
                        int inputs) {
    for (int row; (row = take(stage)) < rows;) {
        encode_row(w, m->kind, x + (int64_t)row * inputs, inputs, row);
        finished(stage);
    }
    await_tasks(stage, rows);
}

/* ---- attention ------------------------------------------------------------------------------------ */

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
    float peak[ATTEND_ROWS], total[ATTEND_ROWS];
    int32_t position[ATTEND_ROWS];
} Attending;

/* Softmax of one row over one panel, with a running maximum (FlashAttention, arXiv 2205.14135). */
static void weigh(Attending *a, int row, int first, int kind, int parts) {
    __m512 s[VECTORS], peak = _mm512_set1_ps(a->peak[row]);
    int seen = a->position[row] - first + 1;
    for (int v = 0; v < VECTORS; v++) {
        int here = seen - 16 * v;
        __mmask16 mask = here >= 16 ? 0xffff : here <= 0 ? 0 : (__mmask16)((1 << here) - 1);
        s[v] = _mm512_mask_load_ps(_mm512_set1_ps(-INFINITY), mask, &a->scores[row][16 * v]);
        peak = _mm512_max_ps(peak, s[v]);
    }
    float top = _mm512_reduce_max_ps(peak);
    __m512 sum = _mm512_setzero_ps();
    for (int v = 0; v < VECTORS; v++) {
        __mmask16 mask = _mm512_cmp_ps_mask(s[v], _mm512_set1_ps(-INFINITY), _CMP_NEQ_OQ);
        s[v] = _mm512_maskz_mov_ps(mask, exp16(_mm512_sub_ps(s[v], _mm512_set1_ps(top))));
        sum = _mm512_add_ps(sum, s[v]);
        if (kind == BFLOAT16)
            _mm256_storeu_si256((__m256i *)(a->shares + row * PANEL * 2 + 32 * v), narrow16(s[v]));
        else
            _mm512_storeu_ps(a->shares + row * PANEL * 4 + 64 * v, s[v]);
    }
    if (top > a->peak[row]) {
        __m512 shrink = exp16(_mm512_set1_ps(a->peak[row] - top));
        a->total[row] *= _mm512_cvtss_f32(shrink);
        for (int p = 0; p < parts; p++)
            for (int v = 0; v < VECTORS; v++) {
                float *at = &a->sums[p][row][16 * v];
                _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), shrink));
            }
        a->peak[row] = top;
    }
    a->total[row] += _mm512_reduce_add_ps(sum);
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
        a->peak[i] = -INFINITY;
        a->total[i] = 0;
        for (int p = 0; p < parts; p++) memset(a->sums[p][i], 0, sizeof a->sums[p][i]);
    }
    int last = a->position[count - 1];
    const Ahead none = {0, 0};
    for (int first = 0; first <= last; first += PANEL) {
        const uint8_t *k = keys + first / PANEL * panel_bytes, *v = values + first / PANEL * panel_bytes;
        for (int i = 0; i < count; i += TILE) {
            int n = count - i < TILE ? count - i : TILE;
            tile_of(kind, n, a->query + (int64_t)i * d * bytes, d * bytes, k, d * bytes / 4, 0, none,
                    &a->scores[i]);
            for (int r = i; r < i + n; r++) {
                if (a->position[r] >= first) weigh(a, r, first, kind, parts);
                else memset(a->shares + r * PANEL * bytes, 0, (size_t)PANEL * bytes);
            }
            for (int p = 0; p < parts; p++)
                tile_of(kind, n, a->shares + i * PANEL * bytes, PANEL * bytes, v + p * PANEL * PANEL * bytes,
                        PANEL * bytes / 4, 1, none, &a->sums[p][i]);
        }
    }
    int mixed_stride = m->layers[0].output.inputs;
    for (int i = 0; i < count; i++) {
        float *out = w->mixed + (int64_t)(row + i / group) * mixed_stride + (kv_head * group + i % group) * d;
        float by = 1.f / a->total[i];
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

/* ---- the pass ------------------------------------------------------------------------------------- */

static void embed(Stage *stage, const Model *m, const Workspace *w, const Pass *pass) {
    for (int row; (row = take(stage)) < pass->rows;) {
        float *to = w->residual + (int64_t)row * m->hidden_stride;
        int64_t from = pass->tokens[row] * m->hidden;
        if (m->embedding32) memcpy(to, m->embedding32 + from, (size_t)m->hidden * 4);
        else
            for (int i = 0; i < m->hidden; i++) {
                uint32_t bits = (uint32_t)m->embedding[from + i] << 16;
                memcpy(to + i, &bits, 4);
            }
        finished(stage);
    }
    await_tasks(stage, pass->rows);
}

static void run(const Model *m, const Workspace *w, const Pass *pass, Stage *stage, Attending *attending, float *scratch) {
    int rows = pass->rows, kind = m->kind;
    int hidden = m->layers[0].qkv.inputs, mixed = m->layers[0].output.inputs, inner = m->layers[0].down.inputs;
    int joint = round_up((m->heads + 2 * m->kv_heads) * m->head_dim, PANEL);
    Operand x = {w->operand, w->operand_scale, w->operand_offset};
    embed(stage++, m, w, pass);
    for (int i = 0; i < m->n_layers; i++) {
        const Layer *layer = &m->layers[i];
        norm_rows(stage++, m, w, layer->input_norm, 0, rows, hidden, scratch);
        product(stage++, kind, STORE, &layer->qkv, x, rows, w->joint, joint);
        place_all(stage++, m, w, pass, i);
        attend_all(stage++, m, w, pass, i, attending);
        encode_rows(stage++, m, w, w->mixed, rows, mixed);
        product(stage++, kind, ADD, &layer->output, x, rows, w->residual, m->hidden_stride);
        norm_rows(stage++, m, w, layer->post_norm, 0, rows, hidden, scratch);
        product(stage++, kind, SWIGLU, &layer->gate_up, x, rows, w->inner, inner);
        encode_rows(stage++, m, w, w->inner, rows, inner);
        product(stage++, kind, ADD, &layer->down, x, rows, w->residual, m->hidden_stride);
    }
    norm_rows(stage++, m, w, m->final_norm, pass->wanted, pass->n_wanted, hidden, scratch);
    product(stage, kind, STORE, &m->head, x, pass->n_wanted, pass->logits, m->head.outputs);
}

/* Bytes of `stages` for a model of so many layers. */
int64_t stage_bytes(int32_t layers) { return sizeof(Stage) * (10 * (int64_t)layers + 3); }

/* Bytes of `private` for each thread. */
int64_t private_bytes(const Model *m) {
    return (sizeof(Attending) + (int64_t)m->layers[0].qkv.inputs * 4 + 63) / 64 * 64;
}

/* Computes one pass. Buffers are the caller's, 64-byte aligned. */
void forward(const Model *m, const Workspace *w, const Pass *pass, uint8_t *stages, uint8_t *private) {
    memset(stages, 0, (size_t)stage_bytes(m->n_layers));
#pragma omp parallel num_threads(pass->threads)
    {
        uint8_t *mine = private + omp_get_thread_num() * private_bytes(m);
        run(m, w, pass, (Stage *)stages, (Attending *)mine, (float *)(mine + sizeof(Attending)));
    }
}
