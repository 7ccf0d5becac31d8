// The search loop: what the rows of the next step are, and what becomes of the results of the last one.
#include "search.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace regard {

constexpr int NEW_TOKENS = 768;  // source tokens that are encoded together

// Bytes of caches of all searches in this process: what the sentences under way may come to, what is there, and how much
// of the first there may be. Each search may have a share of it whatever the others have, or one sentence.
std::atomic<size_t> claimed_by_all{0}, held_by_all{0}, bound{(size_t)1 << 30};
constexpr size_t SHARES = 8;

constexpr uint64_t ENCODE = 2, GATHER = 4;  // flags of a notice

void Search::start(const Request& request, Queue& queue, const Choice& choice, int slots, int call) {
    request_ = &request, queue_ = &queue, choice_ = &choice, limit_ = slots, call_ = call;
    rows_.clear();
    newcomers_.clear();
    narrowed_.clear();
    if ((int)slots_.size() < slots) slots_.resize((size_t)slots);
    for (Slot& slot : slots_) {
        slot.sentence = -1;
        release(slot);
    }
}

Search::~Search() {
    for (Slot& slot : slots_) {
        release(slot);
        held_by_all -= cache_bytes(slot.room);
    }
}

int Search::run(Worker& worker) {
    for (;;) {
        worker.share([&](int part) {
            if (part == 0) plan(worker);
        });
        uint64_t notice = notice_.read(worker);
        if (notice & Notice::OVER) return Notice::call(notice);
        if (notice & GATHER) gather(worker);
        if (notice & ENCODE) worker.encode(newcomers_);
        worker.step(rows_, groups_, tops_, masses_, stride_);
    }
}

// Between two steps: every sentence goes on, or is done and leaves; free slots are taken; rows are laid out.
void Search::plan(Worker& worker) {
    int row = 0, tokens = 0;
    for (Slot& slot : slots_) {
        if (slot.sentence < 0) continue;
        int rows = (int)slot.live.size();
        advance(slot, row);
        row += rows;
    }
    if (request_->cancel != nullptr && __atomic_load_n(request_->cancel, __ATOMIC_RELAXED) != 0) queue_->status = CANCELLED;
    admit();
    lay_out();
    for (const Source& each : newcomers_) tokens += each.length;
    worker.make_room(tokens, (int)rows_.size());
    for (auto& tops : tops_) {
        if (tops.size() < rows_.size()) tops.resize(rows_.size());
        for (size_t r = 0; r < rows_.size(); r++) tops[r].start(request_->beam == 1 ? 1 : 2 * request_->beam);
    }
    bool over = rows_.empty() || queue_->status != DONE;
    uint64_t flags = (over ? Notice::OVER : 0) | (newcomers_.empty() ? 0 : ENCODE) | (narrowed_.empty() ? 0 : GATHER);
    notice_.put_up(worker.turn, call_, flags);
    if (over) worker.team().wake(0);  // the one that called
}

void Search::advance(Slot& slot, int first_row) {
    size_t beam = (size_t)request_->beam;
    candidates_.clear();
    int parts = chunks(slot);
    for (int r = 0; r < (int)slot.live.size(); r++) {
        float mass = log_mass(masses_.data() + (size_t)(first_row + r) * (size_t)stride_, parts);
        size_t before = candidates_.size();
        for (auto& tops : tops_)
            for (const Candidate& each : tops[(size_t)(first_row + r)].best)
                candidates_.push_back({slot.live[(size_t)r].total + (each.value - mass), r, each.id});
        if (candidates_.size() == before || !std::isfinite(mass)) {
            queue_->status = BROKEN;
            return;
        }
    }
    auto better = [](const Next& a, const Next& b) {
        if (a.total != b.total) return a.total > b.total;
        return a.row != b.row ? a.row < b.row : a.id < b.id;
    };
    size_t taken = std::min(candidates_.size(), 2 * beam);
    std::partial_sort(candidates_.begin(), candidates_.begin() + (ptrdiff_t)taken, candidates_.end(), better);
    slot.step++;
    bool cut = slot.step >= request_->most[slot.sentence];
    size_t going = 0;
    slot.next.resize(beam);
    for (size_t i = 0; i < taken && (going < beam || i < beam); i++) {
        const Next& each = candidates_[i];
        bool ended = each.id == request_->end;
        if (ended || cut) {
            if (i < beam) put_aside(slot, each, ended);
            if (i == 0) slot.likeliest_ended = true;
        } else if (going < beam) {
            Hypothesis& child = slot.next[going];
            const Hypothesis& parent = slot.live[(size_t)each.row];
            child.total = each.total;
            child.ids = parent.ids;
            child.ids.push_back(each.id);
            child.offsets = parent.offsets;
            child.offsets.push_back((int)((size_t)slot.step * beam + going) * model_.place_width());
            going++;
        }
    }
    slot.next.resize(going);
    std::swap(slot.live, slot.next);
    size_t enough = request_->penalty == 0 ? (size_t)request_->n_best : beam;
    bool done = slot.found.size() >= enough && (request_->penalty != 0 || slot.likeliest_ended);
    if (done || going == 0) finish(slot);
}

