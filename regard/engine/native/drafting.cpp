// What is proposed, read and kept.
#include "drafting.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sublayers.h"

namespace regard {

namespace {

constexpr uint64_t ENCODE = 2, FORESEE = 4;
constexpr int NEW_TOKENS = 768;  // source tokens that are encoded together

}  // namespace

// All layers over several tokens a sentence; what they come to stays on the desk, for what foresees.
void Worker::check(const std::vector<Row>& rows, const std::vector<Group>& groups, std::vector<std::vector<TopK>>& tops,
                   std::vector<Mass>& masses, const int& stride) {
    decode(rows, true, true);
    sublayer_++;
    share([&](int part) {
        const int m = (int)rows.size();
        const size_t width = (size_t)model_.x_stride();
        Rows hidden = enter(model_.decoder_norm, {0, m});
        const float* x = normed(model_.decoder_norm, {0, m});
        for (int r = from(m, part); r < to(m, part); r++)
            std::memcpy(desk_.closed.get() + (size_t)r * width, x + (size_t)r * width, width * sizeof(float));
        for (const Group& group : groups) write(hidden, group, rows, tops[(size_t)part], masses.data(), stride, part);
    });
}

// What the next token is foreseen from, without what is seen of the source: that comes later.
void Worker::join(const std::vector<Kept>& kept, bool read) {
    const int d = model_.shape.d_model, wide = model_.joined_width();
    const float* rows = read ? desk_.closed.get() : desk_.drafted.get();
    for (size_t i = 0; i < kept.size(); i++) {
        float* both = desk_.joined.get() + i * (size_t)wide;
        std::memcpy(both, rows + (size_t)kept[i].row * (size_t)model_.x_stride(), (size_t)d * sizeof(float));
        k_.embed(model_.target_embedding + (size_t)kept[i].id * (size_t)d, nullptr, model_.shape.target_scale, d, both + d);
        std::fill(both + 2 * d, both + model_.looked_from(), 0.0f);
    }
}

// A token further, for each of the rows; the last decoder layer's keys and values are what is seen.
void Worker::foresee(const std::vector<Row>& rows, const std::vector<Group>& groups, std::vector<std::vector<TopK>>& tops,
                     std::vector<Mass>& masses, const int& stride) {
    const Drafter& w = model_.drafter;
    const int wide = model_.joined_width();
    auto count = [&] { return (int)rows.size(); };
    auto product = [&](const Matrix& matrix, const Buffer<float>& from, int from_stride, Buffer<float>& to, Activation activation,
                       const float* residual) {
        share([&](int part) {
            const int m = count();
            multiply(matrix, prepare(from.get(), rows_of(m, part), matrix.k, from_stride), m, part, to.get(), activation,
                     residual, wide);
        });
    };
    product(w.query, desk_.joined, wide, desk_.projected, LINEAR, nullptr);
    share([&](int part) {
        const Side& side = model_.shape.decoder;
        const int group = side.heads / side.kv_heads, last = side.layers - 1;
        by_head(rows, part, [&](int r, int head) {
            const size_t size = (size_t)rows[(size_t)r].length * (size_t)side.width;
            const float* k = rows[(size_t)r].memory + (size_t)(last * side.kv_heads + head) * 2 * size;
            const Seen seen{k, k + size, ramp(side.width, rows[(size_t)r].length), rows[(size_t)r].length};
            const float* q = desk_.projected.get() + (size_t)r * (size_t)w.query.width();
            float* out = desk_.joined.get() + (size_t)r * (size_t)wide + model_.looked_from();
            for (int h = head * group; h < (head + 1) * group; h++)
                k_.attend(q + h * side.width, seen, side.width, side.score_scale, room(seen.count), out + h * side.width);
        });
    });
    product(w.inner, desk_.joined, wide, desk_.opened, RELU, nullptr);
    product(w.outer, desk_.opened, w.inner.width(), desk_.drafted, LINEAR, desk_.joined.get());
    product(w.narrow, desk_.drafted, model_.x_stride(), desk_.narrowed, LINEAR, nullptr);
    share([&](int part) {
        const Rows narrowed = prepare(desk_.narrowed.get(), {0, count()}, w.output.k, w.narrow.width());
        for (const Group& each : groups) write(narrowed, each, rows, tops[(size_t)part], masses.data(), stride, part);
    });
}

void Worker::make_draft_room(int rows, int sentences) {
    const auto width = (size_t)model_.x_stride(), some = (size_t)sentences;
    desk_.closed.fit((size_t)rows * width);
    desk_.joined.fit(some * (size_t)model_.joined_width());
    desk_.opened.fit(some * (size_t)model_.drafter.inner.width());
    desk_.drafted.fit(some * width);
    desk_.narrowed.fit(some * (size_t)model_.drafter.narrow.width());
}

void Drafting::start(const Request& request, Queue& queue, const Choice& choice, int slots, int call) {
    request_ = &request, queue_ = &queue, choice_ = &choice, limit_ = slots, call_ = call;
    draft_choice_ = choice;
    draft_choice_.output = &model_.drafter.output;
    rows_.clear(), drafts_.clear(), kept_.clear(), newcomers_.clear();
    if ((int)slots_.size() < slots) slots_.resize((size_t)slots);
    for (Written& slot : slots_) slot.sentence = -1;
    read_ = true;
}

int Drafting::run(Worker& worker) {
    for (;;) {
        worker.share([&](int part) {
            if (part == 0) plan(worker);
        });
        uint64_t notice = notice_.read(worker);
        if (notice & Notice::OVER) return Notice::call(notice);
        if (notice & FORESEE) {
            worker.foresee(drafts_, groups_, tops_, masses_, stride_);
        } else {
            if (notice & ENCODE) worker.encode(newcomers_);
            worker.check(rows_, groups_, tops_, masses_, stride_);
        }
    }
}

// Room for what so many rows say, which choose from the same columns.
void Drafting::make_results(const Choice& choice, size_t rows) {
    groups_.push_back({&choice, 0, (int)rows, 0});
    stride_ = choice.chunks();
    if (masses_.size() < rows * (size_t)stride_) masses_.resize(rows * (size_t)stride_);
    for (auto& tops : tops_) {
        if (tops.size() < rows) tops.resize(rows);
        for (size_t r = 0; r < rows; r++) tops[r].start(1);
    }
}

Candidate Drafting::best(size_t row) const {
    Candidate found{-__builtin_inff(), -1};
    for (const auto& tops : tops_)
        for (const Candidate& each : tops[row].best)
            if (each.value > found.value || (each.value == found.value && each.id < found.id)) found = each;
    return found;
}

// After a pass: what was read is verified, or what was foreseen goes behind it; then more is foreseen, or all of it read.
void Drafting::plan(Worker& worker) {
    if (read_) verify();
    else take_proposals();
    if (request_->cancel != nullptr && __atomic_load_n(request_->cancel, __ATOMIC_RELAXED) != 0) queue_->status = CANCELLED;
    if (queue_->status == DONE && !kept_.empty()) {
        worker.join(kept_, read_);
        lay_out_drafts();
        read_ = false;
        return notice_.put_up(worker.turn, call_, FORESEE);
    }
    newcomers_.clear();
    if (queue_->status == DONE) admit();
    lay_out();
    int tokens = 0;
    for (const Source& each : newcomers_) tokens += each.length;
    worker.make_room(tokens, (int)rows_.size());
    worker.make_draft_room((int)rows_.size(), limit_);
    read_ = true;
    bool over = rows_.empty() || queue_->status != DONE;
    notice_.put_up(worker.turn, call_, (over ? Notice::OVER : 0) | (newcomers_.empty() ? 0 : ENCODE));
    if (over) worker.team().wake(0);  // the one that called
}

// What was foreseen goes behind the token that is known, for as long as all of it is likely to be right.
void Drafting::take_proposals() {
    size_t going = 0;
    for (size_t i = 0; i < kept_.size(); i++) {
        Written& slot = slots_[(size_t)kept_[i].slot];
        const Candidate next = best(i);
        if (next.id < 0) continue;
        slot.sure += next.value - log_mass(masses_.data() + i * (size_t)stride_, stride_);
        if (!(slot.sure >= request_->worth)) continue;
        slot.proposed.push_back(next.id);
        if (next.id != request_->end && wants_more(slot)) kept_[going++] = {kept_[i].slot, (int)i, next.id};
    }
    kept_.resize(going);
}

// No more is read than may still be said.
bool Drafting::wants_more(const Written& slot) const {
    const auto left = (size_t)request_->most[slot.sentence] - slot.ids.size();
    return slot.proposed.size() < std::min(left, (size_t)model_.shape.drafts + 1);
}

void Drafting::lay_out_drafts() {
    drafts_.clear(), groups_.clear();
    for (const Kept& each : kept_) {
        const Written& slot = slots_[(size_t)each.slot];
        drafts_.push_back({each.id, 0, nullptr, nullptr, 0, slot.memory.get(), slot.length,
                           request_->least[slot.sentence] > (int)(slot.ids.size() + slot.proposed.size()) - 1});
    }
    make_results(draft_choice_, drafts_.size());
}

void Drafting::admit() {
    int tokens = 0;
    for (int i = 0; i < limit_ && tokens < NEW_TOKENS; i++) {
        Written& slot = slots_[(size_t)i];
        if (slot.sentence >= 0) continue;
        size_t place = queue_->next.fetch_add(1);
        if (place >= queue_->order.size()) return;
        slot.sentence = queue_->order[place];
        slot.length = request_->starts[slot.sentence + 1] - request_->starts[slot.sentence];
        slot.read = 0, slot.passes = 0, slot.total = 0;
        slot.ids.clear();
        slot.proposed.assign(1, request_->begin);
        float* memory = slot.memory.fit((size_t)slot.length * (size_t)model_.memory.width());
        newcomers_.push_back({request_->ids + request_->starts[slot.sentence], slot.length, memory});
        tokens += slot.length;
    }
}

// Places for what is read next; twice as many when they are full. Each head's go to where its new ones begin.
void Drafting::make_room(Written& slot) {
    size_t layers = model_.decoder.size(), heads = (size_t)model_.shape.decoder.kv_heads;
    size_t place = (size_t)model_.place_width(), used = (size_t)slot.read, before = slot.room;
    size_t needed = used + slot.proposed.size();
    if (slot.cache.empty()) slot.cache.resize(layers), slot.cache_at.resize(layers);
    if (needed > before) {
        slot.room = std::max<size_t>(24, 2 * needed);
        for (auto& cache : slot.cache) {
            float* at = cache.fit(heads * slot.room * place, heads * before * place);
            for (size_t head = heads; used > 0 && head-- > 1;)
                std::memmove(at + head * slot.room * place, at + head * before * place, used * place * sizeof(float));
        }
    }
    for (size_t i = 0; i < layers; i++) slot.cache_at[i] = slot.cache[i].get();
}

void Drafting::lay_out() {
    rows_.clear(), groups_.clear();
    int longest = 0;
    for (const Written& slot : slots_)
        if (slot.sentence >= 0) longest = std::max(longest, slot.read + (int)slot.proposed.size());
    for (int i = (int)offsets_.size(); i < longest; i++) offsets_.push_back(i * model_.place_width());
    for (Written& slot : slots_) {
        if (slot.sentence < 0) continue;
        make_room(slot);
        size_t room = slot.room * (size_t)model_.place_width();
        for (int j = 0; j < (int)slot.proposed.size(); j++)
            rows_.push_back({slot.proposed[(size_t)j], slot.read + j, offsets_.data(), slot.cache_at.data(), room,
                             slot.memory.get(), slot.length,
                             request_->least[slot.sentence] > (int)slot.ids.size() + j});
    }
    make_results(*choice_, rows_.size());
}

// Tokens are kept up to the first that was not proposed rightly; that one is what the model says.
void Drafting::verify() {
    kept_.clear();
    if (rows_.empty()) return;
    size_t row = 0;
    for (size_t number = 0; number < slots_.size(); number++) {
        Written& slot = slots_[number];
        if (slot.sentence < 0) continue;
        const size_t first = row, count = slot.proposed.size();
        row += count, slot.passes++;
        size_t kept = 0;
        bool done = false;
        while (!done) {
            Candidate said = best(first + kept);
            float mass = log_mass(masses_.data() + (first + kept) * (size_t)stride_, stride_);
            if (said.id < 0 || !std::isfinite(mass)) {
                queue_->status = BROKEN;
                return;
            }
            slot.ids.push_back(said.id);
            slot.total += said.value - mass;
            kept++;
            bool ended = said.id == request_->end;
            done = ended || (int)slot.ids.size() >= request_->most[slot.sentence];
            if (done) finish(slot, !ended);
            else if (kept == count || said.id != slot.proposed[kept]) break;
        }
        if (done) continue;
        slot.read += (int)kept;
        slot.proposed.assign(1, slot.ids.back());
        slot.sure = 0;
        if (wants_more(slot)) kept_.push_back({(int)number, (int)(first + kept - 1), slot.ids.back()});
    }
}

void Drafting::finish(Written& slot, bool cut) {
    int sentence = slot.sentence;
    request_->out_counts[sentence] = 1;
    request_->out_scores[sentence] = (double)slot.total / std::pow((double)slot.ids.size(), request_->penalty);
    request_->out_cut[sentence] = cut;
    request_->out_passes[sentence] = slot.passes;
    if (!cut) slot.ids.pop_back();
    request_->out_lengths[sentence] = (int32_t)slot.ids.size();
    std::copy(slot.ids.begin(), slot.ids.end(), request_->out_ids + request_->out_starts[sentence]);
    slot.sentence = -1;
}

}  // namespace regard
