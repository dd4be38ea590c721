//! Layout generation.
fn main() {}
