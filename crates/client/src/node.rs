//! A node, asked over HTTP: one call for each question, with the bodies of [`api`].

use std::time::Duration;

use api::{
    AccountBody, AssetsBody, BatchBody, ErrorBody, LimitsBody, NodeStatus, OfferBody, Offers, ParametersBody,
    ResultBody, Results, SessionBody, TransactionBody, UpgradeBody, ValidatorStatus, ValidatorsBody,
};
use borsh::BorshDeserialize;
use primitives::{Address, Digest, Height, PublicKey, Sequence, SessionSlot, Transaction, TransactionId};
use serde::de::DeserializeOwned;

use crate::assets::Assets;
use crate::error::ClientError;
use crate::hexadecimal::hex_bytes;

/// Time that an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum bytes of an answer.
const ANSWER_BYTES: u64 = 256 << 20;
/// Offers in a page.
const PAGE: usize = 1_000;

/// A node of a network. Nothing that it says is verified here.
#[derive(Clone, Debug)]
pub struct NodeClient {
    url: String,
    agent: ureq::Agent,
}

/// What transactions are signed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigningTerms {
    /// The chain's number.
    pub chain: u64,
    /// The identity of the network.
    pub network: Digest,
    /// Maximum distance of a sequence number above the highest used one.
    pub sequence_window: u64,
}

/// Why a node does not take transactions now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unready {
    /// A stable code.
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

impl NodeClient {
    /// The node at an address such as `http://127.0.0.1:8080`.
    pub fn at(url: impl Into<String>) -> NodeClient {
        NodeClient::within(url, PATIENCE)
    }

