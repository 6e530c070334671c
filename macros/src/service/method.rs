//! A method of a service, as it was read from the trait.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident};
use syn::spanned::Spanned;
use syn::{
    Attribute, Block, Error, FnArg, Pat, PatType, Result, ReturnType, Signature, TraitItemFn, Type,
    parse_quote, parse_quote_spanned,
};

use super::errors::Errors;
use super::message::Message;
use super::options::{MethodOptions, is_rpc};
use crate::refusal::refuse;
use crate::text;

/// A method of the trait: how it is called, and what is sent for it.
pub struct Method {
    /// The signature as the program has it.
    pub signature: Signature,
    /// The attributes without those for this macro.
    attributes: Vec<Attribute>,
    body: Option<Block>,
    pub options: MethodOptions,
    pub arguments: Vec<Argument>,
    pub request: Message,
    pub response: Message,
}

/// An argument of a method, beside `&self`.
pub struct Argument {
    pub name: Ident,
    pub ty: Type,
}

/// As many arguments a method may have: tuples of more are nothing that serde knows.
const MOST_ARGUMENTS: usize = 16;

const BY_REFERENCE: &str = "a method takes `&self`, because many calls run at a time: state that \
                            calls change goes into an atomic, a `Mutex` or an `RwLock`";
const ASYNC: &str = "a method of a service is an `async fn`, even one that never waits";
const ORDINARY: &str = "a method of a service is an ordinary `async fn`: remove this";
const NO_PARAMETERS: &str = "a method has no parameters, because client and server must agree on \
                             the types of messages: name a type, or declare a method for each";
const ALONE: &str = "a `Request` or a stream is the only argument of a method: put the others into \
                     a message, or into the metadata of a `Request`";
const TOO_MANY: &str = "a method has at most 16 arguments: put them into a struct";
const NAMED: &str = "an argument is a name and a type, because the client's method has an argument \
                     of the same name";
const NO_ATTRIBUTES: &str = "an argument has no attributes: put them in front of the method";

impl Method {
    pub fn read(method: &TraitItemFn) -> Result<Self> {
        let signature = &method.sig;
        let mut errors = Errors(None);
        check_form(signature, &mut errors);
        let options = errors.take(MethodOptions::read(&method.attrs));
        let arguments = errors.take(arguments(signature));
        let request = arguments.as_ref().and_then(|all| errors.take(requested(all)));
        let response = errors.take(Message::answered(signature));
        let (Some(options), Some(arguments), Some(request), Some(response), None) =
            (options, arguments, request, response, &errors.0)
        else {
            return Err(errors.0.expect("what is missing was refused"));
        };
        Ok(Self {
            signature: signature.clone(),
            attributes: method.attrs.iter().filter(|at| !is_rpc(at)).cloned().collect(),
            body: method.default.clone(),
            options,
            arguments,
            request,
            response,
        })
    }

