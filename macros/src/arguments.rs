//! The derive of `Arguments`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Data, DataStruct, DeriveInput, Generics, Path, Result};

use crate::attributes::path_of_traits;
use crate::field::Field;
use crate::refusal::{head, refuse};
use crate::text::{self, Brackets};

/// The implementation of `Arguments`, or an error that says why the type can't have one.
pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let am = path_of_traits(input)?;
    let data = the_struct(input)?;
    let name = &input.ident;
    let fields = Field::all(&data.fields);

    let shape = shape(&am, &text::name(name), &fields);
    let type_name = type_name(&am, &text::name(name), data, &fields, &input.generics);
    let (has_payload, count) = sizes(&am, &fields);
    let put = put(&am, &fields);
    let payload = payload(&am, &fields);
    let take = take(&am, &fields);

    let conditions = conditions(&am, &fields, &input.generics);
    let (parameters, arguments, written) = input.generics.split_for_impl();
    let written = written.map(|written| &written.predicates);
    Ok(quote! {
        #[automatically_derived]
        #[allow(unused_qualifications)]
        impl #parameters #am::Arguments for #name #arguments
        where
            #(#conditions,)*
            #written
        {
            const SHAPE: #am::Shape = #shape;
            const HAS_PAYLOAD: bool = #has_payload;

            fn type_name() -> ::std::borrow::Cow<'static, str> {
                #type_name
            }

            #[inline]
            fn count(&self) -> usize {
                #count
            }

            #put
            #payload
            #take
        }
    })
}

/// The fields of the type if it is a struct. Other types and structs with lifetimes are refused.
fn the_struct(input: &DeriveInput) -> Result<&DataStruct> {
    let data = match &input.data {
        Data::Struct(data) => data,
        Data::Enum(data) => return refuse(head(data.enum_token, &input.ident), NOT_AN_ENUM),
        Data::Union(data) => return refuse(head(data.union_token, &input.ident), NOT_A_UNION),
    };
    match input.generics.lifetimes().next() {
        Some(lifetime) => refuse(lifetime, NO_LIFETIME),
        None => Ok(data),
    }
}

const NOT_AN_ENUM: &str = "`Arguments` is derived for structs. An `enum` whose variants have no \
                           fields derives `Word`, which makes it what a message carries. Of an \
                           `enum` with fields, declare a kind of message for each variant.";
const NOT_A_UNION: &str = "`Arguments` is derived for structs. Nobody knows which field of a \
                           `union` has the value: make it a struct.";
const NO_LIFETIME: &str = "what a message carries owns its data, for the peer has nothing to \
                           borrow from: instead of `&str` and `&[u8]` use `String` and `Bytes`";

/// Code for what endpoints compare: the struct's name, and each field's name and type.
fn shape(am: &Path, name: &str, fields: &[Field]) -> TokenStream {
    let mut shape = quote!(#am::Shape::of("struct").and(#name));
    for (at, field) in fields.iter().enumerate() {
        let name = &field.name;
        let part = if at + 1 < fields.len() {
            let kind = field.item(am, "Word", "KIND");
            quote!(.and(#name).and(#kind))
        } else {
            let shape = field.item(am, "Field", "SHAPE");
            quote!(.and(#name).with(#shape))
        };
        shape.extend(part);
    }
    shape
}

/// The name of the type, for errors: the struct as the program writes it. A field whose type
/// depends on a parameter is shown with the type that it has in this instance.
fn type_name(
    am: &Path,
    name: &str,
    data: &DataStruct,
    fields: &[Field],
    generics: &Generics,
) -> TokenStream {
    let brackets = Brackets::around(&data.fields);
    let mut known = format!("{name}{}", brackets.open);
    let mut behind = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        known += if at == 0 { "" } else { ", " };
        if brackets.named {
            known += &format!("{}: ", field.name);
        }
        if field.depends_on(generics) {
            let type_name = field.item(am, "Field", "type_name");
            behind.push(quote!(::std::borrow::Cow::Borrowed(#known), #type_name()));
            known.clear();
        } else {
            known += &text::of(field.ty);
        }
    }
    known += brackets.close;
    if behind.is_empty() {
        return quote!(::std::borrow::Cow::Borrowed(#known));
    }
    quote! {
        ::std::borrow::Cow::Owned(<[::std::borrow::Cow<'static, str>]>::concat(&[
            #(#behind,)* ::std::borrow::Cow::Borrowed(#known)
        ]))
    }
}

/// Code for whether the struct has a payload, and for its number of words.
fn sizes(am: &Path, fields: &[Field]) -> (TokenStream, TokenStream) {
    let Some((last, front)) = fields.split_last() else { return (quote!(false), quote!(0)) };
    let (front, words) = (front.len(), last.item(am, "Field", "WORDS"));
    (quote!(#words == 0), quote!(#front + #words))
}

fn put(am: &Path, fields: &[Field]) -> TokenStream {
    let Some((last, front)) = fields.split_last() else {
        return quote! {
            #[inline]
            fn put(&self, _: &mut [u64]) {}
        };
    };
    let count = front.len();
    let words = front.iter().map(|field| {
        let (word, member) = (field.item(am, "Word", "word"), &field.member);
        quote!(#word(self.#member))
    });
    let (put, member) = (last.item(am, "Field", "put"), &last.member);
    quote! {
        #[inline]
        fn put(&self, words: &mut [u64]) {
            let (front, last) = <[u64]>::split_at_mut(words, #count);
            <[u64]>::copy_from_slice(front, &[#(#words),*]);
            #put(&self.#member, last);
        }
    }
}

fn payload(am: &Path, fields: &[Field]) -> Option<TokenStream> {
    let last = fields.last()?;
    let (payload, member) = (last.item(am, "Field", "payload"), &last.member);
    Some(quote! {
        #[inline]
        fn payload(&self) -> &[u8] {
            #payload(&self.#member)
        }
    })
}

fn take(am: &Path, fields: &[Field]) -> TokenStream {
    let option = quote!(::core::option::Option);
    let Some((last, front)) = fields.split_last() else {
        return quote! {
            #[inline]
            fn take(words: &[u64], _: &mut #am::Payload<'_>) -> #option<Self> {
                if <[u64]>::is_empty(words) { #option::Some(Self {}) } else { #option::None }
            }
        };
    };
    let word = |at| format_ident!("word_{at}", span = Span::mixed_site());
    let words: Vec<_> = (0..front.len()).map(word).collect();
    let values = front.iter().zip(&words).map(|(field, word)| {
        let (from_word, member) = (field.item(am, "Word", "from_word"), &field.member);
        quote!(#member: #from_word(*#word)?)
    });
    let (take, member) = (last.item(am, "Field", "take"), &last.member);
    quote! {
        #[inline]
        fn take(words: &[u64], payload: &mut #am::Payload<'_>) -> #option<Self> {
            let [#(#words,)* last @ ..] = words else { return #option::None };
            #option::Some(Self { #(#values,)* #member: #take(last, payload)? })
        }
    }
}

/// The conditions on which a struct with parameters is what a message carries: each field whose
/// type depends on a parameter is a word, and the last is a word or a payload.
fn conditions(am: &Path, fields: &[Field], generics: &Generics) -> Vec<TokenStream> {
    let depends = |field: &&Field| field.depends_on(generics);
    let Some((last, front)) = fields.split_last() else { return Vec::new() };
    let words = front.iter().filter(depends).map(|Field { ty, .. }| quote!(#ty: #am::Word));
    let last = Some(last).filter(depends).map(|Field { ty, .. }| quote!(#ty: #am::Field));
    words.chain(last).collect()
}
