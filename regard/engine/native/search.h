// Beam search over many sentences at once, the same as regard/decoding/beam.py. A sentence that is done leaves its
// slot and a waiting one takes it, so that every step is as full as the first. Before this file: model.h; after it:
// engine.cpp.
#pragma once

#include <atomic>
#include <vector>

#include "crew.h"
#include "model.h"

namespace regard {

// One call; laid out as `Request` in regard/engine/library.py.
struct Request {
    int32_t count, slots, threads, beam, n_best, begin, end, vocab_size, banned_count;
    double penalty, worth;          // the least log p of all that is proposed (drafting.h)
    const int32_t *ids, *starts;    // sources one after the other; starts (count + 1)
    const int32_t *least, *most;    // (count): tokens before the end may come, tokens at most with the end
    const int32_t* banned;
    const float* places;            // position vectors, long enough for every source and output; or null
    const int32_t* cancel;          // not zero: stop between two steps; another thread may write it
    // Out, room for n_best a sentence: ids of sentence i, output j at out_starts[i] + j * most[i].
    const int64_t* out_starts;
    int32_t *out_ids, *out_lengths, *out_counts;
    int32_t* out_passes;  // (count): how often the decoder ran for it
    double* out_scores;
    uint8_t* out_cut;
};

struct Hypothesis {
    float total = 0;               // log p
    std::vector<int32_t> ids;      // written so far
    std::vector<int32_t> offsets;  // where its places lie in the cache of its slot
};

struct Output {
    std::vector<int32_t> ids;
    double score;
    bool cut;
};

// A sentence that is being translated, and the memory that goes from sentence to sentence.
struct Slot {
    int sentence = -1, length = 0, step = 0;
    size_t room = 0;  // places of a cache
    size_t claim = 0;  // bytes of caches that its sentence may come to
    bool likeliest_ended = false;
    std::vector<Hypothesis> live, next;
    std::vector<Output> found;
    Buffer<float> memory;
    std::vector<Buffer<float>> cache;  // a layer each: [head][place][k | v][width]
    std::vector<float*> cache_at;
    std::vector<int32_t> listed;  // ids of the sentence's own, where there is a shortlist; then a sample of the rest
    float share = 0;              // log of how many ids one of the sample stands for
    Matrix part;                  // their columns of the output layer
    Choice choice;                // from it
};

// The sentences that wait, longest first; shared by all teams of a call.
struct Queue {
    std::vector<int> order;
    std::atomic<size_t> next{0};
    std::atomic<int> status{DONE};
};

class Search {
public:
    Search(const Model& model, int threads) : model_(model), tops_((size_t)threads) {}
    ~Search();

    // Before each call; `call` is its number. Threads that are late from the call before may still be in `run`.
    void start(const Request& request, Queue& queue, const Choice& choice, int slots, int call);
    int run(Worker& worker);  // all threads of the team; the number of the call that is over

private:
    struct Next {
        float total;
        int row;
        int32_t id;
    };
    void plan(Worker& worker);
    void advance(Slot& slot, int first_row);
    void put_aside(Slot& slot, const Next& next, bool ended);
    void finish(Slot& slot);
    void admit();
    void enter(Slot& slot, int sentence);
    void narrow(Slot& slot);
    void gather(Worker& worker);
    int chunks(const Slot& slot) const;
    size_t cache_bytes(size_t places) const;
    bool claim(Slot& slot, int sentence);
    void release(Slot& slot);
    void make_room(Slot& slot);
    void lay_out();
    void group();

    const Model& model_;
    const Request* request_ = nullptr;
    Queue* queue_ = nullptr;
    const Choice* choice_ = nullptr;  // what every sentence chooses from, beside its own list
    std::vector<uint64_t> marks_;     // a bit an id
    std::vector<Slot*> narrowed_;     // whose lists are new
    int limit_ = 0, stride_ = 0;  // slots; masses of a row
    size_t claimed_ = 0;          // bytes of caches
    int call_ = 0;
    Notice notice_;
    std::vector<Slot> slots_;
    std::vector<Source> newcomers_;
    std::vector<Row> rows_;
    std::vector<Group> groups_;
    std::vector<std::vector<TopK>> tops_;  // (parts, rows)
    std::vector<Mass> masses_;
    std::vector<Next> candidates_;
};

}  // namespace regard
