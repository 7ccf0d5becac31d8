// What the inner loops offer to the model: one table of functions a path, which is a kind of CPU. After this file:
// products.inc and kernels.inc (how they are computed, written once), avx2.cpp and its like (what a path adds), kernels.cpp
// (the list of paths), model.h (where they are called).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

// AVX-VNNI and AMX are known from GCC 11 on.
#if defined(__clang__) || __GNUC__ >= 11
#define REGARD_NEW_COMPILER 1
#endif

// What stands between BEGIN_PATH and END_PATH is compiled for processors with these instructions, in a namespace of its own.
#define REGARD_PRAGMA(...) _Pragma(#__VA_ARGS__)
#if defined(__clang__)
#define REGARD_TARGET(features) REGARD_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define REGARD_TARGET_END REGARD_PRAGMA(clang attribute pop)
#else
#define REGARD_TARGET(features) REGARD_PRAGMA(GCC push_options) REGARD_PRAGMA(GCC target(features))
#define REGARD_TARGET_END REGARD_PRAGMA(GCC pop_options)
#endif
#define BEGIN_PATH(name, features) REGARD_TARGET(features) namespace regard { namespace name {
#define END_PATH }} REGARD_TARGET_END

namespace regard {

constexpr int PANEL = 16;  // columns of a matrix that are stored and computed together; head widths are padded to it
constexpr int STRIDE = 16;  // of k that one call of a path's inner instructions sums

constexpr size_t HUGE_PAGE = (size_t)1 << 21, LARGE = 4 * HUGE_PAGE;  // bytes; from LARGE on memory asks for huge pages

struct Kernels;

// Memory that only grows, aligned to cache lines; what is new in it is zero.
template <class T>
class Buffer {
public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Buffer() { std::free(data_); }

    // At least `size` elements; the first `keep` of the old ones stay.
    T* fit(size_t size, size_t keep = 0) {
        if (size > size_) grow(size, keep);
        return data_;
    }
    T* get() { return data_; }
    const T* get() const { return data_; }

private:
    void grow(size_t size, size_t keep) {
        size_t bytes = size * sizeof(T) + 64, edge = bytes >= LARGE ? HUGE_PAGE : 64;
        bytes = (bytes + edge - 1) / edge * edge;
        auto* fresh = static_cast<T*>(std::aligned_alloc(edge, bytes));
        if (fresh == nullptr) throw std::bad_alloc();
#if defined(__linux__)
        if (edge == HUGE_PAGE) madvise(fresh, bytes, MADV_HUGEPAGE);  // weights are read from end to end, again and again
#endif
        __builtin_memset(fresh, 0, bytes);
        if (keep > 0) __builtin_memcpy(fresh, data_, keep * sizeof(T));
        std::free(data_);
        data_ = fresh;
        size_ = size;
    }
    T* data_ = nullptr;
    size_t size_ = 0;
};

enum Precision { FP32 = 0, INT8 = 1, BF16 = 2 };  // the numbers of regard/engine/library.py

// y = x Wᵀ + b with W (n, k), packed once: panels of 16 columns, in each of them k after k. fp32 and bf16:
// [panel][k][16]. int8: [panel][k / depth][16][depth] with the path's depth, and a factor a column that makes it W again.
struct Matrix {
    int n = 0, k = 0, panels = 0, depth = 4;
    Precision precision = FP32;
    Buffer<float> floats;
    Buffer<uint16_t> halves;  // bf16: the upper halves of floats
    Buffer<int8_t> bytes;
    Buffer<float> scale;    // int8: (panels * 16)
    Buffer<int8_t> flat;    // int8, where columns are taken from it: (n, k), a column after the other
    Buffer<int32_t> total;  // int8: (panels * 16), the sum of a column's bytes, which takes the rows' zero out of a product
    Buffer<float> bias;     // (panels * 16), zeros where there is none

