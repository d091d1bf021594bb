//! Bundles of orders for the batch market: the root signs them and shows them to everybody, and whoever has them checks
//! them (`walras edge verify`).
//!
//! Signed is the digest of a bundle: numbers, cut-offs, stamps and digests of orders, and the digest of the bundle
//! before. So a venue that shows two histories has signed the contradiction.

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, anyhow, ensure};
use fairnet::{Bundle, BundledOrder, ClosedBundle};
use primitives::{PublicKey, SecretKey, Signature, TransactionId, from_hex, to_hex};
use serde_json::{Value, json};

/// Bundles that are shown.
const SHOWN: usize = 256;
const CONTEXT: &str = "walras edge bundle v1";

/// What is signed of a bundle.
fn signed_bytes(bundle: &Bundle) -> Vec<u8> {
    [CONTEXT.as_bytes(), &bundle.digest()].concat()
}

/// The bundles that a root has closed.
pub struct BundleShelf {
    key: SecretKey,
    shown: Mutex<VecDeque<(Bundle, Signature)>>,
    ready: Mutex<Vec<ClosedBundle>>,
}

impl BundleShelf {
    /// An empty one, of a root with this key.
    pub fn new(key: SecretKey) -> BundleShelf {
        BundleShelf { key, shown: Mutex::default(), ready: Mutex::default() }
    }

    /// Signs a bundle.
    pub fn add(&self, closed: ClosedBundle) {
        let signature = self.key.sign(&signed_bytes(&closed.bundle));
        let mut shown = locked(&self.shown);
        shown.push_back((closed.bundle.clone(), signature));
        let surplus = shown.len().saturating_sub(SHOWN);
        drop(shown.drain(..surplus));
        if !closed.bodies.is_empty() {
            locked(&self.ready).push(closed);
        }
    }

    /// Bundles with orders that nobody has taken yet, in order.
    pub fn take(&self) -> Vec<ClosedBundle> {
        std::mem::take(&mut locked(&self.ready))
    }

    /// What `/v1/bundles` answers: the last bundles, oldest first.
    pub fn page(&self) -> Value {
        let shown = locked(&self.shown);
        let bundles: Vec<Value> = shown.iter().map(|(bundle, signature)| written(bundle, signature)).collect();
        json!({ "key": to_hex(&self.key.public().0), "bundles": bundles })
    }
}

/// What is behind a lock is whole whenever the lock is free.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn written(bundle: &Bundle, signature: &Signature) -> Value {
    let order = |order: &BundledOrder| {
        let BundledOrder { stamp, source, digest, is_late } = order;
        json!({ "stamp_ns": stamp.to_string(), "gateway": source, "digest": to_hex(digest), "late": is_late })
    };
    json!({
        "edge": bundle.edge,
        "number": bundle.number,
        "from_ns": bundle.from.to_string(),
        "until_ns": bundle.until.to_string(),
        "previous": to_hex(&bundle.previous),
        "orders": bundle.orders.iter().map(order).collect::<Vec<_>>(),
        "signature": to_hex(&signature.0),
    })
}

/// What bundles that hold come to.
#[derive(Debug, PartialEq, Eq)]
pub struct TrueBundles {
    pub bundles: u64,
    pub orders: u64,
    pub late: u64,
}

/// Checks what `/v1/bundles` answered, by the key of the root.
///
/// # Errors
/// The first thing that does not hold, and of which bundle.
pub fn verify(page: &Value, key: &PublicKey) -> anyhow::Result<TrueBundles> {
    let bundles = page["bundles"].as_array().context("`bundles` is missing: give what /v1/bundles answers")?;
    let mut found = TrueBundles { bundles: 0, orders: 0, late: 0 };
    let (mut before, mut last) = (None, (0, 0, [0; 32]));
    for (place, value) in bundles.iter().enumerate() {
        let bundle = read(value).with_context(|| format!("bundle {place} of the file"))?;
        let mut check = || -> anyhow::Result<()> {
            let signature = Signature(from_hex(text(value, "signature")?)?);
            ensure!(key.verify(&signed_bytes(&bundle), &signature), "this key has not signed it");
            follows(&bundle, before.as_ref())?;
            in_order(&bundle, &mut last)
        };
        check().with_context(|| format!("bundle {}", bundle.number))?;
        found.bundles += 1;
        found.orders += bundle.orders.len() as u64;
        found.late += bundle.orders.iter().filter(|order| order.is_late).count() as u64;
        before = Some(bundle);
    }
    Ok(found)
}

