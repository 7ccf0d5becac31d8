// Whether a path does what it should: each of its functions against a plain loop over the same numbers. Run by a process
// that finds out what this machine really can, and by tests over more sizes. Before this file: kernels.h; after it:
// engine.cpp, and tests/engine/paths.cpp.
#pragma once

#include <string>

#include "kernels.h"

namespace regard {

enum Trial { RUNS = 0, UNKNOWN = 1, NOT_ADVERTISED = 2, WRONG = 3 };

struct Sizes {
    int m, n, k;  // rows, columns, what is summed
};

// What differs first, or nothing. Sums of bytes have to be equal, floats near.
std::string fault(const Kernels& path, const Sizes& sizes);

Trial try_path(const char* name);  // on a few sizes

}  // namespace regard
