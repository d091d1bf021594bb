//! The parameters of a request, checked against the description before a handler sees them.
//!
//! A parameter that a call does not have is refused by name: whoever misspells `before` would otherwise get the newest
//! entries for the ones that he asked for.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Query, RawPathParams, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::number;
use crate::kit::Failure;

/// The parameters of every described call, by method and path.
pub(super) struct Parameters(HashMap<(String, String), Vec<Parameter>>);

/// A parameter of a call.
struct Parameter {
    name: String,
    is_query: bool,
    kind: Kind,
}

/// What the text of a parameter must be.
#[derive(Clone, Copy)]
enum Kind {
    /// Up to this one.
    Number(u64),
    Flag,
    Text,
}

impl Parameters {
    /// The parameters that a document names.
    pub(super) fn of(document: &Value) -> Parameters {
        let mut all = HashMap::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                let listed = operation["parameters"].as_array().into_iter().flatten();
                all.insert((method.to_uppercase(), path.clone()), listed.map(Parameter::of).collect());
            }
        }
        Parameters(all)
    }

    /// The parameters of a call; `None` if its path has other methods alone. A path that is not described has none.
    fn of_call(&self, method: &Method, path: &str) -> Option<&[Parameter]> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let found = self.0.get(&(method.to_string(), path.into())).map(Vec::as_slice);
        found.or_else(|| (!self.0.keys().any(|(_, known)| known == path)).then_some(&[]))
    }
}

impl Parameter {
    fn of(described: &Value) -> Parameter {
        let is = |kind: &str| match &described["schema"]["type"] {
            Value::Array(kinds) => kinds.iter().any(|known| known == kind),
            known => known == kind,
        };
        let kind = match (is("integer"), is("boolean")) {
            (true, _) => Kind::Number(described["schema"]["maximum"].as_u64().unwrap_or(u64::MAX)),
            (_, true) => Kind::Flag,
            _ => Kind::Text,
        };
        let name = described["name"].as_str().unwrap_or_default().into();
        Parameter { name, is_query: described["in"] == "query", kind }
    }

    fn check(&self, text: &str) -> Result<(), Failure> {
        match self.kind {
            Kind::Number(most) => match number(&self.name, text)? {
                value if value > most => {
                    Err(Failure::malformed(format!("{}: {text:?} is not a whole number from 0 to {most}", self.name)))
                }
                _ => Ok(()),
            },
            Kind::Flag if !matches!(text, "true" | "false") => {
                Err(Failure::malformed(format!("{}: {text:?} is neither true nor false", self.name)))
            }
            Kind::Flag | Kind::Text => Ok(()),
        }
    }
}

/// Refuses a request with a parameter that its call does not have, that is given twice, or whose text is malformed.
pub(super) async fn check(State(parameters): State<Arc<Parameters>>, request: Request, next: Next) -> Response {
    // A request that matches no route is for a file of the page.
    let Some(path) = request.extensions().get::<MatchedPath>().cloned() else { return next.run(request).await };
    // Of a method that it does not have, a path says so whatever the parameters.
    let Some(known) = parameters.of_call(request.method(), path.as_str()) else { return next.run(request).await };
    if let Err(failure) = check_query(known, &request) {
        return failure.into_response();
    }
    let (mut parts, body) = request.into_parts();
    let in_path = RawPathParams::from_request_parts(&mut parts, &()).await;
    let texts = in_path.iter().flatten();
    let checked: Result<(), Failure> = texts
        .filter_map(|(name, text)| Some((known.iter().find(|one| !one.is_query && one.name == name)?, text)))
        .try_for_each(|(parameter, text)| parameter.check(text));
    match checked {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(failure) => failure.into_response(),
    }
}

fn check_query(known: &[Parameter], request: &Request) -> Result<(), Failure> {
    let Query(given) = Query::<Vec<(String, String)>>::try_from_uri(request.uri())
        .map_err(|_| Failure::malformed("the part of the address after `?` is not `name=value&name=value`"))?;
    for (at, (name, text)) in given.iter().enumerate() {
        let found = known.iter().find(|parameter| parameter.is_query && parameter.name == *name);
        found.ok_or_else(|| unknown(name, known))?.check(text)?;
        if given[..at].iter().any(|(earlier, _)| earlier == name) {
            return Err(Failure::malformed(format!("{name} is given twice")));
        }
    }
    Ok(())
}

fn unknown(name: &str, known: &[Parameter]) -> Failure {
    let names: Vec<&str> = known.iter().filter(|one| one.is_query).map(|one| one.name.as_str()).collect();
    let has = if names.is_empty() { "none".into() } else { names.join(", ") };
    Failure::new(
        axum::http::StatusCode::BAD_REQUEST,
        "unknown_parameter",
        format!("this call has no parameter {name:?}; it has {has}"),
    )
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use serde_json::json;

    use super::*;

    fn refused(query: &str) -> Option<String> {
        let parameter = |name, kind| json!({"name": name, "in": "query", "schema": {"type": kind}});
        let listed = [
            parameter("limit", json!(["integer", "null"])),
            parameter("proof", json!(["boolean", "null"])),
            parameter("wait", json!("string")),
            json!({"name": "venue", "in": "query", "schema": {"type": "integer", "maximum": u32::MAX}}),
        ];
        let document = json!({"paths": {"/v1/a": {"get": {"parameters": listed}}}});
        let parameters = Parameters::of(&document);
        let request = Request::builder().uri(format!("/v1/a?{query}")).body(Body::empty()).expect("a request");
        assert!(parameters.of_call(&Method::TRACE, "/v1/a").is_none());
        assert!(parameters.of_call(&Method::TRACE, "/v1/b").is_some_and(<[Parameter]>::is_empty));
        let known = parameters.of_call(&Method::HEAD, "/v1/a").expect("that of GET");
        check_query(known, &request).err().map(|failure| failure.1.message)
    }

    #[test]
    fn an_unknown_or_malformed_query_parameter_is_named() {
        for sound in ["", "limit=5", "limit=5&proof=true&wait=committed", "limit=18446744073709551615"] {
            assert_eq!(refused(sound), None, "{sound}");
        }
        for (query, words) in [
            ("limti=5", "no parameter \"limti\"; it has limit, proof, wait, venue"),
            ("limit=5&limit=6", "limit is given twice"),
            ("limit=", "limit: \"\" is not a whole number"),
            ("limit=-1", "limit: \"-1\" is not a whole number"),
            ("limit=18446744073709551616", "is not a whole number"),
            ("venue=4294967296", "venue: \"4294967296\" is not a whole number from 0 to 4294967295"),
            ("proof=yes", "proof: \"yes\" is neither true nor false"),
        ] {
            let message = refused(query).unwrap_or_else(|| panic!("{query} is taken"));
            assert!(message.contains(words), "{query}: {message}");
        }
    }
}
