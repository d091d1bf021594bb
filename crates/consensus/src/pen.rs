//! The signer of this validator: everything that it signs passes through here.

use std::sync::{Arc, OnceLock};

use primitives::{Signature, Signer, SigningError, SigningRequest};

/// Signs for an engine and its heights. After the first failure its signatures are invalid, and the engine reports
/// this ([`crate::Engine::unsigned`]) before anything of the turn is logged or sent.
#[derive(Clone)]
pub(crate) struct Pen {
    signer: Arc<dyn Signer>,
    failure: Arc<OnceLock<SigningError>>,
}

impl Pen {
    pub fn new(signer: Arc<dyn Signer>) -> Pen {
        Pen { signer, failure: Arc::default() }
    }

    pub fn sign(&self, request: &SigningRequest) -> Signature {
        self.signer.sign_statement(request).unwrap_or_else(|error| {
            // Only the first failure is kept.
            drop(self.failure.set(error));
            Signature([0; 64])
        })
    }

    pub fn failure(&self) -> Option<&SigningError> {
        self.failure.get()
    }
}
