// The decoder: one step of all layers for rows that have each its own past, and the output layer.
// Before this file: model.cpp; after it: search.cpp and reading.cpp, which decide what the rows are.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "sublayers.h"

namespace regard {

float log_mass(const Mass* parts, int count) {
    float peak = parts[0].max, total = 0;
    for (int i = 1; i < count; i++) peak = std::max(peak, parts[i].max);
    for (int i = 0; i < count; i++) total += parts[i].sum * std::exp(parts[i].max - peak);
    return peak + std::log(total);
}

// Each query head that shares these keys; its weights are copied to (heads, count) where they are asked for.
void Worker::look(const float* q, const Seen& seen, int row, int head, float* weights) {
    const Side& side = model_.shape.decoder;
    int group = side.heads / side.kv_heads;
    float* out = desk_.heads.get() + (size_t)row * side.heads * side.width;
    for (int h = head * group; h < (head + 1) * group; h++) {
        float* scores = room(seen.count);
        k_.attend(q + h * side.width, seen, side.width, side.score_scale, scores, out + h * side.width);
        if (weights == nullptr) continue;
        double total = 0;  // `attend` has left e^score there
        for (int i = 0; i < seen.count; i++) total += scores[i];
        for (int i = 0; i < seen.count; i++) weights[(size_t)h * seen.count + i] = (float)(scores[i] / total);
    }
}

// A row's new key and value go to their place in the cache.
void Worker::keep_own(const Row& row, int r, int layer, int head) {
    const Side& side = model_.shape.decoder;
    int group = side.heads / side.kv_heads, heads_width = side.heads * side.width, keys = side.kv_heads * side.width;
    float* q = desk_.projected.get() + (size_t)r * model_.decoder[(size_t)layer].qkv.width();
    float* fresh = q + heads_width + head * side.width;
    if (model_.shape.planes > 0) {
        turn_head(fresh, row.position);
        for (int h = head * group; h < (head + 1) * group; h++) turn_head(q + h * side.width, row.position);
    }
    float* own = row.cache[layer] + (size_t)head * row.room + row.offsets[row.position];
    std::memcpy(own, fresh, (size_t)side.width * sizeof(float));
    std::memcpy(own + side.width, fresh + keys, (size_t)side.width * sizeof(float));
}

// Its query looks at all of its own past, and at itself.
void Worker::look_back(const Row& row, int r, int layer, int head) {
    const float* q = desk_.projected.get() + (size_t)r * model_.decoder[(size_t)layer].qkv.width();
    const float* k = row.cache[layer] + (size_t)head * row.room;
    look(q, {k, k + model_.shape.decoder.width, row.offsets, row.position + 1}, r, head);
}

void Worker::cross_attention(const std::vector<Row>& rows, int layer, int part) {
    const Side& side = model_.shape.decoder;
    int stride = model_.decoder[(size_t)layer].cross_query.width();
    by_head(rows, part, [&](int r, int head) {
        const Row& row = rows[(size_t)r];
        size_t size = (size_t)row.length * side.width;
        const float* k = row.memory + (size_t)(layer * side.kv_heads + head) * 2 * size;
        const float* q = desk_.projected.get() + (size_t)r * stride;
        float* weights = row.listened == nullptr ? nullptr : row.listened + (size_t)(layer * side.heads) * row.length;
        look(q, {k, k + size, ramp(side.width, row.length), row.length}, r, head, weights);
    });
}

// Every row looks at its own past; its key and value are kept first, if they are not there yet.
void Worker::attend_own(const std::vector<Row>& rows, int layer, bool ahead) {
    share([&](int part) {
        by_head(rows, part, [&](int r, int head) {
            if (!ahead) keep_own(rows[(size_t)r], r, layer, head);
            look_back(rows[(size_t)r], r, layer, head);
        });
    });
}

// What a recurrence remembers of a place lies where the keys and values of all heads would.
float* Worker::remembered(const Row& row, int layer, int place, int column) const {
    const int wide = model_.place_width();
    return row.cache[layer] + (size_t)(column / wide) * row.room + row.offsets[place] + column % wide;
}

// A recurrence in the place of attention: c = f c + (1 - f) v, and max(0, c) is added to the rows.
void Worker::recur(const std::vector<Row>& rows, int layer) {
    const DecoderLayer& own = model_.decoder[(size_t)layer];
    const int d = model_.shape.d_model, stride = model_.x_stride(), wide = own.qkv.width();
    begin(own.norm, own.qkv, desk_.projected, [&] { return (int)rows.size(); });
    share([&](int part) {
        const int m = (int)rows.size();
        const float* residual = model_.shape.post_norm ? normed(own.norm, {0, m}) : x();
        for (int r = from(m, part); r < to(m, part); r++) {
            const Row& row = rows[(size_t)r];
            const float *value = desk_.projected.get() + (size_t)r * wide, *kept = value + d;
            float* out = desk_.x[1 - side_].get() + (size_t)r * stride;
            for (int c = 0; c < d; c++) {
                const float f = 1 / (1 + std::exp(-kept[c]));
                const float before = row.position > 0 ? *remembered(row, layer, row.position - 1, c) : 0;
                const float now = f * before + (1 - f) * value[c];
                *remembered(row, layer, row.position, c) = now;
                out[c] = residual[(size_t)r * stride + c] + std::max(0.0f, now);
            }
        }
    });
    side_ = 1 - side_;
}

// All layers. `ahead`: a row may have several of the tokens, so that all keys are there before the first query looks; and
// nothing is asked of the last one but its keys and values, unless the `whole` of it is wanted.
void Worker::decode(const std::vector<Row>& rows, bool ahead, bool whole) {
    auto count = [&] { return (int)rows.size(); };
    side_ = 0;
    share([&](int part) {
        for (int r = from(count(), part); r < to(count(), part); r++) {
            const Row& row = rows[(size_t)r];
            embed(r, model_.target_embedding, model_.shape.target_scale, row.id, row.position);
            if (model_.pairs != nullptr) add_pair(r, row.before, row.id);
        }
    });
    for (int i = 0; i < (int)model_.decoder.size(); i++) {
        const DecoderLayer& layer = model_.decoder[(size_t)i];
        if (layer.recurrent()) recur(rows, i);
        else {
            begin(layer.norm, layer.qkv, desk_.projected, count);
            auto keep_keys = [&](int r, int head) { keep_own(rows[(size_t)r], r, i, head); };
            if (ahead) share([&](int part) { by_head(rows, part, keep_keys); });
            if (ahead && !whole && i + 1 == (int)model_.decoder.size()) return;
            attend_own(rows, i, ahead);
            end(layer.norm, layer.out, desk_.heads, layer.out.k, count);
        }
        if (model_.reads()) {
            begin(layer.cross_norm, layer.cross_query, desk_.projected, count);
            share([&](int part) { cross_attention(rows, i, part); });
            end(layer.cross_norm, layer.cross_out, desk_.heads, layer.cross_out.k, count);
        }
        feed_forward(layer.feed_forward, count);
    }
}

void Worker::step(const std::vector<Row>& rows, const std::vector<Group>& groups, std::vector<std::vector<TopK>>& tops,
                  std::vector<Mass>& masses, const int& stride) {
    decode(rows, false);
    sublayer_++;
    share([&](int part) {
        Rows hidden = enter(model_.decoder_norm, {0, (int)rows.size()});
        for (const Group& group : groups) write(hidden, group, rows, tops[(size_t)part], masses.data(), stride, part);
    });
}

void Worker::read(const std::vector<Row>& tokens, bool ahead, float* const& logits) {
    decode(tokens, ahead);
    if (ahead) return;
    sublayer_++;
    share([&](int part) {
        const int m = (int)tokens.size();
        multiply(model_.output, enter(model_.decoder_norm, rows_of(m, part)), m, part, logits, LINEAR);
    });
}

// The output layer, chunk by chunk while the logits are still in the cache: log Σ exp over all, the best of the allowed.
void Worker::write(const Rows& hidden, const Group& group, const std::vector<Row>& rows, std::vector<TopK>& tops,
                   Mass* masses, int stride, int part) {
    const Choice& choice = *group.choice;
    const Matrix& w = *choice.output;
    Rows own = hidden;
    own.m = group.count;
    if (own.floats != nullptr) own.floats += (size_t)group.first * own.stride;
    if (own.bytes != nullptr)
        own.bytes += (size_t)group.first * own.stride, own.scale += group.first, own.zero += group.first;
    int chunks = choice.chunks(), panels = choice.chunk(), width = panels * PANEL;
    float* logits = logits_.fit((size_t)own.m * width);
    for (int chunk = from(chunks, part); chunk < to(chunks, part); chunk++) {
        int first = chunk * panels, column = first * PANEL;
        k_.product(w, own, first, std::min(w.panels, first + panels), {logits, width, first});
        int count = std::min(w.n - column, width), allowed = std::min(count, choice.limit - column);
        for (int i = 0; i < own.m; i++) {
            float* x = logits + (size_t)i * width;
            size_t r = (size_t)(group.first + i);
            if (masses != nullptr) masses[r * (size_t)stride + (size_t)(group.chunk + chunk)] = k_.mass(x, count);
            for (int32_t banned : choice.banned)
                if (banned >= column && banned < column + count) x[banned - column] = -__builtin_inff();
            if (rows[r].early && choice.end >= column && choice.end < column + count)
                x[choice.end - column] = -__builtin_inff();
            k_.select(x, allowed, choice.ids != nullptr ? choice.ids + column : nullptr, column, tops[r]);
        }
    }
}

}  // namespace regard
