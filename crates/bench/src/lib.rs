//! Every measured claim of Walras, by one command each.

pub mod clearing;
pub mod cluster;
pub mod consensus;
pub mod daily;
pub mod diablo;
pub mod evm;
pub mod evm_rpc;
pub mod exchange;
pub mod filter;
pub mod hostile;
pub mod hostile_evm;
pub mod impostor;
pub mod lane_attacks;
pub mod lane_rows;
pub mod matching;
pub mod onyx;
pub mod payments;
pub mod payments_lane;
pub mod population;
pub mod recovery;
pub mod scaling;
pub mod stm;
pub mod switch;
pub mod trading;
pub mod transaction_management;
pub mod transport;
