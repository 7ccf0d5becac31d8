// Outputs that are written all at once: what the encoder makes of sources is handed to the caller, who hands it back with
// places to be written. How often, and which, is decided in Python; where all places are written once, both are one call.
// Before this file: model.h, crew.h; after it: engine.cpp.
#pragma once

#include <vector>

#include "crew.h"
#include "model.h"

namespace regard {

// One call; laid out as `_Fill` in regard/engine/library.py.
struct Fill {
    int32_t rows, threads, limit, banned_count;
    int32_t encode;               // not zero: the ids are those of sources, and their memories and states are written
    int32_t at_once, unknown;     // not zero: sources are read, and written into places of this id, in this one call, and
                                  // their memories and states stay here; 0: one of the two
    const int32_t *ids, *starts;  // of all rows one after the other; starts (rows + 1)
    float* const* memory;         // (rows): keys and values of all decoder layers, as in `Source`
    float* const* states;         // (rows): what the encoder made of the places of a source (length, d_model)
    const int32_t* lengths;       // (rows): of the sources; where both are done at once, of the outputs
    const int32_t* banned;        // what no place says; nor does one say what is not below the limit
    const float* places;          // as in `Request`
    const float* signs;           // where a place stands (length, d_model)
    int32_t* out_ids;             // what each place says
    float* out_logp;
    float* logits;  // not null: (places, columns in whole panels) instead of the two above
};

class Filling {
public:
    Filling(const Model& model, int threads) : model_(model), tops_((size_t)threads) {}

    void start(const Fill& request, int call);
    int run(Worker& worker);  // all threads of the team; the number of the call that is over

private:
    void plan(Worker& worker);
    void keep_here();
    void lay_out(bool encode);
    void choose();
    void collect();

    const Model& model_;
    const Fill* request_ = nullptr;
    int call_ = 0, stride_ = 0;
    int passes_ = 0;  // so far, of this call
    float* logits_ = nullptr;
    Notice notice_;
    Choice choice_;
    Buffer<float> memory_, states_;  // of sources that nobody else holds, one after the other
    std::vector<float*> memory_at_, states_at_;
    std::vector<Source> sources_;  // of an encoder's call; else the outputs, of which the length alone is read
    std::vector<Row> rows_;
    std::vector<Group> groups_;
    std::vector<std::vector<TopK>> tops_;  // (parts, rows)
    std::vector<Mass> masses_;
};

}  // namespace regard
