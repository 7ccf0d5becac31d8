// Long sources: many queries of one head look together, so that each key and value is read once for all of them. In int8
// their products are of bytes too, and so are the weights between. Before this file: model.h; after it: model.cpp.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "model.h"

namespace regard {

namespace {

constexpr int TILE = 48;  // queries: whole tiles of every path's products

// Bytes of one column of a matrix, which lie DEPTH by DEPTH.
template <int DEPTH>
void spread_column(const int8_t* bytes, int k, int8_t* to) {
    for (int c = 0; c < k; c += DEPTH, to += DEPTH * PANEL) std::memcpy(to, bytes + c, DEPTH);
}

// DEPTH rows (DEPTH, n), turned over: `to` is where the first column has them, `panel` bytes lie from panel to panel.
template <int DEPTH>
void spread_rows(const int8_t* rows, int n, int8_t* to, size_t panel, int32_t* total) {
    for (int first = 0; first < n; first += PANEL, to += panel)
        for (int c = 0; c < PANEL; c++) {
            int32_t sum = 0;
            for (int d = 0; d < DEPTH; d++) sum += to[c * DEPTH + d] = rows[d * n + first + c];
            total[first + c] += sum;
        }
}

}  // namespace

// Bytes of six bits are too few here.
bool Worker::looks_in_bytes() const { return model_.shape.precision == INT8 && k_.weight_limit == 127; }

// Keys (count, width) and values, turned over, as two matrices.
void Worker::take_keys(const Seen& seen, int width) {
    if (looks_in_bytes()) {
        take_key_bytes(seen, width);
        return take_value_bytes(seen, width);
    }
    float* own = taken_.fit((size_t)seen.count * width);
    for (int i = 0; i < seen.count; i++)
        std::memcpy(own + (size_t)i * width, seen.k + seen.offsets[i], (size_t)width * sizeof(float));
    keys_.pack(own, nullptr, seen.count, width, FP32, k_);
    for (int i = 0; i < seen.count; i++)
        for (int c = 0; c < width; c++) own[(size_t)c * seen.count + i] = seen.v[seen.offsets[i] + c];
    values_.pack(own, nullptr, width, seen.count, FP32, k_);
}

// A key is a column of its matrix, with a scale of its own.
void Worker::take_key_bytes(const Seen& seen, int width) {
    keys_.shape(seen.count, width, INT8, k_.depth);
    std::vector<float> factors((size_t)width);
    std::vector<int8_t> bytes((size_t)width);
    const auto spread = k_.depth == 4 ? spread_column<4> : spread_column<8>;
    for (int i = 0; i < seen.count; i++) {
        const float *key = seen.k + seen.offsets[i], peak = k_.peak(key, width);
        std::fill(factors.begin(), factors.end(), peak > 0 ? 127 / peak : 0.0f);
        k_.to_signed(key, factors.data(), width, bytes.data());
        int32_t total = 0;
        for (int8_t byte : bytes) total += byte;
        keys_.scale.get()[i] = peak / 127, keys_.total.get()[i] = total;
        spread(bytes.data(), width, keys_.bytes.get() + keys_.at_byte(i, 0));
    }
}

// A place of the values' vectors is a column, and what lies beyond the last key is zero.
void Worker::take_value_bytes(const Seen& seen, int width) {
    values_.shape(width, seen.count, INT8, k_.depth);
    const int depth = values_.depth;
    std::vector<float> factors((size_t)width), peaks((size_t)width);
    std::vector<int8_t> bytes((size_t)(width * depth));
    const auto spread = depth == 4 ? spread_rows<4> : spread_rows<8>;
    for (int i = 0; i < seen.count; i++) {
        const float* value = seen.v + seen.offsets[i];
        for (int c = 0; c < width; c++) peaks[(size_t)c] = std::max(peaks[(size_t)c], std::fabs(value[c]));
    }
    for (int c = 0; c < width; c++) {
        factors[(size_t)c] = peaks[(size_t)c] > 0 ? 127 / peaks[(size_t)c] : 0;
        values_.scale.get()[c] = peaks[(size_t)c] / 127, values_.total.get()[c] = 0;
    }
    for (int i = 0; i < values_.padded(); i += depth) {
        for (int d = 0; d < depth; d++) {
            int8_t* row = bytes.data() + d * width;
            if (i + d < seen.count) k_.to_signed(seen.v + seen.offsets[i + d], factors.data(), width, row);
            else std::memset(row, 0, (size_t)width);
        }
        spread(bytes.data(), width, values_.bytes.get() + values_.at_byte(0, i), (size_t)values_.padded() * PANEL,
               values_.total.get());
    }
}

// What `attend` does, for TILE queries at a time.
void Worker::look_together(const float* q, int rows, int stride, const Side& side, float* out, int out_stride) {
    const int width = side.width, wide = keys_.width();
    float* tile = tile_.fit((size_t)TILE * (width + wide));
    float* scores = tile + (size_t)TILE * width;
    if (looks_in_bytes()) return look_in_bytes(q, rows, stride, side, scores, out, out_stride);
    for (int begin = 0; begin < rows; begin += TILE) {
        const int m = std::min(TILE, rows - begin);
        float factors[TILE], *to = out + (size_t)begin * out_stride;
        for (int i = 0; i < m; i++)
            for (int c = 0; c < width; c++)
                tile[(size_t)i * width + c] = q[(size_t)(begin + i) * stride + c] * side.score_scale;
        k_.product(keys_, {tile, nullptr, nullptr, nullptr, m, width}, 0, keys_.panels, {scores, wide});
        for (int i = 0; i < m; i++) factors[i] = k_.soften(scores + (size_t)i * wide, keys_.n);
        k_.product(values_, {scores, nullptr, nullptr, nullptr, m, wide}, 0, values_.panels, {to, out_stride});
        for (int i = 0; i < m; i++)
            for (int c = 0; c < width; c++) to[(size_t)i * out_stride + c] *= factors[i];
    }
}

void Worker::look_in_bytes(const float* q, int rows, int stride, const Side& side, float* scores, float* out,
                           int out_stride) {
    const int width = side.width, wide = keys_.width(), longest = std::max(width, wide);
    uint8_t* bytes = looking_.fit((size_t)TILE * longest);
    float scale[TILE];
    int32_t zero[TILE];
    for (int begin = 0; begin < rows; begin += TILE) {
        const int m = std::min(TILE, rows - begin);
        for (int i = 0; i < m; i++) {
            k_.quantise(q + (size_t)(begin + i) * stride, width, bytes + (size_t)i * width, scale + i, zero + i);
            scale[i] *= side.score_scale;
        }
        k_.product(keys_, {nullptr, bytes, scale, zero, m, width}, 0, keys_.panels, {scores, wide});
        for (int i = 0; i < m; i++) {
            scale[i] = k_.soften_bytes(scores + (size_t)i * wide, keys_.n, bytes + (size_t)i * wide);
            zero[i] = k_.row_low;
        }
        k_.product(values_, {nullptr, bytes, scale, zero, m, wide}, 0, values_.panels,
                   {out + (size_t)begin * out_stride, out_stride});
    }
}

}  // namespace regard
