//! Lane addresses: a key in a form for people to copy, with a checksum that also identifies the lane. One that asks for
//! an amount is a bill.

use std::fmt;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, ensure};
use client::purse::LaneNetwork;
use payments::Recipient;
use primitives::{Address, Amount, AssetId, Digest, MAX_ISSUED, PublicKey, from_hex, to_hex};
use serde_json::json;

use super::PursePlace;

const PREFIX: &str = "lane:";

fn checksum(network: &Digest, key: &PublicKey) -> [u8; 4] {
    let sum = Digest::of("walras 2026 lane address v1", &[network.0, key.0].concat());
    sum.0[..4].try_into().expect("4 bytes")
}

/// The address of a key in a lane.
pub fn lane_address(network: &Digest, key: &PublicKey) -> String {
    format!("{PREFIX}{}{}", to_hex(&key.0), to_hex(&checksum(network, key)))
}

/// What a bill asks for: an asset, and units of it.
pub type Asked = (AssetId, Amount);

fn billed(key: &PublicKey, (asset, units): Asked) -> [u8; 44] {
    let mut body = [0; 44];
    body[..32].copy_from_slice(&key.0);
    body[32..36].copy_from_slice(&asset.0.to_le_bytes());
    body[36..].copy_from_slice(&units.to_le_bytes());
    body
}

fn bill_checksum(network: &Digest, body: &[u8; 44]) -> [u8; 4] {
    let sum = Digest::of("walras 2026 lane bill v1", &[&network.0[..], body].concat());
    sum.0[..4].try_into().expect("4 bytes")
}

/// The address of a key that asks for an amount.
fn bill(network: &Digest, key: &PublicKey, asked: Asked) -> String {
    let body = billed(key, asked);
    format!("{PREFIX}{}{}", to_hex(&body), to_hex(&bill_checksum(network, &body)))
}

/// `walras pay address`: a new lane address, which asks for an amount if one is given.
pub(super) fn address(json: bool, asked: Option<(String, String)>, place: &PursePlace) -> anyhow::Result<ExitCode> {
    let mut purse = place.open()?;
    let asked = asked.map(|(asset, amount)| purse.network.units(&asset, &amount)).transpose()?;
    ensure!(asked.is_none_or(|(_, units)| units > 0), "a bill asks for more than 0: give another --amount");
    let seed = place.seed(&purse)?;
    let key = purse.keys.make(&seed)?.public();
    let network = &purse.network.id;
    let address = asked.map_or_else(|| lane_address(network, &key), |asked| bill(network, &key, asked));
    match json {
        true => println!("{}", json!({"address": address})),
        false => println!("{address}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// A payee: a key in the lane, by an address that asks for nothing or by a bill; or an account of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payee {
    Lane(PublicKey, [u8; 4]),
    Bill(PublicKey, Asked, [u8; 4]),
    Account(Address),
}

impl Payee {
    /// The recipient on this lane.
    pub fn on(&self, network: &Digest) -> anyhow::Result<Recipient> {
        let (key, is_right) = match self {
            Payee::Account(account) => return Ok(Recipient::Account(*account)),
            Payee::Lane(key, sum) => (key, checksum(network, key) == *sum),
            Payee::Bill(key, asked, sum) => (key, bill_checksum(network, &billed(key, *asked)) == *sum),
        };
        ensure!(is_right, "the address is mistyped or belongs to another lane: copy it again from its source");
        Ok(Recipient::Key(*key))
    }

    /// What is paid: what the address asks for, or what is given. A bill is paid as it asks, or not at all.
    pub fn quantity(&self, given: Option<Asked>, network: &LaneNetwork) -> anyhow::Result<Asked> {
        let Payee::Bill(_, asked, _) = self else {
            return given.context("the address asks for no amount: give --asset and --amount");
        };
        let shown = |(asset, units)| network.money(asset, units);
        ensure!(
            given.is_none_or(|given| given == *asked),
            "the address asks for {}, not {}: leave --asset and --amount out, or get another address",
            shown(*asked),
            given.map_or_else(String::new, shown)
        );
        Ok(*asked)
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
        if digits.len() == 2 * BILL_BYTES {
            return bill_of(digits).ok_or_else(|| "a bill has hexadecimal digits and an amount".into());
        }
        let bytes: [u8; 36] =
            from_hex(digits).map_err(|_| "a lane address has 72 digits after lane:, or 96 if it asks for an amount")?;
        let (key, sum) = bytes.split_first_chunk::<32>().expect("36 bytes");
        Ok(Payee::Lane(PublicKey(*key), sum.try_into().expect("4 bytes")))
    }
}

/// Key, asset, units and checksum.
const BILL_BYTES: usize = 48;

fn bill_of(digits: &str) -> Option<Payee> {
    let bytes: [u8; BILL_BYTES] = from_hex(digits).ok()?;
    let (key, rest) = bytes.split_first_chunk::<32>()?;
    let (asset, rest) = rest.split_first_chunk::<4>()?;
    let (units, sum) = rest.split_first_chunk::<8>()?;
    let asked = (AssetId(u32::from_le_bytes(*asset)), Amount::from_le_bytes(*units));
    (1..=MAX_ISSUED).contains(&asked.1).then_some(Payee::Bill(PublicKey(*key), asked, sum.try_into().ok()?))
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

    /// The bill of docs/lane-specification.md, which the purses in Python and TypeScript read as well.
    #[test]
    fn a_bill_is_that_of_the_specification_and_each_changed_digit_is_refused() {
        let (network, key, asked) = (Digest([1; 32]), PublicKey([0xab; 32]), (AssetId(1), 1_250));
        let text = bill(&network, &key, asked);
        let specification = include_str!("../../../../docs/lane-specification.md");
        assert!(specification.replace('\n', "").contains(&text), "{text}");
        let payee: Payee = text.parse().expect("a bill");
        assert!(matches!(payee, Payee::Bill(of, what, _) if of == key && what == asked));
        assert_eq!(payee.on(&network).expect("right"), Recipient::Key(key));
        for at in PREFIX.len()..text.len() {
            let digit = if text.as_bytes()[at] == b'0' { "1" } else { "0" };
            let changed = [&text[..at], digit, &text[at + 1..]].concat();
            assert!(changed.parse::<Payee>().map_or(true, |payee| payee.on(&network).is_err()), "digit {at}");
        }
    }
}
