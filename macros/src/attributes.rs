//! The attribute `#[doorbell(crate = "…")]` of a type.

use syn::{Attribute, Data, DeriveInput, Error, LitStr, Path, Result, parse_quote};

/// The path of the module that has the traits, as the type's attribute gives it, or else
/// `::doorbell::am`. A `doorbell` attribute that says anything else is an error, and so is one at a
/// field or a variant.
pub fn path_of_traits(input: &DeriveInput) -> Result<Path> {
    inner_attributes(&input.data).filter(|at| is_ours(at)).try_for_each(misplaced)?;
    let mut path = None;
    for attribute in input.attrs.iter().filter(|at| is_ours(at)) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error(WHAT_IT_SAYS));
            }
            path = Some(meta.value()?.parse::<LitStr>()?.parse_with(Path::parse_mod_style)?);
            Ok(())
        })?;
    }
    Ok(path.unwrap_or_else(|| parse_quote!(::doorbell::am)))
}

const WHAT_IT_SAYS: &str = "the attribute `doorbell` says where the traits are, and nothing else: \
                            `#[doorbell(crate = \"path::to::am\")]`";

fn is_ours(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doorbell")
}

fn misplaced(attribute: &Attribute) -> Result<()> {
    Err(Error::new_spanned(attribute, "the attribute `doorbell` belongs in front of the type"))
}

/// The attributes of fields, of variants and of variants' fields.
fn inner_attributes(data: &Data) -> Box<dyn Iterator<Item = &Attribute> + '_> {
    match data {
        Data::Struct(data) => Box::new(data.fields.iter().flat_map(|field| &field.attrs)),
        Data::Enum(data) => Box::new(data.variants.iter().flat_map(|variant| {
            variant.attrs.iter().chain(variant.fields.iter().flat_map(|field| &field.attrs))
        })),
        Data::Union(data) => Box::new(data.fields.named.iter().flat_map(|field| &field.attrs)),
    }
}
