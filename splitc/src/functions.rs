//! Functions of the program's own that run atomically on a value in shared memory.

use std::fmt;
use std::sync::Mutex;

use doorbell_verbs::Region;
use doorbell_verbs::floor::locked;

use crate::atomics::{number_at, update};
use crate::element::Element;

/// A function of a program's own that changes a value in shared memory atomically, and returns
/// something about it: `T` is the type of the value, `A` that of the argument, `R` that of the
/// result.
///
/// Every process [defines](crate::World::define) the function, and any process then
/// [applies](crate::Place::apply) it to values of all processes:
///
/// ```
/// use doorbell_splitc::{Apply, Job};
///
/// /// Keeps the shorter of two distances, and says whether the new one was shorter.
/// const RELAX: Apply<f64, f64, u8> = Apply::new("relax", |distance, candidate| {
///     let shorter = candidate < *distance;
///     if shorter {
///         *distance = candidate;
///     }
///     shorter.into()
/// });
///
/// Job::threads(2).run(async |world| {
///     world.define(RELAX).await?;
///     let distances = world.spread::<f64>(10).await?;
///     distances.at(7).apply(RELAX, -1.5).await?;
///     world.barrier().await?;
///     assert_eq!(distances.at(7).read().await?, -1.5);
///     Ok(world.barrier().await?)
/// })?;
/// # Ok::<(), doorbell_splitc::RunError>(())
/// ```
///
/// The function works on a copy of the value. On values of one, two, four and eight bytes the
/// function is run again when another process has changed the value meanwhile, so it must do
/// nothing but compute. On values of other sizes the function is run by the process that owns the
/// value, one function at a time; accesses other than functions may see, or leave behind, a value
/// that is only partly changed.
///
/// If a function panics in the process that owns the value, the value stays as it was, and the
/// process that applied the function gets an [error](crate::ErrorKind::Refused). If the applying
/// process runs the function itself, the panic happens there.
pub struct Apply<T, A, R> {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&mut T, A) -> R,
}

impl<T: Element, A: Element, R: Element> Apply<T, A, R> {
    /// Makes a function with a name by which all processes know it.
    pub const fn new(name: &'static str, run: fn(&mut T, A) -> R) -> Self {
        Self { name, run }
    }

    /// The name of the function.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn erased(self) -> Function {
        let run = self.run;
        Function {
            value: size_of::<T>(),
            answers: size_of::<R>(),
            run: Box::new(move |place, large, argument, answer| {
                let Ok(argument) = A::read_from_bytes(argument) else { return false };
                let Some(result) = apply(run, place, large, argument) else { return false };
                answer.copy_from_slice(result.as_bytes());
                true
            }),
        }
    }
}

impl<T, A, R> Clone for Apply<T, A, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, A, R> Copy for Apply<T, A, R> {}

impl<T, A, R> fmt::Debug for Apply<T, A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Apply({:?})", self.name)
    }
}

/// Whether a value of `size` bytes lies within one word, where compare-and-swap changes it.
pub(crate) const fn is_in_a_word(size: usize) -> bool {
    matches!(size, 1 | 2 | 4 | 8)
}

/// Runs a function atomically on the value at a place of a region, and returns the function's
/// result; `None` if the place can't hold the value. Functions on values that are not a single word
/// take turns by the lock `large`.
pub(crate) fn apply<T: Element, A: Element, R: Element>(
    run: fn(&mut T, A) -> R,
    (region, offset): (&Region, usize),
    large: &Mutex<()>,
    argument: A,
) -> Option<R> {
    let size = size_of::<T>();
    if is_in_a_word(size) {
        let (word, shift, mask) = number_at(region, offset, size).ok()?;
        let mut result = None;
        update(word, shift, mask, |before| {
            let mut value = T::new_zeroed();
            let bytes = value.as_mut_bytes();
            bits_to_bytes(before, bytes);
            result = Some(run(&mut value, argument));
            bytes_to_bits(value.as_bytes())
        });
        return result;
    }
    let _alone = locked(large);
    let mut value = T::new_zeroed();
    region.read_at(offset, value.as_mut_bytes()).ok()?;
    let result = run(&mut value, argument);
    region.write_at(offset, value.as_bytes()).ok()?;
    Some(result)
}

fn bits_to_bytes(bits: u64, bytes: &mut [u8]) {
    let all = if cfg!(target_endian = "little") { bits.to_le_bytes() } else { bits.to_be_bytes() };
    let from = if cfg!(target_endian = "little") { 0 } else { 8 - bytes.len() };
    bytes.copy_from_slice(&all[from..][..bytes.len()]);
}

fn bytes_to_bits(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    if cfg!(target_endian = "little") {
        all[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(all)
    } else {
        all[8 - bytes.len()..].copy_from_slice(bytes);
        u64::from_be_bytes(all)
    }
}

/// A function as the process that defined it knows it.
pub(crate) struct Defined {
    pub name: &'static str,
    /// How many bytes the value, the argument and the result have.
    pub sizes: [usize; 3],
    /// The address of the function's code.
    pub code: usize,
}

type Run = Box<dyn Fn((&Region, usize), &Mutex<()>, &[u8], &mut [u8]) -> bool + Send + Sync>;

/// A function without its types, as message handlers run it: argument and result are bytes.
pub(crate) struct Function {
    /// How many bytes the value has that is changed.
    value: usize,
    /// How many bytes the result has.
    answers: usize,
    run: Run,
}

impl Function {
    /// How many bytes the value has that the function changes.
    pub fn value(&self) -> usize {
        self.value
    }

    /// How many bytes the function's result has.
    pub fn answers(&self) -> usize {
        self.answers
    }

    /// Runs the function on the value at a place of a region, reads its argument from `argument`
    /// and writes its result to `answer`. Returns `false` if the place or the argument does not fit
    /// the function.
    pub fn run(
        &self,
        place: (&Region, usize),
        large: &Mutex<()>,
        argument: &[u8],
        answer: &mut [u8],
    ) -> bool {
        (self.run)(place, large, argument, answer)
    }
}
