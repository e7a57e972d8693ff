/* One pass of a Llama-shaped model. */
#include "attention.h"
#include "pack.h"

static void embed(Stage *stage, const Model *m, const Workspace *w, const Pass *pass) {
    for (int row; (row = take(stage)) < pass->rows;) {
        unpack_row(&m->embedding, m->kind, pass->tokens[row], w->residual + (int64_t)row * m->hidden_stride);
        finished(stage);
    }
    await_tasks(stage, pass->rows);
}

static void run(const Model *m, const Workspace *w, const Pass *pass, Stage *stage, Attending *attending,
                float *scratch) {
    int rows = pass->rows, kind = m->kind;
    int hidden = m->layers[0].qkv.inputs, mixed = m->layers[0].output.inputs, inner = m->layers[0].down.inputs;
    int joint = round_up((m->heads + 2 * m->kv_heads) * m->head_dim, PANEL);
    Operand x = {w->operand, w->operand_scale, w->operand_offset};
    embed(stage++, m, w, pass);
    for (int i = 0; i < m->n_layers; i++) {
        const Layer *layer = &m->layers[i];
        norm_rows(stage++, m, w, layer->input_norm, rows, hidden, scratch);
        product(stage++, kind, STORE, &layer->qkv, x, rows, w->joint, joint);
        place_all(stage++, m, w, pass, i);
        attend_all(stage++, m, w, pass, i, attending);
        encode_rows(stage++, kind, w, w->mixed, rows, mixed);
        product(stage++, kind, ADD, &layer->output, x, rows, w->residual, m->hidden_stride);
        norm_rows(stage++, m, w, layer->post_norm, rows, hidden, scratch);
        product(stage++, kind, SWIGLU, &layer->gate_up, x, rows, w->inner, inner);
        encode_rows(stage++, kind, w, w->inner, rows, inner);
        product(stage++, kind, ADD, &layer->down, x, rows, w->residual, m->hidden_stride);
    }
}

/* Bytes of `stages` for a model of so many layers. */
int64_t stage_bytes(int32_t layers) { return sizeof(Stage) * (10 * (int64_t)layers + 3); }

/* Bytes of `private` for each thread. */
int64_t private_bytes(const Model *m) {
    return (sizeof(Attending) + (int64_t)m->layers[0].qkv.inputs * 4 + 63) / 64 * 64;
}

/* Computes the layers of one pass. Buffers are the caller's, 64-byte aligned. */
void forward(const Model *m, const Workspace *w, const Pass *pass, uint8_t *stages, uint8_t *private) {
    memset(stages, 0, (size_t)stage_bytes(m->n_layers));
#pragma omp parallel num_threads(pass->threads)
    {
        uint8_t *mine = private + omp_get_thread_num() * private_bytes(m);
        run(m, w, pass, (Stage *)stages, (Attending *)mine, (float *)(mine + sizeof(Attending)));
    }
}

/* The logits of `n_wanted` rows of a residual stream that the layers have made. */
void read_out(const Model *m, const Workspace *w, const Pass *pass, uint8_t *stages, uint8_t *private) {
    Operand x = {w->operand, w->operand_scale, w->operand_offset};
    memset(stages, 0, 2 * sizeof(Stage));
#pragma omp parallel num_threads(pass->threads)
    {
        uint8_t *mine = private + omp_get_thread_num() * private_bytes(m);
        norm_rows((Stage *)stages, m, w, m->final_norm, pass->n_wanted, m->head.inputs,
                  (float *)(mine + sizeof(Attending)));
        product((Stage *)stages + 1, m->kind, STORE, &m->head, x, pass->n_wanted, pass->logits, m->head.outputs);
    }
}

/* One product of float32 rows, for measuring: `stages` holds two. */
void multiply(const Matrix *m, int32_t kind, const Workspace *w, const float *x, int32_t rows, float *out,
              uint8_t *stages, int32_t threads) {
    Operand operand = {w->operand, w->operand_scale, w->operand_offset};
    memset(stages, 0, 2 * sizeof(Stage));
#pragma omp parallel num_threads(threads)
    {
        encode_rows((Stage *)stages, kind, w, x, rows, m->inputs);
        product((Stage *)stages + 1, kind, STORE, m, operand, rows, out, m->outputs);
    }
}

/* Packs the matrix whose rows of float32 or bfloat16 numbers begin at the addresses `rows`, where a null stands
 * for zeros; `scale` only for int8. */
void pack(const uint8_t *const *rows, int32_t bf16, int32_t kind, int32_t outputs, int32_t width, int32_t inputs,
          uint8_t *strips, float *scale) {
    for (int slice = 0; slice < round_up(outputs, STRIP) / SLICE; slice++)
        pack_slice(rows, bf16, kind, outputs, width, inputs, slice, strips, scale);
}
