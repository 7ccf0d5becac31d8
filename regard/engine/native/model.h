// The Transformer in packed weights, and the threads that run it together. Every thread of a team runs the same
// function; a product is split by columns, attention by row and head, and a piece of work ends where one reads what
// another wrote. A team of one never waits. Before this file: kernels.h, team.h; after it: search.h.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels.h"
#include "team.h"

namespace regard {

// One side of the model; the numbers of regard/engine/weights.py, in its order.
struct Side {
    int32_t layers, heads, kv_heads, width, d_ff;
    float score_scale;
};

struct Shape {
    int32_t d_model, source_vocab, target_vocab, activation, gated, post_norm, precision;
    int32_t planes;  // of a head, turned by rotary positions; 0: position vectors are added to the embeddings
    int32_t drafts;  // tokens that are foreseen after the next one
    int32_t pairs;   // rows of the table of neighbours that is added to the decoder's embeddings; 0: none
    float eps, source_scale, target_scale, pair_scale;
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
    std::vector<float> gain, shift;  // no gain: there is no norm; no shift: it is one of root mean squares

    const float* moved_by() const { return shift.empty() ? nullptr : shift.data(); }
};

struct FeedForward {
    Norm norm;
    Matrix inner, outer;  // gated: the inner one has panels of what opens and of what passes, in turn
};

struct EncoderLayer {
    Norm norm;
    Matrix qkv, out;
    FeedForward feed_forward;
};

struct DecoderLayer {
    Norm norm;
    Matrix qkv, out;  // or a recurrence: values and what is kept of before, and no second product
    Norm cross_norm;
    Matrix cross_query, cross_out;
    FeedForward feed_forward;

    bool recurrent() const { return out.panels == 0; }
};

// What foresees tokens (regard/models/blockwise.py): s += outer relu(inner [s; E[y]; what its query sees of the source]).
struct Drafter {
    Matrix query, inner, outer;
    Matrix narrow, output;  // what s says, in few dimensions
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
    const Kernels& kernels;  // of the path
    std::vector<EncoderLayer> encoder;
    std::vector<DecoderLayer> decoder;
    Norm embedding_norm;  // behind the embeddings, where they have one
    Norm encoder_norm, decoder_norm;
    Matrix memory;  // there are both: keys and values of all decoder layers from the encoder's output: [layer][k | v]
    Matrix output;  // there is a decoder
    Drafter drafter;
    Shortlist shortlist;
    const float *source_embedding, *target_embedding, *pairs;  // kept alive by the caller; the last may be null

