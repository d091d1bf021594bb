//! The own hand: what this validator signs goes through it.

use std::sync::{Arc, OnceLock};

use primitives::{Signature, Signer, SigningError, SigningRequest};

/// Signs for an engine and its heights. After the first failure whatever it gives is worthless, and the engine says so
/// ([`crate::Engine::unsigned`]) before anything of the turn is written down or sent.
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
            // Only the first is told.
            drop(self.failure.set(error));
            Signature([0; 64])
        })
    }

    pub fn failure(&self) -> Option<&SigningError> {
        self.failure.get()
    }
}
