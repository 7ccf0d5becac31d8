// How threads of a team wait: they spin for as long as a part takes, then sleep, so that whoever they wait for finds a core.
// A thread that keeps the others waiting for much longer shares its core with somebody else; it rests for a while, and
// the others do its parts. Before this file: team.h; after it: model.cpp.
#include "team.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <ctime>

namespace regard {

namespace {

constexpr int SPINS = 2000;           // some tens of microseconds
constexpr int64_t LATE = 500'000;     // nanoseconds that no part takes longer than another where its thread has a core
constexpr int64_t REST = 30'000'000;  // nanoseconds
constexpr int64_t NAP = 1'000'000;    // nanoseconds after which a sleeper looks around

int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// Sleeps while `word` is `seen`, and no longer than so many nanoseconds.
void sleep_on(std::atomic<uint32_t>& word, uint32_t seen, int64_t most) {
    timespec time{most / 1'000'000'000, most % 1'000'000'000};
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

void Team::finish(uint32_t turn) {
    uint32_t done = done_.fetch_add(1) + 1;
    if (done == turn * (uint32_t)size && sleepers_.load() > 0) wake_all(done_);
}

void Team::stop() {
    broken_ = true;
    wake_all(done_);
}

void Team::wait(int rank, uint32_t turn) {
    for (int spins = 0; spins < SPINS && !over(turn); spins++) relax();
    if (!over(turn)) {
        int64_t began = now();
        while (!over(turn) && !broken_) sleep(turn);
        if (now() - began > LATE) send_to_rest(rank, turn);
    }
    if (broken_) throw Stopped();
}

void Team::sleep(uint32_t turn) {
    sleepers_.fetch_add(1);
    uint32_t seen = done_.load();
    if ((int32_t)(seen - turn * (uint32_t)size) < 0) sleep_on(done_, seen, NAP);
    sleepers_.fetch_sub(1);
}

// The one that was waited for rests, unless another does: somebody must work.
void Team::send_to_rest(int rank, uint32_t turn) {
    for (int part = 0; part < size; part++) {
        int owner = parts_[(size_t)part].owner.load(std::memory_order_relaxed), nobody = -1;
        if (owner == rank || parts_[(size_t)part].turn.load(std::memory_order_relaxed) != turn) continue;
        if (resting_.compare_exchange_strong(nobody, owner)) until_ = now() + REST;
        return;
    }
}

void Team::rest() {
    uint32_t seen = woken_.load();
    int64_t left = until_ - now();
    if (left > 0) sleep_on(woken_, seen, left);
    resting_ = -1;
}

void Team::wake(int rank) {
    if (resting_.load() != rank) return;
    woken_.fetch_add(1);
    wake_all(woken_);
}

}  // namespace regard
