//! Whom endpoints admit, where peers map them.

use doorbell_am::{
    Admits, CallError, ConnectError, EndpointConfig, Event, Handlers, SendError, Tag,
    Undeliverable, Unwelcome,
};

use crate::common::{ADD, SUM, endpoint, endpoint_with, everywhere};

fn adds() -> Handlers {
    Handlers::new().request(ADD, |request, (a, b)| request.reply(SUM, a + b))
}

fn admitting(admits: impl Into<Admits>) -> EndpointConfig {
    EndpointConfig { admits: admits.into(), ..EndpointConfig::default() }
}

/// Zero and the largest number had another meaning: an endpoint and a peer that both named them did
/// not meet.
#[test]
fn an_endpoint_is_mapped_by_its_tag_whatever_number_that_is() {
    everywhere(|over| async move {
        let near = endpoint(over, Handlers::new()).await;
        for (index, tag) in [0, 1, u64::MAX].map(Tag).into_iter().enumerate() {
            let far = endpoint_with(over, adds(), admitting(tag)).await;
            let peer = near.map(index, far.name(), tag).await.expect("it is admitted");
            assert_eq!(peer.call(ADD, (2, 3)).await.expect("it is").arguments(SUM), Ok(5));
        }
    });
}

#[test]
fn an_endpoint_that_admits_everybody_is_mapped_by_any_tag_and_without() {
    everywhere(|over| async move {
        let (near, far) = (endpoint(over, Handlers::new()).await, endpoint(over, adds()).await);
        for (index, tag) in [None, Some(Tag(0)), Some(Tag(7))].into_iter().enumerate() {
            let peer = near.map(index, far.name(), tag).await.expect("it is admitted");
            assert_eq!(peer.call(ADD, (2, 3)).await.expect("it is").arguments(SUM), Ok(5));
        }
    });
}

/// Regression: the peer was mapped, and its calls failed.
#[test]
fn a_map_by_a_tag_that_is_not_admitted_fails_and_says_what_to_do() {
    everywhere(|over| async move {
        let near = endpoint(over, Handlers::new()).await;
        for admits in [Admits::Tagged(Tag(1)), Admits::Nobody] {
            let far = endpoint_with(over, adds(), admitting(admits)).await;
            for shown in [None, Some(Tag(0)), Some(Tag(2))] {
                let refused = near.map(0, far.name(), shown).await.expect_err("it is refused");
                assert!(is_not_admitted(&refused, shown));
                let text = refused.to_string();
                assert!(text.contains(&far.name().to_string()), "{text}");
                assert!(text.contains("EndpointConfig::admits"), "{text}");
            }
        }
        assert_eq!(near.peer(0).err(), Some(SendError::NotMapped(0)));
    });
}

/// Returns whether a peer was refused since it has shown that tag.
fn is_not_admitted(why: &ConnectError, by: Option<Tag>) -> bool {
    let ConnectError::Unwelcome { why: Unwelcome::NotAdmitted { shown }, .. } = why else {
        return false;
    };
    *shown == by.map(|tag| tag.to_string())
}

#[test]
fn a_map_over_the_connection_that_the_peer_has_made_is_refused_all_the_same() {
    everywhere(|over| async move {
        let near = endpoint_with(over, adds(), admitting(Tag(1))).await;
        let far = endpoint_with(over, adds(), admitting(Tag(2))).await;
        let peer = near.map(0, far.name(), Tag(2)).await.expect("it is admitted");
        let refused = far.map(0, near.name(), Tag(2)).await.err();
        assert!(
            matches!(
                refused,
                Some(ConnectError::Unwelcome { why: Unwelcome::NotAdmitted { .. }, .. })
            ),
            "{refused:?}"
        );
        let back = far.map(0, near.name(), Tag(1)).await.expect("it is admitted");
        for peer in [peer, back] {
            assert_eq!(peer.call(ADD, (2, 3)).await.expect("it is").arguments(SUM), Ok(5));
        }
    });
}

/// A second entry with another tag changed what the first had shown.
#[test]
fn entries_with_different_tags_do_not_take_from_each_other_what_is_admitted() {
    everywhere(|over| async move {
        let (near, far) = (endpoint(over, Handlers::new()).await, endpoint(over, adds()).await);
        let first = near.map(0, far.name(), Tag(1)).await.expect("it is admitted");
        let other = near.map(1, far.name(), Tag(2)).await.expect("it is admitted");
        far.set_admits(Tag(1));
        assert!(first.call(ADD, (2, 3)).await.is_ok());
        match other.call(ADD, (2, 3)).await {
            Err(CallError::Undeliverable { why: Undeliverable::WrongTag, .. }) => {}
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            near.map(2, far.name(), Tag(2)).await.err(),
            Some(ConnectError::Unwelcome { why: Unwelcome::NotAdmitted { .. }, .. })
        ));
    });
}

/// Whoever answered at a name was taken for the peer, and sent whatever its peers are sent.
#[test]
fn an_endpoint_that_demands_the_tag_that_it_shows_maps_nobody_who_does_not_know_it() {
    everywhere(|over| async move {
        let member = || EndpointConfig { shows: Some(Tag(1)), ..admitting(Tag(1)) };
        let near = endpoint_with(over, adds(), member()).await;
        let open = endpoint(over, adds()).await;
        let refused = near.connect(open.name()).await.expect_err("it knows no tag");
        assert!(
            matches!(refused, ConnectError::Unwelcome { why: Unwelcome::Unproved { .. }, .. }),
            "{refused:?}"
        );
        let text = refused.to_string();
        assert!(text.contains(&open.name().to_string()) && text.contains("tag 0x1"), "{text}");
        // By the tag that the other demands, whatever this one demands.
        let other = endpoint_with(over, adds(), admitting(Tag(2))).await;
        near.map(0, other.name(), Tag(2)).await.expect("it is admitted");
        // Both know the tag: so either may call the other by the one connection.
        let far = endpoint_with(over, adds(), member()).await;
        let mut events = far.events();
        let peer = near.connect(far.name()).await.expect("it knows the tag");
        let Ok(Event::Linked(back)) = events.recv().await else { panic!("it is connected") };
        for peer in [peer, back] {
            assert_eq!(peer.call(ADD, (2, 3)).await.expect("it is").arguments(SUM), Ok(5));
        }
    });
}
