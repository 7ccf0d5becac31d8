// From the caller's tensors to a model in packed weights. Before this file: kernels.cpp; after it: model.cpp.
#include "model.h"

#include <stdexcept>

namespace regard {

namespace {

// Takes the tensors in the order that regard/engine/weights.py lays them out.
struct Reader {
    const Tensor* next;
    const Tensor* end;
    Precision precision;
    const Kernels& path;

    const Tensor& take() {
        if (next == end) throw std::invalid_argument("too few tensors");
        return *next++;
    }
    void read(Norm& norm) {
        const Tensor& t = take();
        if (t.weight == nullptr) return;
        norm.gain.assign(t.weight, t.weight + t.rows);
        if (t.bias != nullptr) norm.shift.assign(t.bias, t.bias + t.rows);
    }
    void read(Matrix& matrix) {
        const Tensor& t = take();
        if (t.weight == nullptr) return;
        matrix.pack(t.weight, t.bias, t.rows, t.columns, precision, path);
    }
    void read(FeedForward& layer) {
        read(layer.norm);
        read(layer.inner);
        read(layer.outer);
    }
};

}  // namespace

Model::Model(const Shape& given, const Tensor* tensors, int count, const Kernels& path)
    : shape(given), kernels(path), encoder((size_t)given.encoder.layers), decoder((size_t)given.decoder.layers) {
    Reader reader{tensors, tensors + count, (Precision)given.precision, path};
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
        if (reads()) {
            reader.read(layer.cross_norm);
            reader.read(layer.cross_query);
            reader.read(layer.cross_out);
        }
        reader.read(layer.feed_forward);
    }
    reader.read(encoder_norm);
    reader.read(decoder_norm);
    if (reads() && writes()) reader.read(memory);
    if (writes()) reader.read(output);
    if (given.drafts > 0)
        for (Matrix* each : {&drafter.query, &drafter.inner, &drafter.outer, &drafter.narrow, &drafter.output})
            reader.read(*each);
    reader.read(embedding_norm);
    source_embedding = reader.take().weight;
    target_embedding = reader.take().weight;
    pairs = reader.take().weight;
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

}  // namespace regard
