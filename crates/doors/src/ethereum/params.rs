//! The parameters of a request, by position.

use primitives::{Address, Digest};
use serde_json::Value;

use super::values;
use super::wire::RpcError;

/// A parameter, by position.
pub(super) struct Param {
    pub name: &'static str,
    /// Its schema.
    pub schema: &'static str,
    pub is_required: bool,
}

pub(super) const fn param(name: &'static str, schema: &'static str) -> Param {
    Param { name, schema, is_required: true }
}

pub(super) const fn option(name: &'static str, schema: &'static str) -> Param {
    Param { name, schema, is_required: false }
}

/// See the module text.
pub(super) struct Params<'a> {
    values: &'a [Value],
    declared: &'static [Param],
}

impl<'a> Params<'a> {
    /// Checks the number of parameters.
    pub fn new(values: &'a [Value], declared: &'static [Param]) -> Result<Params<'a>, RpcError> {
        let most = declared.len();
        if values.len() > most {
            return Err(RpcError::invalid_params(format!("too many arguments, want at most {most}")));
        }
        Ok(Params { values, declared })
    }

    /// A parameter; `None` if it is missing or `null`.
    pub fn get(&self, at: usize) -> Option<&'a Value> {
        self.values.get(at).filter(|value| !value.is_null())
    }

    /// A required parameter, parsed.
    pub fn read<T>(&self, at: usize, read: impl FnOnce(&'a Value) -> Result<T, String>) -> Result<T, RpcError> {
        let name = self.declared[at].name;
        let missing = || RpcError::invalid_params(format!("missing value for required argument {at} ({name})"));
        self.named(at, read(self.get(at).ok_or_else(missing)?))
    }

    /// A parameter, parsed; `None` if it is missing and its method does not require it.
    pub fn read_if<T>(
        &self,
        at: usize,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Result<Option<T>, RpcError> {
        // Methods share readers of parameters, and not each declares all of them.
        let is_required = self.declared.get(at).is_some_and(|declared| declared.is_required);
        if self.get(at).is_none() && !is_required { Ok(None) } else { self.read(at, read).map(Some) }
    }

    fn named<T>(&self, at: usize, read: Result<T, String>) -> Result<T, RpcError> {
        let name = self.declared[at].name;
        read.map_err(|why| RpcError::invalid_params(format!("invalid argument {at} ({name}): {why}")))
    }

    pub fn address(&self, at: usize) -> Result<Address, RpcError> {
        self.read(at, values::read_address)
    }

    pub fn digest(&self, at: usize) -> Result<Digest, RpcError> {
        self.read(at, values::read_digest)
    }

    pub fn bool(&self, at: usize) -> Result<bool, RpcError> {
        let read = |value: &Value| value.as_bool().ok_or_else(|| "true or false is expected".to_string());
        Ok(self.read_if(at, read)?.unwrap_or(false))
    }
}
