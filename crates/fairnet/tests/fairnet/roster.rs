//! Members, evictions, epochs, the log of fairness events.

use fairnet::*;

const MS: Nanos = 1_000_000;

fn step(roster: &mut Roster, now: Nanos, input: RosterInput) -> Vec<RosterEffect> {
    let mut out = Vec::new();
    roster.step(now, input, &mut out);
    out
}

#[test]
fn eviction_follows_silence_and_begins_one_epoch() {
    let mut roster = Roster::new(7, RosterRules::default());
    for member in 1..=3 {
        step(&mut roster, 0, RosterInput::Join(member, MemberRole::Gateway));
    }
    assert_eq!(roster.epoch(), 10);
    step(&mut roster, 299 * MS, RosterInput::Heartbeat(1, 10));
    assert_eq!(step(&mut roster, 300 * MS, RosterInput::Tick), []);
    let out = step(&mut roster, 301 * MS, RosterInput::Tick);
    let evicted: Vec<&RosterEffect> = out.iter().filter(|effect| matches!(effect, RosterEffect::Evicted(_))).collect();
    assert_eq!(evicted, [&RosterEffect::Evicted(2), &RosterEffect::Evicted(3)]);
    assert_eq!(out.last(), Some(&RosterEffect::Epoch(11)));
    assert_eq!(roster.members(MemberRole::Gateway).collect::<Vec<u64>>(), [1]);
    assert_eq!(roster.members(MemberRole::Proxy).count(), 0);
}

#[test]
fn evicted_member_is_unknown_until_it_joins_again_in_a_new_epoch() {
    let mut roster = Roster::new(0, RosterRules::default());
    step(&mut roster, 0, RosterInput::Join(5, MemberRole::Proxy));
    step(&mut roster, 301 * MS, RosterInput::Tick);
    assert_eq!(step(&mut roster, 302 * MS, RosterInput::Heartbeat(5, 1)), [RosterEffect::Unknown(5)]);
    let soon = step(&mut roster, 1_300 * MS, RosterInput::Join(5, MemberRole::Proxy));
    assert_eq!(soon, [RosterEffect::TooSoon(5, 1_301 * MS)]);
    let again = step(&mut roster, 1_301 * MS, RosterInput::Join(5, MemberRole::Proxy));
    assert_eq!(again[0], RosterEffect::Epoch(3));
    // Heartbeats of the epoch before its return are replays.
    assert_eq!(step(&mut roster, 1_302 * MS, RosterInput::Heartbeat(5, 2)), [RosterEffect::Unknown(5)]);
    assert_eq!(step(&mut roster, 1_302 * MS, RosterInput::Heartbeat(5, 3)), []);
    assert_eq!(step(&mut roster, 1_302 * MS, RosterInput::Heartbeat(5, 4)), [RosterEffect::Unknown(5)]);
}

#[test]
fn eviction_again_doubles_the_wait() {
    let mut roster = Roster::new(0, RosterRules::default());
    let (mut now, mut waits) = (0, Vec::new());
    for _ in 0..4 {
        step(&mut roster, now, RosterInput::Join(5, MemberRole::Proxy));
        now += 301 * MS;
        step(&mut roster, now, RosterInput::Tick);
        let Some(RosterEffect::TooSoon(_, until)) =
            step(&mut roster, now, RosterInput::Join(5, MemberRole::Proxy)).pop()
        else {
            panic!("it may join at once")
        };
        waits.push((until - now) / (1_000 * MS));
        now = until;
    }
    assert_eq!(waits, [1, 2, 4, 8]);
}

#[test]
fn roster_is_bounded() {
    let mut roster = Roster::new(0, RosterRules { most: 2, ..RosterRules::default() });
    (1..=2).for_each(|member| drop(step(&mut roster, 0, RosterInput::Join(member, MemberRole::Proxy))));
    assert_eq!(step(&mut roster, 0, RosterInput::Join(3, MemberRole::Proxy)), [RosterEffect::Full(3)]);
    step(&mut roster, 0, RosterInput::Leave(1));
    assert_eq!(step(&mut roster, 0, RosterInput::Join(3, MemberRole::Proxy)).len(), 2);
}

#[test]
fn fairness_log_shows_any_alteration() {
    let mut log = FairnessLog::new(100);
    for number in 0..200 {
        log.append(3, number, FairnessEvent::Late(number, 5));
    }
    let entries: Vec<FairnessEntry> = log.entries().copied().collect();
    assert_eq!((entries.len(), entries[99].head), (100, log.head()));
    assert_eq!(FairnessLog::broken_at(&entries), None);
    let alter = |change: &dyn Fn(&mut FairnessEntry)| {
        let mut altered = entries.clone();
        change(&mut altered[50]);
        FairnessLog::broken_at(&altered)
    };
    assert_eq!(alter(&|entry| entry.event = FairnessEvent::Late(150, 4)), Some(151));
    assert_eq!(alter(&|entry| entry.at += 1), Some(151));
    assert_eq!(alter(&|entry| entry.head[0] ^= 1), Some(151));
    let mut without = entries.clone();
    without.remove(50);
    assert_eq!(FairnessLog::broken_at(&without), Some(152));
}
