//! Errors that say why a type is refused, and what to write instead.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Error, Generics};

/// An error that marks `place`.
pub fn refuse<T>(place: impl ToTokens, reason: impl std::fmt::Display) -> syn::Result<T> {
    Err(Error::new_spanned(place, reason))
}

/// An error at the parameters of a type, if it has any.
pub fn refuse_parameters(generics: &Generics, reason: &str) -> syn::Result<()> {
    if generics.params.is_empty() { Ok(()) } else { refuse(&generics.params, reason) }
}

/// The keyword and the name of a type, for an error that marks both.
pub fn head(keyword: impl ToTokens, name: impl ToTokens) -> TokenStream {
    quote!(#keyword #name)
}
