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
    while (at > 0 && best[at - 1].value < value) at--;
    best.insert(best.begin() + (ptrdiff_t)at, {value, id});
    if ((int)best.size() > k) best.pop_back();
    if ((int)best.size() == k) bar = best.back().value;
}

void Matrix::pack(const float* weight, const float* bias_or_null, int rows, int columns, bool as_int8) {
    n = rows, k = columns, panels = (rows + PANEL - 1) / PANEL, int8 = as_int8;
    bias.fit((size_t)width());
    if (bias_or_null != nullptr) std::memcpy(bias.get(), bias_or_null, (size_t)n * sizeof(float));
    if (!int8) {
        float* to = floats.fit((size_t)width() * (size_t)k);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < k; j++)
                to[((size_t)(i / PANEL) * k + j) * PANEL + i % PANEL] = weight[(size_t)i * k + j];
        return;
    }
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

// What the memory held before stays in the last panel's columns from n on; nobody reads their results.
void Matrix::take(const Matrix& from, const int32_t* chosen, int count) {
    n = count, k = from.k, panels = (count + PANEL - 1) / PANEL, int8 = from.int8;
    bias.fit((size_t)width());
    scale.fit((size_t)width());
    start.fit((size_t)width());
    if (int8) bytes.fit((size_t)width() * (size_t)quads() * 4);
    else floats.fit((size_t)width() * (size_t)k);
    for (int i = 0; i < count; i++) {
        int column = chosen[i];
        bias.get()[i] = from.bias.get()[column];
        if (int8) {
            scale.get()[i] = from.scale.get()[column];
            start.get()[i] = from.start.get()[column];
            const int8_t* a = from.bytes.get() + from.at_byte(column, 0);
            int8_t* b = bytes.get() + at_byte(i, 0);
            for (int j = 0; j < quads(); j++) std::memcpy(b + j * 4 * PANEL, a + j * 4 * PANEL, 4);
        } else {
            const float* a = from.floats.get() + (size_t)(column / PANEL) * k * PANEL + column % PANEL;
            float* b = floats.get() + (size_t)(i / PANEL) * k * PANEL + i % PANEL;
            for (int j = 0; j < k; j++) b[j * PANEL] = a[j * PANEL];
        }
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
