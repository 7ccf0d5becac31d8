// What training computes in one pass, one table of functions a kind of CPU. Each works on a piece of the rows, so
// that calls.cpp can hand pieces to threads; no result depends on how many there are.
// After this file: loops.inc (how they are computed), calls.cpp (who calls them).
#pragma once

#include <cstddef>
#include <cstdint>

namespace regard {

enum Kind { FP32 = 0, BF16 = 1 };  // the numbers of regard/fused/library.py

// A tensor (batch, length, heads, width): its first number, the steps between neighbours, the last of which is 1.
struct Heads {
    void* data;
    int64_t batch, length, head;
};

// One attention: q, out (B, T, H, K) and k, v (B, S, H, K), the same head width for all.
struct Attention {
    int32_t kind, causal;
    int64_t rows, heads, queries, keys, width;
    int64_t before, after;  // keys that a query sees before its own place and after it; -1: all
    float scale;
    const uint8_t* seen;  // (B, S), 1 where a key may be seen; null: everywhere
    int64_t seen_step;    // from row to row of it
    Heads q, k, v, out, grad, grad_q, grad_k, grad_v;
};

// Layer norm of rows of `width` numbers; x is fp32, y and its gradient are of `kind`.
struct Norm {
    int32_t kind;
    int64_t rows, width;
    float epsilon;
    const float *x, *gain, *bias;  // gain and bias may be null
    void* y;
    float *mean, *scale;      // (rows), 1 / deviation
    const float* passed;      // backward: the gradient that goes round the norm, or null
    float *grad_x, *partial;  // partial (pieces, 2, width): of gain and bias
};

// out = residual + factor · keep · y, and the same for gradients; keep is a hash of seed and place.
struct Dropout {
    int32_t y_kind, out_kind;
    int64_t size;
    uint64_t seed;
    uint32_t cut;  // an element is dropped where its hash is below
    float factor;
    const float* residual;  // or null
    const void* y;
    void* out;
};

// Rotary positions: x (B, T, H, K) by the angles of (T, 2, K/2) sines and cosines; `sign` -1 turns back.
struct Turn {
    int32_t kind;
    int64_t rows, heads, length, width;
    float sign;
    const float* table;
    Heads from, to;
};

// Cross-entropy of rows of logits; each row becomes its gradient.
struct CrossEntropy {
    int32_t kind;
    int64_t rows, width;
    float smoothing;
    int32_t wanted;  // whether gradients are
    const int64_t* targets;
    void* logits;
    float* losses;  // (rows)
};

constexpr int ROUNDS = 3;

// What makes matrices orthogonal: rounds x -> a x + b x³ + c x⁵.
struct Rounds {
    float a[ROUNDS], b[ROUNDS], c[ROUNDS];
};

// A step of Muon for one matrix (rows, columns).
struct Move {
    float* weight;
    const float* grad;
    float* past;  // its momentum
    int64_t rows, columns;
    float fresh, keep, rate;  // what of the gradient goes into the momentum, what of the weight is kept, how far it moves
};

// One of several tensors, its numbers side by side.
struct Span {
    float* data;
    int64_t size;
};

struct Loops {
    void (*attend)(const Attention&, int64_t piece);       // one row and head
    void (*attend_back)(const Attention&, int64_t piece);  // the same
    void (*norm)(const Norm&, int64_t from, int64_t to);
    void (*norm_back)(const Norm&, int64_t piece, int64_t from, int64_t to);
    void (*dropout)(const Dropout&, int64_t from, int64_t to);
    void (*turn)(const Turn&, int64_t row);
    void (*cross_entropy)(const CrossEntropy&, int64_t from, int64_t to);
    float (*squares)(const Span&);  // their sum
    void (*scale)(const Span&, float factor);
};

}  // namespace regard
