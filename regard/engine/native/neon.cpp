// The paths of aarch64: vectors of 128 bits with dot products of four bytes, and with products of two rows by two columns
// over eight bytes (i8mm). Before this file: kernels.h; after it: kernels.cpp.
#if defined(__aarch64__)
#include <arm_neon.h>

#include <cmath>

#include "kernels.h"

#if defined(__clang__)
#define DOT "dotprod"
#define I8MM "i8mm"
#else
#define DOT "arch=armv8.2-a+dotprod"
#define I8MM "arch=armv8.2-a+i8mm"
#endif

BEGIN_PATH(neon, DOT)

constexpr const char* NAME = "neon-dot";
constexpr int DEPTH = 4;

#include "neon.inc"

INLINE I dot(I sums, I row, I weights) { return (I)vdotq_s32((int32x4_t)sums, (int8x16_t)row, (int8x16_t)weights); }

#include "dots.inc"
#include "kernels.inc"

END_PATH

BEGIN_PATH(i8mm, I8MM)

constexpr const char* NAME = "neon-i8mm";
constexpr int DEPTH = 8;

#include "neon.inc"

// Sixteen k of M rows by P panels. One instruction gives the sums of two rows and two columns, so rows go in pairs; the
// last one of an odd number is its own partner. Vector p of a row holds columns 4 p ... 4 p + 3.
template <int M, int P>
INLINE void add_products(I (&sums)[M][P * VECTORS], const int8_t* w, size_t panel_size, const uint8_t* a, int stride) {
    UNROLL for (int m = 0; m < M; m += 2) {
        const int other = m + 1 < M ? m + 1 : m;
        int8x16_t rows[2];
        UNROLL for (int half = 0; half < 2; half++)
            rows[half] = vcombine_s8(vld1_s8((const int8_t*)a + (size_t)m * stride + 8 * half),
                                     vld1_s8((const int8_t*)a + (size_t)other * stride + 8 * half));
        UNROLL for (int p = 0; p < P * VECTORS; p++) {
            const int8_t* at = w + p / VECTORS * panel_size + p % VECTORS * 32;
            auto upper = (int64x2_t)sums[m][p], lower = (int64x2_t)sums[other][p];
            auto left = (int32x4_t)vtrn1q_s64(upper, lower), right = (int32x4_t)vtrn2q_s64(upper, lower);
            UNROLL for (int half = 0; half < 2; half++) {
                left = vmmlaq_s32(left, rows[half], vld1q_s8(at + half * 8 * PANEL));
                right = vmmlaq_s32(right, rows[half], vld1q_s8(at + half * 8 * PANEL + 16));
            }
            sums[other][p] = (I)vtrn2q_s64((int64x2_t)left, (int64x2_t)right);
            sums[m][p] = (I)vtrn1q_s64((int64x2_t)left, (int64x2_t)right);
        }
    }
}

#include "kernels.inc"

END_PATH
#endif
