// Threads that do one piece of work together. Each piece has as many parts as there are threads. A thread begins with its own
// part and then takes what nobody has begun, so that one that has lost its core holds up nothing but the part it is in.
// What stands in a part follows from its number alone, so that no bit depends on who does it. Before this file: nothing;
// after it: model.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>

namespace regard {

// What a thread does while it waits without sleeping.
inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

struct Stopped : std::runtime_error {
    Stopped() : std::runtime_error("another thread failed") {}
};

class Team {
public:
    explicit Team(int size) : size(size), parts_(new Part[(size_t)size]) {}
    const int size;

    // All threads of the team call this for the same pieces in the same order; `turn` counts them, a number a thread. It
    // returns when all parts are done. A thread that comes late finds nothing to do, so what others may have changed since
    // must be read inside `work` alone.
    template <class Work>
    void share(int rank, uint32_t& turn, const Work& work) {
        turn++;
        if (size == 1) return work(0);
        if (resting_.load(std::memory_order_relaxed) == rank) rest();
        for (int i = 0; i < size; i++) {
            const int part = (rank + i) % size;
            if (!claim(part, rank, turn)) continue;
            work(part);
            finish(turn);
        }
        wait(rank, turn);
    }
    void stop();       // whoever fails frees the others
    void wake(int rank);  // ends the rest of a thread that somebody waits for

private:
    struct alignas(64) Part {
        std::atomic<uint32_t> turn{0};  // the last piece of which it was begun
        std::atomic<int> owner{0};      // by whom
    };
    bool claim(int part, int rank, uint32_t turn) {
        uint32_t before = turn - 1;
        Part& each = parts_[(size_t)part];
        if (!each.turn.compare_exchange_strong(before, turn)) return false;
        each.owner.store(rank, std::memory_order_relaxed);
        return true;
    }
    // Counts go round, so that the difference decides.
    bool over(uint32_t turn) const { return (int32_t)(done_.load() - turn * (uint32_t)size) >= 0; }
    void finish(uint32_t turn);
    void wait(int rank, uint32_t turn);
    void sleep(uint32_t turn);
    void rest();
    void send_to_rest(int rank, uint32_t turn);

    std::unique_ptr<Part[]> parts_;
    alignas(64) std::atomic<uint32_t> done_{0};  // parts of all pieces
    std::atomic<int> sleepers_{0};
    std::atomic<bool> broken_{false};
    alignas(64) std::atomic<int> resting_{-1};  // the thread that rests, at most one; -1: none
    std::atomic<int64_t> until_{0};             // its rest lasts, in nanoseconds of the clock
    std::atomic<uint32_t> woken_{0};
};

}  // namespace regard
