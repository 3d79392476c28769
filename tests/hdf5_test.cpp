// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <gtest/gtest.h>

#include <numeric>

#include "../datasets/hdf5_file.h"
#include "../kernels/error.h"
#include "hdf5_library.h"

namespace pwdice {
namespace {

using test::counting;
using test::LibraryFile;
using test::scratch_file;
using Shape = std::vector<int64_t>;

template <class T>
void round_trip(const std::vector<T>& values) {
  Hdf5Writer writer;
  const Shape shape = {static_cast<int64_t>(values.size())};
  writer.write<T>("a/b/values", values, shape);
  const Hdf5Reader reader(writer.bytes(), "memory");
  EXPECT_EQ(reader.read<T>("a/b/values"), values);
  EXPECT_EQ(reader.info("a/b/values").shape, shape);
}

TEST(Hdf5, EveryTypeComesBack) {
  round_trip<float>({1.5f, -0.f, 3e38f});
  round_trip<double>({1.5, 1e300});
  round_trip<uint8_t>({0, 255});
  round_trip<int32_t>({-5, 1 << 30});
  round_trip<int64_t>({-5, int64_t{1} << 60});
  round_trip<uint64_t>({5, ~uint64_t{0}});
}

TEST(Hdf5, GroupsStringsAndAttributes) {
  Hdf5Writer writer;
  const float x = 2.5f;
  writer.write<float>("g/scalar", std::span(&x, 1), {});
  writer.write_string("g/text", "größer");
  writer.write_string("g/empty", "");
  writer.group("g/inner");
  writer.attribute("g", "name", "policy");
  writer.attribute("", "answer", int64_t{42});
  writer.attribute("g/scalar", "ratio", 0.25);
  for (int64_t k = 0; k < 40; ++k) writer.attribute("g/inner", "a" + std::to_string(k), k);
  const Hdf5Reader reader(writer.bytes(), "memory");
  EXPECT_EQ(reader.children("g"), (std::vector<std::string>{"empty", "inner", "scalar", "text"}));
  EXPECT_TRUE(reader.is_group("g/inner") && reader.is_group("") && !reader.is_group("g/text"));
  EXPECT_TRUE(reader.has("g/text") && !reader.has("g/nothing") && !reader.has("g/text/deeper"));
  EXPECT_EQ(reader.read<float>("g/scalar"), (std::vector<float>{2.5f}));
  EXPECT_TRUE(reader.info("g/scalar").shape.empty());
  EXPECT_EQ(reader.read_string("g/text"), "größer");
  EXPECT_EQ(reader.read_string("g/empty"), "");
  EXPECT_EQ(reader.string_attribute("g", "name"), "policy");
  EXPECT_EQ(reader.integer_attribute("", "answer"), 42);
  EXPECT_EQ(reader.real_attribute("", "answer"), 42.0);
  EXPECT_EQ(reader.real_attribute("g/scalar", "ratio"), 0.25);
  EXPECT_EQ(reader.integer_attribute("g/inner", "a39"), 39);
  EXPECT_FALSE(reader.has_attribute("g", "other"));
  EXPECT_THROW(reader.string_attribute("", "answer"), Error);
  EXPECT_THROW(reader.integer_attribute("g", "name"), Error);
}

TEST(Hdf5, EqualContentGivesEqualBytes) {
  const auto make = [] {
    Hdf5Writer writer;
    writer.write<float>("x/y", counting(12), Shape{4, 3}, {{2, 3}, 6, true});
    writer.attribute("x", "name", "a");
    return writer.bytes();
  };
  EXPECT_EQ(make(), make());
}

TEST(Hdf5, ChunksOfEveryShapeComeBack) {
  const int64_t rows = 137, cols = 11;
  const std::vector<float> values = counting(rows * cols);
  for (const Shape& chunk :
       {Shape{137, 11}, Shape{16, 11}, Shape{50, 1}, Shape{7, 4}, Shape{1, 11}, Shape{1000, 20}}) {
    for (const int gzip : {0, 1, 9}) {
      for (const bool shuffle : {false, true}) {
        Hdf5Writer writer;
        writer.write<float>("x", values, Shape{rows, cols}, {chunk, gzip, shuffle});
        const Hdf5Reader reader(writer.bytes(), "memory");
        EXPECT_EQ(reader.read<float>("x"), values) << chunk[0] << " x " << chunk[1] << " gzip " << gzip;
      }
    }
  }
}

TEST(Hdf5, LargeArraysAreReadByManyThreads) {
  const std::vector<float> values = counting(400'000);
  Hdf5Writer writer(scratch_file("large.h5"));
  writer.write<float>("x", values, Shape{40'000, 10}, {{1000, 10}, 4, true});
  writer.commit();
  EXPECT_EQ(Hdf5Reader(scratch_file("large.h5")).read<float>("x"), values);
}

TEST(Hdf5, MoreDimensionsAndNone) {
  Hdf5Writer writer;
  writer.write<float>("cube", counting(5 * 6 * 7), Shape{5, 6, 7}, {{2, 4, 3}, 3, true});
  writer.write<float>("nothing", {}, Shape{0, 3});
  const Hdf5Reader reader(writer.bytes(), "memory");
  EXPECT_EQ(reader.read<float>("cube"), counting(5 * 6 * 7));
  EXPECT_EQ(reader.read<float>("nothing"), std::vector<float>{});
}

TEST(Hdf5, NumbersConvertWhenTheyFit) {
  Hdf5Writer writer;
  writer.write<double>("real", std::vector<double>{0.5, -2}, Shape{2});
  writer.write<double>("huge", std::vector<double>{1e300}, Shape{1});
  writer.write<int64_t>("whole", std::vector<int64_t>{3, 200}, Shape{2});
  writer.write_bool("flags", std::vector<uint8_t>{0, 1, 1}, Shape{3, 1});
  const Hdf5Reader reader(writer.bytes(), "memory");
  EXPECT_EQ(reader.read<float>("real"), (std::vector<float>{0.5f, -2.f}));
  EXPECT_EQ(reader.read<uint8_t>("whole"), (std::vector<uint8_t>{3, 200}));
  EXPECT_EQ(reader.info("flags").type, Hdf5Type::Bool);
  EXPECT_EQ(reader.read<int32_t>("flags"), (std::vector<int32_t>{0, 1, 1}));
  EXPECT_THROW(reader.read<float>("huge"), Error);
  EXPECT_THROW(reader.read<float>("whole"), Error);
  EXPECT_THROW(reader.read<int32_t>("real"), Error);
  std::vector<float> wrong(3);
  EXPECT_THROW(reader.read_into<float>("real", wrong), Error);
}

TEST(Hdf5, AFileAppearsWholeOrNotAtAll) {
  const auto path = scratch_file("atomic.h5");
  {
    Hdf5Writer writer(path);
    writer.write<float>("x", counting(3), Shape{3});
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  Hdf5Writer writer(path);
  writer.write<float>("x", counting(3), Shape{3});
  writer.commit();
  EXPECT_EQ(Hdf5Reader(path).read<float>("x"), counting(3));
  EXPECT_THROW(writer.write<float>("y", counting(3), Shape{3}), Error);
  EXPECT_THROW(Hdf5Writer(scratch_file("no/such/directory/x.h5")), Error);
}

// What other programs write: older and newer versions of the format, and its options.
struct Variant {
  const char* name;
  std::function<void(LibraryFile&)> configure;
};
class Hdf5Variant : public testing::TestWithParam<Variant> {};

TEST_P(Hdf5Variant, IsReadLikeTheDefault) {
  const auto path = scratch_file(std::string(GetParam().name) + ".h5");
  const std::vector<float> values = counting(1000 * 6);
  const std::vector<int16_t> small = {-3, 2, 300};
  const hsize_t columns[] = {300, 1}, rows[] = {64, 6}, tiny[] = {3, 2};
  const auto chunked = [](const hsize_t* chunk) {
    return [chunk](hid_t plist) {
      H5Pset_chunk(plist, 2, chunk);
      H5Pset_shuffle(plist);
      H5Pset_deflate(plist, 6);
    };
  };
  {
    LibraryFile file(path, GetParam().configure);
    file.array("plain", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, values.data(), {1000, 6});
    file.array("big_endian", H5T_IEEE_F32BE, H5T_NATIVE_FLOAT, values.data(), {1000, 6});
    file.array("wide", H5T_IEEE_F64BE, H5T_NATIVE_FLOAT, values.data(), {1000, 6}, chunked(rows));
    file.array("small", H5T_STD_I16BE, H5T_NATIVE_INT16, small.data(), {3});
    file.array("columns", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, values.data(), {1000, 6}, chunked(columns));
    file.array("rows", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, values.data(), {1000, 6}, chunked(rows));
    file.array("tiny", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, values.data(), {1000, 6}, chunked(tiny));
    file.array("one", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, values.data(), {64, 6}, chunked(rows));
    file.array("unfiltered", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, values.data(), {1000, 6},
               [&](hid_t plist) { H5Pset_chunk(plist, 2, rows); });
    file.array("early", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, values.data(), {1000, 6}, [&](hid_t plist) {
      H5Pset_chunk(plist, 2, rows);
      H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY);
    });
    file.array("compact", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, values.data(), {10, 6},
               [](hid_t plist) { H5Pset_layout(plist, H5D_COMPACT); });
  }
  const Hdf5Reader reader(path);
  EXPECT_EQ(reader.children("").size(), 11u);
  for (const char* name : {"plain", "big_endian", "columns", "rows", "tiny", "unfiltered", "early"}) {
    EXPECT_EQ(reader.read<float>(name), values) << name;
  }
  EXPECT_EQ(reader.read<float>("wide"), values);
  EXPECT_EQ(reader.read<int64_t>("small"), (std::vector<int64_t>{-3, 2, 300}));
  EXPECT_EQ(reader.read<float>("one"), std::vector<float>(values.begin(), values.begin() + 64 * 6));
  EXPECT_EQ(reader.read<float>("compact"), std::vector<float>(values.begin(), values.begin() + 60));
}

INSTANTIATE_TEST_SUITE_P(
    Formats, Hdf5Variant,
    testing::Values(
        Variant{"default", {}},
        Variant{"newest",
                [](LibraryFile& f) { H5Pset_libver_bounds(f.access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST); }},
        Variant{"version18",
                [](LibraryFile& f) { H5Pset_libver_bounds(f.access, H5F_LIBVER_V18, H5F_LIBVER_V18); }},
        Variant{"tracked",
                [](LibraryFile& f) {
                  H5Pset_link_creation_order(f.creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
                }},
        Variant{"user_block", [](LibraryFile& f) { H5Pset_userblock(f.creation, 1024); }},
        Variant{"small_addresses", [](LibraryFile& f) { H5Pset_sizes(f.creation, 4, 4); }}),
    [](const auto& variant) { return variant.param.name; });

// Minari tracks the order of its episodes, which moves more than eight of them into a fractal heap.
TEST(Hdf5, ThousandsOfTrackedGroups) {
  const auto path = scratch_file("many.h5");
  const float value = 4;
  {
    LibraryFile file(path, [](LibraryFile& f) {
      H5Pset_link_creation_order(f.creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    });
    for (int k = 0; k < 3000; ++k) {
      file.array(("episode_" + std::to_string(k)).c_str(), H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, &value, {1});
    }
  }
  const Hdf5Reader reader(path);
  EXPECT_EQ(reader.children("").size(), 3000u);
  EXPECT_EQ(reader.read<float>("episode_2999"), (std::vector<float>{4}));
  EXPECT_FALSE(reader.has("episode_3000"));
}

TEST(Hdf5, StringsOfVariableLength) {
  const auto path = scratch_file("strings.h5");
  {
    LibraryFile file(path);
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    const hid_t space = H5Screate(H5S_SCALAR);
    for (int k = 0; k < 20; ++k) {
      const std::string text = "value " + std::to_string(k) + std::string(static_cast<size_t>(k), 'x');
      const char* pointer = text.c_str();
      const hid_t a =
          H5Acreate2(file.id, ("a" + std::to_string(k)).c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT);
      H5Awrite(a, type, &pointer);
      H5Aclose(a);
    }
    H5Sclose(space);
    H5Tclose(type);
  }
  const Hdf5Reader reader(path);
  EXPECT_EQ(reader.string_attribute("", "a0"), "value 0");
  EXPECT_EQ(reader.string_attribute("", "a19"), "value 19" + std::string(19, 'x'));
}

}  // namespace
}  // namespace pwdice