void Search::put_aside(Slot& slot, const Next& next, bool ended) {
    Output output{slot.live[(size_t)next.row].ids, 0, !ended};
    output.score = (double)next.total / std::pow((double)(output.ids.size() + 1), request_->penalty);
    if (!ended) output.ids.push_back(next.id);
    slot.found.push_back(std::move(output));
}

void Search::finish(Slot& slot) {
    auto better = [](const Output& a, const Output& b) { return a.score > b.score; };
    std::stable_sort(slot.found.begin(), slot.found.end(), better);
    int sentence = slot.sentence, count = std::min((int)slot.found.size(), request_->n_best);
    request_->out_counts[sentence] = count;
    request_->out_passes[sentence] = slot.step;
    for (int j = 0; j < count; j++) {
        const Output& output = slot.found[(size_t)j];
        int at = sentence * request_->n_best + j;
        request_->out_lengths[at] = (int32_t)output.ids.size();
        request_->out_scores[at] = output.score;
        request_->out_cut[at] = output.cut;
        int32_t* to = request_->out_ids + request_->out_starts[sentence] + (int64_t)j * request_->most[sentence];
        std::copy(output.ids.begin(), output.ids.end(), to);
    }
    slot.sentence = -1;
    release(slot);
}

// Waiting sentences take free slots, a few together, so that the encoder has more than one to work on.
void Search::admit() {
    newcomers_.clear();
    narrowed_.clear();
    if (queue_->status != DONE) {  // the call ends, whatever is in the slots
        for (Slot& slot : slots_) release(slot);
        return;
    }
    int free = 0, tokens = 0;
    for (int i = 0; i < limit_; i++) free += slots_[(size_t)i].sentence < 0;
    if (free < limit_ && free < std::max(1, limit_ / 8)) return;
    for (int i = 0; i < limit_; i++) {
        if (slots_[(size_t)i].sentence >= 0) continue;
        if (tokens >= NEW_TOKENS) return;
        size_t place = queue_->next.load();  // another team may take it: the next one is no longer
        if (place >= queue_->order.size() || !claim(slots_[(size_t)i], queue_->order[place])) return;
        place = queue_->next.fetch_add(1);
        if (place >= queue_->order.size()) return release(slots_[(size_t)i]);
        enter(slots_[(size_t)i], queue_->order[place]);
        tokens += slots_[(size_t)i].length;
    }
}

void Search::enter(Slot& slot, int sentence) {
    slot.sentence = sentence, slot.step = 0, slot.likeliest_ended = false;
    slot.length = request_->starts[sentence + 1] - request_->starts[sentence];
    slot.found.clear();
    slot.live.resize(1);
    slot.live[0].total = 0;
    slot.live[0].ids.clear();
    slot.live[0].offsets.assign(1, 0);
    float* memory = slot.memory.fit((size_t)slot.length * model_.memory.width());
    newcomers_.push_back({request_->ids + request_->starts[sentence], slot.length, memory});
    if (!model_.shortlist.always.empty()) narrow(slot);
}

// The sentence's own part of the output layer. Its neighbours have theirs, so that none changes what another may say.
void Search::narrow(Slot& slot) {
    const Shortlist& lists = model_.shortlist;
    marks_.assign(lists.open.size(), 0);
    auto mark = [&](int32_t id) { marks_[(size_t)id / 64] |= 1ull << id % 64; };
    for (int i = 0; i < slot.length; i++) {
        auto token = (size_t)request_->ids[request_->starts[slot.sentence] + i];
        if (token + 1 >= lists.starts.size()) continue;
        if (lists.copies) mark((int32_t)token);
        for (int32_t j = lists.starts[token]; j < lists.starts[token + 1]; j++) mark(lists.ids[(size_t)j]);
    }
    slot.listed.clear();
    for (size_t word = 0; word < marks_.size(); word++)
        for (uint64_t left = marks_[word] & lists.open[word]; left != 0; left &= left - 1)
            slot.listed.push_back((int32_t)word * 64 + __builtin_ctzll(left));
    auto own = (int)slot.listed.size();
    for (int32_t id : lists.sample)
        if ((marks_[(size_t)id / 64] >> id % 64 & 1) == 0) slot.listed.push_back(id);
    int drawn = (int)slot.listed.size() - own;
    slot.share = drawn > 0 ? std::log((float)(lists.rest - own) / (float)drawn) : 0;
    slot.part.shape_like(model_.output, own + drawn);
    slot.choice = {&slot.part, slot.listed.data(), own, {}, -1};
    narrowed_.push_back(&slot);
}

