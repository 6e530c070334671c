//! Who is at the other end of a link, and what the two ends may send each other.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use doorbell_verbs::floor::locked;
use doorbell_verbs::{Name, Qpn, Registered, RemoteMemory};

use super::{Link, LocalEndpoint};
use crate::kinds::Names;
use crate::proof::{Claim, Proof};
use crate::wire::{Admits, NOWHERE, Nature, Tag};

impl LocalEndpoint {
    /// Returns which peers the endpoint admits.
    pub fn admits(&self) -> Admits {
        *locked(&self.admits)
    }

    /// Returns whether peers must show this tag to be admitted.
    pub fn demands(&self, tag: Tag) -> bool {
        self.admits().demanded() == Some(tag)
    }

    /// Returns the length of the endpoint's segment.
    pub fn segment_len(&self) -> u64 {
        self.segment.as_ref().map_or(0, |segment| segment.region().len() as u64)
    }

    /// Returns the named handlers of a peer, from its listing, or `None` if the bytes are no
    /// listing.
    pub fn names_of_peer(&self, listing: Vec<u8>) -> Option<Arc<Names>> {
        let mut known = locked(&self.peer_names);
        known.retain(|names| names.strong_count() > 0);
        let same = known.iter().filter_map(Weak::upgrade).find(|names| names.is(&listing));
        if let Some(names) = same {
            return Some(names);
        }
        let names = Arc::new(Names::of(listing)?);
        known.push(Arc::downgrade(&names));
        Some(names)
    }

    /// Returns whether memory of peers can be mapped here.
    pub fn maps(&self) -> bool {
        self.nic.capabilities().mapping
    }
}

impl Link {
    /// Returns what the peer's greeting said, once the link is open.
    #[inline]
    pub fn peer(&self) -> Option<&Nature> {
        self.peer.get()
    }

    /// Returns whether both sides have the same handlers at the places that programs have chosen.
    pub fn has_same_handlers(&self) -> bool {
        self.same_handlers.load(Ordering::Relaxed)
    }

    /// Returns the peer's named handlers, once they were [learnt](Self::set_names).
    #[inline]
    pub fn names(&self) -> Option<&Names> {
        self.names.get().map(Arc::as_ref)
    }

    /// Notes what the peer's named handlers are.
    pub fn set_names(&self, names: Arc<Names>) {
        let _ = self.names.set(names);
    }

    /// Returns as much of a text as the peer takes in a message.
    pub fn shortened<'t>(&self, text: &'t str) -> &'t [u8] {
        let most = text.floor_char_boundary(self.longest());
        &text.as_bytes()[..most]
    }

    /// Returns the number of the link's queue pair. The number may be given to another link when
    /// this one is over.
    #[inline]
    pub fn qpn(&self) -> Qpn {
        self.connection.qpn()
    }

    /// Notes that the endpoint of this name is at the other end.
    pub fn set_name(&self, name: &Name) {
        self.address.get_or_init(|| name.shared_address().clone());
    }

    /// Returns whether the peer was mapped by this name.
    pub fn is_named(&self, name: &Name) -> bool {
        let service = self.peer().map(|peer| peer.service);
        service == Some(name.service().0) && self.address.get() == Some(name.shared_address())
    }

    /// Tells whether the peer is at the address in a name.
    pub async fn leads_to(&self, name: &Name) -> bool {
        self.connection.leads_to(name.address()).await.unwrap_or(false)
    }

    /// Returns the peer's name for errors, or its number if only the peer has mapped this endpoint.
    #[cold]
    pub fn peer_text(&self) -> Box<str> {
        if let Some(name) = self.name() {
            return name.to_string().into();
        }
        let service = self.peer().map_or(0, |peer| peer.service);
        format!("the endpoint #{service:016x}, which has mapped this one").into()
    }

    /// Returns the peer's name, if this side has mapped it.
    pub fn name(&self) -> Option<Name> {
        let service = self.peer()?.service;
        self.address.get().map(|address| Name::at(address.clone(), service))
    }

    /// Returns how many requests this side is sure to be able to have under way. The peer reports
    /// requests that are done once they are a quarter of that, or else unreported requests could
    /// hold all receives for answers.
    pub fn own_limit(&self) -> usize {
        self.own_limit.into()
    }

    /// Returns how many requests the peer may have under way.
    pub fn grants(&self) -> usize {
        self.grants.load(Ordering::Relaxed).into()
    }

    /// Returns the longest payload that this side takes by the link.
    #[inline]
    pub fn payload(&self) -> usize {
        self.endpoint.config.payload_of(self.size)
    }

    /// Returns the most requests that either side may have under way.
    #[inline]
    pub fn most_credits(&self) -> usize {
        self.endpoint.config.credits_of(self.size)
    }

    /// Returns the longest payload that a message to the peer may have.
    #[inline]
    pub fn longest(&self) -> usize {
        let own = self.payload();
        self.peer().map_or(0, |peer| own.min(peer.payload as usize))
    }

    /// Notes the number by which a layer above knows the peer.
    pub fn note(&self, number: u64) {
        self.noted.store(number, Ordering::Relaxed);
    }

    /// Returns the number by which a layer above knows the peer; 0 if it has given none.
    #[inline]
    pub fn noted(&self) -> u64 {
        self.noted.load(Ordering::Relaxed)
    }

    /// Returns whether the endpoint admits the tag that the peer shows.
    #[inline]
    pub fn is_admitted(&self) -> bool {
        self.admission.is_admitted()
    }

    /// Notes which tag the peer claims to know, or that it shows none.
    pub fn admit_as(&self, claim: Option<Claim>) {
        let admits = locked(&self.endpoint.admits);
        self.admission.show(claim, *admits);
    }

    /// Notes that the peer shows another tag, by this proof, or none, if the endpoint admits that.
    /// Returns whether the endpoint does; otherwise the peer keeps what it showed before.
    pub fn admit_anew(&self, proof: Option<Proof>) -> bool {
        let claim = match (proof, self.meeting.get()) {
            (Some(proof), Some(met)) => Some(Claim { statement: met.shown_there(), proof }),
            (Some(_), None) => return false,
            (None, _) => None,
        };
        let admits = locked(&self.endpoint.admits);
        let admitted = admits.admits(claim);
        if admitted {
            self.admission.show(claim, *admits);
        }
        admitted
    }

    /// Returns the proof by which this side shows the peer a tag, once the link was greeted.
    pub fn shows(&self, Tag(tag): Tag) -> Option<Proof> {
        self.meeting.get().map(|met| met.shown_here().proven_by(tag))
    }

    /// Returns where the peer may place payloads: nowhere, unless the endpoint admits the peer.
    pub fn offered_segment(&self) -> RemoteMemory {
        let segment = self.endpoint.segment.as_ref().filter(|_| self.is_admitted());
        segment.map_or(NOWHERE, Registered::remote)
    }
}
