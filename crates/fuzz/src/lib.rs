//! Fuzzing of everything that reads bytes from outside: decoders, files, requests. For tests, on a stable compiler.
//!
//! A [`Target`] has valid inputs, a reader, and a bound on what the reader may allocate. [`Target::run`] gives the
//! reader the valid inputs and the kept corpus, and then mutations of them: flipped bits, extreme integers, cut,
//! repeated and spliced parts, words of the format. Inputs with a new kind of answer (another error, or an accepted
//! input of another kind) are mutated further. So the search goes deeper without instrumented code. The same number of
//! cases makes the same run.
//!
//! Properties of every input:
//!
//! 1. The reader does not panic.
//! 2. It never holds more than [`Room`] allows for an input of that length. The allocator of every program that links
//!    this crate counts allocations.
//! 3. An accepted input has one encoding, where the format promises that: the reader asserts it.
//!
//! `FUZZ_CASES` is the number of mutations for each target. `FUZZ_KEEP=1` writes new, short inputs into the corpus
//! (`crates/fuzz/corpus/NAME`), where every later run begins. An input that violates a property is printed in
//! hexadecimal: fix the reader, and keep the input.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use kernel::Dice;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// One target runs at a time, so that all counted allocations are the reader's.
static ALONE: Mutex<()> = Mutex::new(());

/// Default number of mutations of each target.
const CASES: u64 = 4_000;
/// Maximum number of inputs that are mutated further.
const POOL: usize = 400;
/// The longest input that is kept in the corpus.
const KEPT_BYTES: usize = 600;
/// The longest input that is made.
const INPUT_BYTES: usize = 1 << 16;

/// Maximum allocation of a reader at any time.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Bytes for any input.
    pub base: usize,
    /// Bytes for each byte of the input.
    pub factor: usize,
}

impl Room {
    /// The bound for an input of this length.
    fn of(self, length: usize) -> usize {
        self.base + self.factor * length
    }
}

impl Default for Room {
    /// Borsh reserves up to a mebibyte before it reads the first byte of a string of bytes.
    fn default() -> Room {
        Room { base: 4 << 20, factor: 64 }
    }
}

/// Something that reads bytes.
pub struct Target<'a> {
    /// Its name, also that of its part of the corpus.
    pub name: &'a str,
    /// Valid inputs.
    pub seeds: Vec<Vec<u8>>,
    /// Words of the format, which mutations insert.
    pub words: &'a [&'a str],
    /// Maximum allocation; `None` if others allocate at the same time.
    pub room: Option<Room>,
    /// Whether each seed must be accepted: a target whose seeds are refused tests nothing.
    pub takes_seeds: bool,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Number of inputs.
    pub cases: u64,
    /// Number of accepted inputs.
    pub taken: u64,
    /// Number of different kinds of answers.
    pub kinds: usize,
}

