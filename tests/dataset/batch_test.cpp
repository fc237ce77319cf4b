#include "dataset/batch.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/files.h"
#include "dataset/sample_list.h"
#include "dataset/sample_reader.h"
#include "support/temporary_folder.h"
#include "tensor/npy.h"

using namespace qcalib;
using qcalib::test::TemporaryFolder;

namespace {

const InputSpec batch_of_two = {"x", DataType::float32, {2, 3}, true};

std::filesystem::path write_row(const TemporaryFolder& folder, const std::string& name, Shape shape,
                                const std::vector<float>& values) {
    write_npy(folder / name, Tensor::of<float>(std::move(shape), values).view());
    return folder / name;
}

std::vector<ListEntry> entries_of(const std::vector<std::filesystem::path>& files) {
    std::vector<ListEntry> entries;
    for (const auto& file : files) entries.push_back({entries.size() + 1, {file}});
    return entries;
}

}  // namespace

TEST_CASE("single items of a fixed batch are grouped, and a short last group is dropped and counted") {
    const TemporaryFolder folder;
    const std::vector<InputSpec> inputs = {batch_of_two};
    const auto entries =
        entries_of({write_row(folder, "a.npy", {1, 3}, {1, 2, 3}), write_row(folder, "b.npy", {3}, {4, 5, 6}),
                    write_row(folder, "c.npy", {1, 3}, {7, 8, 9})});
    Selection selection;
    selection.group = group_size(entries, inputs);
    CHECK(selection.group == 2);
    const SelectedSamples samples = select_samples(entries, selection);
    CHECK(samples.selected == 1);
    CHECK(samples.dropped == 1);
    const SampleReader reader(inputs, {});
    const Tensor batch = reader.read(samples.samples[0]).front();
    CHECK(batch.shape() == Shape{2, 3});
    CHECK(numbers_of(batch.view()) == std::vector<double>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("a line that holds the whole batch is one sample") {
    const TemporaryFolder folder;
    const std::vector<InputSpec> inputs = {batch_of_two};
    const auto entries = entries_of({write_row(folder, "a.npy", {2, 3}, {1, 2, 3, 4, 5, 6})});
    CHECK(group_size(entries, inputs) == 1);
}

TEST_CASE("raw files tell an item from a batch by their size, missing files decide nothing") {
    const TemporaryFolder folder;
    const std::vector<InputSpec> inputs = {batch_of_two};
    write_file(folder / "item.raw", std::string(12, '\0'));
    write_file(folder / "batch.raw", std::string(24, '\0'));
    CHECK(group_size(entries_of({folder / "none.raw", folder / "item.raw"}), inputs) == 2);
    CHECK(group_size(entries_of({folder / "batch.raw"}), inputs) == 1);
    CHECK(group_size(entries_of({folder / "none.raw"}), inputs) == 1);
}

TEST_CASE("inputs without a fixed batch above 1 are never grouped") {
    const TemporaryFolder folder;
    const auto entries = entries_of({write_row(folder, "a.npy", {1, 3}, {1, 2, 3})});
    CHECK(group_size(entries, std::vector<InputSpec>{{"x", DataType::float32, {1, 3}, true}}) == 1);
    CHECK(group_size(entries, std::vector<InputSpec>{{"x", DataType::float32, {std::nullopt, 3}, true}}) ==
          1);
}

TEST_CASE("items of different shapes in one batch are refused by name") {
    const TemporaryFolder folder;
    const std::vector<InputSpec> inputs = {{"x", DataType::float32, {2, std::nullopt}, true}};
    const auto entries = entries_of(
        {write_row(folder, "a.npy", {1, 3}, {1, 2, 3}), write_row(folder, "b.npy", {1, 2}, {4, 5})});
    Selection selection;
    selection.group = 2;
    const SelectedSamples samples = select_samples(entries, selection);
    const SampleReader reader(inputs, {});
    const std::string message = qcalib::test::message_of<Error>([&] { reader.read(samples.samples[0]); });
    CHECK(message.starts_with((folder / "b.npy").string() + ": expected shape [1,3]"));
}

TEST_CASE("an input that no line of a batch names has its own value, and some naming it is an error") {
    const TemporaryFolder folder;
    std::vector<InputSpec> inputs = {batch_of_two, {"rate", DataType::float32, {2}, true}};
    inputs[1].otherwise = Tensor::of<float>({2}, std::vector<float>{8, 9});
    const std::filesystem::path row = write_row(folder, "a.npy", {3}, {1, 2, 3});
    const std::filesystem::path rate = write_row(folder, "rate.npy", {1}, {5});
    const SampleReader reader(inputs, {});
    const std::vector<Tensor> tensors = reader.read(SelectedSample{0, {{1, {row, {}}}, {2, {row, {}}}}});
    CHECK(numbers_of(tensors[1].view()) == std::vector<double>{8, 9});
    const std::string message = test::message_of<Error>([&] {
        reader.read(SelectedSample{0, {{1, {row, {}}}, {2, {row, rate}}}});
    });
    CHECK(message == rate.string() + ": line 1 of the same batch names no file for input 'rate'");
}
