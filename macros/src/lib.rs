//! Macros for Doorbell: derives for the types that messages carry, and an attribute that makes a
//! trait a service of RPC. Programs use them through `doorbell::am` and `doorbell::rpc`, and do not
//! depend on this crate.
//!
//! ```
//! use doorbell::am::{Arguments, Call, Endpoint, Handlers, Plain, Word};
//! use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
//!
//! /// One word of a message.
//! #[derive(Clone, Copy, Word)]
//! enum Unit {
//!     Metres,
//!     Feet,
//! }
//!
//! /// A number of an array that travels as bytes.
//! #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Plain)]
//! #[repr(C)]
//! struct Height(f64);
//!
//! /// All that a message carries: words, and a payload at the end.
//! #[derive(Arguments)]
//! struct Heights {
//!     unit: Unit,
//!     values: Vec<Height>,
//! }
//!
//! const HIGHEST: Call<Heights, f64> = Call::new("highest");
//!
//! #[tokio::main]
//! async fn main() -> anyhow::Result<()> {
//!     let handlers = Handlers::new().on(HIGHEST, |_, heights: Heights| {
//!         let highest = heights.values.iter().map(|height| height.0).fold(0.0, f64::max);
//!         match heights.unit {
//!             Unit::Metres => highest,
//!             Unit::Feet => highest * 0.3048,
//!         }
//!     });
//!     let server = Endpoint::open("shm", handlers).await?;
//!     let client = Endpoint::open("shm", Handlers::new()).await?;
//!     let peer = client.connect(server.name()).await?;
//!     let heights = Heights { unit: Unit::Metres, values: vec![Height(2.0), Height(3.0)] };
//!     assert_eq!(peer.call(HIGHEST, heights).await?, 3.0);
//!     Ok(())
//! }
//! ```
//!
//! | macro | makes | for |
//! |---|---|---|
//! | [`Arguments`](macro@Arguments) | a struct all that a message carries: words, of which the last may be a payload | Active Messages |
//! | [`Word`](macro@Word) | a struct of one word, or an `enum` without fields, one word of a message | Active Messages |
//! | [`Plain`](macro@Plain) | a struct of numbers an element of a payload, and a payload by itself | Active Messages |
//! | [`service`](macro@service) | a trait a service, with a server and a client | RPC, as `doorbell::rpc::service` |
//!
//! # Where the traits are
//!
//! The code that a derive makes names the traits by the path `::doorbell::am`. A program in which
//! they are elsewhere, because it depends on `doorbell-am` alone or renames `doorbell`, says so at
//! the type: `#[doorbell(crate = "doorbell_am")]`. For services the path is `::doorbell::rpc`, and
//! another is given by `#[rpc::service(crate = "doorbell_rpc")]`.

#![forbid(unsafe_code)]

mod arguments;
mod attributes;
mod field;
mod plain;
mod refusal;
mod service;
mod text;
mod word;

use proc_macro::TokenStream;
use syn::{DeriveInput, ItemTrait, parse_macro_input};

