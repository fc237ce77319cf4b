#include "target/pattern_form.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

class FormParser {
  public:
    explicit FormParser(std::string_view text) : text_(text) { form_.text = text; }

    PatternForm parse() {
        do {
            read_statement();
            blanks();
        } while (accept(';') && !at_end());
        if (!at_end()) expected("';' or the end");
        if (form_.statements.size() < 2) expected("two statements or more");
        check_all_used();
        return std::move(form_);
    }

  private:
    void read_statement() {
        const std::string name = word("the name of a result");
        if (index_of(results_, name) || index_of(activations_, name)) expected("a new name before this one");
        require('=');
        PatternForm::Statement statement;
        do {
            statement.op_types.push_back(word("an operator"));
        } while (accept('|'));
        if (accept('{')) {
            do {
                PatternForm::Attribute attribute;
                attribute.name = word("an attribute");
                require('=');
                attribute.value = number();
                statement.attributes.push_back(attribute);
            } while (accept(','));
            require('}');
        }
        require('(');
        do {
            statement.operands.push_back(operand());
        } while (accept(','));
        require(')');
        form_.statements.push_back(std::move(statement));
        results_.push_back(name);
        used_.push_back(false);
    }

    PatternForm::Operand operand() {
        blanks();
        using Kind = PatternForm::Operand::Kind;
        if (peek() == '#' || peek() == '%') {
            const Kind kind = peek() == '#' ? Kind::kept_constant : Kind::lost_constant;
            ++place_;
            while (is_word(peek())) ++place_;  // the name is for the reader
            PatternForm::Operand constant{kind};
            constant.vector = accept('[');
            if (constant.vector) require(']');
            return constant;
        }
        if (peek() == '-' || std::isdigit(static_cast<unsigned char>(peek())) != 0)
            return {Kind::number, 0, number(), false};
        const std::string name = word("an operand");
        if (const auto result = index_of(results_, name)) {
            used_[*result] = true;
            return {Kind::statement, *result};
        }
        if (const auto known = index_of(activations_, name)) return {Kind::activation, *known};
        activations_.push_back(name);
        return {Kind::activation, form_.activations++};
    }

    void check_all_used() const {
        for (std::size_t i = 0; i + 1 < results_.size(); ++i) {
            if (!used_[i]) fail("expected a later statement that reads '{}', found none", results_[i]);
        }
    }

    static std::optional<std::size_t> index_of(const std::vector<std::string>& names,
                                               const std::string& name) {
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end()) return std::nullopt;
        return static_cast<std::size_t>(found - names.begin());
    }

    static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
    char peek() const { return place_ < text_.size() ? text_[place_] : '\0'; }
    bool at_end() {
        blanks();
        return place_ >= text_.size();
    }
    void blanks() {
        while (std::isspace(static_cast<unsigned char>(peek())) != 0) ++place_;
    }
    bool accept(char c) {
        blanks();
        if (peek() != c) return false;
        ++place_;
        return true;
    }
    void require(char c) {
        if (!accept(c)) expected(fmt::format("'{}'", c));
    }
    std::string word(std::string_view what) {
        blanks();
        const std::size_t start = place_;
        if (std::isalpha(static_cast<unsigned char>(peek())) != 0) {
            while (is_word(peek())) ++place_;
        }
        if (place_ == start) expected(what);
        return std::string(text_.substr(start, place_ - start));
    }
    double number() {
        blanks();
        const std::size_t start = place_;
        const auto part_of_number = [](char c) {
            return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == 'e';
        };
        while (part_of_number(peek())) ++place_;
        try {
            return parse_real(text_.substr(start, place_ - start), "");
        } catch (const Error&) {
            place_ = start;
            expected("a number");
        }
    }
    [[noreturn]] void expected(std::string_view what) const {
        const std::string_view rest = text_.substr(std::min(place_, text_.size()), 20);
        fail("expected {} at character {}, found '{}'", what, place_ + 1, printable(rest));
    }

    std::string_view text_;
    std::size_t place_ = 0;
    PatternForm form_;
    std::vector<std::string> results_;
    std::vector<bool> used_;
    std::vector<std::string> activations_;
};

}  // namespace

PatternForm parse_pattern_form(std::string_view text) {
    return FormParser(text).parse();
}

}  // namespace qcalib
