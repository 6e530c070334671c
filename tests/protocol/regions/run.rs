//! Runs a plan: a round after another, and between them all that is known is checked.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use doorbell_verbs::Buf;
use tokio::runtime::Builder;

use crate::regions::plan::{Plan, Tree};
use crate::regions::steps::{Ends, words};
use crate::regions::world::World;

type Boxed<'w> = Pin<Box<dyn Future<Output = ()> + 'w>>;

/// The future of a tree.
fn future<'w>(world: &'w World, tree: &Tree) -> Boxed<'w> {
    let all =
        |trees: &[Tree]| -> Vec<_> { trees.iter().map(|tree| Some(future(world, tree))).collect() };
    match tree {
        &Tree::Step(from, to, step) => {
            let ends = Ends { world, from: from.into(), to: to.into() };
            Box::pin(ends.does(step))
        }
        Tree::Join(trees) => Box::pin(several(all(trees), usize::MAX)),
        Tree::Select(trees) => Box::pin(several(all(trees), 1)),
        Tree::Then(trees) => {
            let all = all(trees);
            Box::pin(async {
                for future in all.into_iter().flatten() {
                    future.await;
                }
            })
        }
        Tree::Dropped(tree, polls) => {
            let (mut inside, mut left) = (future(world, tree), *polls);
            Box::pin(std::future::poll_fn(move |context| {
                let Some(fewer) = left.checked_sub(1) else { return Poll::Ready(()) };
                left = fewer;
                let polled = inside.as_mut().poll(context);
                // Polled again, whatever wakes the others.
                context.waker().wake_by_ref();
                polled
            }))
        }
    }
}

/// Awaits so many of some futures, or all.
async fn several(mut futures: Vec<Option<Boxed<'_>>>, most: usize) {
    let most = most.min(futures.len());
    let mut done = 0;
    std::future::poll_fn(|context| {
        for place in &mut futures {
            if let Some(future) = place
                && future.as_mut().poll(context).is_ready()
            {
                *place = None;
                done += 1;
            }
            if done >= most {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    })
    .await;
}

pub fn run(plan: &Plan) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let world = World::new(plan);
    runtime.block_on(async {
        let count = world.nodes.len();
        let both: Vec<_> = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect();
        for &(a, b) in &both {
            world.bounded("connecting", world.connect(a, b)).await;
        }
        for round in &plan.rounds {
            world.nodes.iter().for_each(|node| world.provide(node));
            world.bounded("a round", future(&world, round)).await;
            world.nodes.iter().for_each(|node| world.provide(node));
            for &(a, b) in &both {
                world.bounded("settling", settle(&world, a, b)).await;
            }
            for node in &world.nodes {
                let memory = node.memory.borrow();
                let (found, counter) = words(memory.as_ref().expect("it was provided"));
                node.model.borrow_mut().settles(&found, counter);
            }
            world.excuse_nobody();
        }
    });
}

/// Waits until all is done that was begun on the connection of two NICs, and makes the connection
/// anew if it broke.
async fn settle(world: &World, a: usize, b: usize) {
    let mut stands = true;
    for (from, to) in [(a, b), (b, a)] {
        let remote = world.nodes[to].memory.borrow().as_ref().expect("it was provided").remote();
        // Reads are answered behind all that came before.
        let word = remote.at(0, 8).expect("within");
        match world.pair(from, to).read(Buf::with_capacity(8), word).await {
            Ok(_) => {}
            Err(_) if world.is_excused(a, b) => stands = false,
            Err(why) => panic!("NIC {from} to {to}: {why}"),
        }
        if stands {
            let receives = world.pair(to, from);
            let back = Ends { world, from: to, to: from };
            while world.mail[&(from, to)].sent.borrow().iter().any(|(_, sure)| *sure) {
                match receives.receive().await {
                    Ok(received) => back.received(&received.data),
                    Err(_) if world.is_excused(a, b) => break,
                    Err(why) => panic!("NIC {to} from {from}: {why}"),
                }
            }
        }
    }
    if !stands {
        world.connect(a, b).await;
    }
}
