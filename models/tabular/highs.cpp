// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// HiGHS (MIT licence) through its C interface. Its Python wheel ships the shared library without headers, so
// the few prototypes used are declared here; HighsInt is int in that build, which is checked before first
// use.
#include "highs.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "../../kernels/error.h"

namespace pwdice::tabular {
namespace {

constexpr int kColumnwise = 1, kMinimise = 1;
constexpr int kStatusError = -1;
constexpr int kModelOptimal = 7;
const char* const kFix =
    "install it with tools/setup.sh --tests (pip package highspy) or set PWDICE_HIGHS_LIBRARY to libhighs.so";

// The loaded library. It stays loaded for the life of the process: HiGHS keeps per-thread state.
class HighsLibrary {
 public:
  static const HighsLibrary& get() {
    static const HighsLibrary library;
    return library;
  }

  std::string missing;  // why the library cannot be used; empty if it can

  void* (*create)() = nullptr;
  void (*destroy)(void*) = nullptr;
  int (*size_of_int)(const void*) = nullptr;
  int (*set_bool)(void*, const char*, int) = nullptr;
  int (*set_int)(void*, const char*, int) = nullptr;
  int (*set_double)(void*, const char*, double) = nullptr;
  int (*set_string)(void*, const char*, const char*) = nullptr;
  int (*pass_lp)(void*, int columns, int rows, int entries, int format, int sense, double offset,
                 const double* cost, const double* column_lower, const double* column_upper,
                 const double* row_lower, const double* row_upper, const int* start, const int* index,
                 const double* value) = nullptr;
  int (*run)(void*) = nullptr;
  int (*model_status)(const void*) = nullptr;
  double (*objective)(const void*) = nullptr;
  int (*solution)(const void*, double* x, double* x_dual, double* row, double* row_dual) = nullptr;
  double (*infinity)(const void*) = nullptr;

 private:
  HighsLibrary() {
    void* handle = open_first();
    if (!handle) return;
    bool complete = true;
    const auto load = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
      if (!function) complete = false;
    };
    load(create, "Highs_create");
    load(destroy, "Highs_destroy");
    load(size_of_int, "Highs_getSizeofHighsInt");
    load(set_bool, "Highs_setBoolOptionValue");
    load(set_int, "Highs_setIntOptionValue");
    load(set_double, "Highs_setDoubleOptionValue");
    load(set_string, "Highs_setStringOptionValue");
    load(pass_lp, "Highs_passLp");
    load(run, "Highs_run");
    load(model_status, "Highs_getModelStatus");
    load(objective, "Highs_getObjectiveValue");
    load(solution, "Highs_getSolution");
    load(infinity, "Highs_getInfinity");
    if (!complete) missing = std::string("the HiGHS library lacks a C function this code needs; ") + kFix;
  }

  void* open_first() {
    std::string tried;
    const char* from_environment = std::getenv("PWDICE_HIGHS_LIBRARY");
    for (const char* path :
         {from_environment, PWDICE_HIGHS_LIBRARY_DEFAULT, "libhighs.so.1", "libhighs.so"}) {
      if (!path || !*path) continue;
      if (void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return handle;
      tried += tried.empty() ? path : std::string(", ") + path;
    }
    missing = "the LP solver HiGHS was not found (tried " + tried + "); " + kFix;
    return nullptr;
  }
};

struct Destroy {
  void operator()(void* highs) const { HighsLibrary::get().destroy(highs); }
};

// One attempt with the named method; false if HiGHS does not report an optimum.
bool attempt(const LinearProgramme& lp, const char* method, LpAnswer& answer) {
  const HighsLibrary& api = HighsLibrary::get();
  const std::unique_ptr<void, Destroy> highs(api.create());
  PWDICE_CHECK(highs && api.size_of_int(highs.get()) == sizeof(int),
               "lp: this HiGHS was built with 64-bit indices");
  api.set_bool(highs.get(), "output_flag", 0);
  api.set_int(highs.get(), "threads", 1);
  api.set_string(highs.get(), "parallel", "off");
  api.set_string(highs.get(), "solver", method);
  api.set_double(highs.get(), "primal_feasibility_tolerance", 1e-9);
  api.set_double(highs.get(), "dual_feasibility_tolerance", 1e-9);

  const int columns = lp.n_columns();
  const std::vector<double> lower(lp.cost.size(), 0.0), upper(lp.cost.size(), api.infinity(highs.get()));
  const int passed =
      api.pass_lp(highs.get(), columns, lp.n_rows, static_cast<int>(lp.value.size()), kColumnwise, kMinimise,
                  0.0, lp.cost.data(), lower.data(), upper.data(), lp.b.data(), lp.b.data(),
                  lp.column_start.data(), lp.row_index.data(), lp.value.data());
  if (passed == kStatusError)
    fail(ErrorCode::Internal, "lp: HiGHS refused the programme of {} columns", columns);
  if (api.run(highs.get()) == kStatusError || api.model_status(highs.get()) != kModelOptimal) return false;
  answer.x.resize(lp.cost.size());
  std::vector<double> x_dual(lp.cost.size()), row(lp.b.size()), row_dual(lp.b.size());
  if (api.solution(highs.get(), answer.x.data(), x_dual.data(), row.data(), row_dual.data()) == kStatusError)
    return false;
  answer.objective = api.objective(highs.get());
  answer.solver = method;
  return true;
}

}  // namespace

void LinearProgramme::add_column(double column_cost) {
  cost.push_back(column_cost);
  column_start.push_back(column_start.back());
}

void LinearProgramme::add_entry(int row, double coefficient) {
  if (coefficient == 0) return;
  row_index.push_back(row);
  value.push_back(coefficient);
  ++column_start.back();
}

std::string highs_missing_reason() { return HighsLibrary::get().missing; }

LpAnswer solve_lp(const LinearProgramme& programme) {
  const std::string reason = highs_missing_reason();
  if (!reason.empty()) fail(ErrorCode::Unsupported, "lp: {}", reason);
  LpAnswer answer;
  for (const char* method : {"simplex", "ipm"})
    if (attempt(programme, method, answer)) return answer;
  fail(ErrorCode::Internal, "lp: HiGHS found no optimum of a programme of {} rows and {} columns",
       programme.n_rows, programme.n_columns());
}

}  // namespace pwdice::tabular
