//! The ways in which a process gets the values of its ghosts.

use std::fmt;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use doorbell::splitc::Error;

use crate::field::Field;
use crate::spmd::{Measured, Stopwatch};

/// The way in which the values of nodes reach the processes that need them. The paper takes these
/// steps in this order: each asks more of the program than the step before, and is faster.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Variant {
    /// Reads the value of each remote neighbour where it is needed, and waits for each
    Read,
    /// Fetches the value of each ghost by a split-phase get, and waits once for all
    Get,
    /// Stores each value into the ghosts of those who need it, and waits once for all
    Store,
    /// Stores all values that a process needs at once
    Bulk,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_possible_value().expect("all variants can be chosen").get_name())
    }
}

/// Simulates `steps` steps from the initial values on. A collective call: all processes await it.
pub async fn simulate(
    variant: Variant,
    [electric, magnetic]: &mut [Field; 2],
    steps: u32,
) -> Result<Measured, Error> {
    let world = electric.world.clone();
    electric.reset();
    magnetic.reset();
    let computation_of_a_step = time_of_computation(electric, magnetic);
    let mut watch = Stopwatch::start(&world).await?;
    for _ in 0..steps {
        half_step(variant, electric, magnetic, &mut watch).await?;
        half_step(variant, magnetic, electric, &mut watch).await?;
    }
    if variant == Variant::Read {
        watch.computing = computation_of_a_step * steps;
    }
    watch.stop(&world).await
}

/// Computes new values of the nodes of `field` from the values of the nodes of `other`. A
/// collective call: all processes await it.
///
/// Each variant has one barrier, in `publish` or in `all_store_sync`. One is enough, since the
/// fields take turns: a process that is ahead publishes or stores values of `field` only, which
/// this half step does not read, and then waits at the barrier of the next half step.
async fn half_step(
    variant: Variant,
    field: &mut Field,
    other: &mut Field,
    watch: &mut Stopwatch,
) -> Result<(), Error> {
    match variant {
        Variant::Read => {
            other.publish().await?;
            return update_by_reads(field, other).await;
        }
        Variant::Get => get_ghosts(other).await?,
        Variant::Store => store_values(other).await?,
        Variant::Bulk => store_values_in_bulk(other).await?,
    }
    watch.compute(|| field.update(other));
    Ok(())
}

/// Does what [`Field::update`] does, and reads the values of remote neighbours from their owners.
async fn update_by_reads(field: &mut Field, other: &Field) -> Result<(), Error> {
    let own = &mut field.values[..field.own];
    for (value, (neighbours, weights)) in own.iter_mut().zip(field.edges.of_nodes()) {
        let mut sum = 0.0;
        for (&neighbour, weight) in neighbours.iter().zip(weights) {
            let neighbour = neighbour as usize;
            sum += weight
                * match neighbour.checked_sub(other.own) {
                    None => other.values[neighbour],
                    Some(ghost) => other.world.at(other.ghosts[ghost]).read().await?,
                };
        }
        *value -= sum;
    }
    Ok(())
}

/// Fetches the value of each ghost from where its owner has published the value.
async fn get_ghosts(field: &mut Field) -> Result<(), Error> {
    field.publish().await?;
    let world = &field.world;
    let values: Result<Vec<_>, _> = field.ghosts.iter().map(|&node| world.at(node).get()).collect();
    world.sync().await?;
    for (ghost, value) in field.values[field.own..].iter_mut().zip(values?) {
        *ghost = value.value()?;
    }
    Ok(())
}

/// Stores each value that other processes need into their room for it, and takes the values that
/// they have stored here.
async fn store_values(field: &mut Field) -> Result<(), Error> {
    for needed in &field.needed {
        for (place, &node) in needed.nodes.iter().enumerate() {
            let ghost = needed.ghosts.local_add(place as isize);
            field.world.at(ghost).store(field.values[node as usize])?;
        }
    }
    field.world.all_store_sync().await?;
    take_ghosts(field).await
}

/// Does what [`store_values`] does, with one store for each process that needs values.
async fn store_values_in_bulk(field: &mut Field) -> Result<(), Error> {
    for needed in &field.needed {
        let values: Vec<_> = needed.nodes.iter().map(|&node| field.values[node as usize]).collect();
        field.world.span(needed.ghosts, values.len()).store(&values)?;
    }
    field.world.all_store_sync().await?;
    take_ghosts(field).await
}

/// Copies the values that other processes have stored here to the ghosts in [`Field::values`].
async fn take_ghosts(field: &mut Field) -> Result<(), Error> {
    let ghosts = &mut field.values[field.own..];
    if ghosts.is_empty() {
        return Ok(());
    }
    let room = field.room.pointer(field.world.rank() * field.room_each)?;
    field.world.span(room, ghosts.len()).read_into(ghosts).await
}

/// An estimate of how long this process computes in a step, for the variant that reads. That
/// variant reads between two additions, and each of its computations is too short to be timed by
/// itself.
fn time_of_computation(electric: &Field, magnetic: &Field) -> Duration {
    let update = |field: &Field, other: &Field| {
        let mut values = field.values[..field.own].to_vec();
        let start = Instant::now();
        field.edges.update(&mut values, &other.values);
        std::hint::black_box(values);
        start.elapsed()
    };
    let step = || update(electric, magnetic) + update(magnetic, electric);
    // When it runs for the first time, caches are cold.
    step().min(step())
}
