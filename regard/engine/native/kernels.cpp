// The list of paths, and the packing of matrices for one of them. Before this file: kernels.h, portable.cpp, avx2.cpp and
// its like; after it: model.cpp.
#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
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

uint16_t halved(float value) {
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

void Matrix::pack(const float* weight, const float* bias_or_null, int rows, int columns, Precision wanted,
                  const Kernels& path) {
    shape(rows, columns, wanted, path.depth);
    if (bias_or_null != nullptr) std::memcpy(bias.get(), bias_or_null, (size_t)n * sizeof(float));
    if (precision == FP32) return to_panels(*this, weight, floats.get(), [](float x) { return x; });
    if (precision == BF16) return to_panels(*this, weight, halves.get(), halved);
    int8_t* to = bytes.get();
    const auto limit = (float)path.weight_limit;
    for (int i = 0; i < n; i++) {
        const float* row = weight + (size_t)i * k;
        float peak = 0;
        for (int j = 0; j < k; j++) peak = std::max(peak, std::fabs(row[j]));
        scale.get()[i] = peak / limit;
        float factor = peak > 0 ? limit / peak : 0.0f;
        int32_t sum = 0;
        for (int j = 0; j < k; j++) {
            auto value = (int8_t)std::lrintf(row[j] * factor);
            to[at_byte(i, j)] = value;
            sum += value;
        }
        total.get()[i] = sum;
    }
}

size_t Matrix::at_byte(int column, int place) const {
    size_t group = (size_t)(column / PANEL) * (size_t)depths() + (size_t)(place / depth);
    return (group * PANEL + (size_t)(column % PANEL)) * (size_t)depth + (size_t)(place % depth);
}

// One column in panels of another matrix.
template <class T>
static void copy_column(const T* from, int column, T* to, int place, int k) {
    from += (size_t)(column / PANEL) * k * PANEL + column % PANEL;
    to += (size_t)(place / PANEL) * k * PANEL + place % PANEL;
    for (int j = 0; j < k; j++) to[j * PANEL] = from[j * PANEL];
}

// What the memory held before stays in the last panel's columns from n on; nobody reads their results.
void Matrix::shape_like(const Matrix& from, int columns) { shape(columns, from.k, from.precision, from.depth); }

void Matrix::shape(int rows, int columns, Precision wanted, int of_depth) {
    n = rows, k = columns, panels = (rows + PANEL - 1) / PANEL, precision = wanted, depth = of_depth;
    bias.fit((size_t)width());
    scale.fit((size_t)width());
    total.fit((size_t)width());
    if (precision == INT8) bytes.fit((size_t)width() * (size_t)padded());
    if (precision == FP32) floats.fit((size_t)width() * (size_t)k);
    if (precision == BF16) halves.fit((size_t)width() * (size_t)k);
}

void Matrix::flatten() {
    if (precision != INT8) return;
    int8_t* to = flat.fit((size_t)n * (size_t)padded());
    for (int i = 0; i < n; i++)
        for (int j = 0; j < padded(); j += depth, to += depth) std::memcpy(to, bytes.get() + at_byte(i, j), (size_t)depth);
}

// Sixteen columns as a panel: DEPTH bytes of each column in turn.
template <int DEPTH>
static void interleave(const int8_t* const* columns, int size, int8_t* __restrict to) {
    for (int i = 0; i < size; i += DEPTH)
        for (int j = 0; j < PANEL; j++, to += DEPTH) std::memcpy(to, columns[j] + i, DEPTH);
}

void Matrix::take(const Matrix& from, const int32_t* chosen, int from_panel, int to_panel) {
    const int size = padded();
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
            total.get()[to] = from.total.get()[column];
            columns[i] = from.flat.get() + (size_t)column * (size_t)size;
        }
        if (precision != INT8) continue;
        std::fill(columns + count, columns + PANEL, columns[0]);  // nobody reads what comes of these
        (depth == 4 ? interleave<4> : interleave<8>)(columns, size, bytes.get() + at_byte(first, 0));
    }
}

namespace portable { extern const Kernels table; }
#if defined(__aarch64__)
namespace neon { extern const Kernels table; }
namespace i8mm { extern const Kernels table; }
#elif defined(__x86_64__)
namespace avx2 { extern const Kernels table; }
namespace avx_vnni { extern const Kernels table; }
namespace avx512 { extern const Kernels table; }
namespace amx { extern const Kernels table; }
#endif

#if defined(__x86_64__)
#if REGARD_EMULATE
static bool says_avx_vnni() { return true; }
static bool grants_tiles() { return true; }
#else
// GCC 12 does not know the name of this one: leaf 7, sub-leaf 1, bit 4 of eax.
static bool says_avx_vnni() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}

// Tiles and their products of bytes: leaf 7, bits 24 and 25 of edx. The system gives a process leave to use them on request.
static bool grants_tiles() {
    constexpr long ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 24 & 3) == 3 &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
#endif

// What the processor says of itself, and what the system lets it do.
static void add_paths(std::vector<Path>& found) {
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512vnni");
#if REGARD_NEW_COMPILER
    found.push_back({&amx::table, avx512 && grants_tiles()});
#endif
    found.push_back({&avx512::table, avx512});
#if REGARD_NEW_COMPILER
    found.push_back({&avx_vnni::table, avx2 && says_avx_vnni()});
#endif
    found.push_back({&avx2::table, avx2});
}
#elif defined(__aarch64__)
static void add_paths(std::vector<Path>& found) {
    bool dot = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
    found.push_back({&i8mm::table, dot && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0});
    found.push_back({&neon::table, dot});
}
#else
static void add_paths(std::vector<Path>&) {}
#endif

const std::vector<Path>& paths() {
    static const std::vector<Path> found = [] {
        std::vector<Path> all;
        add_paths(all);
        all.push_back({&portable::table, true});
        return all;
    }();
    return found;
}

const Kernels* find_path(const char* name) {
    for (const Path& path : paths())
        if (path.advertised && std::strcmp(path.kernels->name, name) == 0) return path.kernels;
    return nullptr;
}

}  // namespace regard
