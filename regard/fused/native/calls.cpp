// The calls that Python makes, and the threads: pieces of work are handed out one by one to the threads that torch
// itself computes with, whose OpenMP runtime is passed in; a second one would fight the first for the cores.
// Before this file: loops.h, vectors.inc, loops.inc; after it: regard/fused/library.py.

#if defined(__x86_64__) && !defined(__clang__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "loops.h"

namespace regard {

#define LANES 4
#define WIDE 2
namespace portable {
#include "vectors.inc"
#include "loops.inc"
}  // namespace portable
#undef LANES
#undef WIDE

#if defined(__x86_64__) && !defined(__clang__)
#define LANES 8
#define WIDE 2
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#include "vectors.inc"
#include "loops.inc"
}  // namespace avx2
#pragma GCC pop_options
#undef LANES
#undef WIDE

#define LANES 16
#define WIDE 4
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma")
namespace avx512 {
#include "vectors.inc"
#include "loops.inc"
}  // namespace avx512
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma")
namespace dots {
#include "vectors.inc"
#include "muon.inc"
}  // namespace dots
#pragma GCC pop_options
#undef LANES
#undef WIDE
#endif

using Run = void (*)(void (*)(void*), void*, unsigned, unsigned);  // GOMP_parallel

static Run run = nullptr;
static const Loops* loops = &portable::table;

constexpr int64_t ROWS = 64;          // of a norm or a loss in one piece
constexpr int64_t ELEMENTS = 1 << 15; // of dropout or a gradient in one piece
constexpr int64_t SMALL = 1 << 15;    // numbers below which waking a thread costs more than it brings

// OpenMP hands work over and waits for all of it; a sanitizer, which did not build it, has to be told.
#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void*), __tsan_release(void*);
static void given(void* work) { __tsan_release(work); }
static void taken(void* work) { __tsan_acquire(work); }
#else
static void given(void*) {}
static void taken(void*) {}
#endif

template <class F>
struct Work {
    F f;
    int64_t pieces;
    std::atomic<int64_t> next{0};
    static void take(void* self) {
        taken(self);
        auto& work = *static_cast<Work*>(self);
        for (int64_t i; (i = work.next.fetch_add(1)) < work.pieces;) work.f(i);
        given(self);
    }
};

// f(0) to f(pieces - 1), by several threads where `numbers`, the size of it all, is worth it.
template <class F>
static void each(int threads, int64_t pieces, int64_t numbers, F f) {
    Work<F> work{f, pieces};
    if (run == nullptr || threads < 2 || pieces < 2 || numbers < SMALL) return Work<F>::take(&work);
    given(&work);
    run(Work<F>::take, &work, (unsigned)threads, 0);
    taken(&work);
}

// `count` in pieces of `size`: f(piece, from, to).
template <class F>
static void split(int threads, int64_t count, int64_t size, int64_t numbers, F f) {
    each(threads, (count + size - 1) / size, numbers, [&](int64_t piece) {
        int64_t from = piece * size, to = from + size < count ? from + size : count;
        f(piece, from, to);
    });
}

}  // namespace regard

using namespace regard;

#define CALL extern "C" __attribute__((visibility("default")))

CALL int32_t regard_fused_version() { return 2; }

CALL int64_t regard_fused_piece() { return ROWS; }

// The widest path up to `widest` (0 portable, 1 AVX2, 2 AVX-512) that this processor says it has; which it is.
CALL int32_t regard_fused_begin(void* parallel, int32_t widest) {
    run = (Run)parallel;
    loops = &portable::table;
#if defined(__x86_64__) && !defined(__clang__)
    bool has512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    bool has2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (widest >= 2 && has512) return loops = &avx512::table, 2;
    if (widest >= 1 && has2) return loops = &avx2::table, 1;
#endif
    return 0;
}

CALL void regard_fused_attend(int32_t threads, const Attention* a, int32_t back) {
    int64_t numbers = a->rows * a->heads * a->queries * a->keys * 8;
    auto f = back ? loops->attend_back : loops->attend;
    each(threads, a->rows * a->heads, numbers, [&](int64_t piece) { f(*a, piece); });
}

CALL void regard_fused_norm(int32_t threads, const Norm* n, int32_t back) {
    split(threads, n->rows, ROWS, n->rows * n->width, [&](int64_t piece, int64_t from, int64_t to) {
        if (back) return loops->norm_back(*n, piece, from, to);
        loops->norm(*n, from, to);
    });
}

CALL void regard_fused_dropout(int32_t threads, const Dropout* d) {
    split(threads, d->size, ELEMENTS, d->size, [&](int64_t, int64_t from, int64_t to) { loops->dropout(*d, from, to); });
}

CALL void regard_fused_turn(int32_t threads, const Turn* t) {
    each(threads, t->rows, t->rows * t->length * t->heads * t->width, [&](int64_t row) { loops->turn(*t, row); });
}

CALL void regard_fused_cross_entropy(int32_t threads, const CrossEntropy* c) {
    split(threads, c->rows, 8, c->rows * c->width,
          [&](int64_t, int64_t from, int64_t to) { loops->cross_entropy(*c, from, to); });
}

// Pieces of several tensors, for threads to share.
static std::vector<Span> pieces_of(const Span* spans, int64_t count) {
    std::vector<Span> pieces;
    for (int64_t i = 0; i < count; i++)
        for (int64_t from = 0; from < spans[i].size; from += ELEMENTS)
            pieces.push_back({spans[i].data + from, std::min(ELEMENTS, spans[i].size - from)});
    return pieces;
}

CALL void regard_fused_norms(int32_t threads, const Span* spans, int64_t count, float* norms) {
    std::vector<Span> pieces = pieces_of(spans, count);
    std::vector<float> sums(pieces.size());
    int64_t many = (int64_t)pieces.size();
    each(threads, many, many * ELEMENTS, [&](int64_t piece) { sums[piece] = loops->squares(pieces[piece]); });
    for (int64_t i = 0, piece = 0; i < count; i++) {
        double total = 0;
        for (int64_t from = 0; from < spans[i].size; from += ELEMENTS) total += sums[piece++];
        norms[i] = (float)std::sqrt(total);
    }
}

CALL void regard_fused_scale(int32_t threads, const Span* spans, int64_t count, float factor) {
    std::vector<Span> pieces = pieces_of(spans, count);
    int64_t many = (int64_t)pieces.size();
    each(threads, many, many * ELEMENTS, [&](int64_t piece) { loops->scale(pieces[piece], factor); });
}

// Whether this processor has dots of bf16 pairs, and the path that was taken is one for such processors.
CALL int32_t regard_fused_dots() {
#if defined(__x86_64__) && !defined(__clang__)
    return loops == &avx512::table && __builtin_cpu_supports("avx512bf16");
#else
    return 0;
#endif
}

CALL void regard_fused_muon(int32_t threads, const Rounds* rounds, const Move* moves, int64_t count) {
#if defined(__x86_64__) && !defined(__clang__)
    each(threads, count, SMALL, [&](int64_t matrix) { dots::muon(moves[matrix], *rounds); });
#endif
}
