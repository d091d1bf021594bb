//! A home in the making. It is written aside, so that a command which fails leaves no key that the next one trips over.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use tempfile::TempDir;

use super::make_home;

/// What makes a folder a home.
const GENESIS: &str = "genesis.json";

/// See the module text. What was not moved is deleted when this is dropped.
pub struct Aside {
    home: PathBuf,
    folder: TempDir,
}

impl Aside {
    /// Makes a folder inside the home: a home may be a file system of its own.
    pub fn of(home: &Path) -> anyhow::Result<Aside> {
        make_home(home)?;
        let folder = tempfile::Builder::new().prefix(".making-").tempdir_in(home);
        Ok(Aside { home: home.into(), folder: folder.with_context(|| home.display().to_string())? })
    }

    /// Where the home is written meanwhile.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Moves everything into its place, the genesis last.
    pub fn finish(self) -> anyhow::Result<()> {
        let place = || self.home.display().to_string();
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.path()).with_context(place)? {
            names.push(entry.with_context(place)?.file_name());
        }
        names.sort_by_key(|name| name == GENESIS);
        for to in names.iter().map(|name| self.home.join(name)) {
            ensure!(!to.exists(), "{} exists already: choose another --home, or move it away", to.display());
        }
        names
            .iter()
            .try_for_each(|name| std::fs::rename(self.path().join(name), self.home.join(name)))
            .with_context(place)
    }
}
