// Every path of the inner loops that this processor offers against plain loops, as a program of its own, so that it can be
// built for another processor and run under an emulator. Built and run by test_path.py. Its arguments are sizes: m n k ...
#include <cstdio>
#include <cstdlib>

#include "trial.h"

int main(int count, char** words) {
    int faults = 0;
    for (const regard::Path& path : regard::paths()) {
        if (!path.advertised) continue;
        for (int i = 1; i + 2 < count; i += 3) {
            regard::Sizes sizes{std::atoi(words[i]), std::atoi(words[i + 1]), std::atoi(words[i + 2])};
            std::string found = regard::fault(*path.kernels, sizes);
            if (found.empty()) continue;
            std::printf("%s: %s differs at %d %d %d\n", path.kernels->name, found.c_str(), sizes.m, sizes.n, sizes.k);
            faults++;
        }
        std::printf("%s\n", path.kernels->name);
    }
    return faults == 0 ? 0 : 1;
}
