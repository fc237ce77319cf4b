// The rows of three public logs as the converter's result, overrides made for them, and faults planted:
// exactly these are found.
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include <doctest/doctest.h>

#include "audit_fixture.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

struct PublicRow {
    double min = 0;
    double max = 0;
};

std::vector<PublicRow> public_rows() {
    std::ifstream file(QCALIB_SOURCE_DIR "/tests/audit/log_rows.txt");
    std::vector<PublicRow> rows;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#')) continue;
        std::istringstream fields(line);
        PublicRow row;
        double delta = 0;
        double offset = 0;
        fields >> row.min >> row.max >> delta >> offset;
        REQUIRE_FALSE(fields.fail());
        CHECK(std::abs(row.min / ((row.max - row.min) / 255) - offset) < 2e-4);
        rows.push_back(row);
    }
    return rows;
}

// The converter's arithmetic, written down once more from its description.
PublicRow on_grid(PublicRow range, int bits) {
    const double codes = std::pow(2.0, bits) - 1;
    const double delta = (range.max - range.min) / codes;
    const double zero = std::min(std::max(std::round(-range.min / delta), 0.0), codes);
    return {-zero * delta, range.max - range.min - zero * delta};
}

double as_float(double value) {
    return static_cast<double>(static_cast<float>(value));
}

class Planter {
  public:
    explicit Planter(unsigned seed) : random_(seed) {}

    // A result of all rows scaled by some factor, and a file for it; what is to be found goes to `expected`.
    void plant(const std::vector<PublicRow>& rows) {
        for (std::size_t i = 0; i < rows.size(); ++i) plant(rows[i], i);
    }

    GivenFile given;
    std::string log;
    std::map<std::string, std::string> expected;

  private:
    double uniform(double low, double high) {
        return low + (high - low) * static_cast<double>(random_() % 1000003) / 1000003.0;
    }

    void plant(PublicRow row, std::size_t index) {
        const std::string name = fmt::format("/block.{}/node_{}_output_0", index, 100 + 37 * index);
        const std::string layer = fmt::format("/block.{}/node_{}", index, 100 + 37 * index);
        const int bits = random_() % 3 == 0 ? 16 : 8;
        // Up to ranges of 1e5.
        const double factor = random_() % 2 == 0 ? 1 : std::pow(10.0, uniform(-0.5, 3.3));
        const PublicRow grid = on_grid({row.min * factor, row.max * factor}, bits);
        const PublicRow exact{as_float(grid.min), as_float(grid.max)};
        const double step = (grid.max - grid.min) / (std::pow(2.0, bits) - 1);
        log += "[INFO] some other line\n";
        switch (random_() % 8) {
            case 0:  // ignored: the converter's own range, another by 3 to 50 % of it
                log += log_row(layer, name, bits, grid.min, grid.max);
                add(name, {exact.min * uniform(0.5, 0.9), exact.max * uniform(0.5, 0.97)}, bits,
                    "recomputed");
                break;
            case 1:
                plant_nudged(name, layer, grid, step, bits);
                break;
            case 2:  // missing
                log += log_row(layer, name, bits, grid.min, grid.max);
                expected[name] = "missing";
                break;
            case 3: {  // misspelt
                std::string wrong = name;
                std::swap(wrong[wrong.size() - 5], wrong[wrong.size() - 4]);
                log += log_row(layer, name, bits, grid.min, grid.max);
                add(wrong, exact, bits, "unused");
                expected[name] = "missing";
                break;
            }
            case 4:  // another width than the one given
                log += log_row(layer, name, bits, grid.min, grid.max);
                add(name, exact, bits == 8 ? 16 : 8, "recomputed");
                break;
            default:
                log += log_row(layer, name, bits, grid.min, grid.max);
                add(name, exact, bits, "applied");
        }
    }

    // A range that lies between codes, by more than printing and float32 could hide; a row without negative
    // values has zero at its end and cannot be moved.
    void plant_nudged(const std::string& name, const std::string& layer, PublicRow grid, double step,
                      int bits) {
        const double shift = uniform(0.1, 0.45) * step;
        const double visible = 1e-6 + 4 * std::max(std::abs(grid.min), std::abs(grid.max)) * 1.2e-7;
        const PublicRow moved{as_float(grid.min + shift), as_float(grid.max + shift)};
        if (grid.min == 0 || shift < 2 * visible) {
            log += log_row(layer, name, bits, grid.min, grid.max);
            add(name, {as_float(grid.min), as_float(grid.max)}, bits, "applied");
            return;
        }
        const PublicRow nudged = on_grid(moved, bits);
        log += log_row(layer, name, bits, nudged.min, nudged.max);
        add(name, moved, bits, "nudged");
    }

    void add(const std::string& name, PublicRow range, int bits, const std::string& status) {
        given.add(name, range.min, range.max, bits);
        expected[name] = status;
    }

    std::mt19937 random_;
};

}  // namespace

TEST_CASE("the 25 public rows with the very ranges given are all applied") {
    const std::vector<PublicRow> rows = public_rows();
    REQUIRE(rows.size() == 25);
    GivenFile given;
    std::string log;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::string name = fmt::format("{}", 1500 + i);
        given.add(name, rows[i].min, rows[i].max);
        log += log_row("Conv_" + name, name, 8, rows[i].min, rows[i].max);
    }
    const AuditResult result = audit_of(given, log);
    CHECK(result.count(Status::applied) == 25);
    CHECK(result.findings.size() == 25);
    CHECK_FALSE(result.objections());
}

TEST_CASE("faults planted on the public rows are found, exactly these, whatever the seed") {
    const std::vector<PublicRow> rows = public_rows();
    std::map<std::string, int> planted;
    for (unsigned seed = 0; seed < 300; ++seed) {
        CAPTURE(seed);
        Planter planter(seed);
        planter.plant(rows);
        const AuditResult result = audit_of(planter.given, planter.log);
        CHECK(result.findings.size() == planter.expected.size());
        for (const auto& [name, status] : planter.expected) {
            CAPTURE(name);
            CAPTURE(cause_of(result, name));
            CHECK(status_of(result, name) == status);
            ++planted[status];
        }
    }
    for (const char* status : {"applied", "nudged", "recomputed", "missing", "unused"})
        CHECK(planted[status] > 300);
}
