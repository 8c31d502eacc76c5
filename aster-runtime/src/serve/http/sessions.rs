//! Whose session is whose: those that the legacy era keeps by an id, and those of the modern era, kept by principal.
//!
//! A session's id is no credential: it is known to whoever began the session, and to another it does not exist.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::stream::Stream;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Principal;
use crate::host::HostSession;

/// How long an answer is kept whose client had gone when it was ready. Long enough to come back, since one is told to within
/// 3 s. What was handed to the connection rmcp forgets at once.
const KEPT_ANSWERS: Duration = Duration::from_secs(15);

tokio::task_local! {
    /// The request that is being answered: rmcp asks for sessions without saying for whom.
    pub(super) static ASKING: Asking;
}

/// What a session that begins with a request is bound to.
pub(super) struct Asking {
    pub(super) principal: Option<Principal>,
    /// Room for one session, where the request may begin one.
    pub(super) room: Mutex<Option<Room>>,
}

/// How many sessions of the legacy era there may be: in all, and of one principal.
pub(super) struct Rooms {
    all: Arc<Semaphore>,
    most_of_one: usize,
    of_one: Mutex<HashMap<Principal, usize>>,
}

/// Room for one session of a principal, until it is dropped.
pub(super) struct Room {
    rooms: Arc<Rooms>,
    principal: Option<Principal>,
    _of_all: OwnedSemaphorePermit,
}

/// Which room there is not.
pub(super) enum Full {
    OfAll,
    OfOne,
}

impl Rooms {
    pub(super) fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        Arc::new(Self { all: Arc::new(Semaphore::new(most)), most_of_one, of_one: Mutex::default() })
    }

    pub(super) fn take(self: &Arc<Self>, principal: Option<&Principal>) -> Result<Room, Full> {
        let of_all = Arc::clone(&self.all).try_acquire_owned().map_err(|_| Full::OfAll)?;
        if let Some(principal) = principal {
            let mut of_one = self.of_one();
            let taken = of_one.get(principal).copied().unwrap_or_default();
            if taken >= self.most_of_one {
                return Err(Full::OfOne);
            }
            of_one.insert(principal.clone(), taken + 1);
        }
        Ok(Room { rooms: Arc::clone(self), principal: principal.cloned(), _of_all: of_all })
    }

    fn of_one(&self) -> MutexGuard<'_, HashMap<Principal, usize>> {
        self.of_one.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Some(principal) = &self.principal else { return };
        let mut of_one = self.rooms.of_one();
        match of_one.get_mut(principal) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => drop(of_one.remove(principal)),
        }
    }
}

/// Marks a request that was routed to a session of the legacy era. What it says of its version does not tell: rmcp gives
/// no session to a request with all that the modern era asks for, whatever version it names.
#[derive(Clone)]
pub(super) struct OfSession;

/// The sessions of the legacy era, each bound to the principal that began it.
pub(super) struct Sessions {
    local: LocalSessionManager,
    bound: Mutex<HashMap<SessionId, Room>>,
}

impl Sessions {
    pub(super) fn new(idle: Duration) -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(idle);
        local.session_config.completed_cache_ttl = KEPT_ANSWERS;
        Self { local, bound: Mutex::default() }
    }

    /// Whether there is this session for this principal.
    pub(super) fn belongs(&self, id: &str, principal: Option<&Principal>) -> bool {
        self.bound().get(id).is_some_and(|bound| bound.principal.as_ref() == principal)
    }

    pub(super) fn count(&self) -> usize {
        self.bound().len()
    }

    fn bound(&self) -> MutexGuard<'_, HashMap<SessionId, Room>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let asking =
            ASKING.try_with(|asking| asking.room.lock().unwrap_or_else(PoisonError::into_inner).take());
        let room = asking.ok().flatten().ok_or(SessionError::SessionServiceTerminated)?;
        let (id, transport) = self.local.create_session().await?;
        self.bound().insert(Arc::clone(&id), room);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(ASKING.try_with(|asking| self.belongs(id, asking.principal.as_ref())).unwrap_or(false))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.bound().remove(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        if let ClientJsonRpcMessage::Request(request) = &mut message {
            request.request.extensions_mut().insert(OfSession);
        }
        self.local.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.resume(id, last_event_id).await
    }
}

/// The sessions of the modern era, which has none of its own: one per principal.
pub(super) struct Principals {
    /// What a principal's session is made of.
    viewer: HostSession,
    /// The same without `require_describe`, which who has no session cannot fulfil.
    anonymous: HostSession,
    known: Mutex<HashMap<Principal, (Arc<HostSession>, Instant)>>,
    most: usize,
    idle: Duration,
}

impl Principals {
    pub(super) fn new(viewer: HostSession, anonymous: HostSession, most: usize, idle: Duration) -> Self {
        Self { viewer, anonymous, known: Mutex::default(), most: most.max(1), idle }
    }

    /// The session of a principal; a stranger's is for one request, and all strangers have the limits of one.
    pub(super) fn session(&self, principal: Option<&Principal>) -> Arc<HostSession> {
        let Some(principal) = principal else { return Arc::new(self.anonymous.sharing()) };
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((session, used)) = known.get_mut(principal)
            && now.duration_since(*used) < self.idle
        {
            *used = now;
            return Arc::clone(session);
        }
        known.retain(|_, (_, used)| now.duration_since(*used) < self.idle);
        if known.len() >= self.most
            && let Some(oldest) = known.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone())
        {
            known.remove(&oldest);
        }
        let session = Arc::new(self.viewer.another());
        known.insert(principal.clone(), (Arc::clone(&session), now));
        session
    }
}