    Model(const Shape& shape, const Tensor* tensors, int count, const Kernels& path);
    void narrow(const Lists& lists);
    bool reads() const { return !encoder.empty(); }   // a source; else it is a decoder that stands alone
    bool writes() const { return !decoder.empty(); }  // else it is an encoder that stands alone
    int x_stride() const { return (shape.d_model + PANEL - 1) / PANEL * PANEL; }
    // What a token's successor is foreseen from: s and E[y], up to whole panels; then what is seen of the source.
    int looked_from() const { return (2 * shape.d_model + PANEL - 1) / PANEL * PANEL; }
    int joined_width() const { return looked_from() + drafter.query.width(); }
    // Numbers of a place that one head keeps: key and value, or its share of what a recurrence remembers.
    int place_width() const {
        const int pair = 2 * shape.decoder.width, heads = shape.decoder.kv_heads;
        return writes() && decoder[0].recurrent() ? std::max(pair, (shape.d_model + heads - 1) / heads) : pair;
    }
};

// What the threads of a team write and read together.
struct Desk {
    explicit Desk(int size) : team(size) {}
    Team team;
    Buffer<float> x[2];  // the rows between two sub-layers: each reads one and writes the other
    Buffer<float> projected, heads, hidden;
    Buffer<float> closed, joined, opened, drafted, narrowed;  // of drafting.cpp
    const float* signs = nullptr;   // of filling.cpp: where a place of an output stands (length, d_model)
    const float* places = nullptr;  // position vectors (length, d_model); rotary: sines and cosines (length, 2 planes); or null
};

struct Source {
    const int32_t* ids;
    int length;
    float* memory;  // keys and values of all decoder layers, filled by encode: [layer][head][k | v][place][width]
    float* states = nullptr;  // what the encoder made of its places (length, d_model), where it is handed out
    // Of an encoder that stands alone: `memory` is where its vectors go, and these are the places that are asked for.
    const int32_t* asked = nullptr;
    int asked_count = 0;
};

// What an encoder that stands alone makes of a text: the places that are asked for, or one vector. The numbers of
// regard/engine/library.py.
enum Pooling { PLACES = 0, MEAN = 1, FIRST = 2, MAX = 3 };

// One hypothesis at one step.
struct Row {
    int32_t id;              // read now
    int32_t position;        // places before this one
    const int32_t* offsets;  // where places 0 ... position lie in the cache of a head
    float* const* cache;     // a pointer a layer: [head][place][k | v][width]
    size_t room;             // numbers of one head's cache
    const float* memory;
    int32_t length;  // of the source
    bool early;      // the end may not come yet
    int32_t before = 0;  // the token before this one, for the table of neighbours
    float* listened = nullptr;  // where its weights over the memory go (layers, heads, length); null: nowhere
    const float* copied = nullptr;  // of an output that is written at once: the encoder's state across from it
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

float log_mass(const Mass* parts, int count);  // log Σ exp of all parts

// A sentence of drafting.h for which a token more is foreseen: the row that knows most, and what it says.
struct Kept {
    int slot, row;
    int32_t id;
};

// Rows `first` ... `end` - 1.
struct Span {
    int first = 0, end = 0;
    bool operator==(const Span& other) const { return first == other.first && end == other.end; }
};

// One thread with its scratch memory.
class Worker {
public:
    Worker(const Model& model, Desk& desk, int rank) : model_(model), k_(model.kernels), desk_(desk), rank_(rank) {}

    // These are called by all threads of the team; what they are given is read inside shared work alone (team.h).
    void encode(const std::vector<Source>& sources);                   // to memories
    void encode(const std::vector<Source>& sources, Pooling pooling);  // to vectors
    // The k best of each row in `tops` (parts, rows), and its mass by chunk in `masses` (rows, stride).
    void step(const std::vector<Row>& rows, const std::vector<Group>& groups, std::vector<std::vector<TopK>>& tops,
              std::vector<Mass>& masses, const int& stride);
    // A decoder that stands alone. `ahead`: tokens of prompts, several of a row at once; else one a row, and what may come
    // next goes to logits (rows, whole panels).
    void read(const std::vector<Row>& tokens, bool ahead, float* const& logits);
    // filling.cpp: outputs that are written at once, all places of them.
    void hand_out(const std::vector<Source>& sources);
    void fill(const std::vector<Source>& outputs, const std::vector<Row>& rows, const std::vector<Group>& groups,
              std::vector<std::vector<TopK>>& tops, std::vector<Mass>& masses, const int& stride, float* const& logits);
    void sign(const float* signs) { desk_.signs = signs; }
    // drafting.cpp: several tokens of a sentence are read, then those after them foreseen, one after the other.
    void check(const std::vector<Row>& rows, const std::vector<Group>& groups, std::vector<std::vector<TopK>>& tops,
               std::vector<Mass>& masses, const int& stride);
    void join(const std::vector<Kept>& kept, bool read);  // by one of them; the rows are those that were read, or foreseen
    void foresee(const std::vector<Row>& rows, const std::vector<Group>& groups, std::vector<std::vector<TopK>>& tops,
                 std::vector<Mass>& masses, const int& stride);
    void make_draft_room(int rows, int sentences);
    void make_room(int tokens, int rows);  // on the desk, before all of them

