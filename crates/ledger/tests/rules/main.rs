//! The rules of the ledger, one module each; one test program, so that the ledger is linked once.

mod at_rest;
mod attached;
mod cancels;
mod contract_history;
mod contracts;
mod developer;
mod evm;
mod ids;
mod lane;
mod lane_bids;
mod lane_evidence;
mod lane_group;
mod lane_proofs;
mod lane_restart;
mod lives;
mod minima;
mod offers;
mod offers_model;
mod poison;
mod restart;
mod silenced;
mod tokens;
mod typed_data;
mod unpaid;
mod validators;
mod world;
