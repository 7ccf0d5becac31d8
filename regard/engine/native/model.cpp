// What a worker does with rows, and the encoder, over rows without padding: each source has its own length, so neighbours
// cost nothing. Before this file: kernels.cpp; after it: decoding.cpp.
#include "model.h"

#include <algorithm>
#include <cstring>

#include "sublayers.h"

namespace regard {

constexpr int LONG = 256;  // places of a source whose queries look together, and rows that are shared out, not columns

void Worker::make_room(int tokens, int rows) {
    auto fit = [&](const Side& side, const Matrix& qkv, const Matrix& inner, size_t count) {
        for (Buffer<float>& x : desk_.x) x.fit(count * (size_t)model_.x_stride());
        desk_.projected.fit(count * (size_t)std::max(qkv.width(), model_.shape.gated ? inner.width() : 0));
        desk_.heads.fit(count * (size_t)(side.heads * side.width));
        desk_.hidden.fit(count * (size_t)inner.width());
    };
    if (model_.reads()) {
        const EncoderLayer& first = model_.encoder[0];
        fit(model_.shape.encoder, first.qkv, first.feed_forward.inner, (size_t)tokens);
    }
    if (model_.writes()) {
        const DecoderLayer& first = model_.decoder[0];
        fit(model_.shape.decoder, first.qkv, first.feed_forward.inner, (size_t)rows);
    }
}

// Many rows are shared out; of few, every part has all, and shares out what is done with them.
Span Worker::rows_of(int m, int part) const {
    if (m < LONG) return {0, m};
    return {from(m, part), to(m, part)};
}

// norm(x) of some rows, or x where there is no norm; row 0 is where it would be. Of few rows every thread makes all for
// itself: cheaper than waiting for parts of it.
const float* Worker::normed(const Norm& norm, const Span& rows) {
    if (norm.gain.empty()) return x();
    const int stride = model_.x_stride();
    float* y = normed_.fit((size_t)rows.end * stride);
    if (normed_for_ == sublayer_ && normed_rows_ == rows) return y;
    for (int i = rows.first; i < rows.end; i++)
        k_.normalise(x() + (size_t)i * stride, norm.gain.data(), norm.moved_by(), model_.shape.eps, model_.shape.d_model,
                     y + (size_t)i * stride);
    normed_for_ = sublayer_, normed_rows_ = rows;
    return y;
}

// The left side of a product; a thread that takes two parts of a piece of work makes it once.
Rows Worker::prepare(const float* floats, const Span& span, int n, int stride) {
    if (prepared_at_ == turn && prepared_rows_ == span) return prepared_;
    const int m = span.end - span.first;
    floats += (size_t)span.first * stride;
    Rows rows{floats, nullptr, nullptr, nullptr, m, stride};
    if (model_.shape.precision == INT8) {
        int padded = (n + PANEL - 1) / PANEL * PANEL;
        uint8_t* bytes = bytes_.fit((size_t)m * stride);
        float* scale = scale_.fit((size_t)m);
        int32_t* zero = zero_.fit((size_t)m);
        for (int i = 0; i < m; i++)
            k_.quantise(floats + (size_t)i * stride, padded, bytes + (size_t)i * stride, scale + i, zero + i);
        rows.bytes = bytes, rows.scale = scale, rows.zero = zero;
    }
    prepared_ = rows, prepared_at_ = turn, prepared_rows_ = span;
    return rows;
}

// The input of a sub-layer. Norm first: x + f(norm(x)). Norm last: norm(x) + f(norm(x)), with the norm of the
// sub-layer before, so that both are one function; weights.py lays the norms out.
Rows Worker::enter(const Norm& norm, const Span& rows) {
    return prepare(normed(norm, rows), rows, model_.shape.d_model, model_.x_stride());
}

// A part of a product with m rows: `x` are the rows of the part. `c` and the residual begin with row 0.
void Worker::multiply(const Matrix& w, const Rows& x, int m, int part, float* c, Activation activation, const float* residual,
                      int residual_stride) {
    const auto first = (size_t)rows_of(m, part).first;
    const int stride = residual == nullptr ? 0 : residual_stride > 0 ? residual_stride : model_.x_stride();
    Target target{c + first * (size_t)w.width(), w.width(), 0, activation,
                  residual != nullptr ? residual + first * (size_t)stride : nullptr, stride};
    if (m < LONG) k_.product(w, x, from(w.panels, part), to(w.panels, part), target);
    else k_.product(w, x, 0, w.panels, target);
}

void Worker::embed(int row, const float* table, float scale, int32_t id, int position) {
    const Norm& norm = model_.embedding_norm;
    int d = model_.shape.d_model;
    const float* places = model_.shape.planes == 0 ? desk_.places : nullptr;
    const float* place = places != nullptr ? places + (size_t)position * d : nullptr;
    float* x = desk_.x[side_].get() + (size_t)row * model_.x_stride();
    k_.embed(table + (size_t)id * d, place, scale, d, x);
    if (!norm.gain.empty()) k_.normalise(x, norm.gain.data(), norm.moved_by(), model_.shape.eps, d, x);
}

// Neighbours share the rows of their table by a hash, which is that of `Bigrams` in regard/layers/embedding.py.
void Worker::add_pair(int row, int32_t before, int32_t id) {
    const int d = model_.shape.d_model;
    const uint32_t mixed = (uint32_t)before * 2654435761u + (uint32_t)id * 2246822519u;
    const float* pair = model_.pairs + (size_t)((mixed >> 9) % (uint32_t)model_.shape.pairs) * d;
    float* x = desk_.x[side_].get() + (size_t)row * model_.x_stride();
    k_.embed(pair, x, model_.shape.pair_scale, d, x);
}

// Rotary positions: the two halves of a query or key are the coordinates of points, turned by their place's angles.
void Worker::turn_head(float* head, int position) const {
    int planes = model_.shape.planes;
    const float *sine = desk_.places + (size_t)position * 2 * planes, *cosine = sine + planes;
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

void Worker::self_attention(const Side& side, const std::vector<Source>& sources, int stride, int part) {
    int group = side.heads / side.kv_heads, items = (int)sources.size() * side.kv_heads;
    int heads_width = side.heads * side.width, keys = side.kv_heads * side.width, first = 0;
    for (int item = 0; item < items; item++) {
        const Source& source = sources[(size_t)(item / side.kv_heads)];
        int head = item % side.kv_heads;
        if (item >= from(items, part) && item < to(items, part)) {
            float* base = desk_.projected.get() + (size_t)first * stride;
            float* k = base + heads_width + head * side.width;
            for (int i = 0; model_.shape.planes > 0 && i < source.length; i++) {
                turn_head(k + (size_t)i * stride, i);
                for (int h = head * group; h < (head + 1) * group; h++)
                    turn_head(base + (size_t)i * stride + h * side.width, i);
            }
            Seen seen{k, k + keys, ramp(stride, source.length), source.length};
            if (source.length >= LONG) {
                take_keys(seen, side.width);
                for (int h = head * group; h < (head + 1) * group; h++)
                    look_together(base + h * side.width, source.length, stride, side,
                                  desk_.heads.get() + (size_t)first * heads_width + h * side.width, heads_width);
            }
            for (int i = 0; source.length < LONG && i < source.length; i++)
                for (int h = head * group; h < (head + 1) * group; h++)
                    k_.attend(base + (size_t)i * stride + h * side.width, seen, side.width, side.score_scale,
                              room(source.length),
                              desk_.heads.get() + (size_t)(first + i) * heads_width + h * side.width);
        }
        if (head == side.kv_heads - 1) first += source.length;
    }
}

static int tokens_of(const std::vector<Source>& sources) {
    int tokens = 0;
    for (const Source& source : sources) tokens += source.length;
    return tokens;
}

// Keys and values that the decoder makes of the encoder's output, a few columns of all sources at a time; each head's lie
// together in the sentence's memory, as they will be read.
void Worker::remember(const std::vector<Source>& sources, int part) {
    const Side& side = model_.shape.decoder;
    const int keys = side.kv_heads * side.width, slice = 4, stride = slice * PANEL, m = tokens_of(sources);
    const Span span = rows_of(m, part);
    const Rows rows = enter(model_.encoder_norm, span);
    const int panels = model_.memory.panels, end = m < LONG ? to(panels, part) : panels;
    float* scratch = logits_.fit((size_t)rows.m * stride);
    for (int first = m < LONG ? from(panels, part) : 0; first < end; first += slice) {
        int last = std::min(end, first + slice), row = 0;
        k_.product(model_.memory, rows, first, last, {scratch, stride, first});
        const float* place = scratch;
        for (const Source& source : sources)
            for (int i = 0; i < source.length; i++, row++) {
                if (row < span.first || row >= span.end) continue;
                for (int panel = first; panel < last; panel++) {
                    int column = panel * PANEL, layer = column / (2 * keys), rest = column % (2 * keys);
                    int head = rest % keys / side.width, value = rest / keys;
                    size_t line = ((size_t)(layer * side.kv_heads + head) * 2 + value) * source.length + i;
                    std::memcpy(source.memory + line * side.width + rest % side.width, place + (panel - first) * PANEL,
                                PANEL * sizeof(float));
                }
                place += stride;
            }
    }
}

// What the encoder's layers make of all places; it stands in x, before the closing norm.
void Worker::read_through(const std::vector<Source>& sources) {
    auto count = [&] { return tokens_of(sources); };
    side_ = 0;
    share([&](int part) {
        int row = 0, begin = from(count(), part), end = to(count(), part);
        for (const Source& source : sources)
            for (int i = 0; i < source.length; i++, row++)
                if (row >= begin && row < end)
                    embed(row, model_.source_embedding, model_.shape.source_scale, source.ids[i], i);
    });
    for (const EncoderLayer& layer : model_.encoder) {
        begin(layer.norm, layer.qkv, desk_.projected, count);
        share([&](int part) { self_attention(model_.shape.encoder, sources, layer.qkv.width(), part); });
        end(layer.norm, layer.out, desk_.heads, layer.out.k, count);
        feed_forward(layer.feed_forward, count);
    }
    sublayer_++;
}

void Worker::encode(const std::vector<Source>& sources) {
    read_through(sources);
    share([&](int part) { remember(sources, part); });
}

void Worker::encode(const std::vector<Source>& sources, Pooling pooling) {
    read_through(sources);
    share([&](int part) { give(sources, pooling, part); });
}

// An encoder's vectors, a part's columns of them. A text without places has zeros.
void Worker::give(const std::vector<Source>& sources, Pooling pooling, int part) {
    const int d = model_.shape.d_model, stride = model_.x_stride(), first = from(d, part), size = to(d, part) - first;
    const float* x = normed(model_.encoder_norm, {0, tokens_of(sources)}) + first;
    for (const Source& source : sources) {
        float* out = source.memory + first;
        for (int j = 0; j < source.asked_count; j++)
            std::memcpy(out + (size_t)j * d, x + (size_t)source.asked[j] * stride, (size_t)size * sizeof(float));
        if (pooling != PLACES) {
            for (int c = 0; c < size; c++) out[c] = source.length > 0 ? x[c] : 0;
            const int count = pooling == FIRST ? 1 : source.length;
            for (int i = 1; i < count; i++) {
                const float* row = x + (size_t)i * stride;
                for (int c = 0; c < size; c++) out[c] = pooling == MEAN ? out[c] + row[c] : std::max(out[c], row[c]);
            }
            for (int c = 0; pooling == MEAN && c < size; c++) out[c] /= (float)std::max(1, count);
        }
        x += (size_t)source.length * stride;
    }
}

}  // namespace regard
