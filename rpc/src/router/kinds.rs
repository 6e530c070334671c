//! The kinds of methods: one message or a stream there, and one message or a stream back. Each decodes
//! requests for its handler, and encodes the answers.

use std::sync::Arc;

use futures_util::StreamExt;

use super::{Answered, Answering, Router};
use crate::codec::{Codec, encoded};
use crate::message::{Body, Request, Response, Streaming};
use crate::method::{Method, MethodId};
use crate::status::Status;

impl Router {
    /// Adds a method that takes one message and answers with one.
    ///
    /// # Panics
    /// When the router has the method already.
    #[must_use]
    #[track_caller]
    pub fn unary<A, R, C, F, O>(
        self,
        method: Method<A, R, C>,
        handler: impl Fn(Request<A>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        C: Codec<A> + Codec<R>,
        A: Send + 'static,
        R: Send + 'static,
        F: Future<Output = Result<O, Status>> + Send + 'static,
        O: Into<Response<R>>,
    {
        let handler = move |request: Request<Body>| -> Answering {
            match decoded::<A, C>(request) {
                Err(status) => Box::pin(async { Err(status) }),
                Ok(request) => {
                    let answer = handler(request);
                    Box::pin(async {
                        whole::<R, C>(answer.await.map_err(Status::may_have_run)?.into())
                    })
                }
            }
        };
        self.put(method.id(), Arc::new(handler))
    }

    /// Adds a method that takes one message and answers with a stream.
    ///
    /// # Panics
    /// When the router has the method already.
    #[must_use]
    #[track_caller]
    pub fn server_streaming<A, R, C, F, O>(
        self,
        method: Method<A, R, C>,
        handler: impl Fn(Request<A>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        C: Codec<A> + Codec<R>,
        A: Send + 'static,
        R: Send + 'static,
        F: Future<Output = Result<O, Status>> + Send + 'static,
        O: Into<Response<Streaming<R>>>,
    {
        let handler = move |request: Request<Body>| -> Answering {
            match decoded::<A, C>(request) {
                Err(status) => Box::pin(async { Err(status) }),
                Ok(request) => {
                    let answer = handler(request);
                    Box::pin(async {
                        Ok(pieces::<R, C>(answer.await.map_err(Status::may_have_run)?.into()))
                    })
                }
            }
        };
        self.put(method.id(), Arc::new(handler))
    }

    /// Adds a method that takes a stream and answers with one message.
    ///
    /// # Panics
    /// When the router has the method already.
    #[must_use]
    #[track_caller]
    pub fn client_streaming<A, R, C, F, O>(
        self,
        method: Method<A, R, C>,
        handler: impl Fn(Request<Streaming<A>>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        C: Codec<A> + Codec<R>,
        A: Send + 'static,
        R: Send + 'static,
        F: Future<Output = Result<O, Status>> + Send + 'static,
        O: Into<Response<R>>,
    {
        let handler = move |request: Request<Body>| -> Answering {
            let answer = handler(streamed::<A, C>(request));
            Box::pin(async { whole::<R, C>(answer.await.map_err(Status::may_have_run)?.into()) })
        };
        self.put(method.id(), Arc::new(handler))
    }

    /// Adds a method that takes a stream and answers with a stream.
    ///
    /// # Panics
    /// When the router has the method already.
    #[must_use]
    #[track_caller]
    pub fn streaming<A, R, C, F, O>(
        self,
        method: Method<A, R, C>,
        handler: impl Fn(Request<Streaming<A>>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        C: Codec<A> + Codec<R>,
        A: Send + 'static,
        R: Send + 'static,
        F: Future<Output = Result<O, Status>> + Send + 'static,
        O: Into<Response<Streaming<R>>>,
    {
        let handler = move |request: Request<Body>| -> Answering {
            let answer = handler(streamed::<A, C>(request));
            Box::pin(async {
                Ok(pieces::<R, C>(answer.await.map_err(Status::may_have_run)?.into()))
            })
        };
        self.put(method.id(), Arc::new(handler))
    }
}

/// Decodes the messages of a request that is a stream, one by one as they are read.
fn streamed<A: Send + 'static, C: Codec<A>>(request: Request<Body>) -> Request<Streaming<A>> {
    let method = request.method();
    request
        .map(|body| Streaming::new(body.pieces().map(move |piece| decode::<A, C>(method, piece?))))
}

/// Encodes the messages of a response that is a stream, one by one as they are sent.
fn pieces<R: Send + 'static, C: Codec<R>>(response: Response<Streaming<R>>) -> Response<Body> {
    response.map(|messages| Body::stream(messages.map(|message| encoded::<R, C>(message?))))
}

/// Decodes the one message of a request.
fn decoded<A, C: Codec<A>>(request: Request<Body>) -> Result<Request<A>, Status> {
    let method = request.method();
    request.try_map(|body| decode::<A, C>(method, body.whole()?))
}

fn decode<A, C: Codec<A>>(method: MethodId, bytes: bytes::Bytes) -> Result<A, Status> {
    let len = bytes.len();
    C::decode(bytes).map_err(|why| {
        Status::invalid_argument(format!(
            "the body of {len} bytes that came for {method} is no {}: {why}",
            std::any::type_name::<A>()
        ))
    })
}

/// Encodes the one message of a response.
fn whole<R, C: Codec<R>>(response: Response<R>) -> Answered {
    response.try_map(|message| encoded::<R, C>(message).map(Body::Whole))
}
