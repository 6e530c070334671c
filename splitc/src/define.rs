//! Defining functions: all processes of a world agree on a function before any process applies it.

use crate::arrays::hash;
use crate::collectives::{About, differs};
use crate::element::Element;
use crate::error::{Error, HeapError};
use crate::functions::{Apply, Defined};
use crate::world::World;

impl World {
    /// Makes a function known to all processes, which can then [apply](crate::Place::apply) it. A
    /// collective call: all processes await `define`, for the same functions in the same order.
    ///
    /// # Errors
    /// When processes define different functions, a function of that name is defined already, or a
    /// process has gone.
    pub async fn define<T: Element, A: Element, R: Element>(
        &self,
        function: Apply<T, A, R>,
    ) -> Result<(), Error> {
        let core = &*self.0;
        let sizes = [size_of::<T>(), size_of::<A>(), size_of::<R>()];
        if core.functions.borrow().iter().any(|known| known.name == function.name) {
            return Err(Error::invalid(format!("`{}` is defined already", function.name)));
        }
        let longest = 2048;
        if sizes[1].max(sizes[2]) > longest {
            let (name, [_, takes, gives]) = (function.name, sizes);
            let why = format!(
                "`{name}` takes {takes} bytes and gives {gives}: {longest} are the most, which go in a message"
            );
            return Err(Error::invalid(why));
        }
        let [value, argument, result] = sizes.map(|size| size as u64);
        let agreed = [hash(function.name), value, argument, result];
        if let Some(at) = differs(self, About::Function, agreed).await? {
            let what = ["the name", "the value", "the argument", "the result"][at];
            let here = format!(
                "`{}`, whose value, argument and result have {value}, {argument} and {result} bytes",
                function.name
            );
            return Err(HeapError::Differs { what, here }.into());
        }
        core.served.defines(function.erased());
        let (name, code) = (function.name, function.run as usize);
        core.functions.borrow_mut().push(Defined { name, sizes, code });
        // No process applies the function before all processes know it.
        self.barrier().await
    }
}
