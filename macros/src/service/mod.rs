//! The attribute `service`: a trait becomes the interface of a server and of a client.
//!
//! `expand` reads the trait into a model, and has the code of the trait, the server and the client
//! made from that. Whatever is wrong with the trait is collected, and reported as compile errors.
//!
//! | file | what it does |
//! |---|---|
//! | `server`, `client` | make the code of the generated types |
//! | `model` | is the trait as it was read |
//! | `method`, `message` | read a method, and the types of its messages |
//! | `options` | reads `#[service(…)]` and `#[rpc(…)]` |
//! | `errors` | collects what is wrong |

mod client;
mod errors;
mod message;
mod method;
mod model;
mod options;
mod server;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ItemTrait, TraitItem};

use self::model::Service;
use self::options::is_rpc;

/// The trait whose futures are `Send`, its server and its client; or the errors of a trait that is
/// no service, beside the trait itself, so that the compiler does not miss the trait too.
pub fn expand(options: TokenStream, item: &ItemTrait) -> TokenStream {
    match Service::read(options, item) {
        Ok(service) => {
            let of_trait = service.rewritten_trait();
            let (server, client) = (server::code(&service), client::code(&service));
            quote!(#of_trait #server #client)
        }
        Err(errors) => {
            let (errors, item) = (errors.into_compile_error(), without_options(item));
            quote!(#errors #[allow(dead_code, async_fn_in_trait)] #item)
        }
    }
}

/// The trait without the attributes that are for this macro.
fn without_options(item: &ItemTrait) -> ItemTrait {
    let mut item = item.clone();
    for item in &mut item.items {
        if let TraitItem::Fn(method) = item {
            method.attrs.retain(|attribute| !is_rpc(attribute));
        }
    }
    item
}
