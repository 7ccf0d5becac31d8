// An encoder that stands alone: texts in batches through its layers, and what they have become, place by place or as one
// vector. Before this file: model.h, crew.h; after it: engine.cpp.
#pragma once

#include <atomic>
#include <vector>

#include "crew.h"
#include "model.h"

namespace regard {

// One call; laid out as `_Encode` in regard/engine/library.py.
struct Encode {
    int32_t rows, threads, pooling;
    const int32_t *ids, *starts;           // tokens of all texts one after the other; starts (rows + 1)
    const int32_t *asked, *asked_starts;   // PLACES: those that are asked for, by text, and starts (rows + 1)
    const float* places;                   // as in `Request`
    float* out;                            // (asked, d_model), or (rows, d_model): in the order of the texts
};

// Texts that go through the layers together: the longest first, so that the teams of a call, who share it, end together.
struct Batches {
    Batches(const Encode& request, int teams);

    std::vector<int> order;    // of the texts
    std::vector<size_t> ends;  // of the batches, in that order
    std::atomic<size_t> next{0};
};

class Encoding {
public:
    Encoding(const Model& model, int) : model_(model) {}

    void start(const Encode& request, Batches& batches, int call);
    int run(Worker& worker);  // all threads of the team; the number of the call that is over

private:
    void plan(Worker& worker);

    const Model& model_;
    const Encode* request_ = nullptr;
    Batches* batches_ = nullptr;
    int call_ = 0;
    Pooling pooling_ = PLACES;
    Notice notice_;
    std::vector<Source> sources_;
};

}  // namespace regard
