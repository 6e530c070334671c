//! A trait as the attribute `service` has read it: options, methods, and the names of what is
//! generated.

use std::collections::{HashMap, HashSet};

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, Ident, ItemTrait, Result, TraitItem, parse_quote};

use super::errors::Errors;
use super::method::Method;
use super::options::ServiceOptions;
use crate::refusal::refuse;
use crate::text;

/// A trait that was read as a service, from which all code is made.
pub struct Service<'input> {
    pub options: ServiceOptions,
    pub item: &'input ItemTrait,
    pub methods: Vec<Method>,
    /// Attributes of the trait that all generated items have too: `cfg` and `allow`.
    pub shared: Vec<&'input Attribute>,
}

impl<'input> Service<'input> {
    pub fn read(options: TokenStream, item: &'input ItemTrait) -> Result<Self> {
        let mut errors = Errors(None);
        let options = errors.take(ServiceOptions::read(options));
        errors.take(check_head(item));
        let methods = item.items.iter().filter_map(|item| {
            errors.take(match item {
                TraitItem::Fn(method) => Method::read(method),
                other => refuse(other, ONLY_METHODS),
            })
        });
        let methods: Vec<_> = methods.collect();
        errors.take(check_names(&methods));
        if let Some(error) = errors.0 {
            return Err(error);
        }
        let options = options.expect("without an error there are options");
        let shared = item.attrs.iter().filter(|attribute| is_shared(attribute)).collect();
        Ok(Self { options, item, methods, shared })
    }

    /// The trait with futures that are `Send`, as a server needs them.
    pub fn rewritten_trait(&self) -> TokenStream {
        let mut item = self.item.clone();
        item.colon_token.get_or_insert_default();
        item.supertraits.push(parse_quote!(::core::marker::Send));
        item.supertraits.push(parse_quote!(::core::marker::Sync));
        item.supertraits.push(parse_quote!('static));
        let methods = self.methods.iter().map(|method| TraitItem::Fn(method.in_the_trait()));
        item.items = methods.collect();
        // A program may use the client alone, or the server.
        quote!(#[allow(dead_code)] #item)
    }

    /// The name of a generated type: the trait's with an ending.
    pub fn name(&self, ending: &str) -> Ident {
        let name = &self.item.ident;
        format_ident!("{}{ending}", name.unraw(), span = name.span())
    }

    /// The path of a method on the wire.
    pub fn path(&self, method: &Method) -> String {
        let name = self.options.name.clone();
        format!("{}/{}", name.unwrap_or_else(|| text::name(&self.item.ident)), method.wire_name())
    }

    /// Code for the constant of a method, at the place of the code for this method.
    pub fn constant(&self, method: &Method) -> TokenStream {
        let (place, rpc, constant) = (method.place(), self.rpc_at(method), method.constant());
        let mut client = self.name("Client");
        client.set_span(place);
        quote_spanned!(place=> <#client<#rpc::Channel>>::#constant)
    }

    /// The module `rpc`, for code at the place of a method: if a token of an expression is
    /// elsewhere, the compiler marks all that is between as the place of an error.
    pub fn rpc_at(&self, method: &Method) -> TokenStream {
        let place = method.place();
        let tokens = self.options.rpc.to_token_stream().into_iter();
        let moved = tokens.map(|mut token| {
            token.set_span(place);
            token
        });
        moved.collect()
    }

    /// A name for a type parameter that no type of the trait has: the usual one if possible.
    pub fn parameter(&self, usual: &str) -> Ident {
        let mut name = usual.to_owned();
        while text::any_ident(self.item.to_token_stream(), &|ident| ident == &name) {
            name.push('0');
        }
        format_ident!("{name}")
    }
}

const ONLY_METHODS: &str = "a service consists of methods, and other items of the trait would be \
                            unknown to its clients: move it to a trait of its own";
const NO_PARAMETERS: &str = "a service has no parameters, because clients name its methods by text: \
                             declare a trait for each type, or give the methods concrete types";
const ORDINARY: &str = "a service is an ordinary trait: remove this word";
const NAME_OF_THE_CLIENT: &str = "the client has a constructor of this name: rename the method, and \
                                  keep the name on the wire by `#[rpc(name = \"new\")]`";

/// Refuses traits with parameters, and traits that are unsafe or auto traits.
fn check_head(item: &ItemTrait) -> Result<()> {
    let mut errors = Errors(None);
    if let Some(word) = &item.unsafety {
        errors.take(refuse::<()>(word, ORDINARY));
    }
    if let Some(word) = &item.auto_token {
        errors.take(refuse::<()>(word, ORDINARY));
    }
    errors.take(crate::refusal::refuse_parameters(&item.generics, NO_PARAMETERS));
    if let Some(conditions) = &item.generics.where_clause {
        errors.take(refuse::<()>(conditions, NO_PARAMETERS));
    }
    errors.0.map_or(Ok(()), Err)
}

/// Refuses methods that a client can't have, a second method of the same name on the wire, and one
/// whose constant in the client would have the name of another's. Methods with a `cfg` are left
/// out, because only the compiler knows which of them there are.
fn check_names(methods: &[Method]) -> Result<()> {
    let mut errors = Errors(None);
    let (mut names, mut constants) = (HashSet::new(), HashMap::new());
    for method in methods {
        let ident = &method.signature.ident;
        if ident == "new" {
            errors.take(refuse::<()>(ident, NAME_OF_THE_CLIENT));
        }
        if method.cfgs().next().is_some() {
            continue;
        }
        let name = method.wire_name();
        if !names.insert(name.clone()) {
            errors.take(refuse::<()>(
                method.place_of_name(),
                format!("another method of the service is `{name}` on the wire: rename either"),
            ));
        }
        let other = constants.insert(method.constant().to_string(), ident);
        if let Some(other) = other.filter(|other| *other != ident) {
            errors.take(refuse::<()>(
                ident,
                format!(
                    "the names of this method and of `{other}` differ in capitals alone, and the client has a \
                     constant `{}` for either: rename one, and keep its name on the wire by `#[rpc(name = \
                     \"…\")]`",
                    method.constant()
                ),
            ));
        }
    }
    errors.0.map_or(Ok(()), Err)
}

fn is_shared(attribute: &Attribute) -> bool {
    ["cfg", "allow"].iter().any(|name| attribute.path().is_ident(name))
}
