//! The fields of a struct, as the derives see them.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Fields, Generics, Index, Member, Path, Type};

use crate::text;

/// A field of a struct: how it is named in code, its name as text, and its type.
pub struct Field<'input> {
    pub member: Member,
    pub name: String,
    pub ty: &'input Type,
}

impl<'input> Field<'input> {
    /// The fields of a struct, in their order. Fields without names are numbered.
    pub fn all(fields: &'input Fields) -> Vec<Self> {
        fields
            .iter()
            .enumerate()
            .map(|(at, field)| match &field.ident {
                Some(ident) => (Member::Named(ident.clone()), text::name(ident), &field.ty),
                None => (Member::Unnamed(Index::from(at)), at.to_string(), &field.ty),
            })
            .map(|(member, name, ty)| Self { member, name, ty })
            .collect()
    }

    /// Code that names an item of a trait for the field's type: `<Type as am::Trait>::item`.
    ///
    /// The compiler reports a type that does not implement the trait at the field's type. Whichever
    /// item is named, the place and the text of this report are the same, and the compiler shows
    /// equal reports once.
    pub fn item(&self, am: &Path, of_trait: &str, item: &str) -> TokenStream {
        let ty = self.ty;
        let place = Place::of(ty);
        let of_trait = Ident::new(of_trait, place.last);
        let item = Ident::new(item, place.last);
        let open = quote_spanned!(place.first=> <);
        let close = quote_spanned!(place.last=> ::#of_trait>::#item);
        quote!(#open #ty as #am #close)
    }

    /// Whether the type of the field depends on a parameter of the struct.
    pub fn depends_on(&self, generics: &Generics) -> bool {
        let parameters = generics.type_params().map(|at| &at.ident);
        let parameters: Vec<_> =
            parameters.chain(generics.const_params().map(|at| &at.ident)).collect();
        !parameters.is_empty()
            && text::any_ident(self.ty.to_token_stream(), &|ident| parameters.contains(&ident))
    }
}

/// Where the source has a type: its first and its last token.
struct Place {
    first: Span,
    last: Span,
}

impl Place {
    fn of(ty: &Type) -> Self {
        let mut spans = ty.to_token_stream().into_iter().map(|token| token.span());
        let first = spans.next().unwrap_or_else(Span::call_site);
        Self { first, last: spans.last().unwrap_or(first) }
    }
}
