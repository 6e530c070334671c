//! The derive of `Plain`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DataStruct, DeriveInput, Result, Type};

use crate::attributes::path_of_traits;
use crate::field::Field;
use crate::refusal::{head, refuse, refuse_parameters};
use crate::text::{self, Brackets};

/// The implementations of `Plain` and `Field`, or an error that says why the type can't have them.
pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let am = path_of_traits(input)?;
    let data = the_struct(input)?;
    let name = &input.ident;
    let kind = kind(&text::name(name), data)?;
    Ok(quote! {
        #[automatically_derived]
        #[allow(unused_qualifications)]
        impl #am::Plain for #name {
            const KIND: &'static str = #kind;
        }

        #[automatically_derived]
        #[allow(unused_qualifications)]
        impl #am::Field for #name {
            const SHAPE: #am::Shape = #am::single::shape::<Self>();
            const WORDS: usize = 0;

            fn type_name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(#kind)
            }

            #[inline]
            fn put(&self, _: &mut [u64]) {}

            #[inline]
            fn payload(&self) -> &[u8] {
                #am::single::payload(self)
            }

            #[inline]
            fn take(
                words: &[u64],
                payload: &mut #am::Payload<'_>,
            ) -> ::core::option::Option<Self> {
                #am::single::take(words, payload)
            }
        }
    })
}

/// The fields of the type if it is a struct. Other types are refused, and so are structs with
/// parameters and structs without fields.
fn the_struct(input: &DeriveInput) -> Result<&DataStruct> {
    let name = &input.ident;
    refuse_parameters(&input.generics, NO_PARAMETERS)?;
    match &input.data {
        Data::Struct(data) if data.fields.is_empty() => {
            refuse(head(data.struct_token, name), NO_FIELDS)
        }
        Data::Struct(data) => Ok(data),
        Data::Enum(data) => refuse(head(data.enum_token, name), NOT_AN_ENUM),
        Data::Union(data) => refuse(head(data.union_token, name), NOT_A_UNION),
    }
}

const NO_PARAMETERS: &str = "endpoints tell plain data by the types of its fields, which must not \
                             depend on parameters: declare a struct for each type that is sent";
const NO_FIELDS: &str = "a struct without fields has no bytes that could be sent";
const NOT_AN_ENUM: &str = "plain data is a struct of numbers, because any bytes must be a value of \
                           it, and not all are an `enum`: send a number, or derive `Word`";
const NOT_A_UNION: &str = "plain data is a struct of numbers: nobody knows which field of a \
                           `union` has the value";
const OTHER_SIZES: &str = "the size of this number depends on the machine: use `u64` or `i64`";

/// The text that endpoints compare: the struct as the program writes it.
fn kind(name: &str, data: &DataStruct) -> Result<String> {
    let brackets = Brackets::around(&data.fields);
    let mut parts = Vec::new();
    for field in Field::all(&data.fields) {
        if is_of_the_machine(field.ty) {
            return refuse(field.ty, OTHER_SIZES);
        }
        let ty = text::of(field.ty);
        parts.push(if brackets.named { format!("{}: {ty}", field.name) } else { ty });
    }
    Ok(format!("{name}{}{}{}", brackets.open, parts.join(", "), brackets.close))
}

/// Whether the type is a number whose size is the machine's.
fn is_of_the_machine(ty: &Type) -> bool {
    let Type::Path(ty) = ty else { return false };
    ty.path.is_ident("usize") || ty.path.is_ident("isize")
}
