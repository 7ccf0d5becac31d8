// Threads that are kept from call to call, and how they learn what comes next. A job is what the teams of a crew do in a
// call: `Search` (search.h), `Reading` (reading.h) or `Encoding` (encoding.h). Before this file: model.h; after it: engine.cpp.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "model.h"

namespace regard {

enum Status { DONE = 0, BROKEN = 1, CANCELLED = 2, NO_MEMORY = 3, BAD_REQUEST = 4 };

// What the next step of a job is: the number of the piece of work that planned it, the number of the call, and flags. A
// thread reads it whole, and with it can join a step in which the others are already.
class Notice {
public:
    static constexpr uint64_t OVER = 1;  // the other flags are the job's own: 2, 4
    void put_up(uint32_t turn, int call, uint64_t flags) {
        notice_.store((uint64_t)turn << (FLAGS + CALL) | ((uint64_t)call & MASK) << FLAGS | flags, std::memory_order_release);
    }
    uint64_t read(Worker& worker) const {
        uint64_t notice = notice_.load(std::memory_order_acquire);
        worker.turn = (uint32_t)(notice >> (FLAGS + CALL));
        return notice;
    }
    static int call(uint64_t notice) { return (int)(notice >> FLAGS & MASK); }

private:
    static constexpr int FLAGS = 3, CALL = 29;  // bits; the rest is the turn
    static constexpr uint64_t MASK = (1u << CALL) - 1;
    std::atomic<uint64_t> notice_{0};
};

constexpr std::chrono::microseconds AWAKE{300};  // that a thread waits before it sleeps: the next call is often near

// Waits, for a while, until something is so.
template <class Condition>
void stay_awake(Condition condition) {
    auto end = std::chrono::steady_clock::now() + AWAKE;
    for (int i = 1; !condition(); i++) {
        if (i % 64 == 0 && std::chrono::steady_clock::now() > end) return;
        relax();
    }
}

// Some teams of threads, their scratch memory and their jobs. The calling thread is the first of them. A call is over when
// the first threads of all teams say so; others that lost their cores meanwhile find that out when they come.
template <class Job>
class Crew {
public:
    Crew(const Model& model, int teams, int size) : teams(teams), size(size), born(getpid()) {
        for (int t = 0; t < teams; t++) {
            desks_.push_back(std::make_unique<Desk>(size));
            jobs.push_back(std::make_unique<Job>(model, size));
            for (int rank = 0; rank < size; rank++)
                workers_.push_back(std::make_unique<Worker>(model, *desks_.back(), rank));
        }
        for (int i = 1; i < teams * size; i++) threads_.emplace_back([this, i] { serve(i); });
    }
    ~Crew() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            leaving_ = true;
        }
        wake_.notify_all();
        for (auto& thread : threads_) thread.join();
    }

    // The number of the next call, for the `start` of a job.
    int next() const { return call_ % 100'000'000 + 1; }

    void run(const float* places, std::atomic<int>& status) {
        for (auto& desk : desks_) desk->places = places;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            status_ = &status;
            busy_ = teams - 1;
            call_ = next();
        }
        wake_.notify_all();
        work(0);
        stay_awake([this] { return busy_ == 0; });
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return busy_ == 0; });
    }

    const int teams, size, born;
    std::vector<std::unique_ptr<Job>> jobs;

private:
    // The number of the call that ended.
    int work(int i) {
        auto team = (size_t)(i / size);
        try {
            return jobs[team]->run(*workers_[(size_t)i]);
        } catch (const Stopped&) {
        } catch (...) {
            *status_ = NO_MEMORY;
            desks_[team]->team.stop();
        }
        return call_;
    }
    void serve(int i) {
        for (int seen = 0;;) {
            stay_awake([&] { return leaving_ || call_ != seen; });
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [&] { return leaving_ || call_ != seen; });
                if (leaving_) return;
            }
            int ended = work(i);
            if (ended == seen) continue;  // the step of the call before: this one has not begun
            seen = ended;
            if (i % size != 0) continue;
            std::lock_guard<std::mutex> lock(mutex_);
            if (--busy_ == 0) done_.notify_one();
        }
    }

    std::vector<std::unique_ptr<Desk>> desks_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::atomic<int>* status_ = nullptr;
    std::atomic<int> busy_{0}, call_{0};
    std::atomic<bool> leaving_{false};
};

constexpr size_t KEPT = 2;  // crews of a model, of each kind of work, that wait for the next call

// The crews of a model that have nothing to do. Two calls at the same time have their own.
template <class Job>
class Pool {
public:
    explicit Pool(const Model& model) : model_(model) {}

    std::unique_ptr<Crew<Job>> hire(int teams, int size) {
        std::lock_guard<std::mutex> lock(mutex_);
        for (size_t i = 0; i < idle_.size(); i++) {
            if (idle_[i]->teams != teams || idle_[i]->size != size) continue;
            std::unique_ptr<Crew<Job>> crew = std::move(idle_[i]);
            idle_.erase(idle_.begin() + (ptrdiff_t)i);
            if (crew->born == getpid()) return crew;
            crew.release();  // of the parent of a fork: its threads are not here
            break;
        }
        return std::make_unique<Crew<Job>>(model_, teams, size);
    }
    // Kept for the next call, with its scratch memory; the one that has waited longest goes where there are more.
    void dismiss(std::unique_ptr<Crew<Job>> crew) {
        std::unique_ptr<Crew<Job>> leaves;  // ends its threads after the lock is free
        std::lock_guard<std::mutex> lock(mutex_);
        idle_.push_back(std::move(crew));
        if (idle_.size() <= KEPT) return;
        leaves = std::move(idle_.front());
        idle_.erase(idle_.begin());
        if (leaves->born != getpid()) leaves.release();
    }

private:
    const Model& model_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Crew<Job>>> idle_;
};

}  // namespace regard
