// A decoder without a past: all places of all outputs in one pass, each looks at all of its own output.
#include "filling.h"

#include <cmath>
#include <cstring>

#include "sublayers.h"

namespace regard {

namespace {

constexpr uint64_t WRITE = 0, ENCODE = 2;

}  // namespace

// What the encoder made of the places, after `encode`.
void Worker::hand_out(const std::vector<Source>& sources) {
    share([&](int part) {
        int tokens = 0, d = model_.shape.d_model;
        for (const Source& source : sources) tokens += source.length;
        const float* x = normed(model_.encoder_norm, tokens);
        int row = 0, begin = from(tokens, part), end = to(tokens, part);
        for (const Source& source : sources)
            for (int i = 0; i < source.length; i++, row++)
                if (row >= begin && row < end)
                    std::memcpy(source.states + (size_t)i * d, x + (size_t)row * model_.x_stride(), (size_t)d * sizeof(float));
    });
}

void Worker::fill(const std::vector<Source>& outputs, const std::vector<Row>& rows, const std::vector<Group>& groups,
                  std::vector<std::vector<TopK>>& tops, std::vector<Mass>& masses, const int& stride, float* const& logits) {
    auto count = [&] { return (int)rows.size(); };
    side_ = 0;
    share([&](int part) {
        const int d = model_.shape.d_model;
        for (int r = from(count(), part); r < to(count(), part); r++) {
            const Row& row = rows[(size_t)r];
            float* x = desk_.x[side_].get() + (size_t)r * model_.x_stride();
            const float* sign = desk_.signs + (size_t)row.position * d;
            k_.embed(model_.target_embedding + (size_t)row.id * d, sign, model_.shape.target_scale, d, x);
            k_.embed(row.copied, x, 1.0f, d, x);
        }
    });
    for (int i = 0; i < (int)model_.decoder.size(); i++) {
        const DecoderLayer& layer = model_.decoder[(size_t)i];
        begin(layer.norm, layer.qkv, desk_.projected, count);
        share([&](int part) { self_attention(model_.shape.decoder, outputs, layer.qkv.width(), part); });
        end(layer.norm, layer.out, desk_.heads, layer.out.k, count);
        begin(layer.cross_norm, layer.cross_query, desk_.projected, count);
        share([&](int part) { cross_attention(rows, i, part); });
        end(layer.cross_norm, layer.cross_out, desk_.heads, layer.cross_out.k, count);
        feed_forward(layer.feed_forward, count);
    }
    sublayer_++;
    share([&](int part) {
        Rows hidden = enter(model_.decoder_norm, count());
        if (logits != nullptr) return multiply(model_.output, hidden, part, logits, LINEAR);
        for (const Group& group : groups) write(hidden, group, rows, tops[(size_t)part], masses.data(), stride, part);
    });
}

void Filling::start(const Fill& request, int call) { request_ = &request, call_ = call, done_ = false; }

int Filling::run(Worker& worker) {
    for (;;) {
        worker.share([&](int part) {
            if (part == 0) plan(worker);
        });
        uint64_t notice = notice_.read(worker);
        if (notice & Notice::OVER) return Notice::call(notice);
        if (notice & ENCODE) {
            worker.encode(sources_);
            worker.hand_out(sources_);
        } else {
            worker.fill(sources_, rows_, groups_, tops_, masses_, stride_, logits_);
        }
    }
}

void Filling::plan(Worker& worker) {
    if (done_) {
        if (!request_->encode && request_->logits == nullptr) collect();
        notice_.put_up(worker.turn, call_, Notice::OVER);
        worker.team().wake(0);  // the one that called
        return;
    }
    lay_out();
    worker.make_room(request_->encode ? request_->starts[request_->rows] : 0, (int)rows_.size());
    worker.sign(request_->signs);
    logits_ = request_->logits, done_ = true;
    notice_.put_up(worker.turn, call_, request_->encode ? ENCODE : WRITE);
}

void Filling::lay_out() {
    const int d = model_.shape.d_model;
    sources_.clear(), rows_.clear(), groups_.clear();
    for (int row = 0; row < request_->rows; row++) {
        const int32_t* ids = request_->ids + request_->starts[row];
        const int length = request_->starts[row + 1] - request_->starts[row], source = request_->lengths[row];
        Source each{ids, length, request_->memory[row]};
        each.states = request_->states[row];
        sources_.push_back(each);
        for (int64_t j = 0; !request_->encode && j < length; j++) {
            Row place{ids[j], (int32_t)j, nullptr, nullptr, 0, request_->memory[row], source, false};
            place.copied = request_->states[row] + (size_t)(j * source / length) * (size_t)d;
            rows_.push_back(place);
        }
    }
    if (request_->encode || request_->logits != nullptr) return;
    choice_ = {&model_.output, nullptr, std::min(request_->limit, model_.output.n), {}, -1};
    choice_.banned.assign(request_->banned, request_->banned + request_->banned_count);
    groups_.push_back({&choice_, 0, (int)rows_.size(), 0});
    stride_ = choice_.chunks();
    masses_.resize(rows_.size() * (size_t)stride_);
    for (auto& tops : tops_) {
        if (tops.size() < rows_.size()) tops.resize(rows_.size());
        for (size_t r = 0; r < rows_.size(); r++) tops[r].start(1);
    }
}

// The likeliest at each place; of equals the lower id.
void Filling::collect() {
    for (size_t r = 0; r < rows_.size(); r++) {
        Candidate best{-__builtin_inff(), -1};
        for (auto& tops : tops_)
            for (const Candidate& each : tops[r].best)
                if (each.value > best.value || (each.value == best.value && each.id < best.id)) best = each;
        request_->out_ids[r] = best.id;
        request_->out_logp[r] = best.value - log_mass(masses_.data() + r * (size_t)stride_, stride_);
    }
}

}  // namespace regard
