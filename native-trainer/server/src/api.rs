//! What programs ask beside the files of the page. The server reads a request and sends the reply; a handler, which it knows
//! nothing of, makes one of the other.

use std::fmt;

use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use percent_encoding::percent_decode_str;
use tokio::sync::oneshot;

/// The largest body of a request in bytes.
const BODY_BYTES: usize = 64 << 20;

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// `GET` or `POST`.
    pub method: String,
    /// The path without the first `/`.
    pub path: String,
    /// The names and values behind `?`.
    pub query: Vec<(String, String)>,
    /// What the body is.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status code of HTTP.
    pub status: u16,
    /// The MIME type of the body.
    pub content_type: &'static str,
    /// Whether a browser may keep it for ever. Otherwise it keeps none.
    pub is_final: bool,
    /// The body.
    pub body: Vec<u8>,
}

/// Sends a reply, now or later, from any thread.
pub type Respond = Box<dyn FnOnce(Reply) + Send>;

/// Answers calls whose path begins with one of some names.
pub struct Api {
    /// The first parts of the paths.
    pub names: &'static [&'static str],
    /// Answers a call. It returns at once.
    pub handler: Box<dyn Fn(Call, Respond) + Send + Sync>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Why there is no reply of the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The body is too large, or does not come.
    Body,
    /// The handler has not answered.
    Handler,
}

impl Api {
    /// Whether a path is one of the API.
    pub(crate) fn has(&self, path: &str) -> bool {
        path.split('/').next().is_some_and(|first| self.names.contains(&first))
    }

    /// Reads the body of a call and waits for its reply.
    pub(crate) async fn answer<B: Body>(&self, call: Call, body: B) -> Result<Reply, Failure>
    where
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let body = Limited::new(body, BODY_BYTES).collect().await.map_err(|_| Failure::Body)?;
        let (send, receive) = oneshot::channel();
        // The client may have gone.
        let respond = Box::new(|reply| drop(send.send(reply)));
        (self.handler)(Call { body: body.to_bytes().to_vec(), ..call }, respond);
        receive.await.map_err(|_| Failure::Handler)
    }
}

/// The names and values of a query, decoded. A name without `=` has an empty value.
pub(crate) fn pairs(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (decode(name), decode(value))
    };
    query.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_split_before_it_is_decoded() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(pairs(""), []);
        assert_eq!(
            pairs("within=a%26b%3Dc&within=Barn+owl&flag&=x"),
            [pair("within", "a&b=c"), pair("within", "Barn owl"), pair("flag", ""), pair("", "x")]
        );
    }
}
