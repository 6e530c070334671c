//! The router: which handler each method of a server has, and which interceptors see its calls.
//!
//! `kinds` adds methods of each kind, for which it decodes and encodes.

mod kinds;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use doorbell_verbs::floor::locked;
use tower_service::Service;

use crate::hasher::ByNumber;
use crate::intercept::{Intercepted, Interceptor, Interceptors};
use crate::message::{Body, Request, Response};
use crate::meters::Meters;
use crate::method::{Method, MethodId};
use crate::status::Status;

/// The result of a handler: a response with an encoded body, or a status.
pub type Answered = Result<Response<Body>, Status>;

/// The future that a handler returns.
pub type Answering = Pin<Box<dyn Future<Output = Answered> + Send>>;

/// A handler whose request and response types are erased. Whatever status it passes on from a call
/// of its own, its call has run: a status of the handler says so.
pub type Handler = Arc<dyn Fn(Request<Body>) -> Answering + Send + Sync>;

/// A method and its handler.
#[derive(Clone)]
pub struct Route {
    pub method: MethodId,
    pub responder: Responder,
    pub meters: Meters,
    /// Whether the handler may run where its request was received, rather than as a task.
    pub inline: bool,
}

/// What answers the calls of a method: the interceptors, which may refuse a call, and the handler.
#[derive(Clone)]
pub struct Responder {
    handler: Handler,
    pub interceptors: Interceptors,
}

impl Responder {
    /// Has the interceptors see a call, and the handler answer it unless they refuse. The handler
    /// is called here already if there are no interceptors.
    pub fn begin(&self, request: Request<Body>) -> Answering {
        if self.interceptors.is_empty() {
            return (self.handler)(request);
        }
        let responder = self.clone();
        Box::pin(async move {
            let request = responder.interceptors.see(request).await?;
            (responder.handler)(request).await
        })
    }

    /// The responder to calls that the interceptors have seen already.
    pub fn after_interceptors(&self) -> Self {
        Self { handler: self.handler.clone(), interceptors: Interceptors::default() }
    }
}

/// The methods of a server and their handlers, which are async functions or tower services.
///
/// The attribute [`service`](macro@crate::service) makes a router from the methods of a trait. A
/// router can also be made by hand:
///
/// ```
/// use doorbell_rpc::{Channel, Client, Method, Router, Server};
///
/// const GREET: Method<String, String> = Method::new("greeter/greet");
///
/// # #[tokio::main]
/// # async fn main() -> anyhow::Result<()> {
/// let greeter = Router::new().unary(GREET, |request| async move {
///     Ok(format!("Hello, {}!", request.into_inner()))
/// });
/// let server = Server::builder().add_service(greeter).open("udp:127.0.0.1:0").await?;
///
/// let client = Client::new(Channel::connect(server.name()).await?);
/// let greeting = client.unary(GREET, "Ann".to_owned()).await?.into_inner();
/// assert_eq!(greeting, "Hello, Ann!");
/// # Ok(())
/// # }
/// ```
///
/// A router is a tower service itself, which runs handlers in the task that calls them. Tests of
/// handlers, and services within one process, need no server for that.
///
/// ```
/// use doorbell_rpc::{Client, Method, Router, Status};
///
/// const DIVIDE: Method<(u64, u64), u64> = Method::new("calculator/divide");
#[derive(Clone, Default)]
pub struct Router {
    routes: Arc<HashMap<u64, Route, ByNumber>>,
    /// The interceptors of all methods, also of those that are added later.
    interceptors: Interceptors,
}

impl Router {
    /// Makes a router without methods.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tower service as the handler of a method. The service handles bodies that are not
    /// decoded.
    ///
    /// Each request is handled by a clone of the service, as soon as the clone is ready. An error
    /// of the service becomes a status: the [`Status`] that caused the error, if one did.
    ///
    /// # Panics
    /// When the router has the method already.
    #[must_use]
    #[track_caller]
    pub fn service<S>(self, method: MethodId, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        // Services need not be `Sync`.
        let service = Mutex::new(service);
        let handler = move |request| -> Answering {
            let mut service = locked(&service).clone();
            Box::pin(async move {
                let ready = std::future::poll_fn(|context| service.poll_ready(context)).await;
                ready.map_err(|why| Status::from_error(why.into()).may_have_run())?;
                let answer = service.call(request).await;
                answer.map_err(|why| Status::from_error(why.into()).may_have_run())
            })
        };
        self.put(method, Arc::new(handler))
    }

    /// Runs the handler of a method where its request is received, rather than as a task. That
    /// saves starting a task, and suits handlers that take microseconds and seldom wait. While the
    /// handler runs, the NIC and all other requests wait. A handler that does wait is moved to a
    /// task.
    ///
    /// # Panics
    /// When the router has no such method.
    #[must_use]
    #[track_caller]
    pub fn inline(mut self, method: impl Into<MethodId>) -> Self {
        let method = method.into();
        let route = Arc::make_mut(&mut self.routes).get_mut(&method.number());
        route
            .unwrap_or_else(|| panic!("the router has no method `{method}` to run inline"))
            .inline = true;
        self
    }

