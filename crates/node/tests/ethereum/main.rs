//! Contracts as clients reach them: Ethereum's JSON-RPC and the HTTP interface of a running node.

mod abuse;
mod contracts_over_http;
mod developer;
mod door;
mod events;
mod forks;
mod json_rpc;
mod simulated;
mod simulators;
mod tools;
mod traced;
