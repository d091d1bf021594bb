//! Connections to the database: on this machine as they are, to another one by TLS with its certificate's issuer known.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::RelationalError;

/// How long the database may take to take a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long it may take to answer.
const STATEMENT_MS: u32 = 10_000;

/// Where the database is and how it is reached.
pub struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    /// Reads the database's address, as a URL or as `key=value` words, and the certificates that may sign for it.
    ///
    /// # Errors
    /// [`RelationalError::Settings`].
    pub fn new(address: &str, password: Option<&str>, issuers: Option<&Path>) -> Result<Connector, RelationalError> {
        // The reason may quote what was written, and that may have a password.
        let mut config: Config = address.parse().map_err(|_| {
            RelationalError::Settings(
                "`postgres` is no address of a database, such as host=/run/postgresql dbname=walras".into(),
            )
        })?;
        if config.get_password().is_some() {
            return Err(RelationalError::Settings(
                "`postgres` has a password in it, and walras.toml is no secret: put it into a file (mode 0600) and name \
                 that as `postgres_password_file`"
                    .into(),
            ));
        }
        if let Some(password) = password {
            config.password(password);
        }
        config.connect_timeout(CONNECT).application_name("walras");
        let is_here = |host: &Host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|at: std::net::IpAddr| at.is_loopback()),
        };
        let tls = issuers.map(connect_with).transpose()?;
        if tls.is_none() && !config.get_hosts().iter().all(is_here) {
            return Err(RelationalError::Settings(
                "the database is on another machine: name the certificate that signs for it as `postgres_ca`, or reach it \
                 by a tunnel on loopback"
                    .into(),
            ));
        }
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        Ok(Connector { config, tls })
    }

    /// A new connection.
    ///
    /// # Errors
    /// [`RelationalError::Database`].
    pub fn connect(&self) -> Result<Client, RelationalError> {
        let mut client = match &self.tls {
            Some(tls) => self.config.connect(tls.clone())?,
            None => self.config.connect(NoTls)?,
        };
        client.batch_execute(&format!("SET statement_timeout = {STATEMENT_MS}"))?;
        Ok(client)
    }
}

fn connect_with(issuers: &Path) -> Result<MakeRustlsConnect, RelationalError> {
    let unreadable = |error: &dyn std::fmt::Display| {
        RelationalError::Settings(format!("`postgres_ca`: {}: {error}", issuers.display()))
    };
    let mut roots = RootCertStore::empty();
    let read = CertificateDer::pem_file_iter(issuers).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    for certificate in read.map_err(|error| unreadable(&error))? {
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| unreadable(&error))?.with_root_certificates(roots).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
