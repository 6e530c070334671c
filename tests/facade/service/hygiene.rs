//! Generated code among other names, in other places, and without warnings.

#![deny(warnings, unused, missing_docs, missing_debug_implementations, unreachable_pub)]
#![allow(
    missing_docs,
    reason = "of what is written here: generated items are checked in `documented`"
)]

use doorbell::rpc::{Code, Router, Status};

/// The module `rpc` by another path than the usual one.
mod elsewhere {
    pub(crate) use doorbell::rpc::*;
}

/// A module without the prelude, in which names that generated code might use mean other things.
mod bare {
    #![no_implicit_prelude]
    #![allow(dead_code)]

    use ::doorbell::rpc::{Request, Response, Status, Streaming};
    use ::std::prelude::v1::{Debug, derive};
    use ::std::result::Result;
    use ::std::string::String;

    struct Option;
    struct Ok;
    struct Send;
    struct Sync;
    trait From {}
    trait Into {}
    trait Future {}
    trait Clone {
        fn clone(&self) {}
        fn deref(&self) {}
    }
    impl<T> Clone for T {}
    mod std {}
    mod core {}
    mod doorbell {}
    mod rpc {}

    /// Types with the names that parameters of generated types usually have.
    #[derive(::serde::Serialize, ::serde::Deserialize, PartialEq, Debug)]
    pub(crate) struct S(pub(crate) u64);
    #[derive(::serde::Serialize, ::serde::Deserialize, PartialEq, Debug)]
    pub(crate) struct T(pub(crate) u64);

    #[::doorbell::rpc::service]
    pub(crate) trait Odd {
        async fn swap(&self, service: S) -> Result<T, Status>;
        async fn many(&self, request: u8, router: u8, service: u8) -> Result<u8, Status>;
        async fn wrapped(&self, request: Request<S>) -> Result<Response<T>, Status>;
        async fn r#match(&self, r#type: Streaming<u64>) -> Result<Streaming<u64>, Status>;
        async fn clone(&self, arguments: ()) -> Result<String, Status>;
    }

    use ::std::cmp::PartialEq;
}

struct Works;

impl bare::Odd for Works {
    async fn swap(&self, service: bare::S) -> Result<bare::T, Status> {
        Ok(bare::T(service.0))
    }

    async fn many(&self, request: u8, router: u8, service: u8) -> Result<u8, Status> {
        Ok(request - router - service)
    }

    async fn wrapped(
        &self,
        request: doorbell::rpc::Request<bare::S>,
    ) -> Result<doorbell::rpc::Response<bare::T>, Status> {
        Ok(bare::T(request.into_inner().0).into())
    }

    async fn r#match(
        &self,
        numbers: doorbell::rpc::Streaming<u64>,
    ) -> Result<doorbell::rpc::Streaming<u64>, Status> {
        Ok(numbers)
    }

    async fn clone(&self, _: ()) -> Result<String, Status> {
        Ok("cloned".to_owned())
    }
}

#[tokio::test]
async fn generated_code_does_not_depend_on_the_names_around_it() {
    let odd = bare::OddClient::new(Router::from(bare::OddServer::new(Works)));
    assert_eq!(odd.swap(bare::S(7)).await.expect("an answer"), bare::T(7));
    assert_eq!(odd.many(9, 5, 1).await.expect("an answer"), 3);
    assert_eq!(odd.wrapped(bare::S(8)).await.expect("an answer").into_inner(), bare::T(8));
    assert_eq!(bare::OddClient::MATCH.id().path(), "Odd/match");
    assert_eq!(bare::OddClient::clone(&odd, ()).await.expect("an answer"), "cloned");
}

/// A service that only has a client: nothing serves it.
#[doorbell::rpc::service(crate = "elsewhere")]
trait OnlyCalled {
    async fn ask(&self) -> Result<u8, elsewhere::Status>;
}

#[doorbell::rpc::service(crate = "self::elsewhere")]
trait OnlyServed {
    #[deprecated = "ask another"]
    async fn ask(&self, why: String) -> Result<u8, elsewhere::Status> {
        Err(elsewhere::Status::unimplemented(why))
    }
    #[cfg(any())]
    async fn never(&self, what: NoSuchType) -> Result<u8, elsewhere::Status>;
}

struct Default;

impl OnlyServed for Default {}

#[tokio::test]
async fn the_path_of_the_module_can_be_said_at_the_trait() {
    let router = Router::from(OnlyServedServer::new(Default));
    let client = OnlyCalledClient::new(router);
    let status = client.ask().await.expect_err("of another service");
    assert_eq!(status.code(), Code::Unimplemented);
}

#[doorbell::rpc::service]
trait Empty {}

struct Nothing;

impl Empty for Nothing {}

#[test]
fn a_service_without_methods_is_a_router_without_any() {
    assert_eq!(Router::from(EmptyServer::new(Nothing)).methods().count(), 0);
}

/// Declares a service whose types come from the caller of a macro.
macro_rules! declared {
    ($name:ident, $message:ty, $answer:ty) => {
        #[doorbell::rpc::service]
        trait $name {
            async fn call(&self, message: $message) -> $answer;
        }
    };
}

declared! { Declared, doorbell::rpc::Streaming<u64>, Result<u64, Status> }

#[test]
fn a_macro_can_declare_a_service() {
    assert_eq!(DeclaredClient::CALL.id().schema_text(), "(stream u64) -> u64");
}

/// Public items, whose documentation is asked for.
mod documented {
    #![deny(missing_docs)]

    /// A service that is documented.
    #[doorbell::rpc::service]
    pub trait Documented {
        /// A method that is documented.
        async fn call(&self) -> Result<(), doorbell::rpc::Status>;
    }
}

#[test]
fn a_client_is_printed_by_its_name() {
    let client = documented::DocumentedClient::new(Router::new());
    assert_eq!(format!("{client:?}"), "DocumentedClient");
}
