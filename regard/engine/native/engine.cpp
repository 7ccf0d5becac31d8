// The library's face: a model is made once, translated with from any thread, and freed. Threads and scratch memory are
// kept from call to call; two calls at the same time have their own. Called from regard/engine/library.py.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>

#include "search.h"
#include "trial.h"

namespace regard {
namespace {

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

// Some teams of threads, their scratch memory and their slots. The calling thread is the first of them. A call is over
// when the first threads of all teams say so; others that lost their cores meanwhile find that out when they come.
class Crew {
public:
    Crew(const Model& model, int teams, int size) : teams(teams), size(size), born(getpid()) {
        for (int t = 0; t < teams; t++) {
            desks_.push_back(std::make_unique<Desk>(size));
            searches.push_back(std::make_unique<Search>(model, size));
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

    // The number of the next call, for `Search::start`.
    int next() const { return call_ % 100'000'000 + 1; }

    void run(const float* places, Queue& queue) {
        for (auto& desk : desks_) desk->places = places;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            queue_ = &queue;
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
    std::vector<std::unique_ptr<Search>> searches;

private:
    // The number of the call that ended.
    int work(int i) {
        auto team = (size_t)(i / size);
        try {
            return searches[team]->run(*workers_[(size_t)i]);
        } catch (const Stopped&) {
        } catch (...) {
            queue_->status = NO_MEMORY;
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
    Queue* queue_ = nullptr;
    std::atomic<int> busy_{0}, call_{0};
    std::atomic<bool> leaving_{false};
};

class Engine {
public:
    Engine(const Shape& shape, const Tensor* tensors, int count, const Kernels& path)
        : model_(shape, tensors, count, path) {}

    void narrow(const Lists& lists) { model_.narrow(lists); }

    int translate(const Request& request) {
        Queue queue;
        queue.order.resize((size_t)request.count);
        std::iota(queue.order.begin(), queue.order.end(), 0);
        auto length = [&](int i) { return request.starts[i + 1] - request.starts[i]; };
        std::stable_sort(queue.order.begin(), queue.order.end(), [&](int a, int b) { return length(a) > length(b); });
        Choice choice{&model_.output, nullptr, std::min(request.vocab_size, model_.output.n), {}, request.end};
        choice.banned.assign(request.banned, request.banned + request.banned_count);
        if (const std::vector<int32_t>& always = model_.shortlist.always; !always.empty()) {
            auto end = std::find(always.begin(), always.end(), request.end);
            choice = {&model_.shortlist.common, always.data(), (int)always.size(), {}, (int)(end - always.begin())};
        }
        // Each team has sentences of its own; where there are more threads than sentences, several of them share one.
        int teams = std::max(1, std::min({request.threads, request.slots, request.count}));
        std::unique_ptr<Crew> crew = hire(teams, std::max(1, request.threads / teams));
        int slots = std::max(1, std::min(request.slots, (request.count + teams - 1) / teams));
        for (auto& search : crew->searches) search->start(request, queue, choice, slots, crew->next());
        crew->run(request.places, queue);
        if (queue.status != NO_MEMORY) dismiss(std::move(crew));
        return queue.status;
    }

private:
    std::unique_ptr<Crew> hire(int teams, int size) {
        std::lock_guard<std::mutex> lock(mutex_);
        for (size_t i = 0; i < idle_.size(); i++) {
            if (idle_[i]->teams != teams || idle_[i]->size != size) continue;
            std::unique_ptr<Crew> crew = std::move(idle_[i]);
            idle_.erase(idle_.begin() + (ptrdiff_t)i);
            if (crew->born == getpid()) return crew;
            crew.release();  // of the parent of a fork: its threads are not here
            break;
        }
        return std::make_unique<Crew>(model_, teams, size);
    }
    void dismiss(std::unique_ptr<Crew> crew) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (idle_.size() < 8) idle_.push_back(std::move(crew));
    }

    Model model_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Crew>> idle_;
};

}  // namespace
}  // namespace regard

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int32_t regard_version() { return 10; }

// The names of all paths that were compiled in, the best first, with commas between them.
EXPORT const char* regard_paths() {
    static const std::string names = [] {
        std::string all;
        for (const regard::Path& path : regard::paths()) all += (all.empty() ? "" : ",") + std::string(path.kernels->name);
        return all;
    }();
    return names.c_str();
}

// Whether the processor says that it has a path's instructions.
EXPORT int32_t regard_offers(const char* name) { return regard::find_path(name) != nullptr ? 1 : 0; }

// Runs one path on small cases: see `Trial`. On a machine that promises more than it does this ends the process, so it is
// called in a process that may die.
EXPORT int32_t regard_try(const char* name) { return regard::try_path(name); }

// What a path does differently from plain loops at these sizes: empty where nothing.
EXPORT const char* regard_fault(const char* name, int32_t m, int32_t n, int32_t k) {
    static thread_local std::string found;
    const regard::Kernels* path = regard::find_path(name);
    found = path == nullptr ? "it is not offered here" : regard::fault(*path, {m, n, k});
    return found.c_str();
}

EXPORT void* regard_make(const regard::Shape* shape, const regard::Tensor* tensors, int32_t count, const char* path) {
    try {
        const regard::Kernels* kernels = regard::find_path(path);
        return kernels == nullptr ? nullptr : new regard::Engine(*shape, tensors, count, *kernels);
    } catch (...) {
        return nullptr;
    }
}

EXPORT int32_t regard_narrow(void* engine, const regard::Lists* lists) {
    try {
        static_cast<regard::Engine*>(engine)->narrow(*lists);
        return regard::DONE;
    } catch (...) {
        return regard::NO_MEMORY;
    }
}

EXPORT void regard_free(void* engine) { delete static_cast<regard::Engine*>(engine); }

EXPORT int32_t regard_translate(void* engine, const regard::Request* request) {
    try {
        return static_cast<regard::Engine*>(engine)->translate(*request);
    } catch (...) {
        return regard::NO_MEMORY;
    }
}
