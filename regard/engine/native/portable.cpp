// The path of any CPU: vectors as the compiler makes them, dot products of bytes spelled out.
// Before this file: kernels.h; after it: kernels.cpp.
#include <cmath>

#include "kernels.h"

namespace regard {
namespace portable {

constexpr const char* NAME = "portable";
constexpr int LANES = 8, DEPTH = 4, WEIGHT_LIMIT = 127, ROW_LOW = 0, ROW_HIGH = 255;
constexpr int FLOAT_ROWS = 4, FLOAT_SUMS = 8, BYTE_ROWS = 2, BYTE_SUMS = 4, PACKED = LANES;

#include "vectors.inc"

INLINE F multiply_add(F a, F b, F c) { return a * b + c; }

INLINE I dot(I sums, I row, I weights) {
    auto* bytes = (const uint8_t*)&row;
    auto* signs = (const int8_t*)&weights;
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < 4; j++) sums[i] += bytes[4 * i + j] * signs[4 * i + j];
    return sums;
}

INLINE void to_bytes(const float* x, float factor, int32_t zero, uint8_t* y) { plain_bytes(x, factor, zero, y); }

INLINE void four_sums(const F (&sums)[4], float scale, float* out) {
    for (int j = 0; j < 4; j++) out[j] = scale * sum(sums[j]);
}

INLINE bool any_at_least(F x, float bar) { return largest(x) >= bar; }

#include "dots.inc"
#include "kernels.inc"

}  // namespace portable
}  // namespace regard
