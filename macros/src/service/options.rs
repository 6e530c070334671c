//! What `#[rpc::service(…)]` says of a service, and `#[rpc(…)]` of a method.

use proc_macro2::TokenStream;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{Attribute, LitStr, Path, Result, Type, parse_quote};

use crate::refusal::refuse;

/// The options of the attribute `#[rpc::service]` on a trait.
pub struct ServiceOptions {
    /// The module that has the types of RPC: `::doorbell::rpc` unless said.
    pub rpc: Path,
    /// The name of the service on the wire, if it is not the trait's.
    pub name: Option<String>,
    pub codec: Type,
}

const OF_SERVICES: &str = "the attribute `service` takes `name = \"pkg.Service\"`, \
                           `codec = path::to::Codec` and `crate = \"path::to::rpc\"`";
const OF_METHODS: &str = "a method takes `#[rpc(idempotent)]`, `#[rpc(inline)]` and \
                          `#[rpc(name = \"name\")]`";

impl ServiceOptions {
    /// Reads what stands in the brackets of the attribute.
    pub fn read(attribute: TokenStream) -> Result<Self> {
        let (mut rpc, mut name, mut codec) = (None, None, None);
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("name") {
                once(&meta, &mut name, wire_name(&meta)?)
            } else if meta.path.is_ident("codec") {
                once(&meta, &mut codec, meta.value()?.parse::<Type>()?)
            } else if meta.path.is_ident("crate") {
                let path = meta.value()?.parse::<LitStr>()?.parse_with(Path::parse_mod_style)?;
                once(&meta, &mut rpc, path)
            } else {
                Err(meta.error(OF_SERVICES))
            }
        });
        parser.parse2(attribute)?;
        let rpc = rpc.unwrap_or_else(|| parse_quote!(::doorbell::rpc));
        let codec = codec.unwrap_or_else(|| parse_quote!(#rpc::Postcard));
        Ok(Self { rpc, name: name.map(|name| name.value()), codec })
    }
}

/// The options that the attributes of a method set.
#[derive(Default)]
pub struct MethodOptions {
    pub idempotent: Option<()>,
    pub inline: Option<()>,
    /// The name of the method on the wire, if it is not that of the function.
    pub name: Option<LitStr>,
}

impl MethodOptions {
    /// Reads the `rpc` attributes among those of a method.
    pub fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut options = Self::default();
        for attribute in attributes.iter().filter(|attribute| is_rpc(attribute)) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("idempotent") {
                    once(&meta, &mut options.idempotent, ())
                } else if meta.path.is_ident("inline") {
                    once(&meta, &mut options.inline, ())
                } else if meta.path.is_ident("name") {
                    once(&meta, &mut options.name, wire_name(&meta)?)
                } else {
                    Err(meta.error(OF_METHODS))
                }
            })?;
        }
        Ok(options)
    }
}

/// Whether an attribute of a method is for this macro.
pub fn is_rpc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("rpc")
}

/// Sets an option, unless it was set before.
fn once<T>(meta: &ParseNestedMeta<'_>, option: &mut Option<T>, value: T) -> Result<()> {
    match option.replace(value) {
        None => Ok(()),
        Some(_) => Err(meta.error("this was said before: remove either")),
    }
}

/// The name of a service or a method on the wire.
fn wire_name(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    let literal: LitStr = meta.value()?.parse()?;
    let name = literal.value();
    if name.is_empty() || name.contains(|at: char| at == '/' || at.is_whitespace()) {
        return refuse(
            literal,
            "a name on the wire has at least one character, and neither `/` nor spaces, because \
             `service/method` is the path of a method",
        );
    }
    Ok(literal)
}
