// The two products of a sub-layer, the feed-forward network, and how heads are shared out: what model.cpp, decoding.cpp,
// filling.cpp and drafting.cpp are made of. Before this file: model.h, whose `Worker` has them.
#pragma once

#include "model.h"

namespace regard {

// A sub-layer's first product: of the rows, normed, to `c`.
template <class Count>
void Worker::begin(const Norm& norm, const Matrix& w, Buffer<float>& c, const Count& count, Activation activation) {
    sublayer_++;
    share([&](int part) {
        const int m = count();
        multiply(w, enter(norm, rows_of(m, part)), m, part, c.get(), activation);
    });
}

// Its last one: of what stands in `from`, added to the rows; it goes to the other side, since others may still read this one.
template <class Count>
void Worker::end(const Norm& norm, const Matrix& w, const Buffer<float>& from, int stride, const Count& count) {
    share([&](int part) {
        const int m = count();
        const Span rows = rows_of(m, part);
        const float* residual = model_.shape.post_norm ? normed(norm, rows) : x();
        multiply(w, prepare(from.get(), rows, w.k, stride), m, part, desk_.x[1 - side_].get(), LINEAR, residual);
    });
    side_ = 1 - side_;
}

template <class Count>
void Worker::feed_forward(const FeedForward& layer, const Count& count) {
    if (model_.shape.gated) gated(layer, count);
    else begin(layer.norm, layer.inner, desk_.hidden, count, (Activation)model_.shape.activation);
    end(layer.norm, layer.outer, desk_.hidden, layer.inner.width() / (model_.shape.gated ? 2 : 1), count);
}

// act(x W) ⊙ x V: a part has whole pairs of panels, so that its thread can close them at once.
template <class Count>
void Worker::gated(const FeedForward& layer, const Count& count) {
    sublayer_++;
    share([&](int part) {
        const int pairs = layer.inner.panels / 2, first = from(pairs, part), some = to(pairs, part) - first;
        const int wide = layer.inner.width(), m = count();
        float* both = desk_.projected.get();
        k_.product(layer.inner, enter(layer.norm, {0, m}), 2 * first, 2 * (first + some), {both, wide});
        for (int i = 0; i < m; i++)
            k_.gate(both + (size_t)i * wide + 2 * first * PANEL, (Activation)model_.shape.activation, some * PANEL,
                    desk_.hidden.get() + (size_t)i * (wide / 2) + first * PANEL);
    });
}

// Rows of one sentence stand together; they are taken head by head, so that what they share is read once.
template <class Work>
void Worker::by_head(const std::vector<Row>& rows, int part, const Work& work) {
    int heads = model_.shape.decoder.kv_heads, m = (int)rows.size(), item = 0;
    const int begin = from(m * heads, part), end = to(m * heads, part);
    for (int first = 0, last = 0; first < m; first = last) {
        while (last < m && rows[(size_t)last].memory == rows[(size_t)first].memory) last++;
        for (int head = 0; head < heads; head++)
            for (int r = first; r < last; r++, item++)
                if (item >= begin && item < end) work(r, head);
    }
}

}  // namespace regard