    template <class Work>
    void share(const Work& work) {
        desk_.team.share(rank_, turn, work);
    }
    int from(int total, int part) const { return (int)((int64_t)total * part / desk_.team.size); }  // a part's share
    int to(int total, int part) const { return from(total, part + 1); }
    int rank() const { return rank_; }
    Team& team() { return desk_.team; }
    uint32_t turn = 0;  // pieces of work so far

private:
    const float* x() { return desk_.x[side_].get(); }
    Span rows_of(int m, int part) const;
    const float* normed(const Norm& norm, const Span& rows);
    Rows prepare(const float* floats, const Span& rows, int n, int stride);
    Rows enter(const Norm& norm, const Span& rows);
    void multiply(const Matrix& w, const Rows& x, int m, int part, float* c, Activation activation,
                  const float* residual = nullptr, int residual_stride = 0);
    template <class Count>
    void begin(const Norm& norm, const Matrix& w, Buffer<float>& c, const Count& count, Activation activation = LINEAR);
    template <class Count>
    void end(const Norm& norm, const Matrix& w, const Buffer<float>& from, int stride, const Count& count);
    template <class Count>
    void feed_forward(const FeedForward& layer, const Count& count);
    template <class Count>
    void gated(const FeedForward& layer, const Count& count);
    void embed(int row, const float* table, float scale, int32_t id, int position);
    void add_pair(int row, int32_t before, int32_t id);
    void turn_head(float* head, int position) const;
    void self_attention(const Side& side, const std::vector<Source>& sources, int stride, int part);
    // together.cpp: the places of long sources.
    bool looks_in_bytes() const;
    void take_keys(const Seen& seen, int width);
    void take_key_bytes(const Seen& seen, int width);
    void take_value_bytes(const Seen& seen, int width);
    void look_together(const float* q, int rows, int stride, const Side& side, float* out, int out_stride);
    void look_in_bytes(const float* q, int rows, int stride, const Side& side, float* scores, float* out, int out_stride);
    void read_through(const std::vector<Source>& sources);
    void remember(const std::vector<Source>& sources, int part);
    void give(const std::vector<Source>& sources, Pooling pooling, int part);
    template <class Work>
    void by_head(const std::vector<Row>& rows, int part, const Work& work);
    void look(const float* q, const Seen& seen, int row, int head, float* weights = nullptr);
    void decode(const std::vector<Row>& rows, bool ahead, bool whole = false);
    void keep_own(const Row& row, int r, int layer, int head);
    void look_back(const Row& row, int r, int layer, int head);
    void attend_own(const std::vector<Row>& rows, int layer, bool ahead);
    void recur(const std::vector<Row>& rows, int layer);
    float* remembered(const Row& row, int layer, int place, int column) const;
    void cross_attention(const std::vector<Row>& rows, int layer, int part);
    void write(const Rows& hidden, const Group& group, const std::vector<Row>& rows, std::vector<TopK>& tops, Mass* masses,
               int stride, int part);
    const int32_t* ramp(int stride, int count);
    float* room(int count) { return scores_.fit((size_t)count + PANEL); }

    const Model& model_;
    const Kernels& k_;
    Desk& desk_;
    const int rank_;
    int side_ = 0;  // of the desk's rows
    uint32_t sublayer_ = 0, normed_for_ = 0;  // sub-layers so far; the one that normed_ belongs to
    Rows prepared_;                           // the left side of the last product
    uint32_t prepared_at_ = 0;                // the piece of work that it belongs to
    Span normed_rows_, prepared_rows_;
    Buffer<float> normed_, scale_, scores_, logits_;
    Matrix keys_, values_;         // of a long source's head, as matrices that its queries are multiplied with
    Buffer<float> taken_, tile_;
    Buffer<uint8_t> bytes_, looking_;
    Buffer<int32_t> zero_;
    std::vector<int32_t> ramp_;
    int ramp_stride_ = 0;
};

}  // namespace regard
