//! Rust's view of `cuda/fragment.h`, made by bindgen: the struct that a launch takes, and the
//! constants that host and kernels share.

// C's names, so that a search finds both sides.
#![allow(non_camel_case_types)]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
