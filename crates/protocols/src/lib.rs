//! Wire formats of market data and order entry, as others speak them.
//!
//! | module | what | source |
//! |---|---|---|
//! | [`itch`] | the messages of a full order book feed | NASDAQ TotalView-ITCH 5.0 |
//! | [`glimpse`] | snapshots of such a feed | NASDAQ GLIMPSE 5.0 |
//! | [`mold`] | packets of numbered messages, and requests to send some again | MoldUDP64 1.00 |
//! | [`ouch`] | orders, and what becomes of them | NASDAQ OUCH 5.0 |
//! | [`fix`] | orders and reports as banks send them, with their sessions as steps, both sides | FIX 4.4 |
//! | [`soup`] | sessions over TCP, with resumption: packets, and both sides as steps | SoupBinTCP 3.00, login of 4.10 |
//! | [`frames`] | files of messages, each after its length | NASDAQ BinaryFILE 1.00 |
//! | [`lobster`] | message files of reconstructed order books | LOBSTER |
//!
//! Everything here is a function of bytes: no clock, no socket, no file. Decoders take any bytes and never panic;
//! an error says what is wrong and where. What is decoded and encoded again gives the same bytes.
//!
//! ```
//! use protocols::itch::{ItchBody, Delete, ItchHeader, ItchMessage};
//!
//! let header = ItchHeader { locate: 7, tracking: 0, nanoseconds: 34_200_000_000_000 };
//! let message = ItchMessage { header, body: ItchBody::Delete(Delete { order: 42 }) };
//! let mut bytes = Vec::new();
//! message.encode(&mut bytes)?;
//! assert_eq!((bytes.len(), ItchMessage::decode(&bytes)?), (19, message));
//! # Ok::<(), protocols::itch::ItchError>(())
//! ```

mod field;
pub mod fix;
pub mod frames;
pub mod glimpse;
pub mod itch;
pub mod lobster;
pub mod mold;
pub mod ouch;
pub mod soup;
