//! Copies of codes that a thread keeps.

use std::cell::RefCell;

use revm::primitives::{B256, Bytes};

use crate::places::contracts::{EvmCode, evm_code};

/// The most codes of which a thread has copies.
const KEPT_CODES: usize = 256;

thread_local! {
    pub(super) static CODES: RefCell<Codes> = const { RefCell::new(Codes(Vec::new())) };
}

/// Copies of the codes that a thread has run twice, by their hashes. Calls update the reference count of a code, and
/// threads that update the same counter wait for each other.
pub(super) struct Codes(Vec<Option<(B256, Option<EvmCode>)>>);

impl Codes {
    pub fn get(&mut self, hash: B256, load: impl FnOnce() -> EvmCode) -> EvmCode {
        if self.0.is_empty() {
            self.0.resize(KEPT_CODES, None);
        }
        let kept = &mut self.0[usize::from(hash[0]) % KEPT_CODES];
        match kept {
            Some((known, Some(code))) if *known == hash => code.clone(),
            Some((known, copy)) if *known == hash => {
                let code = load();
                // If a read of an earlier state has failed, there is no code.
                if code.is_empty() {
                    return code;
                }
                let own = evm_code(Bytes::copy_from_slice(code.original_byte_slice()));
                copy.insert(own).clone()
            }
            _ => {
                *kept = Some((hash, None));
                load()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A read of an earlier state may fail: the empty code that it gives is not kept as the code of this hash.
    #[test]
    fn a_failed_read_of_a_code_is_not_kept() {
        let (mut codes, hash) = (Codes(Vec::new()), B256::repeat_byte(7));
        let code = evm_code(Bytes::from_static(&[0x60, 0x01]));
        for _ in 0..3 {
            assert!(codes.get(hash, EvmCode::default).is_empty());
        }
        for _ in 0..3 {
            assert_eq!(codes.get(hash, || code.clone()).original_byte_slice(), [0x60, 0x01]);
        }
        // It is a copy by now.
        assert_eq!(codes.get(hash, || unreachable!("it is kept")).original_byte_slice(), [0x60, 0x01]);
    }
}
