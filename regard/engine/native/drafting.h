// Greedy search, several tokens a pass: they are foreseen one by one, the model reads them together and keeps those that it
// would have said itself (regard/decoding/blockwise.py). Before this file: search.h, which has what a call asks; after it: engine.cpp.
#pragma once

#include <vector>

#include "crew.h"
#include "model.h"
#include "search.h"

namespace regard {

// A sentence that is being written, and the memory that goes from sentence to sentence.
struct Written {
    int sentence = -1, length = 0, read = 0, passes = 0;  // tokens of the source; tokens that are in the cache
    float total = 0, sure = 0;  // log p of what was said; of all that is proposed
    std::vector<int32_t> ids, proposed;  // what was said; what is read next, the first of it said already
    size_t room = 0;                     // places of the cache
    Buffer<float> memory;
    std::vector<Buffer<float>> cache;  // a layer each: [head][place][k | v][width]
    std::vector<float*> cache_at;
};

class Drafting {
public:
    Drafting(const Model& model, int threads) : model_(model), tops_((size_t)threads) {}

    void start(const Request& request, Queue& queue, const Choice& choice, int slots, int call);
    int run(Worker& worker);  // all threads of the team; the number of the call that is over

private:
    void plan(Worker& worker);
    void take_proposals();
    void admit();
    bool wants_more(const Written& slot) const;
    void lay_out();
    void lay_out_drafts();
    void make_room(Written& slot);
    void verify();
    void finish(Written& slot, bool cut);
    Candidate best(size_t row) const;
    void make_results(const Choice& choice, size_t rows);

    const Model& model_;
    const Request* request_ = nullptr;
    Queue* queue_ = nullptr;
    const Choice* choice_ = nullptr;
    Choice draft_choice_;
    bool read_ = true;  // the last pass was one of reading
    int limit_ = 0, stride_ = 0, call_ = 0;
    Notice notice_;
    std::vector<Written> slots_;
    std::vector<Source> newcomers_;
    std::vector<Row> rows_, drafts_;  // what is read; what comes next is foreseen for
    std::vector<Group> groups_;
    std::vector<Kept> kept_;  // those of which more is foreseen, a row of `drafts_` each
    std::vector<int32_t> offsets_;
    std::vector<std::vector<TopK>> tops_;  // (parts, rows)
    std::vector<Mass> masses_;
};

}  // namespace regard
