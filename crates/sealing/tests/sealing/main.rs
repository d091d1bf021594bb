//! Models of what surrounds the cryptography: when shares leave, and when a committee has a key.

mod keys;
mod opening;
