//! Tests of `primitives` in one program: its parts are linked once.

mod codec;
mod keys;
mod operations;
mod sealed;
mod signatures;
mod typed_data;
mod venue;
mod venue_lists;
mod venue_steps;
mod venue_terms;
mod venue_vectors;
