// The library's face: a model is made once, translated with from any thread, and freed. Threads and scratch memory are
// kept from call to call; two calls at the same time have their own. Called from regard/engine/library.py.
#include <algorithm>
#include <memory>
#include <numeric>
#include <string>

#include "drafting.h"
#include "encoding.h"
#include "filling.h"
#include "reading.h"
#include "search.h"
#include "trial.h"

namespace regard {
namespace {

constexpr size_t LITTLE = 8'000'000;  // bytes that a call may leave for the next one
constexpr int MORE = 128;  // places that a new past has beyond what it needs at once

class Engine {
public:
    Engine(const Shape& shape, const Tensor* tensors, int count, const Kernels& path)
        : model_(shape, tensors, count, path), searches_(model_), readings_(model_), encodings_(model_), fillings_(model_),
          draftings_(model_) {}

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
        int slots = std::max(1, std::min(request.slots, (request.count + teams - 1) / teams));
        if (model_.shape.drafts > 0 && request.beam == 1 && model_.shortlist.always.empty())
            return search_with(draftings_, request, queue, choice, teams, slots);
        return search_with(searches_, request, queue, choice, teams, slots);
    }

    int fill(const Fill& request) {
        std::atomic<int> status{DONE};
        auto crew = fillings_.hire(1, std::max(1, request.threads));
        crew->jobs[0]->start(request, crew->next());
        crew->run(request.places, status);
        if (status == DONE) fillings_.dismiss(std::move(crew));
        return status;
    }

    int read(const Read& request) {
        std::vector<std::unique_ptr<Past>> fresh;
        for (int i = 0; i < request.rows; i++) {
            const int length = request.lengths[i], count = request.starts[i + 1] - request.starts[i];
            Past* past = request.after[i] = request.before[i];
            if (count == 0 || (past != nullptr && past->extend(length, count))) continue;
            const int room = length + count;
            fresh.push_back(std::make_unique<Past>(model_, room + std::max(MORE, room / 2)));
            if (length > 0) fresh.back()->copy(*past, length);
            fresh.back()->extend(length, count);
            request.after[i] = fresh.back().get();
        }
        std::atomic<int> status{DONE};
        auto crew = readings_.hire(1, std::max(1, request.threads));
        crew->jobs[0]->start(request, crew->next());
        crew->run(request.places, status);
        if (status != DONE) return status;
        readings_.dismiss(std::move(crew));
        for (auto& past : fresh) past.release();  // the caller's
        return DONE;
    }

    int encode(const Encode& request) {
        const int teams = std::max(1, std::min(request.threads, request.rows));
        Batches batches(request, teams);
        std::atomic<int> status{DONE};
        auto crew = encodings_.hire(teams, std::max(1, request.threads / teams));
        for (auto& encoding : crew->jobs) encoding->start(request, batches, crew->next());
        crew->run(request.places, status);
        if (status == DONE) encodings_.dismiss(std::move(crew));
        return status;
    }

private:
    template <class Job>
    int search_with(Pool<Job>& pool, const Request& request, Queue& queue, const Choice& choice, int teams, int slots) {
        auto crew = pool.hire(teams, std::max(1, request.threads / teams));
        for (auto& job : crew->jobs) job->start(request, queue, choice, slots, crew->next());
        crew->run(request.places, queue.status);
        if (queue.status != NO_MEMORY && written_into(request, teams * slots) <= LITTLE) pool.dismiss(std::move(crew));
        return queue.status;
    }

    // About the bytes that so many sentences at once are worked on in: a large call gives back what it took.
    size_t written_into(const Request& request, int sentences) const {
        int longest = 0;
        for (int i = 0; i < request.count; i++) longest = std::max(longest, request.starts[i + 1] - request.starts[i]);
        const auto layers = std::max<size_t>(1, model_.decoder.size()), places = (size_t)longest * (size_t)(request.beam + 1);
        const size_t pair = 2 * sizeof(float) * (size_t)model_.shape.d_model;  // key and value of a place, in each layer
        const size_t masses = sizeof(float) * (size_t)request.beam * (size_t)std::min(request.vocab_size, model_.output.n);
        return (size_t)sentences * (places * layers * pair + masses);
    }

    Model model_;
    Pool<Search> searches_;
    Pool<Reading> readings_;
    Pool<Encoding> encodings_;
    Pool<Filling> fillings_;
    Pool<Drafting> draftings_;
};

}  // namespace
}  // namespace regard

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int32_t regard_version() { return 20; }

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

// Sources to memories, or places to what they say.
EXPORT int32_t regard_fill(void* engine, const regard::Fill* request) {
    try {
        return static_cast<regard::Engine*>(engine)->fill(*request);
    } catch (...) {
        return regard::NO_MEMORY;
    }
}

// Read on with a decoder that stands alone; what is new in `after` belongs to the caller until `regard_forget`.
EXPORT int32_t regard_read(void* engine, const regard::Read* request) {
    try {
        return static_cast<regard::Engine*>(engine)->read(*request);
    } catch (...) {
        return regard::NO_MEMORY;
    }
}

EXPORT void regard_forget(regard::Past* past) { delete past; }

// Texts to vectors, with an encoder that stands alone.
EXPORT int32_t regard_encode(void* engine, const regard::Encode* request) {
    try {
        return static_cast<regard::Engine*>(engine)->encode(*request);
    } catch (...) {
        return regard::NO_MEMORY;
    }
}
