// Which tokens a pass reads, and where their keys and values go.
#include "reading.h"

#include <algorithm>

namespace regard {

namespace {

constexpr uint64_t STEP = 0, AHEAD = 2;  // one token a row with its logits; many tokens without

}  // namespace

Past::Past(const Model& model, int room)
    : room(room), heads_((size_t)model.shape.decoder.kv_heads), width_((size_t)model.place_width()) {
    size_t layer = heads_ * (size_t)room * width_;
    float* memory = memory_.fit(layer * model.decoder.size());
    for (size_t i = 0; i < model.decoder.size(); i++) layers.push_back(memory + i * layer);
}

bool Past::extend(int from, int count) { return from + count <= room && used_.compare_exchange_strong(from, from + count); }

void Past::copy(const Past& other, int count) {
    for (size_t i = 0; i < layers.size(); i++)
        for (size_t head = 0; head < heads_; head++)
            std::copy_n(other.layers[i] + head * (size_t)other.room * width_, (size_t)count * width_,
                        layers[i] + head * (size_t)room * width_);
    used_ = count;
}

void Reading::start(const Read& request, int call) { request_ = &request, call_ = call, done_ = false; }

int Reading::run(Worker& worker) {
    for (;;) {
        worker.share([&](int part) {
            if (part == 0) plan(worker);
        });
        uint64_t notice = notice_.read(worker);
        if (notice & Notice::OVER) return Notice::call(notice);
        worker.read(tokens_, notice & AHEAD, logits_);
    }
}

// All tokens in order, those of a row one after the other; after them the call is over.
void Reading::plan(Worker& worker) {
    if (done_) {
        notice_.put_up(worker.turn, call_, Notice::OVER);
        worker.team().wake(0);  // the one that called
        return;
    }
    const int width = model_.place_width();
    int longest = 0;
    tokens_.clear();
    for (int row = 0; row < request_->rows; row++) {
        const Past* past = request_->after[row];
        int place = request_->lengths[row];
        int32_t before = request_->last[row];
        const bool alone = request_->memory == nullptr;
        const float* memory = alone ? nullptr : request_->memory[row];
        const int32_t heard = alone ? 0 : request_->heard[row];
        for (int i = request_->starts[row]; i < request_->starts[row + 1]; before = request_->ids[i], i++, place++) {
            tokens_.push_back({request_->ids[i], place, nullptr, past->layers.data(), (size_t)past->room * (size_t)width,
                               memory, heard, false, before});
            if (request_->listened != nullptr) tokens_.back().listened = request_->listened[row];
        }
        longest = std::max(longest, place);
    }
    for (int i = (int)offsets_.size(); i < longest; i++) offsets_.push_back(i * width);
    for (Row& token : tokens_) token.offsets = offsets_.data();
    worker.make_room(0, (int)tokens_.size());
    notice_.put_up(worker.turn, call_, request_->logits == nullptr ? AHEAD : STEP);
    logits_ = request_->logits, done_ = true;
}

}  // namespace regard
