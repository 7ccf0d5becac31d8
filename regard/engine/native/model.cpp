// Encoder and decoder step over rows without padding: each row has its own length, so neighbours cost nothing.
// Before this file: kernels.cpp; after it: search.cpp, which decides what the rows are.
#include "model.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace regard {

namespace {

// Takes the tensors in the order that regard/engine/weights.py lays them out.
struct Reader {
    const Tensor* next;
    const Tensor* end;
    Precision precision;

    const Tensor& take() {
        if (next == end) throw std::invalid_argument("too few tensors");
        return *next++;
    }
    void read(Norm& norm) {
        const Tensor& t = take();
        if (t.weight == nullptr) return;
        norm.gain.assign(t.weight, t.weight + t.rows);
        norm.shift.assign(t.bias, t.bias + t.rows);
    }
    void read(Matrix& matrix) {
        const Tensor& t = take();
        matrix.pack(t.weight, t.bias, t.rows, t.columns, precision);
    }
    void read(FeedForward& layer) {
        read(layer.norm);
        read(layer.inner);
        read(layer.outer);
    }
};

}  // namespace

Model::Model(const Shape& given, const Tensor* tensors, int count)
    : shape(given), encoder((size_t)given.encoder.layers), decoder((size_t)given.decoder.layers) {
    Reader reader{tensors, tensors + count, (Precision)given.precision};
    for (auto& layer : encoder) {
        reader.read(layer.norm);
        reader.read(layer.qkv);
        reader.read(layer.out);
        reader.read(layer.feed_forward);
    }
    for (auto& layer : decoder) {
        reader.read(layer.norm);
        reader.read(layer.qkv);
        reader.read(layer.out);
        reader.read(layer.cross_norm);
        reader.read(layer.cross_query);
        reader.read(layer.cross_out);
        reader.read(layer.feed_forward);
    }
    reader.read(encoder_norm);
    reader.read(decoder_norm);
    reader.read(memory);
    reader.read(output);
    source_embedding = reader.take().weight;
    target_embedding = reader.take().weight;
}

void Model::narrow(const Lists& lists) {
    Shortlist& own = shortlist;
    own.starts.assign(lists.starts, lists.starts + lists.sources + 1);
    own.ids.assign(lists.ids, lists.ids + own.starts.back());
    own.always.assign(lists.always, lists.always + lists.always_count);
    own.sample.assign(lists.sample, lists.sample + lists.sample_count);
    own.copies = lists.copies != 0;
    own.open.assign((size_t)(output.n + 63) / 64, ~0ull);
    auto close = [&](int32_t id) { own.open[(size_t)id / 64] &= ~(1ull << id % 64); };
    for (int i = 0; i < lists.never_count; i++) close(lists.never[i]);
    for (int32_t id : own.always) close(id);
    own.rest = lists.rest;
    output.flatten();
    own.common.shape_like(output, lists.always_count);
    own.common.take(output, lists.always, 0, own.common.panels);
}

void Barrier::wait() {
    if (size_ == 1) return;
    unsigned round = round_.load(std::memory_order_acquire);
    if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
        waiting_.store(0, std::memory_order_relaxed);
        round_.store(round + 1, std::memory_order_release);
        return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; spins++) {
        if (broken_) throw Stopped();
        if (spins > 4000) std::this_thread::yield();  // somebody else needs the core
        else relax();
    }
    if (broken_) throw Stopped();
}

// Every thread of a team makes the whole input for itself: cheaper than waiting for parts of it.
Worker::Input Worker::prepare(const float* x, int m, int n, int stride, const Norm* norm) {
    const float* floats = x;
    if (norm != nullptr) {
        float* y = normed_.fit((size_t)m * stride);
        for (int i = 0; i < m; i++)
            k_.normalise(x + (size_t)i * stride, norm->gain.data(), norm->shift.data(), model_.shape.eps, n,
                         y + (size_t)i * stride);
        floats = y;
    }
    Rows rows{floats, nullptr, nullptr, m, stride};
    if (model_.shape.precision == INT8) {
        int padded = (n + LANES - 1) / LANES * LANES;
        uint8_t* bytes = bytes_.fit((size_t)m * stride);
        float* scale = scale_.fit((size_t)m);
        for (int i = 0; i < m; i++)
            k_.quantise(floats + (size_t)i * stride, padded, bytes + (size_t)i * stride, scale + i);
        rows.bytes = bytes, rows.scale = scale;
    }
    return {rows, floats};
}

