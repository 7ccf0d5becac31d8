// The paths with vectors of 256 bits: AVX2 with FMA, and the same with dot products of bytes (AVX-VNNI).
// Before this file: kernels.h; after it: kernels.cpp.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cmath>

#include "kernels.h"

BEGIN_PATH(avx2, "avx2,fma")

// Bytes are not used whole: eight products of 127 and 32 are the most that 16 bits can sum, and summing eight before
// widening is what makes int8 fast on a CPU without dot products of bytes.
constexpr const char* NAME = "avx2";
constexpr int LANES = 8, DEPTH = 4, WEIGHT_LIMIT = 32, ROW_LOW = 0, ROW_HIGH = 127;
constexpr int FLOAT_ROWS = 6, FLOAT_SUMS = 12, BYTE_ROWS = 3, BYTE_SUMS = 6;

#include "vectors.inc"
#include "avx256.inc"
#undef UNROLL
#define UNROLL  // sixteen registers are too few for sums and parts of them, so that the sums are better left in memory

// Sixteen k of M rows by P panels: products are summed in 16 bits, eight to a sum, then widened.
template <int M, int P>
INLINE void add_products(I (&sums)[M][2 * P], const int8_t* w, size_t panel_size, const uint8_t* a, int stride) {
    __m256i parts[M][2 * P];
    for (int q = 0; q < 4; q++) {
        __m256i weights[2 * P];
        for (int p = 0; p < 2 * P; p++)
            weights[p] = _mm256_loadu_si256((const __m256i*)(w + (p / 2) * panel_size + p % 2 * 32 + q * 4 * PANEL));
        for (int m = 0; m < M; m++) {
            __m256i row = (__m256i)spread(a + (size_t)m * stride + 4 * q);
            for (int p = 0; p < 2 * P; p++) {
                __m256i products = _mm256_maddubs_epi16(row, weights[p]);
                parts[m][p] = q == 0 ? products : _mm256_add_epi16(parts[m][p], products);
                __asm__("" : "+x"(parts[m][p]));  // in this order: others need more registers than there are
            }
        }
    }
    for (int m = 0; m < M; m++)
        for (int p = 0; p < 2 * P; p++)
            sums[m][p] = sums[m][p] + (I)_mm256_madd_epi16(parts[m][p], _mm256_set1_epi16(1));
}

#include "kernels.inc"

END_PATH

#if REGARD_NEW_COMPILER
#if REGARD_EMULATE  // a test without such a processor: the instruction spelled out
#include "emulate.h"
#endif
BEGIN_PATH(avx_vnni, "avx2,fma,avxvnni")

constexpr const char* NAME = "avx-vnni";
constexpr int LANES = 8, DEPTH = 4, WEIGHT_LIMIT = 127, ROW_LOW = 0, ROW_HIGH = 255;
constexpr int FLOAT_ROWS = 6, FLOAT_SUMS = 12, BYTE_ROWS = 6, BYTE_SUMS = 12;

#include "vectors.inc"
#include "avx256.inc"

INLINE I dot(I sums, I row, I weights) {
    return (I)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)row, (__m256i)weights);
}

#include "dots.inc"
#include "kernels.inc"

END_PATH
#endif
#endif
