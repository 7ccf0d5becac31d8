// How fast a path multiplies: the figure of `regard machine`. Threads of their own, the same product again and again.
// Before this file: kernels.h; after it: path.py.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "kernels.h"

namespace regard {
namespace {

using Clock = std::chrono::steady_clock;

// One thread's rows and results; the weights are everybody's, as in the engine.
struct Work {
    Buffer<float> floats, results, scale;
    Buffer<uint8_t> bytes;
    Buffer<int32_t> zero;
    Rows rows;
    Target target;

    Work(const Matrix& w, int m) {
        const int stride = w.precision == INT8 ? w.padded() : w.k;
        floats.fit((size_t)m * stride);
        bytes.fit((size_t)m * stride);
        results.fit((size_t)m * w.width());
        std::fill_n(scale.fit((size_t)m), m, 1.0f);
        zero.fit((size_t)m);
        rows = {w.precision == INT8 ? nullptr : floats.get(), w.precision == INT8 ? bytes.get() : nullptr, scale.get(),
                zero.get(), m, stride};
        target.c = results.get();
        target.stride = w.width();
    }
};

struct Size {
    int m, n, k;
};

double operations_a_second(const Kernels& path, Precision precision, const Size& size, int threads, double seconds) {
    const int m = size.m, n = size.n, k = size.k;
    Matrix w;
    w.pack(std::vector<float>((size_t)n * k, 0.5f).data(), nullptr, n, k, precision, path);
    std::vector<Work> work;
    for (int i = 0; i < threads; i++) work.emplace_back(w, m);
    std::atomic<long> products{0};
    const Clock::time_point began = Clock::now();
    auto run = [&](Work& mine) {
        while (std::chrono::duration<double>(Clock::now() - began).count() < seconds) {
            path.product(w, mine.rows, 0, w.panels, mine.target);
            products++;
        }
    };
    std::vector<std::thread> others;
    for (int i = 1; i < threads; i++) others.emplace_back(run, std::ref(work[(size_t)i]));
    run(work[0]);
    for (std::thread& each : others) each.join();
    return 2.0 * m * n * k * (double)products / std::chrono::duration<double>(Clock::now() - began).count();
}

}  // namespace
}  // namespace regard

// Operations a second of (m, k) by (k, n) for about so many seconds; 0 where the path is not offered or memory fails.
extern "C" __attribute__((visibility("default"))) double regard_speed(
    const char* name, int32_t precision, int32_t m, int32_t n, int32_t k, int32_t threads, double seconds) {
    const regard::Kernels* path = regard::find_path(name);
    if (path == nullptr || threads < 1 || std::min({m, n, k}) < 1) return 0;
    try {
        return regard::operations_a_second(*path, (regard::Precision)precision, {m, n, k}, threads, seconds);
    } catch (...) {
        return 0;
    }
}