// The input of a sub-layer. Norm first: x + f(norm(x)). Norm last: norm(x) + f(norm(x)), with the norm of the
// sub-layer before, so that both are one function; weights.py lays the norms out.
Worker::Input Worker::enter(const Norm& norm, int m) {
    const float* x = team_.x.get();
    Input input = prepare(x, m, model_.shape.d_model, model_.x_stride(), norm.gain.empty() ? nullptr : &norm);
    if (!model_.shape.post_norm) input.residual = x;
    return input;
}

void Worker::multiply(const Matrix& w, const Rows& x, float* c, Activation activation, const float* residual) {
    Target target{c, w.width(), 0, activation, residual, residual != nullptr ? model_.x_stride() : 0};
    k_.product(w, x, from(w.panels), to(w.panels), target);
}

void Worker::feed_forward(const FeedForward& layer, int m) {
    Input input = enter(layer.norm, m);
    float* hidden = team_.hidden.get();
    multiply(layer.inner, input.rows, hidden, (Activation)model_.shape.activation);
    wait();
    Input between = prepare(hidden, m, layer.outer.k, layer.inner.width(), nullptr);
    multiply(layer.outer, between.rows, team_.x.get(), LINEAR, input.residual);
    wait();
}

void Worker::embed(int row, const float* table, float scale, int32_t id, int position) {
    int d = model_.shape.d_model;
    const float* place = places != nullptr && model_.shape.planes == 0 ? places + (size_t)position * d : nullptr;
    k_.embed(table + (size_t)id * d, place, scale, d, team_.x.get() + (size_t)row * model_.x_stride());
}

// Rotary positions: the two halves of a query or key are the coordinates of points, turned by their place's angles.
void Worker::turn(float* head, int position) const {
    int planes = model_.shape.planes;
    const float *sine = places + (size_t)position * 2 * planes, *cosine = sine + planes;
    for (int i = 0; i < planes; i++) {
        float left = head[i], right = head[planes + i];
        head[i] = left * cosine[i] - right * sine[i];
        head[planes + i] = right * cosine[i] + left * sine[i];
    }
}

const int32_t* Worker::ramp(int stride, int count) {
    if (stride != ramp_stride_ || (int)ramp_.size() < count) {
        ramp_.resize((size_t)count);
        for (int i = 0; i < count; i++) ramp_[(size_t)i] = i * stride;
        ramp_stride_ = stride;
    }
    return ramp_.data();
}

void Worker::encoder_attention(const std::vector<Source>& sources, int stride) {
    const Side& side = model_.shape.encoder;
    int group = side.heads / side.kv_heads, items = (int)sources.size() * side.kv_heads;
    float* projected = team_.projected.get();
    int heads_width = side.heads * side.width, keys = side.kv_heads * side.width, first = 0;
    for (int item = 0; item < items; item++) {
        const Source& source = sources[(size_t)(item / side.kv_heads)];
        int head = item % side.kv_heads;
        if (item >= from(items) && item < to(items)) {
            float* base = projected + (size_t)first * stride;
            float* k = base + heads_width + head * side.width;
            for (int i = 0; model_.shape.planes > 0 && i < source.length; i++) {
                turn(k + (size_t)i * stride, i);
                for (int h = head * group; h < (head + 1) * group; h++)
                    turn(base + (size_t)i * stride + h * side.width, i);
            }
            Seen seen{k, k + keys, ramp(stride, source.length), source.length};
            for (int i = 0; i < source.length; i++)
                for (int h = head * group; h < (head + 1) * group; h++)
                    k_.attend(base + (size_t)i * stride + h * side.width, seen, side.width, side.score_scale,
                              room(source.length),
                              team_.heads.get() + (size_t)(first + i) * heads_width + h * side.width);
        }
        if (head == side.kv_heads - 1) first += source.length;
    }
}

