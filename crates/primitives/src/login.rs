//! Logins: a client proves to a node that it has an account's key.

use crate::{Address, Digest};

const SIGNING_TAG: &[u8] = b"walras stream login v1\0";

/// What an ed25519 key signs to log in on a node's stream: the tag, the network (32 bytes), the account (20), the
/// challenge's nonce (32), and the server as the client called it (`host:port`). So a signature is of use to no other
/// server.
pub fn login_bytes(network: &Digest, account: &Address, nonce: &[u8; 32], server: &str) -> Vec<u8> {
    [SIGNING_TAG, &network.0, &account.0, nonce, server.as_bytes()].concat()
}
