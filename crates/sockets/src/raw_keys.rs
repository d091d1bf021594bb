//! TLS 1.3 with raw ed25519 public keys (RFC 7250), pinned by the other side.
//!
//! There are no certificates, names, dates or authorities: an end presents its key, proves by a signature over the
//! handshake that it holds the secret half, and is accepted if that key is expected. Links between validators pin both
//! ends; a client of the payment lane pins the shard's key and shows none. Bytes that TLS signs begin with 64 spaces,
//! and whatever else such a key signs begins with its own tag. So neither can be mistaken for the other.

use std::sync::Arc;

use primitives::{PublicKey, SecretKey};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
};
use zeroize::Zeroizing;

/// DER around the 32 bytes of an ed25519 public key (RFC 8410).
const PUBLIC_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// DER around the 32 bytes of an ed25519 seed (RFC 8410).
const SECRET_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// A key in the form that TLS needs.
pub struct Identity(Arc<CertifiedKey>);

impl Identity {
    /// The identity of whoever holds this key.
    ///
    /// # Errors
    /// If the key cannot be used for TLS.
    pub fn new(secret: &SecretKey) -> Result<Identity, Error> {
        let mut der = Zeroizing::new([0; SECRET_PREFIX.len() + 32]);
        der[..SECRET_PREFIX.len()].copy_from_slice(&SECRET_PREFIX);
        der[SECRET_PREFIX.len()..].copy_from_slice(&*Zeroizing::new(secret.to_seed()));
        let key = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(&der[..]))?;
        Ok(Identity(Arc::new(CertifiedKey::new(vec![encode(&secret.public()).into()], key))))
    }
}

/// Who may open a connection.
pub enum Callers {
    /// Anybody; a caller shows no key.
    Anybody,
    /// The holders of these keys.
    Keys(Vec<PublicKey>),
}

/// The configuration for connections that others open. Both ends name `protocol`, so that nobody talks to a server of
/// another protocol by mistake.
///
/// # Errors
/// If the library has no TLS 1.3.
pub fn server(own: &Identity, callers: Callers, protocol: &[u8]) -> Result<ServerConfig, Error> {
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13])?;
    let builder = match callers {
        Callers::Anybody => builder.with_no_client_auth(),
        Callers::Keys(keys) => builder.with_client_cert_verifier(Arc::new(Pinned::new(keys))),
    };
    let mut config = builder.with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own.0.clone())));
    // A resumed session would not prove the key again.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![protocol.into()];
    Ok(config)
}

/// The configuration for a connection to the holder of this key, under one's own key or none.
///
/// # Errors
/// If the library has no TLS 1.3.
pub fn client(own: Option<&Identity>, expected: PublicKey, protocol: &[u8]) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned::new(vec![expected])));
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(own) => builder.with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own.0.clone()))),
    };
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    config.alpn_protocols = vec![protocol.into()];
    Ok(config)
}

/// The name that a client gives the server: it is not checked, the key is.
pub fn server_name() -> ServerName<'static> {
    ServerName::try_from("walras").expect("a valid name")
}

/// The key that the other end has shown, and by the handshake proved to hold.
pub fn key_shown(shown: &[CertificateDer<'_>]) -> Option<PublicKey> {
    decode(shown.first()?)
}

fn encode(key: &PublicKey) -> Vec<u8> {
    [&PUBLIC_PREFIX[..], &key.0].concat()
}

fn decode(der: &[u8]) -> Option<PublicKey> {
    let key = der.strip_prefix(&PUBLIC_PREFIX)?;
    key.try_into().ok().map(PublicKey)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Accepts only the keys in its list.
#[derive(Debug)]
struct Pinned {
    keys: Vec<PublicKey>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn new(keys: Vec<PublicKey>) -> Pinned {
        Pinned { keys, algorithms: ring::default_provider().signature_verification_algorithms }
    }

    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        let key = decode(shown).ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let known = self.keys.contains(&key);
        known.then_some(()).ok_or(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }
}

/// TLS 1.2 is never offered.
fn too_old() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("TLS 1.2 is not supported".into()))
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        too_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, shown, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(shown).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        too_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, shown, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_der_and_nothing_else_is_one() {
        let key = SecretKey::from_seed([7; 32]).public();
        let der = encode(&key);
        assert_eq!((der.len(), decode(&der)), (44, Some(key)));
        for at in 0..PUBLIC_PREFIX.len() {
            let mut other = der.clone();
            other[at] ^= 1;
            assert_eq!(decode(&other), None);
        }
        assert_eq!((decode(&der[..43]), decode(&[&der[..], &[0]].concat())), (None, None));
    }

    #[test]
    fn only_pinned_keys_pass() {
        let key = |seed| SecretKey::from_seed([seed; 32]).public();
        let pinned = Pinned::new(vec![key(1), key(2)]);
        assert!(pinned.check(&encode(&key(2)).into()).is_ok());
        assert!(pinned.check(&encode(&key(3)).into()).is_err());
        assert!(pinned.check(&vec![0; 44].into()).is_err());
    }
}
