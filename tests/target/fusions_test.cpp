#include "target/fusions.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "assignment_fixture.h"
#include "base/text.h"
#include "target/needed_tensors.h"

using namespace qcalib;
using test::AssignmentFixture;
using test::names_of;
using Names = std::vector<std::string>;

namespace {

// Nodes written as "y = Add(x, 3)": numbers become constants, names that nothing makes graph inputs.
class Written {
  public:
    explicit Written(const std::vector<std::string>& statements) {
        for (const std::string& statement : statements) add(statement);
        fixture.graph.outputs = {fixture.value(last_)};
    }

    Names inside() const {
        const Fusions fusions = find();
        Names names;
        for (const Value& value : fixture.graph.values) {
            if (fusions.vanishes(fixture.graph.find(value.name))) names.push_back(value.name);
        }
        return names;
    }
    Names labels() const {
        const Fusions fusions = find();
        Names names;
        for (const Fusion& fusion : fusions.all()) names.push_back(fusions.label(fusion));
        return names;
    }

    AssignmentFixture fixture;

  private:
    Fusions find() const { return {fixture.graph, constants_of(fixture.graph), fixture.target}; }

    void add(const std::string& statement) {
        const std::size_t equals = statement.find(" = ");
        const std::size_t open = statement.find('(');
        std::vector<std::string> inputs;
        for (const std::string& part : split(statement.substr(open + 1, statement.size() - open - 2), ',')) {
            inputs.emplace_back(operand(std::string(trim(part))));
        }
        last_ = statement.substr(0, equals);
        fixture.node(statement.substr(equals + 3, open - equals - 3), inputs, {last_});
    }

    std::string operand(const std::string& text) {
        if (text.find_first_not_of("0123456789.-") != std::string::npos) {
            const ValueId value = fixture.value(text);
            const bool made = fixture.graph.values[value].producer != no_node;
            const bool known = made || fixture.graph.values[value].initializer || text == "x" || text == "z";
            if (!known)
                fixture.graph.values[value].initializer = Tensor::of<float>({2}, std::vector<float>{1, 2});
            return text;
        }
        const std::string name = "c" + std::to_string(constants_++);
        fixture.graph.values[fixture.value(name)].initializer =
            Tensor::of<float>({}, std::vector<float>{std::stof(text)});
        return name;
    }

    std::size_t constants_ = 0;
    std::string last_;
};

}  // namespace

TEST_CASE("a form says where it cannot be read") {
    const auto error = [](const std::string& text) {
        return test::message_of<Error>([&] { parse_pattern_form(text); });
    };
    CHECK(error("a = Add(x, 3); y = Mul(a, x)").empty());
    CHECK(error("").find("expected the name of a result at character 1, found ''") == 0);
    CHECK(error("a = Add(x, 3)").find("expected two statements or more at character 14") == 0);
    CHECK(error("a = Add(x, ?); y = Neg(a)")
              .find("expected an operand at character 12, found '?); y = Neg(a)'") == 0);
    CHECK(error("a = Add(x, 3) y = Neg(a)").find("expected ';' or the end at character 15") == 0);
    CHECK(error("a = Add(x, 1.2.3); y = Neg(a)").find("expected a number at character 12") == 0);
    CHECK(error("a = Neg(x); a = Neg(a)").find("expected a new name before this one") == 0);
    CHECK(error("a = Neg(x); b = Neg(x)").find("expected a later statement that reads 'a'") == 0);
    CHECK(error("a = Neg{k}(x); b = Neg(a)").find("expected '=' at character 10") == 0);
    CHECK(error("a = Neg(#w[); b = Neg(a)").find("expected ']' at character 12") == 0);
}

TEST_CASE("any prefix and any damaged byte of a form is read or refused, never worse") {
    const std::string form = "a = Add|Sub{k=1.5}(x, 3); c = Clip(a, #w[], %b); y = Mul(x, c)";
    const auto read = [](const std::string& text) {
        try {
            parse_pattern_form(text);
        } catch (const Error&) {
            return false;
        }
        return true;
    };
    CHECK(read(form));
    for (std::size_t i = 0; i < form.size(); ++i) {
        read(form.substr(0, i));
        for (const char damage : {'\0', '\xff', '(', ';', '#', '|', '1', 'x', ' '}) {
            std::string text = form;
            text[i] = damage;
            read(text);
        }
    }
}

