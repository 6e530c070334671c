//! Extensions: values of any type that layers and interceptors attach to a request.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

/// Values of a request that stay in the process, at most one of each type. An interceptor leaves
/// here what it has found out, and handlers read it.
///
/// ```
/// use doorbell_rpc::Request;
///
/// #[derive(PartialEq, Debug)]
/// struct Tenant(u32);
///
/// let mut request = Request::new(());
/// request.extensions_mut().insert(Tenant(7));
/// assert_eq!(request.extensions().get(), Some(&Tenant(7)));
/// ```
#[derive(Clone, Default)]
pub struct Extensions(Option<Box<Values>>);

type Values = Vec<(TypeId, Arc<dyn Any + Send + Sync>)>;

impl Extensions {
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    /// Attaches a value, in place of another value of the same type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        let values = self.0.get_or_insert_default();
        values.retain(|(of, _)| *of != TypeId::of::<T>());
        values.push((TypeId::of::<T>(), Arc::new(value)));
    }

    /// The value of a type, if there is one.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        let mut values = self.0.iter().flat_map(|values| values.iter());
        values.find_map(|(_, value)| value.downcast_ref())
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.as_ref().map_or(0, |values| values.len());
        write!(f, "{count} extensions")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_the_place_of_another_of_its_type_and_leaves_those_of_other_types() {
        let mut extensions = Extensions::new();
        assert_eq!(extensions.get::<u8>(), None);
        extensions.insert(1_u8);
        extensions.insert("text");
        extensions.insert(2_u8);
        assert_eq!((extensions.get(), extensions.get()), (Some(&2_u8), Some(&"text")));
        assert_eq!(extensions.0.expect("it has values").len(), 2);
    }
}