void Worker::encode(const std::vector<Source>& sources) {
    int tokens = 0;
    for (const Source& source : sources) tokens += source.length;
    if (rank_ == 0) {
        const Side& side = model_.shape.encoder;
        team_.x.fit((size_t)tokens * model_.x_stride());
        team_.projected.fit((size_t)tokens * model_.encoder[0].qkv.width());
        team_.heads.fit((size_t)tokens * side.heads * side.width);
        team_.hidden.fit((size_t)tokens * model_.encoder[0].feed_forward.inner.width());
    }
    wait();
    int row = 0;
    for (const Source& source : sources)
        for (int i = 0; i < source.length; i++, row++)
            if (row >= from(tokens) && row < to(tokens))
                embed(row, model_.source_embedding, model_.shape.source_scale, source.ids[i], i);
    wait();
    for (const EncoderLayer& layer : model_.encoder) {
        Input input = enter(layer.norm, tokens);
        multiply(layer.qkv, input.rows, team_.projected.get());
        wait();
        encoder_attention(sources, layer.qkv.width());
        wait();
        Rows heads = prepare(team_.heads.get(), tokens, layer.out.k, layer.out.k, nullptr).rows;
        multiply(layer.out, heads, team_.x.get(), LINEAR, input.residual);
        wait();
        feed_forward(layer.feed_forward, tokens);
    }
    Rows out = enter(model_.encoder_norm, tokens).rows;
    for (const Source& source : sources) {
        Rows part = out;
        part.m = source.length;
        multiply(model_.memory, part, source.memory);
        out.floats += (size_t)source.length * out.stride;
        if (out.bytes != nullptr) out.bytes += (size_t)source.length * out.stride, out.scale += source.length;
    }
    wait();
}

// A row's new key and value go to their place in the cache, then its query looks at all of its own past.
void Worker::self_attention(const std::vector<Row>& rows, int layer, int stride) {
    const Side& side = model_.shape.decoder;
    int group = side.heads / side.kv_heads, items = (int)rows.size() * side.kv_heads;
    int heads_width = side.heads * side.width, keys = side.kv_heads * side.width;
    for (int item = from(items); item < to(items); item++) {
        int r = item / side.kv_heads, head = item % side.kv_heads;
        const Row& row = rows[(size_t)r];
        float* q = team_.projected.get() + (size_t)r * stride;
        float* k = row.cache[layer] + head * side.width;
        float* fresh = q + heads_width + head * side.width;
        if (model_.shape.planes > 0) {
            turn(fresh, row.position);
            for (int h = head * group; h < (head + 1) * group; h++) turn(q + h * side.width, row.position);
        }
        std::memcpy(k + row.offsets[row.position], fresh, (size_t)side.width * sizeof(float));
        std::memcpy(k + keys + row.offsets[row.position], fresh + keys, (size_t)side.width * sizeof(float));
        Seen seen{k, k + keys, row.offsets, row.position + 1};
        for (int h = head * group; h < (head + 1) * group; h++)
            k_.attend(q + h * side.width, seen, side.width, side.score_scale, room(seen.count),
                      team_.heads.get() + (size_t)r * heads_width + h * side.width);
    }
}

void Worker::cross_attention(const std::vector<Row>& rows, int layer) {
    const Side& side = model_.shape.decoder;
    int group = side.heads / side.kv_heads, items = (int)rows.size() * side.kv_heads;
    int heads_width = side.heads * side.width, keys = side.kv_heads * side.width;
    int stride = model_.decoder[(size_t)layer].cross_query.width();
    for (int item = from(items); item < to(items); item++) {
        int r = item / side.kv_heads, head = item % side.kv_heads;
        const Row& row = rows[(size_t)r];
        const float* q = team_.projected.get() + (size_t)r * stride;
        const float* k = row.memory + (size_t)layer * 2 * keys + head * side.width;
        Seen seen{k, k + keys, ramp(model_.memory.width(), row.length), row.length};
        for (int h = head * group; h < (head + 1) * group; h++)
            k_.attend(q + h * side.width, seen, side.width, side.score_scale, room(seen.count),
                      team_.heads.get() + (size_t)r * heads_width + h * side.width);
    }
}