    void shape(int rows, int columns, Precision wanted, int of_depth);  // room, in which what was there before stays
    void pack(const float* weight, const float* bias_or_null, int rows, int columns, Precision wanted, const Kernels& path);
    void flatten();                                    // before columns are taken from it
    void shape_like(const Matrix& from, int columns);  // room for so many columns of another
    void take(const Matrix& from, const int32_t* chosen, int from_panel, int to_panel);  // in that order
    int width() const { return panels * PANEL; }
    size_t at_byte(int column, int place) const;  // where an int8 weight lies
    int depths() const { return padded() / depth; }
    int padded() const { return (k + STRIDE - 1) / STRIDE * STRIDE; }  // k in bytes; what is more is zero
};

// The left side of a product: m rows of k floats, or of bytes with x = scale · (byte - zero), a scale and a zero a row. Rows
// of bytes may be read up to the next multiple of 16.
struct Rows {
    const float* floats = nullptr;
    const uint8_t* bytes = nullptr;
    const float* scale = nullptr;
    const int32_t* zero = nullptr;
    int m = 0, stride = 0;
};

uint16_t halved(float value);  // the nearest number of 16 bits, of two the even one

enum Activation { LINEAR = 0, RELU = 1, GELU = 2, SILU = 3, GELU_TANH = 4, RELU2 = 5 };  // the numbers of weights.py

// Where a product goes: c[row][column - 16 * first] = act(x Wᵀ + b), or x Wᵀ + b + residual.
struct Target {
    float* c = nullptr;
    int stride = 0;
    int first = 0;                    // panel of c's first column
    Activation activation = LINEAR;
    const float* residual = nullptr;  // may be c itself
    int residual_stride = 0;
};

// The mass of some logits, so that log Σ exp is exact whoever sums the parts: Σ exp(x) = sum · exp(max).
struct Mass {
    float max, sum;
};

struct Candidate {
    float value;
    int32_t id;
};

// The k largest of what was offered, sorted; of equals the lower id first, in whatever order they came.
struct TopK {
    std::vector<Candidate> best;
    int k = 0;
    float bar = 0;  // what lies below this is not taken

    void start(int size);
    void offer(float value, int32_t id);
};

// Keys and values of one head for one query. Place i lies at k + offsets[i], v + offsets[i].
struct Seen {
    const float *k, *v;
    const int32_t* offsets;
    int count;
};

// One path. Integers are exact, and a row's sums of floats have one order, so that neighbours change no bit of it.
struct Kernels {
    const char* name;
    int weight_limit;     // int8: the largest weight
    int row_low, row_high;  // int8: the least and the largest byte of a row; below zero where its bytes have a sign
    int depth;                    // of k that lie together in a byte matrix
    void (*product)(const Matrix&, const Rows&, int from_panel, int to_panel, const Target&);
    // gain (x - mean) / deviation + shift; without a shift, gain x / √mean(x²).
    void (*normalise)(const float* x, const float* gain, const float* shift, float eps, int n, float* y);
    // y = act(what opens) · what passes, from panels of both in turn: x (2 n), y (n); n is a multiple of 16.
    void (*gate)(const float* x, Activation, int n, float* y);
    void (*quantise)(const float* x, int n, uint8_t* y, float* scale, int32_t* zero);
    // y = round(factors · x), which is 127 at most; the largest of |x|. n is a multiple of 16.
    void (*to_signed)(const float* x, const float* factors, int n, int8_t* y);
    float (*peak)(const float* x, int n);
    // e^(score - the largest) in place of each score, of which there is room for a multiple of 16; 1 / their sum.
    float (*soften)(float* scores, int count);
    // The same as bytes of a row, in which the weights are to its zero, `row_low`: what rounding takes from one place goes to
    // another near it, so that many small weights count all the same. 1 / the sum of the bytes.
    float (*soften_bytes)(float* scores, int count, uint8_t* y);
    void (*attend)(const float* q, const Seen&, int width, float scale, float* scores, float* out);
    Mass (*mass)(const float* x, int n);
    void (*select)(const float* x, int n, const int32_t* ids, int32_t first, TopK&);
    void (*embed)(const float* row, const float* place, float scale, int n, float* y);
};

// What was compiled in, the best first. A path that is not `advertised` must not be called; one that is may still be
// refused by a machine that promises more than it does, which only trying shows.
struct Path {
    const Kernels* kernels;
    bool advertised;
};
const std::vector<Path>& paths();
const Kernels* find_path(const char* name);  // null: not compiled in, or not advertised

}  // namespace regard
