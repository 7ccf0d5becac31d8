// The inner loops for each kind of CPU, the packing of matrices, and the choice at loading.
// Before this file: kernels.h; after it: model.cpp.
#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace regard {

void TopK::start(int size) {
    best.clear();
    k = size;
    bar = -INFINITY;
}

void TopK::offer(float value, int32_t id) {
    size_t at = best.size();
    while (at > 0 && (best[at - 1].value < value || (best[at - 1].value == value && best[at - 1].id > id))) at--;
    best.insert(best.begin() + (ptrdiff_t)at, {value, id});
    if ((int)best.size() > k) best.pop_back();
    if ((int)best.size() == k) bar = best.back().value;
}

// The nearest number of 16 bits, of two the even one.
static uint16_t halved(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (std::isnan(value)) return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// From rows of k to panels, each number as `as` makes it.
template <class T, class As>
static void to_panels(const Matrix& m, const float* weight, T* to, As as) {
    for (int i = 0; i < m.n; i++)
        for (int j = 0; j < m.k; j++)
            to[((size_t)(i / PANEL) * m.k + j) * PANEL + i % PANEL] = as(weight[(size_t)i * m.k + j]);
}

void Matrix::pack(const float* weight, const float* bias_or_null, int rows, int columns, Precision wanted) {
    n = rows, k = columns, panels = (rows + PANEL - 1) / PANEL, precision = wanted;
    bias.fit((size_t)width());
    if (bias_or_null != nullptr) std::memcpy(bias.get(), bias_or_null, (size_t)n * sizeof(float));
    size_t size = (size_t)width() * (size_t)k;
    if (precision == FP32) return to_panels(*this, weight, floats.fit(size), [](float x) { return x; });
    if (precision == BF16) return to_panels(*this, weight, halves.fit(size), halved);
    int8_t* to = bytes.fit((size_t)width() * (size_t)quads() * 4);
    scale.fit((size_t)width());
    start.fit((size_t)width());
    for (int i = 0; i < n; i++) {
        const float* row = weight + (size_t)i * k;
        float peak = 0;
        for (int j = 0; j < k; j++) peak = std::max(peak, std::fabs(row[j]));
        scale.get()[i] = peak / (float)WEIGHT_LIMIT;
        float factor = peak > 0 ? (float)WEIGHT_LIMIT / peak : 0.0f;
        int32_t total = 0;
        for (int j = 0; j < k; j++) {
            auto value = (int8_t)std::lrintf(row[j] * factor);
            to[at_byte(i, j)] = value;
            total += value;
        }
        start.get()[i] = -ROW_OFFSET * total;
    }
}

size_t Matrix::at_byte(int column, int place) const {
    size_t quad = (size_t)(column / PANEL) * (size_t)quads() + (size_t)(place / 4);
    return quad * 4 * PANEL + (size_t)(column % PANEL * 4 + place % 4);
}

// One column in panels of another matrix.
template <class T>
static void copy_column(const T* from, int column, T* to, int place, int k) {
    from += (size_t)(column / PANEL) * k * PANEL + column % PANEL;
    to += (size_t)(place / PANEL) * k * PANEL + place % PANEL;
    for (int j = 0; j < k; j++) to[j * PANEL] = from[j * PANEL];
}

// What the memory held before stays in the last panel's columns from n on; nobody reads their results.
void Matrix::shape_like(const Matrix& from, int columns) {
    n = columns, k = from.k, panels = (columns + PANEL - 1) / PANEL, precision = from.precision;
    bias.fit((size_t)width());
    scale.fit((size_t)width());
    start.fit((size_t)width());
    if (precision == INT8) bytes.fit((size_t)width() * (size_t)quads() * 4);
    if (precision == FP32) floats.fit((size_t)width() * (size_t)k);
    if (precision == BF16) halves.fit((size_t)width() * (size_t)k);
}

void Matrix::flatten() {
    if (precision != INT8) return;
    int8_t* to = flat.fit((size_t)n * (size_t)quads() * 4);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < quads(); j++)
            std::memcpy(to + ((size_t)i * quads() + j) * 4, bytes.get() + at_byte(i, 4 * j), 4);
}

// The fours of sixteen columns, one of each column in turn.
static void interleave(const int8_t* const* columns, int depth, int8_t* __restrict to) {
    for (int i = 0; i < depth; i++)
        for (int j = 0; j < PANEL; j++, to += 4) std::memcpy(to, columns[j] + i * 4, 4);
}

void Matrix::take(const Matrix& from, const int32_t* chosen, int from_panel, int to_panel) {
    const int depth = quads();
    for (int panel = from_panel; panel < to_panel; panel++) {
        int first = panel * PANEL, count = std::min(n - first, (int)PANEL);
        const int8_t* columns[PANEL];
        for (int i = 0; i < count; i++) {
            int to = first + i, column = chosen[to];
            bias.get()[to] = from.bias.get()[column];
            if (precision == FP32) copy_column(from.floats.get(), column, floats.get(), to, k);
            if (precision == BF16) copy_column(from.halves.get(), column, halves.get(), to, k);
            if (precision != INT8) continue;
            scale.get()[to] = from.scale.get()[column];
            start.get()[to] = from.start.get()[column];
            columns[i] = from.flat.get() + (size_t)column * (size_t)depth * 4;
        }
        if (precision != INT8) continue;
        std::fill(columns + count, columns + PANEL, columns[0]);  // nobody reads what comes of these
        interleave(columns, depth, bytes.get() + at_byte(first, 0));
    }
}

#define REGARD_NAME "portable"
namespace portable {
#include "kernels.inc"
}
#undef REGARD_NAME

#if defined(__x86_64__)
#define REGARD_AVX2
#define REGARD_NAME "avx2"
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
namespace avx2 {
#include "kernels.inc"
}
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef REGARD_AVX2
#undef REGARD_NAME
#endif

const Kernels& kernels() {
#if defined(__x86_64__)
    static const bool fast = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    static const bool plain = std::getenv("REGARD_PLAIN") != nullptr;
    if (fast && !plain) return avx2::table;
#endif
    return portable::table;
}

}  // namespace regard
