// Which texts go through the layers together, and where their vectors go.
#include "encoding.h"

#include <algorithm>
#include <numeric>

namespace regard {

constexpr int TOGETHER = 256;  // tokens: enough for the products, few enough for the caches
constexpr int FEWEST = 64;     // at the end of a call

Batches::Batches(const Encode& request, int teams) : order((size_t)request.rows) {
    auto length = [&](int i) { return request.starts[i + 1] - request.starts[i]; };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return length(a) > length(b); });
    // As many batches for each team, and smaller ones towards the end, so that none waits long for another there.
    const int tokens = request.starts[request.rows] - request.starts[0], wanted = (tokens + TOGETHER - 1) / TOGETHER;
    const int count = std::max(1, (wanted + teams - 1) / teams * teams), most = (tokens + count - 1) / count;
    int held = 0, left = tokens;
    for (size_t i = 0; i < order.size(); i++) {
        const int room = teams == 1 ? most : std::min(most, std::max(FEWEST, left / (2 * teams)));
        if (held > 0 && held + length(order[i]) > room) ends.push_back(i), left -= held, held = 0;
        held += length(order[i]);
    }
    ends.push_back(order.size());
}

void Encoding::start(const Encode& request, Batches& batches, int call) {
    request_ = &request, batches_ = &batches, call_ = call;
}

int Encoding::run(Worker& worker) {
    for (;;) {
        worker.share([&](int part) {
            if (part == 0) plan(worker);
        });
        uint64_t notice = notice_.read(worker);
        if (notice & Notice::OVER) return Notice::call(notice);
        worker.encode(sources_, pooling_);
    }
}

// The next batch; after the last one the call is over.
void Encoding::plan(Worker& worker) {
    const size_t batch = batches_->next++;
    sources_.clear();
    if (batch >= batches_->ends.size()) {
        notice_.put_up(worker.turn, call_, Notice::OVER);
        worker.team().wake(0);  // the one that called
        return;
    }
    const Encode& request = *request_;
    const auto d = (size_t)model_.shape.d_model;
    pooling_ = (Pooling)request.pooling;
    int tokens = 0;
    for (size_t i = batch > 0 ? batches_->ends[batch - 1] : 0; i < batches_->ends[batch]; i++) {
        const int row = batches_->order[i], first = request.starts[row], length = request.starts[row + 1] - first;
        Source source{request.ids + first, length, request.out + (size_t)row * d};
        if (pooling_ == PLACES) {
            const int asked = request.asked_starts[row];
            source.memory = request.out + (size_t)asked * d;
            source.asked = request.asked + asked, source.asked_count = request.asked_starts[row + 1] - asked;
        }
        sources_.push_back(source);
        tokens += length;
    }
    worker.make_room(tokens, 0);
    notice_.put_up(worker.turn, call_, 0);
}

}  // namespace regard