    /// The method as the trait has it, with a future that is `Send`.
    pub fn in_the_trait(&self) -> TraitItemFn {
        let mut sig = self.signature.clone();
        sig.asyncness = None;
        if let ReturnType::Type(arrow, ty) = &self.signature.output {
            let future: Type = parse_quote_spanned! { ty.span() =>
                impl ::core::future::Future<Output = #ty> + ::core::marker::Send
            };
            sig.output = ReturnType::Type(*arrow, Box::new(future));
        }
        let default =
            self.body.as_ref().map(|body| -> Block { parse_quote!({ async move #body }) });
        let semi_token = default.is_none().then(Default::default);
        TraitItemFn { attrs: self.attributes.clone(), sig, default, semi_token }
    }

    /// The name of the method on the wire.
    pub fn wire_name(&self) -> String {
        let name = self.options.name.as_ref();
        name.map_or_else(|| text::name(&self.signature.ident), syn::LitStr::value)
    }

    /// Where the program says the name on the wire.
    pub fn place_of_name(&self) -> TokenStream {
        match &self.options.name {
            Some(name) => name.to_token_stream(),
            None => self.signature.ident.to_token_stream(),
        }
    }

    /// The name of the constant for the method.
    pub fn constant(&self) -> Ident {
        let name = text::name(&self.signature.ident).to_uppercase();
        format_ident!("{name}", span = self.signature.ident.span())
    }

    /// The schema that client and server compare: the types of the signature, and the codec unless
    /// that is `Postcard`.
    pub fn schema(&self, codec: &Type) -> String {
        let request = match &self.arguments[..] {
            [_] => self.request.text(),
            all => all.iter().map(|at| text::of(&at.ty)).collect::<Vec<_>>().join(", "),
        };
        let types = format!("({request}) -> {}", self.response.text());
        match codec {
            // A codec may be at different paths in different crates.
            Type::Path(path) => match path.path.segments.last() {
                Some(last) if last.ident != "Postcard" => {
                    format!("{types} by {}", last.ident)
                }
                _ => types,
            },
            other => format!("{types} by {}", text::of(other)),
        }
    }

    /// The place of the code that calls the method, and of the code that routes its calls. There
    /// the compiler reports a type that the codec does not know: at the method's name.
    pub fn place(&self) -> Span {
        self.signature.ident.span().resolved_at(Span::call_site())
    }

    /// The name of the functions of `Router` and of `Client` for methods of this kind.
    pub fn kind(&self) -> Ident {
        let name = match (self.request.streams, self.response.streams) {
            (false, false) => "unary",
            (false, true) => "server_streaming",
            (true, false) => "client_streaming",
            (true, true) => "streaming",
        };
        Ident::new(name, self.place())
    }

    /// The attributes by which the method is left out.
    pub fn cfgs(&self) -> impl Iterator<Item = &Attribute> {
        self.attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"))
    }

    pub fn is_documented(&self) -> bool {
        self.attributes.iter().any(|attribute| attribute.path().is_ident("doc"))
    }

    /// The attributes that the client's method has too.
    pub fn shared(&self) -> impl Iterator<Item = &Attribute> {
        let shared = ["doc", "cfg", "cfg_attr", "allow", "deprecated"];
        self.attributes
            .iter()
            .filter(move |attribute| shared.iter().any(|name| attribute.path().is_ident(name)))
    }
}

/// Refuses functions that are no methods of a service.
fn check_form(signature: &Signature, errors: &mut Errors) {
    if signature.asyncness.is_none() {
        errors.take(refuse::<()>(signature.fn_token, ASYNC));
    }
    let words = [
        signature.constness.as_ref().map(ToTokens::to_token_stream),
        signature.unsafety.as_ref().map(ToTokens::to_token_stream),
        signature.abi.as_ref().map(ToTokens::to_token_stream),
        signature.variadic.as_ref().map(ToTokens::to_token_stream),
    ];
    for word in words.into_iter().flatten() {
        errors.take(refuse::<()>(word, ORDINARY));
    }
    errors.take(crate::refusal::refuse_parameters(&signature.generics, NO_PARAMETERS));
    if let Some(conditions) = &signature.generics.where_clause {
        errors.take(refuse::<()>(conditions, NO_PARAMETERS));
    }
    let by_reference = match signature.receiver() {
        None => refuse(&signature.ident, BY_REFERENCE),
        Some(this) if this.colon_token.is_some() => refuse(this, BY_REFERENCE),
        Some(this) if this.mutability.is_some() => refuse(this, BY_REFERENCE),
        Some(this) => match &this.reference {
            None => refuse(this, BY_REFERENCE),
            Some((_, Some(lifetime))) => refuse(lifetime, BY_REFERENCE),
            Some((_, None)) => Ok(()),
        },
    };
    errors.take(by_reference);
}

/// The arguments of a method beside `&self`.
fn arguments(signature: &Signature) -> Result<Vec<Argument>> {
    let mut errors = Errors(None);
    let typed = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Receiver(_) => None,
        FnArg::Typed(argument) => Some(argument),
    });
    let arguments: Vec<_> = typed.filter_map(|typed| errors.take(argument(typed))).collect();
    match errors.0 {
        Some(error) => Err(error),
        None if arguments.len() > MOST_ARGUMENTS => refuse(&signature.inputs, TOO_MANY),
        None => Ok(arguments),
    }
}

fn argument(PatType { attrs, pat, ty, .. }: &PatType) -> Result<Argument> {
    if let Some(attribute) = attrs.first() {
        return refuse(attribute, NO_ATTRIBUTES);
    }
    match &**pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
            Ok(Argument { name: name.ident.clone(), ty: (**ty).clone() })
        }
        other => refuse(other, NAMED),
    }
}

/// The message that the arguments of a method are on the wire: the only one, or a tuple of all.
fn requested(arguments: &[Argument]) -> Result<Message> {
    if let [only] = arguments {
        return Message::read(&only.ty, "Request");
    }
    let mut errors = Errors(None);
    for argument in arguments {
        let message = errors.take(Message::read(&argument.ty, "Request"));
        if message.is_some_and(|message| message.is_special()) {
            errors.take::<()>(Err(Error::new_spanned(&argument.ty, ALONE)));
        }
    }
    let types = arguments.iter().map(|argument| &argument.ty);
    let ty = parse_quote!((#(#types),*));
    errors.0.map_or(Ok(Message { ty, streams: false, wrapped: false }), Err)
}
