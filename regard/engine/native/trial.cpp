// The plain loops, and the comparison with them. Nothing here is fast, and nothing uses a path's own instructions.
#include "trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace regard {
namespace {

// Numbers of either sign that are the same on every machine.
class Numbers {
public:
    float next() {
        state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
        return (float)((int32_t)(state_ >> 33) % 20001 - 10000) / 8000.0f;
    }
    std::vector<float> some(size_t count) {
        std::vector<float> numbers(count);
        for (float& each : numbers) each = next();
        return numbers;
    }

private:
    uint64_t state_ = 7;
};

// Floats in aligned memory, rows padded by zeros.
struct Grid {
    Buffer<float> memory;
    int stride;
    Grid(int rows, int columns) : stride((columns + PANEL - 1) / PANEL * PANEL) { memory.fit((size_t)rows * stride); }
    float* row(int i) { return memory.get() + (size_t)i * stride; }
};

bool near(double found, double wanted, double size) { return std::fabs(found - wanted) <= 2e-5 * (size + 1); }

double activated(double x, Activation activation) {
    if (activation == RELU) return std::max(x, 0.0);
    if (activation == GELU) return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
    if (activation == GELU_TANH) return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    if (activation == RELU2) return std::max(x, 0.0) * std::max(x, 0.0);
    return activation == SILU ? x / (1 + std::exp(-x)) : x;
}

float whole(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// The weight as the matrix holds it.
double weight_of(const Matrix& w, int column, int j) {
    size_t at = ((size_t)(column / PANEL) * w.k + j) * PANEL + column % PANEL;
    if (w.precision == FP32) return w.floats.get()[at];
    return whole(w.halves.get()[at]);
}

// Products of floats, with a bias and then an activation or a residual.
bool floats_agree(const Kernels& path, const Sizes& s, Precision precision, Activation activation, bool residual) {
    Numbers numbers;
    Matrix w;
    w.pack(numbers.some((size_t)s.n * s.k).data(), numbers.some((size_t)s.n).data(), s.n, s.k, precision, path);
    Grid x(s.m, s.k), c(s.m, s.n), more(s.m, s.n);
    for (int i = 0; i < s.m; i++) {
        for (int j = 0; j < s.k; j++) x.row(i)[j] = numbers.next();
        for (int j = 0; j < s.n; j++) more.row(i)[j] = numbers.next();
    }
    Target target{c.row(0), c.stride, 0, activation, residual ? more.row(0) : nullptr, more.stride};
    path.product(w, {x.row(0), nullptr, nullptr, nullptr, s.m, x.stride}, 0, w.panels, target);
    for (int i = 0; i < s.m; i++)
        for (int column = 0; column < s.n; column++) {
            double sum = w.bias.get()[column], size = 0;
            for (int j = 0; j < s.k; j++) {
                double part = x.row(i)[j] * weight_of(w, column, j);
                sum += part, size += std::fabs(part);
            }
            sum = activated(sum, activation) + (residual ? more.row(i)[column] : 0.0f);
            if (!near(c.row(i)[column], sum, size)) return false;
        }
    return true;
}

// A byte of a row as its path reads it.
int number_of(const Kernels& path, uint8_t byte) { return path.row_low < 0 ? (int8_t)byte : byte; }

// Bytes are summed exactly: with factors of 1 the product is the whole number that a plain loop gives. The rows hold the
// extremes too, which narrow sums could not carry.
bool bytes_agree(const Kernels& path, const Sizes& s) {
    Numbers numbers;
    Matrix w;
    std::vector<float> weights = numbers.some((size_t)s.n * s.k);
    for (int j = 0; j < s.k; j++) weights[(size_t)j] = 1;  // one column of the largest weights
    w.pack(weights.data(), nullptr, s.n, s.k, INT8, path);
    std::fill(w.scale.get(), w.scale.get() + w.width(), 1.0f);
    Grid c(s.m, s.n);
    Buffer<uint8_t> bytes;
    std::vector<float> ones((size_t)s.m, 1);
    std::vector<int32_t> zero((size_t)s.m);
    const int stride = w.padded();
    bytes.fit((size_t)s.m * stride);
    auto some = [&] {  // any byte of a row
        float share = (numbers.next() / 1.25f + 1) / 2;
        return path.row_low + (int)std::lrintf(share * (float)(path.row_high - path.row_low));
    };
    for (int i = 0; i < s.m; i++) {
        zero[(size_t)i] = i == 0 ? path.row_low : some();
        for (int j = 0; j < stride; j++)
            bytes.get()[(size_t)i * stride + j] = (uint8_t)(i == 0 ? path.row_high : some());
    }
    path.product(w, {nullptr, bytes.get(), ones.data(), zero.data(), s.m, stride}, 0, w.panels, {c.row(0), c.stride});
    for (int i = 0; i < s.m; i++)
        for (int column = 0; column < s.n; column++) {
            int32_t sum = 0;
            for (int j = 0; j < s.k; j++)
                sum += (number_of(path, bytes.get()[(size_t)i * stride + j]) - zero[(size_t)i]) *
                       w.bytes.get()[w.at_byte(column, j)];
            if (c.row(i)[column] != (float)sum) return false;
        }
    return true;
}

// Rows of both signs, and of one: `shift` moves the numbers.
bool quantised(const Kernels& path, int n, float shift) {
    Numbers numbers;
    Grid x(1, n);
    float high = 0, low = 0, scale = 0;
    int32_t zero = 0;
    for (int i = 0; i < n; i++) {
        float value = x.row(0)[i] = numbers.next() + shift;
        high = std::max(high, value), low = std::min(low, value);
    }
    std::vector<uint8_t> bytes((size_t)x.stride);
    path.quantise(x.row(0), x.stride, bytes.data(), &scale, &zero);
    if (!near(scale, (high - low) / (float)(path.row_high - path.row_low - 1), 0)) return false;
    for (int i = 0; i < x.stride; i++) {
        int found = number_of(path, bytes[(size_t)i]);
        if (found < path.row_low || found > path.row_high) return false;
        if (std::fabs((float)(found - zero) - x.row(0)[i] / scale) > 0.5001f) return false;
    }
    return true;
}

// Panels of what opens and of what passes, in turn.
bool gated(const Kernels& path, int n, Activation activation) {
    Numbers numbers;
    n = (n + PANEL - 1) / PANEL * PANEL;
    std::vector<float> x = numbers.some(2 * (size_t)n), y((size_t)n);
    path.gate(x.data(), activation, n, y.data());
    for (int i = 0; i < n; i++) {
        size_t at = (size_t)(i / PANEL * 2 * PANEL + i % PANEL);
        if (!near(y[(size_t)i], activated(x[at], activation) * x[at + PANEL], 1)) return false;
    }
    return true;
}

bool normalised(const Kernels& path, int n, bool moved) {
    Numbers numbers;
    std::vector<float> x = numbers.some((size_t)n), gain = numbers.some((size_t)n), shift = numbers.some((size_t)n), y = x;
    path.normalise(x.data(), gain.data(), moved ? shift.data() : nullptr, 1e-5f, n, y.data());
    double mean = 0, spread = 0;
    for (float each : x) mean += moved ? each / (double)n : 0;
    for (float each : x) spread += (each - mean) * (each - mean) / (double)n;
    for (size_t i = 0; i < x.size(); i++)
        if (!near(y[i], (x[i] - mean) / std::sqrt(spread + 1e-5) * gain[i] + (moved ? shift[i] : 0), 1)) return false;
    return true;
}

bool attended(const Kernels& path, int count, int width) {
    Numbers numbers;
    Grid q(1, width), keys(2 * count, width), out(1, width);
    std::vector<int32_t> offsets;
    for (int i = 0; i < count; i++) offsets.push_back((count - 1 - i) * 2 * keys.stride);  // any order
    for (int i = 0; i < 2 * count; i++)
        for (int j = 0; j < width; j++) keys.row(i)[j] = numbers.next();
    for (int j = 0; j < width; j++) q.row(0)[j] = numbers.next();
    Buffer<float> scores;
    scores.fit((size_t)count + PANEL);
    Seen seen{keys.row(0), keys.row(1), offsets.data(), count};
    path.attend(q.row(0), seen, q.stride, 0.5f, scores.get(), out.row(0));
    std::vector<double> weights((size_t)count), wanted((size_t)width);
    double total = 0;
    for (int i = 0; i < count; i++) {
        double score = 0;
        for (int j = 0; j < width; j++) score += q.row(0)[j] * seen.k[offsets[(size_t)i] + j];
        total += weights[(size_t)i] = std::exp(0.5 * score);
    }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < width; j++)
            wanted[(size_t)j] += weights[(size_t)i] / total * seen.v[offsets[(size_t)i] + j];
    for (int j = 0; j < width; j++)
        if (!near(out.row(0)[j], wanted[(size_t)j], 1)) return false;
    return true;
}

bool signs_kept(const Kernels& path, int n) {
    Numbers numbers;
    Grid x(1, n), factors(1, n);
    float most = 0;
    for (int i = 0; i < n; i++) {
        most = std::max(most, std::fabs(x.row(0)[i] = numbers.next()));
        factors.row(0)[i] = (float)(i % 100);
    }
    if (path.peak(x.row(0), x.stride) != most) return false;
    std::vector<int8_t> bytes((size_t)x.stride);
    path.to_signed(x.row(0), factors.row(0), x.stride, bytes.data());
    for (int i = 0; i < x.stride; i++)
        if (std::fabs((float)bytes[(size_t)i] - x.row(0)[i] * factors.row(0)[i]) > 0.5001f) return false;
    return true;
}

// Each byte is a step from its weight at most, and all of them together half a step a lane.
bool softened(const Kernels& path, int n) {
    Numbers numbers;
    Grid scores(1, n);
    std::vector<double> wanted((size_t)n);
    double peak = -1e30, all = 0;
    for (int i = 0; i < n; i++) peak = std::max(peak, (double)(scores.row(0)[i] = 4 * numbers.next()));
    for (int i = 0; i < n; i++)
        all += wanted[(size_t)i] = (path.row_high - path.row_low - 1) * std::exp(scores.row(0)[i] - peak);
    std::vector<uint8_t> bytes((size_t)scores.stride);
    const float factor = path.soften_bytes(scores.row(0), n, bytes.data());
    double total = 0;
    for (int i = 0; i < scores.stride; i++) {
        const double found = number_of(path, bytes[(size_t)i]) - path.row_low;
        if (std::fabs(found - (i < n ? wanted[(size_t)i] : 0)) > 1.02) return false;
        total += found;
    }
    return near(factor * total, 1, 1) && std::fabs(total - all) < 8.2 + 1e-4 * all;
}

bool chosen(const Kernels& path, int n) {
    Numbers numbers;
    std::vector<float> x = numbers.some((size_t)n);
    TopK top;
    top.start(3);
    path.select(x.data(), n, nullptr, 100, top);
    std::vector<int> order((size_t)n);
    for (int i = 0; i < n; i++) order[(size_t)i] = i;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return x[(size_t)a] > x[(size_t)b]; });
    for (size_t i = 0; i < top.best.size(); i++)
        if (top.best[i].id != 100 + order[i] || top.best[i].value != x[(size_t)order[i]]) return false;
    Mass found = path.mass(x.data(), n);
    double total = 0;
    for (float each : x) total += std::exp((double)each);
    return (int)top.best.size() == std::min(n, 3) && near(found.max + std::log(found.sum), std::log(total), 1);
}

}  // namespace

