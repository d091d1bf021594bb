//! A model of the committee's key: who holds a share, when a key is in force, and when it ends.
//!
//! # Rules
//!
//! - A key is made with threshold t = f + 1. It comes into force if at least t + f seats have posted that they hold
//!   their share; else there is none.
//! - A seat that posts *lost* holds it no longer. The key ends when fewer than t + f hold it.
//! - A faulty seat posts what it likes, and may withhold its share of any envelope.
//!
//! # What must hold
//!
//! - *It opens*: while a key is in force, t correct seats hold it, so that all that is sealed to it can be opened.
//! - *It hides*: the faulty seats hold fewer shares than the threshold.
//! - *Refusing turns nothing off*: if all correct seats held it when it came into force and none of them lost it, the
//!   faulty ones cannot end it, nor prevent it.

/// A rule that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// The threshold is f.
    Threshold,
    /// t holders make a key.
    FewHolders,
    /// A key ends only when fewer than t hold it.
    LateEnd,
    /// A key needs all seats.
    AllHold,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    threshold: u32,
    /// Holders that a key needs to come into force, and to stay.
    begins: u32,
    stays: u32,
}

impl Rules {
    fn of(seats: u32, broken: Option<Broken>) -> Rules {
        let faulty = (seats - 1) / 3;
        let threshold = if broken == Some(Broken::Threshold) { faulty.max(1) } else { faulty + 1 };
        let needed = threshold + faulty;
        let begins = match broken {
            Some(Broken::FewHolders) => threshold,
            Some(Broken::AllHold) => seats,
            _ => needed,
        };
        let stays = match broken {
            Some(Broken::FewHolders | Broken::LateEnd) => threshold,
            Some(Broken::AllHold) => seats,
            _ => needed,
        };
        Rules { threshold, begins, stays }
    }
}

/// What becomes of a key, for every set of faulty seats, every set that posts *hold*, and every set that posts *lost*
/// later: disks of correct seats break too, one after another.
fn fault(seats: u32, broken: Option<Broken>) -> Option<&'static str> {
    let (rules, most, all) = (Rules::of(seats, broken), (seats - 1) / 3, (1u32 << seats) - 1);
    for bad in (0..=all).filter(|bad| bad.count_ones() <= most) {
        if bad.count_ones() >= rules.threshold {
            return Some("faulty seats read");
        }
        for holds in 0..=all {
            let all_correct_hold = all & !bad & !holds == 0;
            if holds.count_ones() < rules.begins {
                if all_correct_hold {
                    return Some("faulty seats prevent a key");
                }
                continue;
            }
            for lost in (0..=all).filter(|lost| lost & !holds == 0) {
                let left = holds & !lost;
                let stays = left.count_ones() >= rules.stays;
                if stays && (left & !bad).count_ones() < rules.threshold {
                    return Some("a key in force does not open");
                }
                if !stays && all_correct_hold && lost & !bad == 0 {
                    return Some("faulty seats end a key");
                }
            }
        }
    }
    None
}

#[test]
fn a_key_in_force_opens_hides_and_stays() {
    for seats in 4..=8 {
        assert_eq!(fault(seats, None), None, "{seats} seats");
    }
}

#[test]
fn each_broken_rule_is_found() {
    let expected = [
        (Broken::Threshold, "faulty seats read"),
        (Broken::FewHolders, "a key in force does not open"),
        (Broken::LateEnd, "a key in force does not open"),
        (Broken::AllHold, "faulty seats prevent a key"),
    ];
    for (broken, expected) in expected {
        assert_eq!(fault(7, Some(broken)), Some(expected), "{broken:?}");
    }
}

/// What the rules do not promise: a correct seat that was late when the key was made gives a faulty one the switch.
/// Nothing is read by it, and what was sealed is opened; a new key must be made.
#[test]
fn a_late_correct_seat_lets_a_faulty_one_end_the_key() {
    let rules = Rules::of(4, None);
    let (holds, lost) = (0b0111u32, 0b0001u32);
    assert!(holds.count_ones() >= rules.begins);
    assert!((holds & !lost).count_ones() < rules.stays);
    assert!((holds & !lost).count_ones() >= rules.threshold, "those who are left open what was sealed");
}
