//! What a method takes and what it answers with: one message or a stream, by itself or in a
//! `Request` or `Response`.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{GenericArgument, PathArguments, Result, ReturnType, Signature, Type};

use crate::refusal::refuse;
use crate::text;

/// The type of what is sent in one direction: the request or the response of a method.
pub struct Message {
    /// The type of the message, or of each message of a stream.
    pub ty: Type,
    pub streams: bool,
    /// Whether the trait has the message in a `Request` or a `Response`, with metadata.
    pub wrapped: bool,
}

const WHAT_IT_ANSWERS: &str = "a method answers with `Result<T, Status>`, where `T` is a message, \
                               `Streaming<…>`, or either in a `Response<…>`";
const OWNED: &str = "messages own their data, because the other side has nothing to borrow from: \
                     instead of `&str` use `String`, instead of `&[T]` use `Vec<T>` or `Bytes`";
const NO_SELF: &str = "`Self` is a type of the server, which clients don't know: name the type";
const NO_IMPL: &str = "client and server must agree on the types of messages: name a type";

impl Message {
    /// The message in a type, which may be in a `Request` or `Response` and may be a stream.
    pub fn read(ty: &Type, wrapper: &str) -> Result<Self> {
        let (body, wrapped) = match only_argument(ty, wrapper) {
            Some(body) => (body, true),
            None => (ty, false),
        };
        let (ty, streams) = match only_argument(body, "Streaming") {
            Some(message) => (message, true),
            None => (body, false),
        };
        check(ty.to_token_stream())?;
        Ok(Self { ty: ty.clone(), streams, wrapped })
    }

    /// The message that a method answers with.
    pub fn answered(signature: &Signature) -> Result<Self> {
        let ReturnType::Type(_, ty) = &signature.output else {
            return refuse(
                &signature.ident,
                format!("{WHAT_IT_ANSWERS}; without anything to answer: `Result<(), Status>`"),
            );
        };
        match arguments(ty, "Result").as_deref() {
            Some([answer]) => Self::read(answer, "Response"),
            Some([answer, error]) if is_status(error) => Self::read(answer, "Response"),
            Some([_, error]) => {
                refuse(error, "a method fails with a `Status`, which has a code and a message")
            }
            _ => refuse(ty, WHAT_IT_ANSWERS),
        }
    }

    /// Whether an argument is more than a message, so that no other can be beside it.
    pub fn is_special(&self) -> bool {
        self.streams || self.wrapped
    }

    /// The message as text for a schema, in which a stream is marked.
    pub fn text(&self) -> String {
        let stream = if self.streams { "stream " } else { "" };
        format!("{stream}{}", text::of(&self.ty))
    }
}

/// Refuses types that can't be those of messages.
fn check(ty: TokenStream) -> Result<()> {
    let mut last = None;
    for token in ty {
        match &token {
            TokenTree::Group(group) => check(group.stream())?,
            TokenTree::Ident(ident) if ident == "Self" => return refuse(token, NO_SELF),
            TokenTree::Ident(ident) if ident == "impl" => return refuse(token, NO_IMPL),
            TokenTree::Ident(ident) if last == Some('\'') && ident != "static" => {
                return refuse(token, OWNED);
            }
            TokenTree::Punct(punct) if punct.as_char() == '&' => return refuse(token, OWNED),
            _ => {}
        }
        last = match token {
            TokenTree::Punct(punct) => Some(punct.as_char()),
            _ => None,
        };
    }
    Ok(())
}

fn is_status(ty: &Type) -> bool {
    let Type::Path(path) = bare(ty) else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Status")
}

/// The type `T` of `name<T>`, at whatever path.
fn only_argument<'t>(ty: &'t Type, name: &str) -> Option<&'t Type> {
    match arguments(ty, name)?[..] {
        [argument] => Some(argument),
        _ => None,
    }
}

/// The types between the angle brackets of `name<…>`, at whatever path.
fn arguments<'t>(ty: &'t Type, name: &str) -> Option<Vec<&'t Type>> {
    let Type::Path(path) = bare(ty) else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    let types = arguments.args.iter().map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.collect()
}

/// The type without the invisible brackets that a macro puts around it.
fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        ty => ty,
    }
}