std::string fault(const Kernels& path, const Sizes& s) {
    if (!bytes_agree(path, s)) return "the product of bytes";
    for (Precision precision : {FP32, BF16}) {
        for (Activation activation : {LINEAR, RELU, GELU, SILU, GELU_TANH, RELU2})
            if (!floats_agree(path, s, precision, activation, false)) return "the product of floats";
        if (!floats_agree(path, s, precision, LINEAR, true)) return "the product with a residual";
    }
    for (float shift : {-2.0f, -0.3f, 0.0f, 2.0f})
        if (!quantised(path, s.k, shift)) return "bytes of a row";
    if (!normalised(path, s.k, true)) return "the norm";
    if (!normalised(path, s.k, false)) return "the norm of root mean squares";
    for (Activation activation : {GELU, SILU})
        if (!gated(path, s.n, activation)) return "the gate";
    if (!attended(path, s.m, s.n)) return "attention";
    if (!signs_kept(path, s.k)) return "bytes with a sign";
    if (!softened(path, s.n)) return "weights in bytes";
    if (!chosen(path, s.n)) return "the choice of tokens";
    return "";
}

Trial try_path(const char* name) {
    for (const Path& path : paths()) {
        if (std::strcmp(path.kernels->name, name) != 0) continue;
        if (!path.advertised) return NOT_ADVERTISED;
        for (const Sizes& sizes : {Sizes{1, 7, 5}, Sizes{13, 83, 131}, Sizes{37, 64, 128}})
            if (!fault(*path.kernels, sizes).empty()) return WRONG;
        return RUNS;
    }
    return UNKNOWN;
}

}  // namespace regard