/// Makes a struct what a message carries: implements the trait `Arguments`.
///
/// Every field but the last is a word: an integer of up to 64 bits, a float, a `bool`, a `char`, or
/// a type with [`#[derive(Word)]`](macro@Word). The last field is a word too, or the payload of the
/// message: `Bytes`, `BytesMut`, `String`, `Vec<T>`, `Box<[T]>`, or a type with
/// [`#[derive(Plain)]`](macro@Plain). Structs with named fields, with numbered fields and without
/// fields are all supported. Of more than sixteen words, those beyond take the place of payload.
///
/// # What endpoints compare
///
/// Two endpoints agree about a struct if its name, the names of its fields in their order, and the
/// types of its fields are the same on both sides. The module that the struct is in does not
/// matter.
///
/// # Parameters
///
/// A struct may have type parameters. Each field whose type has a parameter in it becomes a
/// condition: `struct Pair<T> { left: T, right: T }` is what a message carries if `T` is a word.
/// Endpoints tell `Pair<u8>` and `Pair<u16>` apart. Lifetimes are refused, because a struct that is
/// made from a message has nothing to borrow from.
///
/// # Errors
///
/// The compiler reports a field that can't travel at the type of this field:
///
/// ```text
/// error[E0277]: `String` is no word of a message
///   |
/// 4 |     name: String,
///   |           ^^^^^^ this is not one word
///   |
///   = note: a word is an integer of up to 64 bits, a float, a `bool`, or a type with
///           `#[derive(Word)]`
///   = note: only the last field may be a payload: `Bytes`, `String`, `Vec<T>`, `Box<[T]>`
/// ```
///
/// An `enum` and a `union` are refused with the reason. A type with `#[derive(Word)]` or
/// `#[derive(Plain)]` can be what a message carries as it is: if it derives `Arguments` too, the
/// compiler reports conflicting implementations.
#[proc_macro_derive(Arguments, attributes(doorbell))]
pub fn derive_arguments(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    arguments::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a type one word of a message: implements the trait `Word`.
///
/// The type is one of these, and derives `Clone` and `Copy` too:
///
/// * A struct of exactly one field that is a word. It travels as this word.
/// * An `enum` whose variants have no fields. A value travels as its discriminant, which may be
///   negative and of any `repr`. A word that is the discriminant of no variant is refused where it
///   is received.
///
/// # What endpoints compare
///
/// Two endpoints agree about a word if its type has the same name on both sides. They do not
/// compare the field of a struct or the variants of an `enum`. So if a new version of a program
/// gives a type another meaning, it should also give it another name.
///
/// # Errors
///
/// The compiler reports a field that is no word at the type of this field, and a type that does not
/// derive `Copy` at the name of the type:
///
/// ```text
/// error[E0277]: the trait bound `Key: Copy` is not satisfied
///   |
/// 4 | struct Key(u64);
///   |        ^^^ the trait `Copy` is not implemented for `Key`
/// ```
///
/// A struct of several fields or of none, an `enum` whose variants have fields, and types with
/// parameters are refused with the reason.
#[proc_macro_derive(Word, attributes(doorbell))]
pub fn derive_word(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    word::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct plain data, which is sent as its bytes lie in memory: implements the traits
/// `Plain` and `Field`.
///
/// `Vec<T>` and `Box<[T]>` of such a struct are payloads, and so is the struct by itself. The
/// struct has `#[repr(C)]` or `#[repr(transparent)]`, and derives `Clone`, `Copy` and zerocopy's
/// `FromBytes`, `IntoBytes` and `Immutable` too, which check that it has no gaps and that any bytes
/// are a value. So the program depends on the crate `zerocopy`, with its feature `derive`.
///
/// # What endpoints compare
///
/// Two endpoints agree about plain data if the struct's name, the names of its fields in their
/// order, and the types of its fields as they are written are the same on both sides, and if both
/// machines have the same order of bytes. Of a field whose type is itself a struct, they compare
/// the name of this struct, and not its fields.
///
/// # Errors
///
/// The compiler reports each of these traits that is missing at the name of the struct. Fields of
/// type `usize` and `isize`, whose size depends on the machine, are refused with the reason, and so
/// are structs without fields or with parameters, enums and unions.
#[proc_macro_derive(Plain, attributes(doorbell))]
pub fn derive_plain(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    plain::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a trait a service of RPC, with a server and a client.
///
/// # What a trait `X` becomes
///
/// * The trait itself, whose implementors are `Send + Sync + 'static` and whose futures are `Send`.
///   Programs implement its methods as `async fn`. A method with a body in the trait is a default.
/// * `XServer<T>`: made from a `T` that implements the trait by `new`, or from an `Arc<T>` by
///   `from_arc`; it becomes a `Router`, and so goes into `ServerBuilder::add_service`.
/// * `XClient<S = Channel>`: made from a channel, or from any tower service around one, by `new`. It
///   has the methods of the trait, with their documentation, and a constant for each, a `Method` named
///   in capitals: `CalculatorClient::DIVIDE`.
///
/// All have the visibility of the trait.
///
/// # Methods
///
/// A method is an `async fn` of `&self` that answers with a `Result<…, Status>`. Its arguments and its
/// answer are of types that the codec knows: for the codec `Postcard`, types with serde's `Serialize`
/// and `Deserialize`. Several arguments travel as a tuple.
///
/// | the trait has | the client's method takes, or gives |
/// |---|---|
/// | `name: T` | `name: T` |
/// | `name: Request<T>`, for metadata and deadlines | `name: impl Into<Request<T>>` |
/// | `name: Streaming<T>` | `name: impl Stream<Item = T> + Send + 'static` |
/// | `name: Request<Streaming<T>>` | `name: impl IntoStreamingRequest<Message = T>` |
/// | `Result<T, Status>`, also of `Response<T>`, `Streaming<T>`, `Response<Streaming<T>>` | the same |
///
/// Which of these a type is, is told by its last name: `rpc::Streaming<u64>` is a stream as well as
/// `Streaming<u64>`, and an alias of another name is not.
///
/// # Options
///
/// Of a service: `#[rpc::service(name = "pkg.Greeter", codec = path::to::Codec, crate = "path")]`.
///
/// * `name`: the name on the wire, which is the trait's unless said.
/// * `codec`: a type with `Codec<T>` for all types of messages, which is `Postcard` unless said.
/// * `crate`: where the module `rpc` is, which is `::doorbell::rpc` unless said.
///
/// Of a method: `#[rpc(idempotent, inline, name = "Hello")]`.
///
/// * `idempotent`: a call may run more than once without harm, so it is sent again when its connection
///   has ended. See `Method::idempotent`.
/// * `inline`: the handler runs where its request is received, rather than as a task. See
///   `Router::inline`.
/// * `name`: the name on the wire, which is that of the function unless said.
///
/// # What clients and servers compare
///
/// A call names the path of its method, such as `Calculator/divide`, and the types of the signature as
/// they are written, such as `(u64, u64) -> u64` or `(stream u64) -> u64`, with the name of the codec
/// unless that is `Postcard`, such as `(Find) -> Place by Protobuf`. A server refuses calls of other
/// types, or of another codec, with the code `FailedPrecondition`. The fields of structs are not compared, nor are the
/// names of arguments. So a new version of a program that gives a type other fields should also give it
/// another name, or the service another name.
///
/// # Errors
///
/// Traits and methods with parameters, methods without `&self` or `async`, answers that are no `Result`
/// with a `Status`, and options that there are not, are refused at their places, and the compiler says
/// what to write instead.
#[proc_macro_attribute]
pub fn service(options: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as ItemTrait);
    service::expand(options.into(), &item).into()
}
