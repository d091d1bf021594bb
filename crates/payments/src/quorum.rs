//! The thresholds of a committee.

/// Number of validators, how many of them may be Byzantine, and how many signatures make a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorums {
    /// Number of validators, n.
    pub validators: usize,
    /// Validators that may be Byzantine: f = ⌊(n−1)/3⌋.
    pub faulty: usize,
    /// Signatures of a certificate: q = ⌊(n+f)/2⌋ + 1, which is 2f+1 where n = 3f+1.
    pub certificate: usize,
}

/// The most validators of a committee: a validator's index is one byte.
pub const VALIDATORS_MAX: usize = 256;

impl Quorums {
    /// The thresholds of `validators`.
    ///
    /// # Panics
    /// If there are none, or more than 256.
    pub fn new(validators: usize) -> Quorums {
        assert!((1..=VALIDATORS_MAX).contains(&validators), "a committee has 1 to {VALIDATORS_MAX} validators");
        let faulty = (validators - 1) / 3;
        Quorums { validators, faulty, certificate: (validators + faulty) / 2 + 1 }
    }

    /// The number of validators that must share a correct one with the correct signers of every certificate: n + f +
    /// 1 − q, which is 2f+1 where n = 3f+1. If this many are bound to something else, no certificate can be made.
    pub fn binding(&self) -> usize {
        self.validators + self.faulty + 1 - self.certificate
    }

    /// The number of validators that must include a correct one: f+1.
    pub fn witness(&self) -> usize {
        self.faulty + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_certificates_share_a_correct_validator_and_the_correct_ones_suffice() {
        for n in 1..=100 {
            let Quorums { faulty, certificate, .. } = Quorums::new(n);
            assert!(2 * certificate - n > faulty, "n = {n}: two certificates may share only Byzantine validators");
            assert!(certificate <= n - faulty, "n = {n}: the correct validators cannot make a certificate");
        }
    }

    #[test]
    fn a_binding_set_meets_the_correct_signers_of_each_certificate() {
        for n in 1..=100 {
            let quorums = Quorums::new(n);
            let (f, q, bound) = (quorums.faulty, quorums.certificate, quorums.binding());
            // Counts only correct validators: at least q − f signed, and at least `bound` − f are in the set.
            assert!((q - f) + (bound - f.min(bound)) > n - f, "n = {n}: they may miss each other");
            assert!(n + f - bound < q, "n = {n}: those outside the set and the faulty ones make a certificate");
            assert!(bound <= q && q <= n - f, "n = {n}: the correct validators are such a set");
            assert_eq!(n == 3 * f + 1, (n - 1).is_multiple_of(3));
            assert!(n != 3 * f + 1 || (bound, q) == (2 * f + 1, 2 * f + 1));
        }
    }

    #[test]
    fn thresholds_of_small_committees() {
        let expected =
            [(1, 0, 1), (2, 0, 2), (3, 0, 2), (4, 1, 3), (5, 1, 4), (6, 1, 4), (7, 2, 5), (10, 3, 7), (28, 9, 19)];
        for (n, faulty, certificate) in expected {
            assert_eq!(Quorums::new(n), Quorums { validators: n, faulty, certificate });
        }
    }
}