impl<'a> Target<'a> {
    /// A target with these seeds, all valid, and the default room.
    pub fn new(name: &'a str, seeds: Vec<Vec<u8>>) -> Target<'a> {
        Target { name, seeds, words: &[], room: Some(Room::default()), takes_seeds: true }
    }

    /// Gives the reader all inputs. The reader returns the kind of input it accepted, or why it refused it.
    ///
    /// # Panics
    /// If a property is violated.
    pub fn run(&self, mut read: impl FnMut(&[u8]) -> Result<String, String>) -> Ran {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ran = Ran::default();
        let mut kinds = BTreeSet::new();
        let mut pool: Vec<Vec<u8>> = self.seeds.clone();
        for seed in &self.seeds {
            let answer = self.check(seed, &mut read);
            assert!(!self.takes_seeds || answer.is_ok(), "{}: a seed is refused: {answer:?}", self.name);
            kinds.insert(kind_of(&answer));
        }
        for kept in self.corpus() {
            kinds.insert(kind_of(&self.check(&kept, &mut read)));
            pool.push(kept);
        }
        pool.push(Vec::new());
        let mut dice = Dice::new(u64::from_le_bytes(
            blake3::hash(self.name.as_bytes()).as_bytes()[..8].try_into().expect("8 bytes"),
        ));
        for _ in 0..cases() {
            let input = self.mutate(&pool, &mut dice);
            let answer = self.check(&input, &mut read);
            ran.cases += 1;
            ran.taken += u64::from(answer.is_ok());
            if kinds.insert(kind_of(&answer)) && pool.len() < POOL {
                self.keep(&input);
                pool.push(input);
            }
        }
        ran.kinds = kinds.len();
        ran
    }

    fn check(&self, input: &[u8], read: &mut impl FnMut(&[u8]) -> Result<String, String>) -> Result<String, String> {
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let answer = catch_unwind(AssertUnwindSafe(|| read(input)));
        let held = ALLOCATOR.peak_usage().saturating_sub(before);
        match answer {
            Err(panic) => {
                eprintln!("{}: this input violates a property: {}", self.name, hexadecimal(input));
                resume_unwind(panic)
            }
            Ok(answer) => {
                let most = self.room.map_or(usize::MAX, |room| room.of(input.len()));
                let (name, length) = (self.name, input.len());
                assert!(held <= most, "{name}: {held} bytes for {length}, at most {most}: {}", hexadecimal(input));
                answer
            }
        }
    }

    fn folder(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(self.name)
    }

    /// Inputs kept by earlier runs, in order of names.
    fn corpus(&self) -> Vec<Vec<u8>> {
        let Ok(entries) = std::fs::read_dir(self.folder()) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        paths.iter().map(|path| std::fs::read(path).expect("a readable corpus")).collect()
    }

    fn keep(&self, input: &[u8]) {
        if std::env::var_os("FUZZ_KEEP").is_none() || input.len() > KEPT_BYTES {
            return;
        }
        let name = &blake3::hash(input).to_hex()[..16];
        std::fs::create_dir_all(self.folder()).expect("a folder for the corpus");
        std::fs::write(self.folder().join(name), input).expect("a writable corpus");
    }

    fn mutate(&self, pool: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
        let mut input = pool[dice.index(pool.len())].clone();
        for _ in 0..=dice.index(4) {
            self.mutate_once(&mut input, pool, dice);
        }
        input.truncate(INPUT_BYTES);
        input
    }

    fn mutate_once(&self, input: &mut Vec<u8>, pool: &[Vec<u8>], dice: &mut Dice) {
        let at = dice.index(input.len() + 1);
        let rest = input.len() - at;
        match dice.index(11) {
            0 if rest > 0 => input[at] ^= 1 << dice.index(8),
            1 if rest > 0 => input[at] = [0, 1, 2, 0x7f, 0x80, 0xfe, 0xff, dice.index(256) as u8][dice.index(8)],
            2 if rest >= 4 => input[at..at + 4].copy_from_slice(&(integer(dice, rest) as u32).to_le_bytes()),
            3 if rest >= 8 => input[at..at + 8].copy_from_slice(&integer(dice, rest).to_le_bytes()),
            4 => input.truncate(at),
            5 => drop(input.drain(at..at + dice.index(rest.min(40) + 1))),
            6 => {
                let part = input[at..at + dice.index(rest.min(200) + 1)].to_vec();
                for _ in 0..=dice.index(4) {
                    input.splice(at..at, part.iter().copied());
                }
            }
            7 => {
                let other = &pool[dice.index(pool.len())];
                input.truncate(at);
                input.extend_from_slice(&other[dice.index(other.len() + 1)..]);
            }
            8 => {
                let other = &pool[dice.index(pool.len())];
                let from = dice.index(other.len() + 1);
                let part = &other[from..from + dice.index((other.len() - from).min(64) + 1)];
                input.splice(at..at, part.iter().copied());
            }
            9 if !self.words.is_empty() => {
                let word = self.words[dice.index(self.words.len())];
                input.splice(at..at, word.bytes());
            }
            _ => {
                let random: Vec<u8> = (0..dice.index(9)).map(|_| dice.index(256) as u8).collect();
                input.splice(at..at, random);
            }
        }
    }
}

/// The number of mutations for each target.
pub fn cases() -> u64 {
    let asked = std::env::var("FUZZ_CASES").ok();
    asked.map_or(CASES, |text| text.parse().unwrap_or_else(|_| panic!("FUZZ_CASES={text}: write a number")))
}

/// Integers at which arithmetic and limits fail.
fn integer(dice: &mut Dice, rest: usize) -> u64 {
    let power = 1u64 << dice.index(64);
    [0, 1, u64::MAX, u64::MAX - 1, i64::MAX as u64, i64::MAX as u64 + 1, power, power - 1, rest as u64, rest as u64 + 1]
        [dice.index(10)]
}

/// The kind of an answer: texts that differ only in numbers are of the same kind.
fn kind_of(answer: &Result<String, String>) -> (bool, String) {
    let text = match answer {
        Ok(text) | Err(text) => text,
    };
    let mut kind = String::new();
    for word in text.chars().take(160) {
        let word = if word.is_ascii_digit() { '#' } else { word };
        if !(word == '#' && kind.ends_with('#')) {
            kind.push(word);
        }
    }
    (answer.is_ok(), kind)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a reader of a length and this many bytes, with a mistake, is detected.
    fn breaks(read: impl Fn(&[u8])) -> bool {
        let seed = [&[5, 0, 0, 0][..], b"hello"].concat();
        let room = Some(Room { base: 64 << 10, factor: 64 });
        let target = Target { room, ..Target::new("a test of the fuzzer itself", vec![seed]) };
        let length = |input: &[u8]| input.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes) as usize);
        let run = || {
            target.run(|input| {
                let length = length(input).ok_or("too short")?;
                read(input);
                if input.len() - 4 == length { Ok("taken".into()) } else { Err(format!("not {length} bytes")) }
            })
        };
        catch_unwind(AssertUnwindSafe(run)).is_err()
    }

    /// A check that cannot fail proves nothing.
    #[test]
    fn mistakes_of_a_reader_are_found() {
        assert!(!breaks(|_| ()));
        assert!(breaks(|input| assert!(!input[4..].starts_with(b"hellohello"))), "what is repeated");
        assert!(breaks(|input| assert!(u32::from_le_bytes(input[..4].try_into().expect("four")) != u32::MAX)));
        assert!(breaks(|input| {
            let length = u32::from_le_bytes(input[..4].try_into().expect("four")) as usize;
            let room: Vec<u8> = Vec::with_capacity(length.min(1 << 24));
            drop(std::hint::black_box(room));
        }));
    }

    #[test]
    fn numbers_make_no_other_kind() {
        let kind = |text: &str| kind_of(&Err(text.into()));
        assert_eq!(kind("byte 17 of 3000"), kind("byte 4 of 9"));
        assert_ne!(kind("byte 17"), kind("bit 17"));
    }
}
