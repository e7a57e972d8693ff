/* The nouns of the kernels, shared with fused_native.py.
 *
 * Every matrix is cut into strips of 32 outputs, and a strip into slices of two vectors. A slice is a sequence
 * of steps; a step holds 4 bytes of each output (4 int8, 2 bfloat16 or 1 float32 weights). A row of activations
 * is read a step at a time and broadcast, so one loop serves every kind of number. Keys and values are cached
 * in panels 64 wide, by steps too. A row's sums are made in one order whatever rows are computed beside it: a
 * token verified in a block gets the very numbers that it gets alone.
 */
#pragma once
#include "vector.h"
#include <math.h>
#include <sched.h>
#include <stdatomic.h>

#define STRIP 32           /* outputs of a strip of weights */
#define SLICE (2 * LANES) /* outputs of a slice of a strip */
#define PANEL 64           /* positions of a panel of keys, numbers of a panel of values */
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
    Matrix embedding, head; /* the same where they are tied */
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
    const int32_t *positions;
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
    const uint8_t *data;   /* [rows, inputs], operand_bytes each */
    const float *scale;    /* int8: [rows, groups] */
    const int32_t *offset; /* int8: what 128 added to every weight of a group adds to its sum */
} Operand;

static int round_up(int value, int step) { return (value + step - 1) / step * step; }

/* Bytes of a stored number: a weight, a key, a value. */
static int element_bytes(int kind) { return kind == FLOAT32 ? 4 : kind == BFLOAT16 ? 2 : 1; }

/* Bytes of a number that is multiplied with stored ones of `kind`. */
static int operand_bytes(int kind) {
    if (kind == FLOAT32) return 4;
    return kind == BFLOAT16 ? (DOT_BFLOAT16 ? 2 : 4) : (DOT_INT8 ? 1 : 2);
}
