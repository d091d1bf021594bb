//! Lane addresses: a key in a form for people to copy, with a checksum that also identifies the lane.

use std::fmt;
use std::str::FromStr;

use anyhow::ensure;
use payments::Recipient;
use primitives::{Address, Digest, PublicKey, from_hex, to_hex};

const PREFIX: &str = "lane:";

fn checksum(network: &Digest, key: &PublicKey) -> [u8; 4] {
    let sum = Digest::of("walras 2026 lane address v1", &[network.0, key.0].concat());
    sum.0[..4].try_into().expect("4 bytes")
}

/// The address of a key in a lane.
pub fn lane_address(network: &Digest, key: &PublicKey) -> String {
    format!("{PREFIX}{}{}", to_hex(&key.0), to_hex(&checksum(network, key)))
}

/// A payee: a key in the lane, or an account of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payee {
    Lane(PublicKey, [u8; 4]),
    Account(Address),
}

impl Payee {
    /// The recipient on this lane.
    pub fn on(&self, network: &Digest) -> anyhow::Result<Recipient> {
        match self {
            Payee::Account(account) => Ok(Recipient::Account(*account)),
            Payee::Lane(key, sum) => {
                let is_right = checksum(network, key) == *sum;
                ensure!(is_right, "the address is mistyped or belongs to another lane: copy it again from its source");
                Ok(Recipient::Key(*key))
            }
        }
    }
}

impl FromStr for Payee {
    type Err = String;

    fn from_str(given: &str) -> Result<Payee, String> {
        let lower = given.to_ascii_lowercase();
        let Some(digits) = lower.strip_prefix(PREFIX) else {
            let form =
                |error| format!("{error}; give an account (0x…) or a lane address (lane:…, from `walras pay address`)");
            return given.parse().map(Payee::Account).map_err(form);
        };
        let bytes: [u8; 36] = from_hex(digits).map_err(|_| "a lane address has 72 digits after lane:")?;
        let (key, sum) = bytes.split_first_chunk::<32>().expect("36 bytes");
        Ok(Payee::Lane(PublicKey(*key), sum.try_into().expect("4 bytes")))
    }
}

/// A recipient in printed form.
pub struct Shown<'a>(pub &'a Digest, pub Recipient);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Recipient::Key(key) => f.write_str(&lane_address(self.0, &key)),
            Recipient::Account(account) => f.write_str(&account.checked()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_or_another_lane_is_refused() {
        let (here, there, key) = (Digest([1; 32]), Digest([2; 32]), PublicKey([0xab; 32]));
        let text = lane_address(&here, &key);
        let payee: Payee = text.to_uppercase().parse().expect("letters may be large");
        assert_eq!(payee.on(&here).expect("right"), Recipient::Key(key));
        assert!(payee.on(&there).expect_err("another lane").to_string().contains("another lane"));
        let mistyped: Payee = text.replacen("abab", "abac", 1).parse().expect("digits");
        assert!(mistyped.on(&here).is_err());
        assert!("lane:12".parse::<Payee>().expect_err("short").contains("72 digits"));
        assert!("nobody".parse::<Payee>().expect_err("neither").contains("walras pay address"));
        let account = Address([7; 20]);
        assert_eq!(account.to_string().parse(), Ok(Payee::Account(account)));
    }
}
