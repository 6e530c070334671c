//! The derive of `Word`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Data, DataEnum, DataStruct, DeriveInput, Error, Ident, Path, Result};

use crate::attributes::path_of_traits;
use crate::field::Field;
use crate::refusal::{head, refuse, refuse_parameters};
use crate::text;

/// The implementation of `Word`, or an error that says why the type can't have one.
pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let am = path_of_traits(input)?;
    refuse_parameters(&input.generics, NO_PARAMETERS)?;
    let name = &input.ident;
    let kind = text::name(name);
    let conversions = match &input.data {
        Data::Struct(data) => of_struct(&am, data, name)?,
        Data::Enum(data) => of_enum(data, name)?,
        Data::Union(data) => return refuse(head(data.union_token, name), NOT_A_UNION),
    };
    Ok(quote! {
        #[automatically_derived]
        #[allow(unused_qualifications)]
        impl #am::Word for #name {
            const KIND: &'static str = #kind;

            #conversions
        }
    })
}

const NO_PARAMETERS: &str = "endpoints tell a word by the name of its type, which would be the \
                             same whatever the parameters are: a word has no parameters";
const NOT_A_UNION: &str = "nobody knows which field of a `union` has the value: a word is a struct \
                           of one word, or an `enum` whose variants have no fields";
const ONE_FIELD: &str = "a struct that is a word has exactly one field, which is a word. A \
                         struct of several words derives `Arguments`";
const NO_VARIANTS: &str = "an `enum` without variants has no value that a word could be";
const VARIANT_WITH_FIELDS: &str = "a word can't hold the fields of a variant: declare a kind of \
                                   message for each variant, or send the fields beside the `enum` \
                                   in a struct that derives `Arguments`";

/// The conversions of a struct of one word.
fn of_struct(am: &Path, data: &DataStruct, name: &Ident) -> Result<TokenStream> {
    let fields = Field::all(&data.fields);
    let [field] = fields.as_slice() else {
        return refuse(head(data.struct_token, name), ONE_FIELD);
    };
    let member = &field.member;
    let (word, from_word) = (field.item(am, "Word", "word"), field.item(am, "Word", "from_word"));
    Ok(quote! {
        #[inline]
        fn word(self) -> u64 {
            #word(self.#member)
        }

        #[inline]
        fn from_word(word: u64) -> ::core::option::Option<Self> {
            ::core::option::Option::Some(Self { #member: #from_word(word)? })
        }
    })
}

/// The conversions of an `enum`, whose values are words by their discriminants.
fn of_enum(data: &DataEnum, name: &Ident) -> Result<TokenStream> {
    if data.variants.is_empty() {
        return refuse(head(data.enum_token, name), NO_VARIANTS);
    }
    let with_fields = data.variants.iter().filter(|variant| !variant.fields.is_empty());
    let refused = with_fields.map(|variant| Error::new_spanned(variant, VARIANT_WITH_FIELDS));
    if let Some(errors) = refused.reduce(|mut all, error| {
        all.combine(error);
        all
    }) {
        return Err(errors);
    }
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let constant = |at| format_ident!("WORD_{at}", span = Span::mixed_site());
    let constants: Vec<_> = (0..variants.len()).map(constant).collect();
    Ok(quote! {
        #[inline]
        fn word(self) -> u64 {
            self as u64
        }

        #[inline]
        fn from_word(word: u64) -> ::core::option::Option<Self> {
            #(const #constants: u64 = #name::#variants {} as u64;)*
            match word {
                #(#constants => ::core::option::Option::Some(Self::#variants {}),)*
                _ => ::core::option::Option::None,
            }
        }
    })
}