TEST_CASE("a HardSwish is found in each form that exporters give it") {
    const std::vector<std::vector<std::string>> forms = {
        {"a = Add(x, 3)", "c = Clip(a, 0, 6)", "m = Mul(x, c)", "y = Div(m, 6)"},
        {"a = Add(3, x)", "c = Clip(a, 0, 6)", "m = Mul(c, x)", "y = Mul(0.16666667, m)"},
        {"a = Add(x, 3)", "c = Clip(a, 0, 6)", "d = Div(c, 6)", "y = Mul(d, x)"},
        {"a = Add(x, 3)", "c = Clip(a, 0, 6)", "d = Mul(c, 0.1666667)", "y = Mul(x, d)"},
    };
    for (const std::vector<std::string>& form : forms) {
        const Written written(form);
        CHECK(written.labels() == Names{"Hswish making 'y'"});
        CHECK(written.inside().size() == 3);
    }
    Written sigmoid({"s = HardSigmoid(x)", "y = Mul(x, s)"});
    CHECK(sigmoid.labels().empty());
    sigmoid.fixture.graph.nodes[0].attributes["alpha"] = 1.0F / 6.0F;
    CHECK(sigmoid.inside() == Names{"s"});
}

TEST_CASE("the bounds of an old Clip are attributes") {
    Written written({"a = Add(x, 3)", "c = Clip(a)", "m = Mul(x, c)", "y = Div(m, 6)"});
    CHECK(written.labels().empty());
    written.fixture.graph.nodes[1].attributes["min"] = 0.0F;
    written.fixture.graph.nodes[1].attributes["max"] = 6.0F;
    CHECK(written.labels() == Names{"Hswish making 'y'"});
}

TEST_CASE("other numbers, other operands and other domains make no HardSwish") {
    CHECK(Written({"a = Add(x, 3)", "c = Clip(a, 0, 5)", "m = Mul(x, c)", "y = Div(m, 6)"}).labels().empty());
    CHECK(Written({"a = Add(x, 3)", "c = Clip(a, 0, 6)", "m = Mul(z, c)", "y = Div(m, 6)"}).labels().empty());
    CHECK(Written({"a = Sub(x, 3)", "c = Clip(a, 0, 6)", "m = Mul(x, c)", "y = Div(m, 6)"}).labels().empty());
    Written foreign({"a = Add(x, 3)", "c = Clip(a, 0, 6)", "m = Mul(x, c)", "y = Div(m, 6)"});
    foreign.fixture.graph.nodes[1].domain = "com.example";
    CHECK(foreign.labels().empty());
}

TEST_CASE("what something else reads, or the graph gives out, does not vanish") {
    Written read({"a = Add(x, 3)", "c = Clip(a, 0, 6)", "n = Neg(c)", "m = Mul(x, c)", "y = Div(m, 6)"});
    CHECK(read.inside().empty());
    Written output({"a = Add(x, 3)", "c = Clip(a, 0, 6)", "m = Mul(x, c)", "y = Div(m, 6)"});
    output.fixture.graph.outputs.push_back(output.fixture.value("m"));
    CHECK(output.inside().empty());
    Written captured({"a = Add(x, 3)", "c = Clip(a, 0, 6)", "m = Mul(x, c)", "y = Div(m, 6)"});
    captured.fixture.node("If", {"k"}, {"z"}).captured = {captured.fixture.value("a")};
    CHECK(captured.inside().empty());
}

TEST_CASE("a LayerNorm and a Gelu written out leave their last tensor alone") {
    const Written norm({"m = ReduceMean(x)", "d = Sub(x, m)", "p = Pow(d, 2)", "v = ReduceMean(p)",
                        "e = Add(v, 0.00001)", "s = Sqrt(e)", "n = Div(d, s)", "g = Mul(n, gamma)",
                        "y = Add(g, beta)"});
    CHECK(norm.labels() == Names{"LayerNorm making 'y'"});
    CHECK(norm.inside() == Names{"m", "d", "p", "v", "e", "s", "n", "g"});
    const Written plain({"m = ReduceMean(x)", "d = Sub(x, m)", "p = Mul(d, d)", "v = ReduceMean(p)",
                         "e = Add(0.00001, v)", "s = Sqrt(e)", "y = Div(d, s)"});
    CHECK(plain.labels() == Names{"LayerNorm making 'y'"});
    CHECK(
        Written({"d = Div(x, 1.4142135)", "f = Erf(d)", "a = Add(f, 1)", "m = Mul(x, a)", "y = Mul(m, 0.5)"})
            .labels() == Names{"Gelu making 'y'"});
    CHECK(Written({"p = Pow(x, 3)", "q = Mul(p, 0.044715)", "r = Add(x, q)", "s = Mul(r, 0.7978845)",
                   "t = Tanh(s)", "a = Add(t, 1)", "h = Mul(x, 0.5)", "y = Mul(h, a)"})
              .labels() == Names{"Gelu making 'y'"});
    CHECK(Written({"p = Pow(x, 2)", "m = ReduceMean(p)", "e = Add(m, 0.000001)", "s = Sqrt(e)",
                   "n = Div(x, s)", "y = Mul(gamma, n)"})
              .labels() == Names{"RMSNorm making 'y'"});
}

