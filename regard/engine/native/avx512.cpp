// The paths with vectors of 512 bits and dot products of bytes: AVX-512 with VNNI, and the same with tiles (AMX).
// Before this file: kernels.h; after it: kernels.cpp.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cmath>

#include "kernels.h"

BEGIN_PATH(avx512, "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")

constexpr const char* NAME = "avx512-vnni";

#include "avx512.inc"
#include "kernels.inc"

END_PATH

#if REGARD_NEW_COMPILER
#if REGARD_EMULATE  // a test without such a processor: the tiles' instructions spelled out
#include "emulate.h"
#endif
#define REGARD_TILES 1
BEGIN_PATH(amx, "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,amx-tile,amx-int8")

constexpr const char* NAME = "amx-int8";

#include "avx512.inc"
#include "kernels.inc"

END_PATH
#undef REGARD_TILES
#endif
#endif