    /// Has a function see each call of the router's methods before its body is received, if that is
    /// long, and decoded. The function gets the request without its body, with the
    /// [method](Request::method), the metadata, the deadline and the [caller](Request::caller). It
    /// returns the request for the handler, to which it may have attached
    /// [extensions](Request::extensions), or a status, with which the call is refused. The method,
    /// the caller and the deadline stay those of the call, whatever request it returns. Calls of
    /// methods that the server does not have are refused before.
    ///
    /// The function sees the calls of all methods of the router, whether they were added or merged
    /// before or are later. Of several interceptors, each sees what those that were added before
    /// have let through. A function that has to wait is added by
    /// [`intercept_async`](Self::intercept_async). [`ServerBuilder::intercept`] is for all methods
    /// of a server.
    ///
    /// ```
    /// use doorbell_rpc::{Channel, Client, Code, Method, Router, Server, Status};
    ///
    /// const WHO: Method<(), String> = Method::new("who");
    ///
    /// struct User(String);
    ///
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// let router = Router::new()
    ///     .unary(WHO, |request| async move {
    ///         let user = request.extensions().get::<User>();
    ///         Ok(user.map(|User(name)| name.clone()).unwrap_or_default())
    ///     })
    ///     .intercept(|mut request| match request.metadata().text("user") {
    ///         None => Err(Status::unauthenticated("who are you?")),
    ///         Some(name) => {
    ///             let user = User(name.to_owned());
    ///             request.extensions_mut().insert(user);
    ///             Ok(request)
    ///         }
    ///     });
    /// let server = Server::builder().add_service(router).open("shm").await?;
    /// let client = Client::new(Channel::connect(server.name()).await?);
    /// let refused = client.unary(WHO, ()).await.unwrap_err();
    /// assert_eq!(refused.code(), Code::Unauthenticated);
    /// assert!(refused.has_not_run());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`ServerBuilder::intercept`]: crate::ServerBuilder::intercept
    #[must_use]
    pub fn intercept(
        self,
        sees: impl Fn(Request<()>) -> Intercepted + Send + Sync + 'static,
    ) -> Self {
        self.intercepted(&Interceptor::at_once(sees).into())
    }

    /// Has an async function see each call of the router's methods, as [`intercept`](Self::intercept)
    /// does. While the function waits, the call counts as one whose handler waits: it ends at its
    /// deadline, and when it is given up. An [inline](Self::inline) method whose interceptor waits
    /// goes on as a task.
    #[must_use]
    pub fn intercept_async<F>(self, sees: impl Fn(Request<()>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Intercepted> + Send + 'static,
    {
        self.intercepted(&Interceptor::waits(sees).into())
    }

    /// Adds interceptors behind those that each method has.
    pub(crate) fn intercepted(mut self, interceptors: &Interceptors) -> Self {
        self.interceptors.append(interceptors);
        for route in Arc::make_mut(&mut self.routes).values_mut() {
            route.responder.interceptors.append(interceptors);
        }
        self
    }

    /// Adds all methods of another router.
    ///
    /// # Panics
    /// When both routers have a method with the same path.
    #[must_use]
    #[track_caller]
    pub fn merge(mut self, other: Self) -> Self {
        for route in Arc::unwrap_or_clone(other.routes).into_values() {
            self = self.put_route(route);
        }
        self
    }

    /// The methods of the router, in no particular order.
    pub fn methods(&self) -> impl Iterator<Item = MethodId> {
        self.routes.values().map(|route| route.method)
    }

    #[track_caller]
    fn put(self, method: MethodId, handler: Handler) -> Self {
        let meters = Meters::of_server(method);
        let responder = Responder { handler, interceptors: Interceptors::default() };
        self.put_route(Route { method, responder, meters, inline: false })
    }

    #[track_caller]
    fn put_route(mut self, mut route: Route) -> Self {
        let method = route.method;
        let all = &mut route.responder.interceptors;
        let own = std::mem::replace(all, self.interceptors.clone());
        all.append(&own);
        let before = Arc::make_mut(&mut self.routes).insert(method.number(), route);
        match before {
            None => self,
            Some(other) if other.method.path() == method.path() => {
                panic!("two handlers have the method `{method}`")
            }
            Some(other) => panic!(
                "the methods `{method}` and `{}` have paths of the same number: rename either",
                other.method
            ),
        }
    }

    /// The route of the method whose path has the number `number`.
    pub(crate) fn route(&self, number: u64) -> Option<&Route> {
        self.routes.get(&number)
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.methods().map(|method| method.path())).finish()
    }
}

impl Service<Request<Body>> for Router {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = request.method();
        match self.route(method.number()) {
            Some(route) if method.fits(&route.method) => {
                // The handler is called when the future is polled.
                let responder = route.responder.clone();
                Box::pin(async move { responder.begin(request).await })
            }
            Some(route) => {
                let schema = route.method.schema_text();
                let asked = method.schema_text();
                let why = format!("{method} is called as `{asked}`, and the router has `{schema}`");
                Box::pin(async { Err(Status::failed_precondition(why)) })
            }
            None => {
                let why = format!("the router has no method {method}; it has {self:?}");
                Box::pin(async { Err(Status::unimplemented(why)) })
            }
        }
    }
}

impl<A, R, C> From<Method<A, R, C>> for MethodId {
    fn from(method: Method<A, R, C>) -> Self {
        method.id()
    }
}
