//! What the derives refuse, and with which words. A compiler that says it otherwise is followed by
//! `TRYBUILD=overwrite cargo test --test facade refused`, and a look at the difference.

#[test]
fn types_that_cant_travel_are_refused_in_the_words_of_the_program() {
    trybuild::TestCases::new().compile_fail("tests/facade/refused/*.rs");
}

#[test]
fn traits_that_are_no_services_are_refused_with_what_to_write_instead() {
    trybuild::TestCases::new().compile_fail("tests/facade/refused_services/*.rs");
}