    /// The same, whose answers may take no longer than this.
    pub fn within(url: impl Into<String>, patience: Duration) -> NodeClient {
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(patience));
        NodeClient { url: url.into(), agent: config.build().into() }
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The answer at a path.
    ///
    /// # Errors
    /// [`ClientError`]: no answer, one that does not fit, or a refusal.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let (status, bytes) = self.bytes(path)?;
        self.read(status, &bytes)
    }

    /// The same, or `None` if the node has no such thing.
    ///
    /// # Errors
    /// [`ClientError`], absence aside.
    pub fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ClientError> {
        match self.get(path) {
            Err(error) if error.is_absence() => Ok(None),
            found => found.map(Some),
        }
    }

    /// The status and the bytes at a path, whatever they are.
    ///
    /// # Errors
    /// [`ClientError::NoAnswer`].
    pub fn bytes(&self, path: &str) -> Result<(u16, Vec<u8>), ClientError> {
        self.answer(self.agent.get(format!("{}{path}", self.url)).call())
    }

    /// The answer to a body of bytes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &[u8]) -> Result<T, ClientError> {
        let request = self.agent.post(format!("{}{path}", self.url)).content_type("application/octet-stream");
        let (status, bytes) = self.answer(request.send(body))?;
        self.read(status, &bytes)
    }

    fn answer(
        &self,
        response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<(u16, Vec<u8>), ClientError> {
        let no_answer = |cause| ClientError::NoAnswer { server: self.url.clone(), cause: Box::new(cause) };
        let mut response = response.map_err(no_answer)?;
        let bytes = response.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec().map_err(no_answer)?;
        Ok((response.status().as_u16(), bytes))
    }

    fn read<T: DeserializeOwned>(&self, status: u16, bytes: &[u8]) -> Result<T, ClientError> {
        let server = || self.url.clone();
        if let Ok(ErrorBody { error }) = serde_json::from_slice(bytes) {
            let (code, message) = (error.code.into(), error.message);
            return Err(ClientError::Refused { server: server(), status, code, message });
        }
        let foreign = |what| ClientError::Foreign { server: server(), what };
        if !(200..300).contains(&status) {
            return Err(foreign(format!("it answers {status} without a reason")));
        }
        serde_json::from_slice(bytes).map_err(|error| foreign(error.to_string()))
    }

    /// Its status.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn status(&self) -> Result<NodeStatus, ClientError> {
        self.get("/v1/status")
    }

    /// The height of its newest block.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn height(&self) -> Result<Height, ClientError> {
        Ok(self.status()?.height)
    }

    /// Constants of the chain, and limits of the node.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn limits(&self) -> Result<LimitsBody, ClientError> {
        self.get("/v1/limits")
    }

    /// What transactions are signed for.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn terms(&self) -> Result<SigningTerms, ClientError> {
        let LimitsBody { chain, network, sequence_window, .. } = self.limits()?;
        Ok(SigningTerms {
            chain: self.number("chain", &chain)?,
            network: self.number("network", &network)?,
            sequence_window,
        })
    }

    /// Its assets.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn assets(&self) -> Result<Assets, ClientError> {
        let body: AssetsBody = self.get("/v1/assets")?;
        Assets::of(&body).ok_or_else(|| self.foreign("its list of assets cannot be decoded"))
    }

    /// An account; `None` if there is none.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn account(&self, account: &Address) -> Result<Option<AccountBody>, ClientError> {
        self.find(&format!("/v1/accounts/{account}"))
    }

    /// The highest committed sequence number of an account, and a free one.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn sequence(&self, account: &Address) -> Result<(Sequence, Sequence), ClientError> {
        let body: AccountBody = self.get(&format!("/v1/accounts/{account}"))?;
        Ok((self.number("sequence", &body.sequence.highest)?, self.number("sequence", &body.sequence.next)?))
    }

    /// The session key of an account that this is; `None` if it is none of them.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn session(&self, account: &Address, key: &PublicKey) -> Result<Option<SessionBody>, ClientError> {
        let sessions = self.account(account)?.map_or(Vec::new(), |account| account.sessions);
        Ok(sessions.into_iter().find(|session| session.key == key.to_string()))
    }

    /// The highest committed sequence number of the session key in a slot of an account, and a free one.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn session_sequence(&self, account: &Address, slot: SessionSlot) -> Result<(Sequence, Sequence), ClientError> {
        let body: AccountBody = self.get(&format!("/v1/accounts/{account}"))?;
        let found = body.sessions.iter().find(|session| session.slot == slot);
        let numbers = &found.ok_or(ClientError::NoSession { account: *account, slot })?.sequence;
        Ok((self.number("sequence", &numbers.highest)?, self.number("sequence", &numbers.next)?))
    }

    /// All resting offers of an account, page by page.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn offers(&self, account: &Address) -> Result<Vec<OfferBody>, ClientError> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page: Offers = self.get(&format!("/v1/accounts/{account}/offers?limit={PAGE}{cursor}"))?;
            all.extend(page.offers);
            match page.next {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(all),
            }
        }
    }

    /// A resting offer of an account, by its id.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn offer(&self, account: &Address, id: Sequence) -> Result<Option<OfferBody>, ClientError> {
        // Ids from this one on: the first is the offer, if it rests.
        let page: Offers = self.get(&format!("/v1/accounts/{account}/offers?limit=1&cursor={id}"))?;
        Ok(page.offers.into_iter().find(|resting| resting.id == id.to_string()))
    }

    /// Which rules the chain follows, which come, and who approves of them.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn upgrade(&self) -> Result<UpgradeBody, ClientError> {
        self.get("/v1/upgrade")
    }

    /// The parameters of the chain, and what is proposed about them.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn parameters(&self) -> Result<ParametersBody, ClientError> {
        self.get("/v1/parameters")
    }

    /// Stakers and validators.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn validators(&self) -> Result<ValidatorsBody, ClientError> {
        self.get("/v1/validators")
    }

    /// Its status as a validator; `None` in a solo node.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn validator(&self) -> Result<Option<ValidatorStatus>, ClientError> {
        self.find("/v1/validator")
    }

    /// What it knows about a transaction.
    ///
    /// # Errors
    /// [`ClientError`]; with the code `refused` if it refused the transaction.
    pub fn transaction(&self, id: &TransactionId) -> Result<TransactionBody, ClientError> {
        self.get(&format!("/v1/transactions/{id}"))
    }

    /// Submits a transaction.
    ///
    /// # Errors
    /// [`ClientError`]; see [`ClientError::leaves_doubt`].
    pub fn submit(&self, transaction: &Transaction) -> Result<TransactionBody, ClientError> {
        self.post("/v1/transactions", &borsh::to_vec(transaction).expect("writing to memory cannot fail"))
    }

    /// Submits many transactions, and returns an answer for each, in order.
    ///
    /// # Errors
    /// [`ClientError`]; see [`ClientError::leaves_doubt`].
    pub fn submit_all(&self, transactions: &[Transaction]) -> Result<Vec<ResultBody>, ClientError> {
        let bytes = borsh::to_vec(transactions).expect("writing to memory cannot fail");
        let Results { results } = self.post("/v1/transactions/batch", &bytes)?;
        if results.len() != transactions.len() {
            return Err(self.foreign("it does not answer each transaction"));
        }
        Ok(results)
    }

    /// The batch of a block; `None` if it has none of that height.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn batch(&self, height: Height) -> Result<Option<BatchBody>, ClientError> {
        self.find(&format!("/v1/blocks/{height}/batch"))
    }

    /// `None` if it takes transactions and has caught up.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn unready(&self) -> Result<Option<Unready>, ClientError> {
        let (status, bytes) = self.bytes("/readyz")?;
        if (200..300).contains(&status) {
            return Ok(None);
        }
        match self.read::<serde_json::Value>(status, &bytes) {
            Err(ClientError::Refused { code, message, .. }) => Ok(Some(Unready { code, message })),
            Err(error) => Err(error),
            Ok(_) => Err(self.foreign("it is neither ready nor says why")),
        }
    }

    /// A value that a node encoded and wrote in hexadecimal; `what` names it.
    ///
    /// # Errors
    /// [`ClientError::Foreign`] if it is none.
    pub fn decoded<T: BorshDeserialize>(&self, what: &str, text: &str) -> Result<T, ClientError> {
        let value = hex_bytes(text).and_then(|bytes| borsh::from_slice(&bytes).ok());
        value.ok_or_else(|| self.foreign(&format!("its {what} cannot be decoded")))
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, what: &str, text: &str) -> Result<T, ClientError> {
        text.parse().map_err(|_| self.foreign(&format!("its {what} is {text:?}")))
    }

    pub(crate) fn foreign(&self, what: &str) -> ClientError {
        ClientError::Foreign { server: self.url.clone(), what: what.into() }
    }
}