void Worker::step(const std::vector<Row>& rows, const std::vector<Group>& groups, std::vector<TopK>& tops, Mass* masses,
                  int stride) {
    int m = (int)rows.size();
    if (rank_ == 0) {
        const Side& side = model_.shape.decoder;
        team_.x.fit((size_t)m * model_.x_stride());
        team_.projected.fit((size_t)m * model_.decoder[0].qkv.width());
        team_.heads.fit((size_t)m * side.heads * side.width);
        team_.hidden.fit((size_t)m * model_.decoder[0].feed_forward.inner.width());
    }
    wait();
    for (int r = from(m); r < to(m); r++)
        embed(r, model_.target_embedding, model_.shape.target_scale, rows[(size_t)r].id, rows[(size_t)r].position);
    wait();
    for (int i = 0; i < (int)model_.decoder.size(); i++) {
        const DecoderLayer& layer = model_.decoder[(size_t)i];
        Input input = enter(layer.norm, m);
        multiply(layer.qkv, input.rows, team_.projected.get());
        wait();
        self_attention(rows, i, layer.qkv.width());
        wait();
        Rows heads = prepare(team_.heads.get(), m, layer.out.k, layer.out.k, nullptr).rows;
        multiply(layer.out, heads, team_.x.get(), LINEAR, input.residual);
        wait();
        input = enter(layer.cross_norm, m);
        multiply(layer.cross_query, input.rows, team_.projected.get());
        wait();
        cross_attention(rows, i);
        wait();
        heads = prepare(team_.heads.get(), m, layer.cross_out.k, layer.cross_out.k, nullptr).rows;
        multiply(layer.cross_out, heads, team_.x.get(), LINEAR, input.residual);
        wait();
        feed_forward(layer.feed_forward, m);
    }
    Rows hidden = enter(model_.decoder_norm, m).rows;
    for (const Group& group : groups) write(hidden, group, rows, tops, masses, stride);
    wait();
}

// The output layer, chunk by chunk while the logits are still in the cache: log Σ exp over all, the best of the allowed.
void Worker::write(const Rows& hidden, const Group& group, const std::vector<Row>& rows, std::vector<TopK>& tops,
                   Mass* masses, int stride) {
    const Choice& choice = *group.choice;
    const Matrix& w = *choice.output;
    Rows own = hidden;
    own.m = group.count;
    if (own.floats != nullptr) own.floats += (size_t)group.first * own.stride;
    if (own.bytes != nullptr) own.bytes += (size_t)group.first * own.stride, own.scale += group.first;
    int chunks = choice.chunks(), panels = choice.chunk(), width = panels * PANEL;
    float* logits = logits_.fit((size_t)own.m * width);
    for (int chunk = from(chunks); chunk < to(chunks); chunk++) {
        int first = chunk * panels, column = first * PANEL;
        k_.product(w, own, first, std::min(w.panels, first + panels), {logits, width, first});
        int count = std::min(w.n - column, width), allowed = std::min(count, choice.limit - column);
        for (int i = 0; i < own.m; i++) {
            float* x = logits + (size_t)i * width;
            size_t r = (size_t)(group.first + i);
            masses[r * (size_t)stride + (size_t)(group.chunk + chunk)] = k_.mass(x, count);
            for (int32_t banned : choice.banned)
                if (banned >= column && banned < column + count) x[banned - column] = -__builtin_inff();
            if (rows[r].early && choice.end >= column && choice.end < column + count)
                x[choice.end - column] = -__builtin_inff();
            k_.select(x, allowed, choice.ids != nullptr ? choice.ids + column : nullptr, column, tops[r]);
        }
    }
}

}  // namespace regard