fn follows(bundle: &Bundle, before: Option<&Bundle>) -> anyhow::Result<()> {
    let Some(before) = before else { return Ok(()) };
    ensure!(bundle.edge == before.edge, "it is of edge {}, the one before of {}", bundle.edge, before.edge);
    ensure!(before.number.checked_add(1) == Some(bundle.number), "the one before it is {}", before.number);
    ensure!(bundle.from == before.until, "it begins at {}, the one before ends at {}", bundle.from, before.until);
    ensure!(bundle.previous == before.digest(), "it follows another bundle {}", before.number);
    Ok(())
}

/// No order that is not late is stamped before one of an earlier place, or outside the bundle's time.
fn in_order(bundle: &Bundle, last: &mut (u64, u32, [u8; 32])) -> anyhow::Result<()> {
    for order in &bundle.orders {
        let stamp = order.stamp;
        if order.is_late {
            ensure!(stamp < bundle.from, "an order stamped {stamp} is called late and was not");
            continue;
        }
        let place = (stamp, order.source, order.digest);
        ensure!(bundle.from <= stamp && stamp <= bundle.until, "an order stamped {stamp} does not belong into it");
        ensure!(*last <= place, "an order stamped {stamp} comes after later ones and is not called late");
        *last = place;
    }
    Ok(())
}

fn text<'a>(value: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    value[name].as_str().ok_or_else(|| anyhow!("`{name}` is no text"))
}

fn number<T: FromStr<Err: Display>>(value: &Value, name: &str) -> anyhow::Result<T> {
    let text = value[name].as_str().map_or_else(|| value[name].to_string(), Into::into);
    text.parse().map_err(|error| anyhow!("`{name}`: {error}"))
}

fn read(value: &Value) -> anyhow::Result<Bundle> {
    let order = |order: &Value| -> anyhow::Result<BundledOrder> {
        Ok(BundledOrder {
            stamp: number(order, "stamp_ns")?,
            source: number(order, "gateway")?,
            digest: from_hex(text(order, "digest")?)?,
            is_late: order["late"].as_bool().context("`late` is neither true nor false")?,
        })
    };
    let orders = value["orders"].as_array().context("`orders` is no list")?;
    Ok(Bundle {
        edge: number(value, "edge")?,
        number: number(value, "number")?,
        from: number(value, "from_ns")?,
        until: number(value, "until_ns")?,
        previous: from_hex(text(value, "previous")?)?,
        orders: orders.iter().map(order).collect::<anyhow::Result<_>>()?,
    })
}

/// Number of a bundle and place in it; whether the order is late.
type Place = (u64, u32, bool);

/// Measures what is claimed of blocks: the orders of an edge that are in a block or an earlier one are a prefix of its
/// bundles.
#[derive(Debug, Default)]
pub struct Boundaries {
    waiting: HashMap<TransactionId, Place>,
    highest: Option<Place>,
    /// Orders that were in a block.
    pub included: u64,
    /// Of them, those that a later one has overtaken into an earlier block, though they were not late.
    pub overtaken: u64,
}

impl Boundaries {
    /// Pools have taken this order of a bundle.
    pub fn expect(&mut self, id: TransactionId, place: Place) {
        self.waiting.insert(id, place);
    }

    /// The transactions of the next block.
    pub fn block(&mut self, ids: impl Iterator<Item = TransactionId>) {
        let places: Vec<Place> = ids.filter_map(|id| self.waiting.remove(&id)).collect();
        self.included += places.len() as u64;
        let is_overtaken = |place: &&Place| !place.2 && Some(**place) < self.highest;
        self.overtaken += places.iter().filter(is_overtaken).count() as u64;
        self.highest = places.into_iter().chain(self.highest).max();
    }
}

