// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Files that want to do harm: each must be refused in one sentence that names what is wrong, without a crash
// and without asking for more memory than its limit.
#include <gtest/gtest.h>

#include "../datasets/episode_file.h"
#include "../kernels/error.h"
#include "hdf5_library.h"
#include "largest_request.h"

namespace pwdice {
namespace {

using test::bytes_of;
using test::counting;
using test::LibraryFile;
using test::scratch_file;
using test::write_bytes;

constexpr Hdf5Limits kLimits{.max_bytes = 1 << 20, .max_children = 1000};

// The sentence with which reading array "x" is refused; "" when it is read.
std::string refusal(const std::filesystem::path& path, const char* array = "x") {
  try {
    Hdf5Reader(path, kLimits).read<float>(array);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadFile) << error.what();
    return error.what();
  }
}

void expect_refused(const std::filesystem::path& path, const std::string& reason, const char* array = "x") {
  test::reset_largest_request();
  const std::string sentence = refusal(path, array);
  EXPECT_NE(sentence.find(reason), std::string::npos) << sentence;
  EXPECT_NE(sentence.find(path.string()), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find('\n'), std::string::npos);
  EXPECT_LE(test::largest_request(), size_t{2} << 20) << reason;
}

void plain(const LibraryFile& file, const char* name = "x") {
  file.array(name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, counting(60).data(), {20, 3});
}

std::function<void(hid_t)> chunked(hsize_t rows, hsize_t cols, const std::function<void(hid_t)>& more = {}) {
  return [=](hid_t plist) {
    const hsize_t chunk[] = {rows, cols};
    H5Pset_chunk(plist, 2, chunk);
    if (more) more(plist);
  };
}

TEST(Hostile, NotAFile) {
  expect_refused(scratch_file("missing.h5"), "does not exist");
  std::filesystem::create_directories(scratch_file("folder.h5"));
  expect_refused(scratch_file("folder.h5"), "is not a file");
  write_bytes(scratch_file("empty.h5"), {});
  expect_refused(scratch_file("empty.h5"), "is not an HDF5 file");
  write_bytes(scratch_file("text.h5"), std::vector<char>(5000, 'x'));
  expect_refused(scratch_file("text.h5"), "is not an HDF5 file");
}

TEST(Hostile, Links) {
  const auto path = scratch_file("links.h5");
  {
    const LibraryFile file(path);
    plain(file);
    H5Lcreate_external("/etc/passwd", "/x", file.id, "external", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/x", file.id, "soft", H5P_DEFAULT, H5P_DEFAULT);
  }
  EXPECT_EQ(refusal(path), "");
  expect_refused(path, "is a link to another place or file", "external");
  expect_refused(path, "is a link to another place or file", "soft");
  expect_refused(path, "does not exist", "y");
}

TEST(Hostile, DataKeptElsewhere) {
  const auto path = scratch_file("elsewhere.h5");
  {
    const LibraryFile file(path);
    file.array("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, nullptr, {20, 3},
               [](hid_t plist) { H5Pset_external(plist, "/etc/passwd", 0, 240); });
    file.array("virtual", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, nullptr, {20, 3}, [](hid_t plist) {
      const hsize_t dims[] = {20, 3};
      const hid_t space = H5Screate_simple(2, dims, nullptr);
      H5Pset_virtual(plist, space, "/etc/passwd", "x", space);
      H5Sclose(space);
    });
  }
  expect_refused(path, "keeps its data in another file");
  expect_refused(path, "is a virtual array", "virtual");
}

TEST(Hostile, UnknownFilters) {
  const auto path = scratch_file("filters.h5");
  {
    const LibraryFile file(path);
    file.array("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, counting(60).data(), {20, 3},
               chunked(5, 3, [](hid_t plist) { H5Pset_fletcher32(plist); }));
    file.array("mine", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, nullptr, {20, 3}, chunked(5, 3, [](hid_t plist) {
                 H5Pset_filter(plist, 32001, H5Z_FLAG_OPTIONAL, 0, nullptr);
               }));
  }
  expect_refused(path, "uses filter 3; only deflate (1) and shuffle (2)");
  expect_refused(path, "uses filter 32001", "mine");
}

TEST(Hostile, Types) {
  const auto path = scratch_file("types.h5");
  {
    const LibraryFile file(path);
    const hid_t compound = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(compound, "a", 0, H5T_NATIVE_FLOAT);
    H5Tinsert(compound, "b", 4, H5T_NATIVE_FLOAT);
    file.array("x", compound, compound, counting(10).data(), {5});
    H5Tclose(compound);
    const hid_t half = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(half, 15, 10, 5, 0, 10);
    H5Tset_size(half, 2);
    file.array("half", half, H5T_NATIVE_FLOAT, counting(10).data(), {10});
    H5Tclose(half);
    const hid_t named = H5Tcopy(H5T_IEEE_F32LE);
    H5Tcommit2(file.id, "type", named, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    file.array("named", named, H5T_NATIVE_FLOAT, counting(10).data(), {10});
    H5Tclose(named);
    const int32_t whole[] = {1, 2};
    file.array("integers", H5T_STD_I32LE, H5T_NATIVE_INT32, whole, {2});
  }
  expect_refused(path, "has a type other than");
  expect_refused(path, "has a type other than", "half");
  expect_refused(path, "named or shared type", "named");
  expect_refused(path, "does not hold floats", "integers");
  expect_refused(path, "is not an array", "type");
}

TEST(Hostile, AbsurdSizes) {
  const auto path = scratch_file("sizes.h5");
  {
    const LibraryFile file(path);
    file.array("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, nullptr, {hsize_t{1} << 40, 11}, chunked(1024, 11));
    file.array("contiguous", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, nullptr, {100'000, 1});
    file.array("unwritten", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, nullptr, {100'000, 1}, chunked(10, 1));
    file.array("chunk", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, counting(2).data(), {2, 1},
               chunked(1 << 28, 1, [](hid_t plist) { H5Pset_deflate(plist, 9); }), {H5S_UNLIMITED, 1});
    file.array("over", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, counting(150'000).data(), {150'000, 1});
  }
  expect_refused(path, "is too large: the limit is 131072 values");
  expect_refused(path, "is too large", "over");
  expect_refused(path, "of its 400000 bytes only 0 were written", "contiguous");
  expect_refused(path, "was never written", "unwritten");
  expect_refused(path, "chunks too large or too many", "chunk");
}

TEST(Hostile, ClaimsBeyondTheFile) {
  const auto path = scratch_file("claims.h5");
  {
    const LibraryFile file(path);
    file.array("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, nullptr, {130'000, 1}, chunked(10, 1));
  }
  expect_refused(path, "more than a file of");
}

// A chunk whose stream inflates to more than the chunk holds, or to less: 4 MB of zeros, 40 bytes.
TEST(Hostile, DeflateBomb) {
  const auto path = scratch_file("bomb.h5");
  for (const hsize_t rows : {hsize_t{1'000'000}, hsize_t{10}}) {
    {
      const LibraryFile file(path);
      const auto deflated = [](hid_t plist) { H5Pset_deflate(plist, 9); };
      const float zero = 0;
      const hsize_t corner[] = {0, 0}, one[] = {1, 1};
      file.array("source", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, nullptr, {rows, 1}, chunked(rows, 1, deflated));
      file.array("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, nullptr, {256, 4}, chunked(256, 4, deflated));
      const hid_t source = H5Dopen2(file.id, "source", H5P_DEFAULT),
                  target = H5Dopen2(file.id, "x", H5P_DEFAULT);
      const hid_t space = H5Dget_space(source), scalar = H5Screate(H5S_SCALAR);
      H5Sselect_hyperslab(space, H5S_SELECT_SET, corner, nullptr, one, nullptr);
      H5Dwrite(source, H5T_NATIVE_FLOAT, scalar, space, H5P_DEFAULT,
               &zero);  // the library fills up the chunk
      H5Dflush(source);
      hsize_t bytes = 0;
      uint32_t skipped = 0;
      H5Dget_chunk_storage_size(source, corner, &bytes);
      std::vector<char> stream(bytes);
      H5Dread_chunk(source, H5P_DEFAULT, corner, &skipped, stream.data());
      stream.resize(std::min<size_t>(stream.size(), 4000));  // a beginning is enough to overrun the chunk
      H5Dwrite_chunk(target, H5P_DEFAULT, 0, corner, stream.size(), stream.data());
      H5Sclose(scalar);
      H5Sclose(space);
      H5Dclose(source);
      H5Dclose(target);
    }
    expect_refused(path, "do not give 4096 bytes");
  }
}

TEST(Hostile, EveryTruncationIsNoticed) {
  const auto whole = scratch_file("whole.h5"), cut = scratch_file("cut.h5");
  {
    const LibraryFile file(whole);
    file.array("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, counting(600).data(), {200, 3},
               chunked(50, 3, [](hid_t plist) { H5Pset_deflate(plist, 6); }));
  }
  const std::vector<char> bytes = bytes_of(whole);
  for (size_t n = 0; n < bytes.size(); n += 61) {
    write_bytes(cut, {bytes.begin(), bytes.begin() + static_cast<int64_t>(n)});
    EXPECT_NE(refusal(cut), "") << n;
  }
}

// One byte wrong, anywhere: read or refused, never worse. Sanitizers watch.
TEST(Hostile, EveryDamagedByteIsSurvived) {
  for (const bool newest : {false, true}) {
    const auto path = scratch_file("good.h5");
    {
      const LibraryFile file(path, [&](LibraryFile& f) {
        if (newest) H5Pset_libver_bounds(f.access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
        H5Pset_link_creation_order(f.creation, newest ? H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED : 0u);
      });
      file.array("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, counting(60).data(), {20, 3},
                 chunked(6, 2, [](hid_t plist) { H5Pset_deflate(plist, 6); }));
      for (int k = 0; k < 12; ++k) plain(file, ("y" + std::to_string(k)).c_str());
    }
    std::vector<char> bytes = bytes_of(path);
    int read = 0;
    test::reset_largest_request();
    for (size_t n = 0; n < bytes.size(); ++n) {
      const char old = bytes[n];
      for (const char damage : {static_cast<char>(0xff), static_cast<char>(old ^ 0x10)}) {
        bytes[n] = damage;
        try {
          const Hdf5Reader file(std::as_bytes(std::span(bytes)), "damaged", kLimits);
          for (const std::string& child : file.children("")) file.read<float>(child);
          ++read;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::BadFile);
        }
      }
      bytes[n] = old;
    }
    EXPECT_GT(read, 0);
    EXPECT_LE(test::largest_request(), size_t{4} << 20);
  }
}

// Structures that point back at themselves must end.
TEST(Hostile, GroupThatContainsItself) {
  const auto path = scratch_file("cycle.h5");
  {
    const LibraryFile file(path);
    const hid_t group = H5Gcreate2(file.id, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file.id, "/g", group, "g", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
  }
  const Hdf5Reader reader(path);
  EXPECT_TRUE(reader.is_group("g/g/g/g"));
  expect_refused(path, "is not an array", "g/g");
}

TEST(Hostile, TooManyMembers) {
  const auto path = scratch_file("members.h5");
  {
    const LibraryFile file(path);
    for (int k = 0; k < 1001; ++k)
      H5Gclose(H5Gcreate2(file.id, std::to_string(k).c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  expect_refused(path, "too many members");
  EXPECT_EQ(Hdf5Reader(path).children("").size(), 1001u);
}

}  // namespace
}  // namespace pwdice
