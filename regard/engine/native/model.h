// The Transformer in packed weights, and the threads that run it together. Every thread of a team runs the same
// function; a product is split by columns, attention by row and head, and a barrier stands where one reads what
// another wrote. A team of one never waits. Before this file: kernels.h; after it: search.h.
#pragma once

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "kernels.h"

namespace regard {

// One side of the model; the numbers of regard/engine/weights.py, in its order.
struct Side {
    int32_t layers, heads, kv_heads, width, d_ff;
    float score_scale;
};

struct Shape {
    int32_t d_model, source_vocab, target_vocab, activation, post_norm, precision;
    int32_t planes;  // of a head, turned by rotary positions; 0: position vectors are added to the embeddings
    float eps, source_scale, target_scale;
    Side encoder, decoder;
};

// A matrix (rows, columns) with its bias, or a norm with gain and shift; weight null: absent.
struct Tensor {
    const float* weight;
    const float* bias;
    int32_t rows, columns;
};

// A shortlist as the caller holds it (regard/engine/shortlist.py).
struct Lists {
    const int32_t *starts, *ids;  // those of source token s: ids[starts[s]] ... ids[starts[s + 1] - 1]
    const int32_t *always, *never, *sample;
    int32_t sources, always_count, never_count, sample_count;
    int32_t rest;    // ids that are neither always nor never allowed
    int32_t copies;  // not zero: a source token may be written as it is
};

struct Norm {
    std::vector<float> gain, shift;  // empty: there is none
};

struct FeedForward {
    Norm norm;
    Matrix inner, outer;
};

struct EncoderLayer {
    Norm norm;
    Matrix qkv, out;
    FeedForward feed_forward;
};

struct DecoderLayer {
    Norm norm;
    Matrix qkv, out;
    Norm cross_norm;
    Matrix cross_query, cross_out;
    FeedForward feed_forward;
};

// What a sentence may be written with. Empty: everything.
struct Shortlist {
    std::vector<int32_t> starts, ids, always;
    std::vector<int32_t> sample;  // of what is not always allowed: their mass stands for that of all that is left out
    std::vector<uint64_t> open;   // a bit for each id that may stand in a list of a sentence's own
    int rest = 0;                 // how many these are
    bool copies = false;
    Matrix common;  // the columns of `always`
};

struct Model {
    Shape shape;
    std::vector<EncoderLayer> encoder;
    std::vector<DecoderLayer> decoder;
    Norm encoder_norm, decoder_norm;
    Matrix memory;  // keys and values of all decoder layers from the encoder's output: [layer][k | v]
    Matrix output;
    Shortlist shortlist;
    const float *source_embedding, *target_embedding;  // kept alive by the caller

    Model(const Shape& shape, const Tensor* tensors, int count);
    void narrow(const Lists& lists);
    int x_stride() const { return (shape.d_model + PANEL - 1) / PANEL * PANEL; }
    int cache_width() const { return 2 * shape.decoder.kv_heads * shape.decoder.width; }  // k | v of one place
};

// What a thread does while it waits without sleeping.
inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Threads wait for each other a few hundred times a token, so they spin; whoever fails frees the others.
class Barrier {
public:
    explicit Barrier(int size) : size_(size) {}
    void wait();
    void stop() { broken_ = true; }
    bool stopped() const { return broken_; }

private:
    const int size_;
    std::atomic<int> waiting_{0};
    std::atomic<unsigned> round_{0};
    std::atomic<bool> broken_{false};
};

struct Stopped : std::runtime_error {
    Stopped() : std::runtime_error("another thread failed") {}
};

// What the threads of a team share.
struct Team {
    explicit Team(int count) : size(count), barrier(count) {}
    const int size;
    Barrier barrier;
    Buffer<float> x, projected, heads, hidden;
};

struct Source {
    const int32_t* ids;
    int length;
    float* memory;  // (length, memory.width()), filled by encode
};

// One hypothesis at one step.
struct Row {
    int32_t id;              // read now
    int32_t position;        // places before this one
    const int32_t* offsets;  // where places 0 ... position lie in the cache
    float* const* cache;     // a pointer a layer
    const float* memory;
    int32_t length;  // of the source
    bool early;      // the end may not come yet
};

constexpr int CHUNK = 32;  // most panels of the output layer that are summed together

// What may be written, and how the columns of the output layer are called.
struct Choice {
    const Matrix* output = nullptr;
    const int32_t* ids = nullptr;  // null: a column's number is its id
    int limit = 0;                 // columns from here on are never written
    std::vector<int32_t> banned;   // columns
    int end = 0;                   // column of the end

    // Panels that are summed together, whoever sums them; fewer of a narrow layer, so that all threads have some.
    int chunk() const { return output->panels < 8 * CHUNK ? CHUNK / 4 : CHUNK; }
    int chunks() const { return (output->panels + chunk() - 1) / chunk(); }
};

// Rows that choose from the same columns.
struct Group {
    const Choice* choice;
    int first, count;
    int chunk;  // where its masses begin
};

// One thread with its scratch memory.
class Worker {
public:
    Worker(const Model& model, Team& team, int rank, const float* places)
        : places(places), model_(model), k_(kernels()), team_(team), rank_(rank) {}
    const float* places;  // the position vectors (length, d_model); rotary: sines and cosines (length, 2 planes); or null

    void encode(const std::vector<Source>& sources);
    // The k best of each row in `tops`, and its mass by chunk in `masses` (rows, stride), both of this thread's part.
    void step(const std::vector<Row>& rows, const std::vector<Group>& groups, std::vector<TopK>& tops, Mass* masses,
              int stride);
    int rank() const { return rank_; }
    int from(int total) const { return (int)((int64_t)total * rank_ / team_.size); }  // this thread's share
    int to(int total) const { return (int)((int64_t)total * (rank_ + 1) / team_.size); }
    void wait() { team_.barrier.wait(); }

private:
    struct Input {
        Rows rows;
        const float* residual;  // what the sub-layer's output is added to
    };
    Input prepare(const float* x, int m, int n, int stride, const Norm* norm);
    Input enter(const Norm& norm, int m);
    void multiply(const Matrix& w, const Rows& x, float* c, Activation activation = LINEAR, const float* residual = nullptr);
    void feed_forward(const FeedForward& layer, int m);
    void embed(int row, const float* table, float scale, int32_t id, int position);
    void turn(float* head, int position) const;
    void encoder_attention(const std::vector<Source>& sources, int stride);
    void self_attention(const std::vector<Row>& rows, int layer, int stride);
    void cross_attention(const std::vector<Row>& rows, int layer);
    void write(const Rows& hidden, const Group& group, const std::vector<Row>& rows, std::vector<TopK>& tops, Mass* masses,
               int stride);
    const int32_t* ramp(int stride, int count);
    float* room(int count) { return scores_.fit((size_t)count + LANES); }

    const Model& model_;
    const Kernels& k_;
    Team& team_;
    int rank_;
    Buffer<float> normed_, scale_, scores_, logits_;
    Buffer<uint8_t> bytes_;
    std::vector<int32_t> ramp_;
    int ramp_stride_ = 0;
};

}  // namespace regard