// Every thread of the team fetches its share of the new layers.
void Search::gather(Worker& worker) {
    worker.share([&](int part) {
        for (Slot* slot : narrowed_) {
            int panels = slot->part.panels;
            int from = worker.from(panels, part), to = worker.to(panels, part);
            slot->part.take(model_.output, slot->choice.ids, from, to);
            for (int i = std::max(slot->choice.limit, from * PANEL); i < std::min(slot->part.n, to * PANEL); i++)
                slot->part.bias.get()[i] += slot->share;
        }
    });
}

int Search::chunks(const Slot& slot) const {
    return choice_->chunks() + (model_.shortlist.always.empty() ? 0 : slot.choice.chunks());
}

size_t Search::cache_bytes(size_t places) const {
    size_t heads = (size_t)model_.shape.decoder.kv_heads;
    return model_.decoder.size() * heads * places * (size_t)model_.place_width() * sizeof(float);
}

// Whether there is room for all that a sentence may be written with; if so, it is the sentence's.
bool Search::claim(Slot& slot, int sentence) {
    size_t bytes = cache_bytes((size_t)request_->most[sentence] * (size_t)request_->beam);
    size_t most = bound.load(std::memory_order_relaxed), own = claimed_ + bytes;
    bool fits = own <= most / 2 && claimed_by_all.load(std::memory_order_relaxed) + bytes <= most;
    if (claimed_ != 0 && own > most / SHARES && !fits) return false;
    claimed_ += slot.claim = bytes;
    claimed_by_all += bytes;
    return true;
}

// A sentence has left: its claim is void, and what it wrote into is kept for the next one if little is kept already.
void Search::release(Slot& slot) {
    claimed_ -= slot.claim;
    claimed_by_all -= slot.claim;
    slot.claim = 0;
    if (held_by_all <= bound.load(std::memory_order_relaxed) / 2) return;
    held_by_all -= cache_bytes(slot.room);
    slot.cache.clear();
    slot.room = 0;
}

// Places for one step more; twice as many when they are full. Each head's go to where its new ones begin.
void Search::make_room(Slot& slot) {
    size_t layers = model_.decoder.size(), heads = (size_t)model_.shape.decoder.kv_heads, beam = (size_t)request_->beam;
    size_t place = (size_t)model_.place_width(), used = (size_t)slot.step * beam, before = slot.room;
    if (slot.cache.empty()) slot.cache.resize(layers), slot.cache_at.resize(layers);
    if (used + beam > before) {
        int most = request_->most[slot.sentence];
        slot.room = std::max(before, (size_t)std::min(most, slot.step < 16 ? 16 : slot.step * 2) * beam);
        held_by_all += cache_bytes(slot.room - before);
        for (auto& cache : slot.cache) {
            float* at = cache.fit(heads * slot.room * place, heads * before * place);
            for (size_t head = heads; used > 0 && head-- > 1;)
                std::memmove(at + head * slot.room * place, at + head * before * place, used * place * sizeof(float));
        }
    }
    for (size_t i = 0; i < layers; i++) slot.cache_at[i] = slot.cache[i].get();
}

void Search::lay_out() {
    rows_.clear();
    for (Slot& slot : slots_) {
        if (slot.sentence < 0) continue;
        make_room(slot);
        size_t room = slot.room * (size_t)model_.place_width();
        for (const Hypothesis& each : slot.live) {
            int32_t id = each.ids.empty() ? request_->begin : each.ids.back();
            rows_.push_back({id, slot.step, each.offsets.data(), slot.cache_at.data(), room, slot.memory.get(), slot.length,
                             request_->least[slot.sentence] > slot.step});
        }
    }
    group();
}

// All rows choose from the same columns, and those of each sentence from its own too where there is a shortlist.
void Search::group() {
    groups_.clear();
    stride_ = 0;
    int row = 0, common = choice_->chunks();
    groups_.push_back({choice_, 0, (int)rows_.size(), 0});
    for (Slot& slot : slots_) {
        if (slot.sentence < 0) continue;
        int count = (int)slot.live.size();
        if (!slot.listed.empty()) groups_.push_back({&slot.choice, row, count, common});
        row += count;
        stride_ = std::max(stride_, chunks(slot));
    }
    if (masses_.size() < rows_.size() * (size_t)stride_) masses_.resize(rows_.size() * (size_t)stride_);
}

}  // namespace regard

// From now on the caches of all searches of this process come to so many bytes at most.
extern "C" __attribute__((visibility("default"))) void regard_bound(int64_t bytes) { regard::bound = (size_t)bytes; }

// The bytes of them that are there now.
extern "C" __attribute__((visibility("default"))) int64_t regard_held() { return (int64_t)regard::held_by_all; }