TEST_CASE("a product with a constant takes a vector after it as its bias, and nothing else") {
    const Written vector({"m = MatMul(x, w)", "y = Add(m, b)"});
    CHECK(vector.labels() == Names{"FullyConnected making 'y'"});
    Written whole({"m = MatMul(x, w)", "y = Add(m, b)"});
    whole.fixture.graph.values[whole.fixture.value("b")].initializer =
        Tensor::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4});
    CHECK(whole.labels().empty());
    CHECK(Written({"m = MatMul(x, z)", "y = Add(m, b)"}).labels().empty());
}

TEST_CASE("a fusion that is not sure keeps the entries of what lies inside") {
    const Written swish({"s = Sigmoid(x)", "y = Mul(x, s)"});
    CHECK(swish.labels() == Names{"Swish making 'y'"});
    CHECK(swish.inside().empty());
}

TEST_CASE("chains one after the other are each found") {
    const Written two({"m = MatMul(x, w)", "f = Add(m, b)", "a = Add(f, 3)", "c = Clip(a, 0, 6)",
                       "n = Mul(f, c)", "y = Div(n, 6)"});
    CHECK(two.labels() == Names{"Hswish making 'y'", "FullyConnected making 'f'"});
    CHECK(two.inside() == Names{"m", "a", "c", "n"});
}

TEST_CASE("inside a fusion neither tensors nor numbers get encodings, weights do; --tensors target agrees") {
    AssignmentFixture fixture;
    fixture.input("x");
    fixture.constant("w", {1, 1}, {2});
    fixture.constant("b", {1}, {1});
    fixture.constant("three", {}, {3});
    fixture.constant("zero", {}, {0});
    fixture.constant("six", {}, {6});
    for (const char* name : {"w", "b", "three", "zero", "six"}) {
        fixture.graph.values[fixture.value(name)].initializer = fixture.constants[fixture.value(name)];
    }
    fixture.node("MatMul", {"x", "w"}, {"m"});
    fixture.node("Add", {"m", "b"}, {"f"});
    fixture.node("Add", {"f", "three"}, {"a"});
    fixture.node("Clip", {"a", "zero", "six"}, {"c"});
    fixture.node("Mul", {"f", "c"}, {"n"});
    fixture.node("Div", {"n", "six"}, {"y"});
    fixture.graph.outputs = {fixture.value("y")};
    for (const char* name : {"x", "f", "y"}) fixture.count(name, {-1, 4});
    CHECK(needed_tensors(fixture.graph, fixture.target) == Names{"x", "f", "y"});
    const EncodingSet few = fixture.assign();
    CHECK(names_of(few.activations) == Names{"x", "f", "y"});
    CHECK(names_of(few.parameters) == Names{"w"});
    for (const char* name : {"m", "a", "c", "n"}) fixture.count(name, {-1, 4});
    const EncodingSet all = fixture.assign();
    CHECK(names_of(all.activations) == Names{"x", "f", "y"});
    CHECK(names_of(all.parameters) == Names{"w"});
    CHECK(fixture.remarks.empty());
    for (const Decision& decision : fixture.decisions) {
        if (decision.tensor == "c")
            CHECK(decision.no_encoding == "target 'snpe' fuses it into Hswish making 'y'");
        if (decision.tensor == "b")
            CHECK(decision.no_encoding == "target 'snpe' makes it a part of FullyConnected 'f'");
    }
}

TEST_CASE("a shared initializer behind an Identity is a constant all the same") {
    const Written written({"b = Identity(shared)", "m = MatMul(x, w)", "y = Add(m, b)"});
    CHECK(written.labels() == Names{"FullyConnected making 'y'"});
}
