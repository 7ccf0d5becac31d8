// What is proposed, read and kept.
#include "drafting.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sublayers.h"

namespace regard {

namespace {

constexpr uint64_t ENCODE = 2;
constexpr int NEW_TOKENS = 768;  // source tokens that are encoded together
constexpr float WORTH = -1.9f;   // log p below which a token that is proposed costs more to read than it saves: about 0.15

}  // namespace

// All layers over several tokens a sentence; what they come to stays on the desk, for the heads.
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

// What the heads say after the tokens that were kept: d = h + W relu(V [h; E[y]]).
void Worker::propose(const std::vector<Kept>& kept, const std::vector<Row>& drafts, const std::vector<Group>& groups,
                     std::vector<std::vector<TopK>>& tops, std::vector<Mass>& masses, const int& stride) {
    const int d = model_.shape.d_model, wide = (2 * d + PANEL - 1) / PANEL * PANEL;
    const int heads = (int)model_.drafts.size();
    const size_t width = (size_t)model_.x_stride();
    auto count = [&] { return (int)kept.size(); };
    share([&](int part) {
        for (int i = from(count(), part); i < to(count(), part); i++) {
            const float* h = desk_.closed.get() + (size_t)kept[(size_t)i].row * width;
            float* both = desk_.joined.get() + (size_t)i * (size_t)wide;
            std::memcpy(desk_.kept.get() + (size_t)i * width, h, width * sizeof(float));
            std::memcpy(both, h, (size_t)d * sizeof(float));
            k_.embed(model_.target_embedding + (size_t)kept[(size_t)i].id * (size_t)d, nullptr, model_.shape.target_scale, d,
                     both + d);
            std::fill(both + 2 * d, both + wide, 0.0f);
        }
    });
    share([&](int part) {
        const int m = count();
        Rows rows = prepare(desk_.joined.get(), rows_of(m, part), 2 * d, wide);
        multiply(model_.draft_inner, rows, m, part, desk_.opened.get(), RELU);
    });
    for (int head = 0; head < heads; head++)
        share([&](int part) {
            const Matrix& w = model_.drafts[(size_t)head];
            const int m = count();
            const float* opened = desk_.opened.get() + (size_t)head * (size_t)wide;
            Rows rows = prepare(opened, rows_of(m, part), w.k, model_.draft_inner.width());
            float* out = desk_.drafted.get() + (size_t)head * (size_t)m * width;
            multiply(w, rows, m, part, out, LINEAR, desk_.kept.get());
        });
    share([&](int part) {
        Rows rows = prepare(desk_.drafted.get(), {0, heads * count()}, d, (int)width);
        for (const Group& group : groups) write(rows, group, drafts, tops[(size_t)part], masses.data(), stride, part);
    });
}

void Worker::make_draft_room(int rows, int sentences) {
    const size_t width = (size_t)model_.x_stride(), wide = (size_t)(2 * model_.shape.d_model + PANEL);
    desk_.closed.fit((size_t)rows * width);
    desk_.kept.fit((size_t)sentences * width);
    desk_.joined.fit((size_t)sentences * wide);
    desk_.opened.fit((size_t)sentences * (size_t)model_.draft_inner.width() + PANEL);
    desk_.drafted.fit((size_t)sentences * model_.drafts.size() * width);
}

void Drafting::start(const Request& request, Queue& queue, const Choice& choice, int slots, int call) {
    request_ = &request, queue_ = &queue, choice_ = &choice, limit_ = slots, call_ = call;
    rows_.clear(), drafts_.clear(), kept_.clear(), newcomers_.clear();
    if ((int)slots_.size() < slots) slots_.resize((size_t)slots);
    for (Written& slot : slots_) slot.sentence = -1;
}

int Drafting::run(Worker& worker) {
    for (;;) {
        worker.share([&](int part) {
            if (part == 0) plan(worker);
        });
        uint64_t notice = notice_.read(worker);
        if (notice & Notice::OVER) return Notice::call(notice);
        if (notice & ENCODE) worker.encode(newcomers_);
        worker.check(rows_, groups_, tops_, masses_, stride_);
        worker.share([&](int part) {
            if (part == 0) verify();
        });
        worker.propose(kept_, drafts_, draft_groups_, tops_, masses_, stride_);
    }
}

void Drafting::clear_tops(size_t rows) {
    for (auto& tops : tops_) {
        if (tops.size() < rows) tops.resize(rows);
        for (size_t r = 0; r < rows; r++) tops[r].start(1);
    }
}

void Drafting::make_masses(size_t rows) {
    if (masses_.size() < rows * (size_t)stride_) masses_.resize(rows * (size_t)stride_);
}

Candidate Drafting::best(size_t row) const {
    Candidate found{-__builtin_inff(), -1};
    for (const auto& tops : tops_)
        for (const Candidate& each : tops[row].best)
            if (each.value > found.value || (each.value == found.value && each.id < found.id)) found = each;
    return found;
}

void Drafting::plan(Worker& worker) {
    take_proposals();
    if (request_->cancel != nullptr && __atomic_load_n(request_->cancel, __ATOMIC_RELAXED) != 0) queue_->status = CANCELLED;
    newcomers_.clear();
    if (queue_->status == DONE) admit();
    lay_out();
    int tokens = 0;
    for (const Source& each : newcomers_) tokens += each.length;
    worker.make_room(tokens, (int)rows_.size());
    worker.make_draft_room((int)rows_.size(), limit_);
    clear_tops(rows_.size());
    bool over = rows_.empty() || queue_->status != DONE;
    notice_.put_up(worker.turn, call_, (over ? Notice::OVER : 0) | (newcomers_.empty() ? 0 : ENCODE));
    if (over) worker.team().wake(0);  // the one that called
}

// What the heads said after the last pass goes behind the token that is known, for as long as all of it is likely to be right:
// a row more costs a fraction of a pass.
void Drafting::take_proposals() {
    size_t heads = model_.drafts.size();
    for (size_t i = 0; i < kept_.size(); i++) {
        Written& slot = slots_[(size_t)kept_[i].slot];
        auto left = (size_t)request_->most[slot.sentence] - slot.ids.size();  // that may still be said
        float sure = 0;
        for (size_t head = 0; head < heads && slot.proposed.size() < left; head++) {
            const size_t row = head * kept_.size() + i;
            Candidate next = best(row);
            if (next.id < 0) break;
            sure += next.value - log_mass(masses_.data() + row * (size_t)stride_, stride_);
            if (!(sure >= WORTH)) break;
            slot.proposed.push_back(next.id);
        }
    }
    kept_.clear();
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
        slot.read = 0, slot.total = 0;
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
    groups_.push_back({choice_, 0, (int)rows_.size(), 0});
    stride_ = choice_->chunks();
    make_masses(rows_.size());
}

// Tokens are kept up to the first that was not proposed rightly; that one is what the model says.
void Drafting::verify() {
    kept_.clear(), drafts_.clear(), draft_groups_.clear();
    size_t row = 0;
    for (size_t number = 0; number < slots_.size(); number++) {
        Written& slot = slots_[number];
        if (slot.sentence < 0) continue;
        const size_t first = row, count = slot.proposed.size();
        row += count;
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
        kept_.push_back({(int)number, (int)(first + kept - 1), slot.ids.back()});
    }
    drafts_.resize(kept_.size() * model_.drafts.size());
    draft_groups_.push_back({choice_, 0, (int)drafts_.size(), 0});
    clear_tops(drafts_.size());
    make_masses(drafts_.size());
}

void Drafting::finish(Written& slot, bool cut) {
    int sentence = slot.sentence;
    request_->out_counts[sentence] = 1;
    request_->out_scores[sentence] = (double)slot.total / std::pow((double)slot.ids.size(), request_->penalty);
    request_->out_cut[sentence] = cut;
    if (!cut) slot.ids.pop_back();
    request_->out_lengths[sentence] = (int32_t)slot.ids.size();
    std::copy(slot.ids.begin(), slot.ids.end(), request_->out_ids + request_->out_starts[sentence]);
    slot.sentence = -1;
}

}  // namespace regard
