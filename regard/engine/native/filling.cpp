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
        const Span some = rows_of(tokens, part);
        const float* x = normed(model_.encoder_norm, some);
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
        const int m = count();
        if (logits != nullptr)
            return multiply(model_.output, enter(model_.decoder_norm, rows_of(m, part)), m, part, logits, LINEAR);
        Rows hidden = enter(model_.decoder_norm, {0, m});
        for (const Group& group : groups) write(hidden, group, rows, tops[(size_t)part], masses.data(), stride, part);
    });
}

void Filling::start(const Fill& request, int call) { request_ = &request, call_ = call, passes_ = 0; }

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
    const bool both = request_->at_once != 0;
    if (passes_ == (both ? 2 : 1)) {
        if ((both || !request_->encode) && request_->logits == nullptr) collect();
        notice_.put_up(worker.turn, call_, Notice::OVER);
        worker.team().wake(0);  // the one that called
        return;
    }
    const bool encode = both ? passes_ == 0 : request_->encode != 0;
    if (both && encode) keep_here();
    lay_out(encode);
    worker.make_room(encode ? request_->starts[request_->rows] : 0, (int)rows_.size());
    worker.sign(request_->signs);
    logits_ = request_->logits, passes_++;
    notice_.put_up(worker.turn, call_, encode ? ENCODE : WRITE);
}

// Room for what the encoder makes of the sources.
void Filling::keep_here() {
    const size_t width = (size_t)model_.memory.width(), d = (size_t)model_.shape.d_model;
    const auto tokens = (size_t)request_->starts[request_->rows];
    float *memory = memory_.fit(tokens * width), *states = states_.fit(tokens * d);
    memory_at_.clear(), states_at_.clear();
    for (int row = 0; row < request_->rows; row++) {
        memory_at_.push_back(memory + (size_t)request_->starts[row] * width);
        states_at_.push_back(states + (size_t)request_->starts[row] * d);
    }
}

void Filling::lay_out(bool encode) {
    const int d = model_.shape.d_model;
    const bool both = request_->at_once != 0;
    float* const* memory = both ? memory_at_.data() : request_->memory;
    float* const* states = both ? states_at_.data() : request_->states;
    sources_.clear(), rows_.clear(), groups_.clear();
    for (int row = 0; row < request_->rows; row++) {
        const int32_t* ids = request_->ids + request_->starts[row];
        const int given = request_->starts[row + 1] - request_->starts[row];
        const int length = both && !encode ? request_->lengths[row] : given, source = both ? given : request_->lengths[row];
        Source each{ids, length, memory[row]};
        each.states = states[row];
        sources_.push_back(each);
        for (int64_t j = 0; !encode && j < length; j++) {
            Row place{both ? request_->unknown : ids[j], (int32_t)j, nullptr, nullptr, 0, memory[row], source, false};
            place.copied = states[row] + (size_t)(j * source / length) * (size_t)d;
            rows_.push_back(place);
        }
    }
    if (!encode && request_->logits == nullptr) choose();
}

// What every place may say.
void Filling::choose() {
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
