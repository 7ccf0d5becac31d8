// A decoder that stands alone, or after an encoder's memory, read on: prompts of several rows in one pass, or one token a row with its logits. What the
// rows become is decided in Python, between two calls. Before this file: model.h, crew.h; after it: engine.cpp.
#pragma once

#include <atomic>
#include <vector>

#include "crew.h"
#include "model.h"

namespace regard {

// Keys and values of what a row has read: [layer][head][place][k | v][width]. A place is written once. Who goes on from the
// last one writes the next; who goes on from an earlier place, or finds no room, takes a copy. So what a caller has read
// never changes, whoever reads on from it, and rows that are repeated part when they differ.
class Past {
public:
    Past(const Model& model, int room);
    bool extend(int from, int count);  // claim places after the first `from`; false: they are taken, or there is no room
    void copy(const Past& other, int count);  // the first places of another

    const int room;                // places
    std::vector<float*> layers;    // where each layer begins

private:
    const size_t heads_, width_;  // of a layer; of a place
    Buffer<float> memory_;
    std::atomic<int> used_{0};
};

// One call; laid out as `_Read` in regard/engine/library.py.
struct Read {
    int32_t rows, threads;
    const int32_t *ids, *starts;  // tokens of all rows one after the other; starts (rows + 1)
    const int32_t* lengths;       // (rows): places that were read before
    const int32_t* last;          // (rows): the token that was read before; 0 where there is none
    Past* const* before;          // (rows): where they lie; null where there are none
    Past** after;                 // (rows), out: where all lie now; a new one is the caller's
    const float* places;          // as in `Request`
    float* logits;  // out: (rows, columns in whole panels) of what comes after one token a row; null: many tokens, no logits
    float* const* memory;   // (rows): of a decoder that looks at an encoder, as in `Fill`; null: it stands alone
    const int32_t* heard;   // (rows): places of it
    float* const* listened;  // (rows), out: the weights over these places of what is read (layers, heads, heard); null: none
};

class Reading {
public:
    Reading(const Model& model, int) : model_(model) {}

    void start(const Read& request, int call);
    int run(Worker& worker);  // all threads of the team; the number of the call that is over

private:
    void plan(Worker& worker);

    const Model& model_;
    const Read* request_ = nullptr;
    int call_ = 0;
    bool done_ = false;         // all were read
    float* logits_ = nullptr;
    Notice notice_;
    std::vector<Row> tokens_;
    std::vector<int32_t> offsets_;  // where places lie in the cache of a head
};

}  // namespace regard
