// Instructions that the processor at hand does not have, spelled out in plain loops, so that the paths around them can be
// tested: AVX-VNNI's dot product and AMX's tiles. Built into the program of paths.cpp alone, with REGARD_EMULATE.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace emulate {

__attribute__((target("avx2"))) inline __m256i dots(__m256i sums, __m256i row, __m256i weights) {
    int32_t totals[8];
    uint8_t left[32];
    int8_t right[32];
    std::memcpy(totals, &sums, sizeof totals);
    std::memcpy(left, &row, sizeof left);
    std::memcpy(right, &weights, sizeof right);
    for (int i = 0; i < 32; i++) totals[i / 4] += left[i] * right[i];
    std::memcpy(&sums, totals, sizeof totals);
    return sums;
}

// Eight tiles of sixteen rows of 64 bytes, once their shapes were given.
inline thread_local uint8_t tiles[8][16][64];
inline thread_local bool shaped = false;

inline void shape(const void* config) {
    auto* bytes = (const uint8_t*)config;
    shaped = bytes[0] == 1;
    for (int i = 0; i < 8; i++) shaped = shaped && bytes[16 + 2 * i] == 64 && bytes[17 + 2 * i] == 0 && bytes[48 + i] == 16;
}
inline void load(int tile, const void* from, size_t stride) {
    for (int i = 0; shaped && i < 16; i++) std::memcpy(tiles[tile][i], (const uint8_t*)from + (size_t)i * stride, 64);
}
inline void store(int tile, void* to, size_t stride) {
    for (int i = 0; shaped && i < 16; i++) std::memcpy((uint8_t*)to + (size_t)i * stride, tiles[tile][i], 64);
}
inline void dots(int sums, int rows, int weights) {
    for (int i = 0; shaped && i < 16; i++)
        for (int j = 0; j < 16; j++) {
            int32_t total;
            std::memcpy(&total, &tiles[sums][i][4 * j], 4);
            for (int k = 0; k < 64; k++) total += tiles[rows][i][k] * (int8_t)tiles[weights][k / 4][4 * j + k % 4];
            std::memcpy(&tiles[sums][i][4 * j], &total, 4);
        }
}

}  // namespace emulate

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbusd
#define _mm256_dpbusd_avx_epi32 emulate::dots
#define _tile_loadconfig(config) emulate::shape(config)
#define _tile_release() (emulate::shaped = false)
#define _tile_zero(tile) std::memset(emulate::tiles[tile], 0, sizeof emulate::tiles[tile])
#define _tile_loadd(tile, from, stride) emulate::load(tile, from, (size_t)(stride))
#define _tile_stored(tile, to, stride) emulate::store(tile, to, stride)
#define _tile_dpbusd(sums, rows, weights) emulate::dots(sums, rows, weights)
