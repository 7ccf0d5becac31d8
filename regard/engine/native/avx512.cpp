// The paths with vectors of 512 bits and dot products of bytes: AVX-512 with VNNI, and the same with tiles (AMX).
// Before this file: kernels.h; after it: kernels.cpp.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cmath>

#include "kernels.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")
#endif
namespace regard {
namespace avx512 {

constexpr const char* NAME = "avx512-vnni";

#include "avx512.inc"
#include "kernels.inc"

}  // namespace avx512
}  // namespace regard
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#if REGARD_NEW_COMPILER
#if REGARD_EMULATE  // a test without such a processor: the tiles' instructions spelled out
#include "emulate.h"
#endif
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,amx-tile,amx-int8"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,amx-tile,amx-int8")
#endif
#define REGARD_TILES 1
namespace regard {
namespace amx {

constexpr const char* NAME = "amx-int8";

#include "avx512.inc"
#include "kernels.inc"

}  // namespace amx
}  // namespace regard
#undef REGARD_TILES
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
#endif
