//! Orders of four gateways through two proxies with limit order queues, to an engine that is slower than they are.
//!
//! `cargo run -p fairnet --example inbound`

use fairnet::*;

/// An order as this example needs it.
#[derive(Clone, Copy, Debug)]
struct Quote {
    gateway: u32,
    side: QuoteSide,
    tick: u32,
}

fn main() {
    let mut mids = MidHistory::new(64);
    mids.observe(1, Some(200));
    mids.observe(9, Some(204));
    let mut stamps = [Stamps::default(); 4];
    let hop = || {
        let mut hop = Hop::new(0, 2, MergeRules::default(), QueuePolicy::ByClass);
        (0..2).for_each(|child| hop.step(0, HopInput::Child(MergeInput::Join(child)), &mut Vec::new()));
        hop
    };
    let mut proxies = [hop(), hop()];
    let mut root = hop();

    // A burst: each gateway sends three orders, most of them far from the mid; gateway 2 saw the mid move.
    for round in 0..3u64 {
        for gateway in 0..4u32 {
            let md_seq = if gateway == 2 && round > 0 { 9 } else { 5 };
            let (side, tick) = match (gateway + round as u32) % 3 {
                0 => (QuoteSide::Bid, 100),
                1 => (QuoteSide::Bid, 90),
                _ => (QuoteSide::Ask, 112),
            };
            let mid = mids.at(md_seq);
            let stamp = stamps[gateway as usize].next(1_000 * (round + 1) + u64::from(gateway) * 10);
            let class = mid.class(side, tick, 2).expect("inside the action window");
            let key = MergeKey { mid: mid.number, stamp, source: gateway, sub: 0 };
            let order = Sequenced { class, key, restamped: None, item: Quote { gateway, side, tick } };
            println!("gateway {gateway} at {stamp}: {side:?} {tick}, {class:?}, mid number {}", mid.number);
            let input = HopInput::Child(MergeInput::Order(gateway % 2, order));
            proxies[(gateway / 2) as usize].step(stamp, input, &mut Vec::new());
        }
    }
    // Nobody sends more: each promises that nothing below this comes, in both classes.
    for gateway in 0..4u32 {
        for class in OrderClass::ALL {
            let promise = MergeInput::Watermark(gateway % 2, class, MergeKey::at(9, 9_000));
            proxies[(gateway / 2) as usize].step(9_000, HopInput::Child(promise), &mut Vec::new());
        }
    }
    // The root takes two orders of each proxy at a time, the engine one.
    println!("\nThe engine gets:");
    for turn in 0..12u64 {
        let now = 9_000 + turn * 1_000;
        for (stream, proxy) in proxies.iter_mut().enumerate() {
            let mut up = Vec::new();
            proxy.step(now, HopInput::Ready(2), &mut up);
            proxy.step(now, HopInput::Child(MergeInput::Tick), &mut up);
            for effect in up {
                let input = match effect {
                    HopEffect::Order(order) => MergeInput::Order(stream as u32, order),
                    HopEffect::Watermark(class, key) => MergeInput::Watermark(stream as u32, class, key),
                    HopEffect::Event(event) => {
                        println!("{event:?}");
                        continue;
                    }
                };
                root.step(now, HopInput::Child(input), &mut Vec::new());
            }
        }
        let mut out = Vec::new();
        root.step(now, HopInput::Ready(1), &mut out);
        for effect in out {
            if let HopEffect::Order(Sequenced { class, key, item: Quote { gateway, side, tick }, .. }) = effect {
                println!("mid {}, {class:?}, stamp {}: gateway {gateway}, {side:?} {tick}", key.mid, key.stamp);
            }
        }
    }
}
