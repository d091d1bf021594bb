//! A tree of 100 receivers with hedging, in one process: a proxy is dead and another slow, and nobody notices.
//!
//! `cargo run -p fairnet --example outbound`

use std::collections::BTreeMap;

use fairnet::*;

const SESSION: [u8; 10] = *b"0001000001";
/// A hop takes 40 µs, through the slow proxy 900 µs.
const HOP: Nanos = 40_000;
const SLOW: Nanos = 900_000;

fn main() {
    let request = PlanRequest { epoch: 1, receivers: 100, depth: None, hedging: 2, trees: 1 };
    let plan = Plan::new(&request).expect("a tree of 100 receivers");
    let key = PacketKey::of_epoch(&[42; 32], 1);
    println!("depth {}, {} proxies, {} copies of a packet", plan.depth(), plan.proxies(), plan.copies_of_packet());

    let proxy =
        |index| Relay::new((0, Spot { layer: 1, index }), plan.clone(), SESSION, key.clone(), RelayLimits::default());
    let mut proxies: Vec<Relay> = (0..10).map(proxy).collect();
    let mut receivers = vec![FirstCopy::new(plan.clone(), SESSION, key.clone(), 1_024, 0); 100];
    let clock = ClockState { error_bound: Some(100) };
    let mut hold: Hold<String> = Hold::new(0, HoldRules::default(), clock);
    let mut deadlines = Deadlines::new(DeadlineRules::default());
    // What the receivers reported: two hops.
    deadlines.report(3 * HOP);

    let mut queue: BTreeMap<(Nanos, u64), (Spot, Vec<u8>)> = BTreeMap::new();
    let mut number = 0;
    let mut send = |queue: &mut BTreeMap<_, _>, at: Nanos, to: Spot, bytes: &[u8]| {
        number += 1;
        queue.insert((at, number), (to, bytes.to_vec()));
    };
    for sequence in 1..=20 {
        let now = sequence * 100_000;
        let deadline = deadlines.next(now);
        let header =
            PacketHeader { epoch: 1, session: SESSION, tree: 0, sequence, deadline, sent: now, is_unfair: false };
        let mut bytes = Vec::new();
        header.seal(&key, format!("price {}", 100 + sequence).as_bytes(), &mut bytes);
        plan.children(Spot::ROOT, sequence).for_each(|to| send(&mut queue, now + HOP, to, &bytes));
    }

    let (mut on_time, mut late, mut released) = (0, 0, Vec::new());
    loop {
        let due = hold.due().filter(|due| queue.first_key_value().is_none_or(|(key, _)| *due <= key.0));
        if let Some(now) = due {
            hold.step(now, HoldInput::Tick, &mut released);
        } else if let Some(((now, _), (spot, bytes))) = queue.pop_first() {
            match spot {
                Spot { layer: 1, index: 4 } => {} // dead
                Spot { layer: 1, index } => {
                    let mut effects = Vec::new();
                    proxies[index as usize].step(now, RelayInput::Packet(&bytes), &mut effects);
                    let delay = if index == 7 { SLOW } else { HOP };
                    for effect in effects {
                        if let RelayEffect::Forward(to) = effect {
                            send(&mut queue, now + delay, to, &bytes);
                        }
                    }
                }
                Spot { index, .. } => {
                    let (header, payload) = PacketHeader::open(&bytes).expect("an envelope");
                    let is_authentic = |key: &PacketKey| PacketHeader::is_authentic(&bytes, key);
                    if receivers[index as usize].take(now, &header, is_authentic).is_ok() {
                        let PacketHeader { deadline, tree, sequence, is_unfair, .. } = header;
                        let key = HoldKey { deadline, tree, sequence, receiver: index };
                        let text = String::from_utf8_lossy(payload).into_owned();
                        hold.step(now, HoldInput::Packet(key, text, is_unfair), &mut released);
                    }
                }
            }
        } else {
            break;
        }
        for shown in released.drain(..) {
            *(if shown.unfair.is_none() { &mut on_time } else { &mut late }) += 1;
            if shown.key.receiver == 0 {
                println!("{} µs: {:9} {:?}", shown.key.deadline / 1_000, shown.item, shown.unfair);
            }
        }
    }
    println!("{on_time} on time, {late} late, of {}", 20 * 100);
}
