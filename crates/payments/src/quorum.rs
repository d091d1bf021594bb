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

/// Most validators of a committee: a validator's index is one byte.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_certificates_share_a_correct_validator_and_the_correct_ones_suffice() {
        for n in 1..=100 {
            let Quorums { faulty, certificate, .. } = Quorums::new(n);
            assert!(2 * certificate - n > faulty, "n = {n}: two certificates may share Byzantine validators alone");
            assert!(certificate <= n - faulty, "n = {n}: the correct validators cannot make a certificate");
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