#[cfg(test)]
mod tests {
    use fairnet::{BundleInput, Bundles};
    use primitives::Digest;

    use super::*;

    fn shelf() -> BundleShelf {
        let (mut bundles, mut closed) = (Bundles::new(7, 0, 100, 10), Vec::new());
        for (stamp, source, watermark) in [(50, 1, 0), (60, 2, 199), (20, 3, 200), (250, 1, 300)] {
            bundles.step(BundleInput::Order(stamp, source, [source as u8; 32]), &mut closed);
            bundles.step(BundleInput::Watermark(watermark), &mut closed);
        }
        let shelf = BundleShelf::new(SecretKey::from_seed([3; 32]));
        for bundle in closed {
            let bodies = bundle.orders.iter().map(|_| vec![1]).collect();
            shelf.add(ClosedBundle { bundle, bodies, is_unattended: false });
        }
        shelf
    }

    #[test]
    fn bundles_that_were_shown_hold_and_every_alteration_of_them_is_found() {
        let (shelf, key) = (shelf(), SecretKey::from_seed([3; 32]).public());
        let page = shelf.page();
        assert_eq!(verify(&page, &key).expect("true"), TrueBundles { bundles: 3, orders: 4, late: 1 });
        assert_eq!(shelf.take().len(), 3);
        assert!(verify(&page, &SecretKey::from_seed([4; 32]).public()).is_err());
        type Alter = fn(&mut Value);
        let alterations: [(&str, Alter); 6] = [
            ("has not signed", |page| page["bundles"][0]["orders"][0]["stamp_ns"] = "51".into()),
            ("has not signed", |page| page["bundles"][1]["orders"][0]["late"] = false.into()),
            ("the one before it is 1", |page| drop(page["bundles"].as_array_mut().map(|all| all.remove(1)))),
            ("no list", |page| page["bundles"][2]["orders"] = Value::Null),
            ("`until_ns`", |page| page["bundles"][2]["until_ns"] = "-1".into()),
            ("/v1/bundles", |page| *page = Value::Null),
        ];
        for (says, alter) in alterations {
            let mut altered = page.clone();
            alter(&mut altered);
            let error = verify(&altered, &key).expect_err("it was altered");
            assert!(format!("{error:#}").contains(says), "{error:#}");
        }
    }

    #[test]
    fn bundle_that_its_root_signed_out_of_order_is_refused() {
        let key = SecretKey::from_seed([3; 32]);
        let order = |stamp, is_late| BundledOrder { stamp, source: 1, digest: [0; 32], is_late };
        for (orders, says) in [
            ([order(60, false), order(50, false)], "after later ones"),
            ([order(50, true), order(60, false)], "called late"),
            ([order(50, false), order(101, false)], "does not belong"),
        ] {
            let bundle = Bundle { edge: 1, number: 1, from: 0, until: 100, previous: [0; 32], orders: orders.into() };
            let signature = key.sign(&signed_bytes(&bundle));
            let page = json!({ "bundles": [written(&bundle, &signature)] });
            let error = verify(&page, &key.public()).expect_err("it lies");
            assert!(format!("{error:#}").contains(says), "{error:#}");
        }
    }

    #[test]
    fn bundle_boundaries_of_blocks_are_prefixes_or_counted() {
        let mut boundaries = Boundaries::default();
        let id = |number: u8| Digest([number; 32]);
        for number in 0..6 {
            boundaries.expect(id(number), (1 + u64::from(number) / 3, u32::from(number) % 3, number == 1));
        }
        boundaries.block([0, 2, 4, 99].map(id).into_iter());
        assert_eq!((boundaries.included, boundaries.overtaken), (3, 0));
        boundaries.block([1, 3, 5, 0].map(id).into_iter());
        assert_eq!((boundaries.included, boundaries.overtaken), (6, 1), "3 was overtaken by 4, and 1 was late");
    }
}
