//! Which numbers of a sequence were seen: a bitmap that slides with the highest one, word by word.

/// Remembers at least the last `span` − 63 numbers; those before count as seen.
#[derive(Clone, Debug)]
pub struct SeenWindow {
    bits: Box<[u64]>,
    /// The highest number seen; 0 if none.
    top: u64,
}

impl SeenWindow {
    /// A window of at least `span` numbers, a multiple of 64 and a power of two.
    pub fn new(span: usize) -> SeenWindow {
        SeenWindow { bits: vec![0; span.div_ceil(64).next_power_of_two()].into(), top: 0 }
    }

    fn place(&self, number: u64) -> (usize, u64) {
        ((number / 64) as usize & (self.bits.len() - 1), 1 << (number % 64))
    }

    /// The highest number seen, 0 if none.
    pub fn top(&self) -> u64 {
        self.top
    }

    /// Whether a number was seen, or is too old to tell. Numbers begin at 1.
    #[inline]
    pub fn has(&self, number: u64) -> bool {
        if number > self.top {
            return false;
        }
        let (word, bit) = self.place(number);
        self.top / 64 - number / 64 >= self.bits.len() as u64 || number == 0 || self.bits[word] & bit != 0
    }

    /// Marks a number as seen; false if it already was.
    #[inline]
    pub fn insert(&mut self, number: u64) -> bool {
        if self.has(number) {
            return false;
        }
        if number > self.top {
            self.slide(number);
        }
        let (word, bit) = self.place(number);
        self.bits[word] |= bit;
        true
    }

    /// Forgets what leaves the window when `number` becomes the highest.
    #[inline]
    fn slide(&mut self, number: u64) {
        let (from, to) = (self.top / 64, number / 64);
        if to - from >= self.bits.len() as u64 {
            self.bits.fill(0);
        } else {
            (from + 1..=to).for_each(|word| self.bits[word as usize & (self.bits.len() - 1)] = 0);
        }
        self.top = number;
    }
}
