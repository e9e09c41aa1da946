/**
 * Words that hide what a thing is: metaphors, and words of other trades. Names in src/ use the field's word instead (docs/glossary.md has
 * those of this project). The value says what to use.
 */
export const METAPHORS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    barren: 'empty',
    books: 'records',
    brake: 'throttle',
    comeback: 'reconnection',
    courier: 'sender',
    deaf: 'disconnected',
    desk: 'the thing that is served: server, queue, office',
    disguise: 'lookalike, or escape',
    door: 'acceptor, endpoint or handler',
    doomed: 'toDelete',
    dress: 'extend',
    face: 'api, handler or control',
    farewell: 'shutdown or close',
    fate: 'outcome',
    forsake: 'abandon',
    giving: 'the verb of what is done: returning, delivering, sharing',
    goodbye: 'shutdown or close',
    hearer: 'listener, receiver or subscriber',
    heed: 'watch, read or obey',
    inward: 'inbound or incoming',
    keeper: 'holder, storage or owner',
    kept: 'stored, cached, retained or remembered',
    kick: 'retry or wake',
    knock: 'request',
    leftover: 'rest or remaining',
    luck: 'random or draw',
    mend: 'repair, reopen or fix',
    misfit: 'invalid',
    newcomer: 'added',
    outlet: 'output, stream or receiver',
    outward: 'outbound or outgoing',
    overhear: 'observe',
    patience: 'timeout or deadline',
    purse: 'allowance or budget',
    rescue: 'recover',
    room: 'capacity, space or budget',
    scene: 'context',
    seat: 'slot, entry or registration',
    shelf: 'store or storage',
    shelve: 'store or enqueue',
    slim: 'summary',
    stir: 'wake or notify',
    stranger: 'unknown or anonymous',
    stubborn: 'the fault itself',
    thrift: 'the resource that is saved',
    unplaced: 'malformed or unassigned',
    untell: 'revoke',
    voice: 'output or log',
    waking: 'starting or resuming',
    works: 'jobs or tasks',
  }),
)

/** Participles without the ending `ed`. As the name of a type such a word says what happened, and not what the thing is. */
export const PARTICIPLES: ReadonlySet<string> = new Set(
  `begun bought bound broken brought built caught chosen cut dealt done drawn driven fed felt forgotten found frozen given gone grown heard
  held hidden kept known laid led left lent let lost made meant met overheard paid put read said seen sent set shown shut sold sought spent
  spoken spread stolen sung sunk swept sworn taken thought thrown told torn understood undone unseen withheld won worn wound written`.split(
    /\s+/,
  ),
)

/** Nouns that end like participles. */
export const NOUNS: ReadonlySet<string> = new Set(['bed', 'deed', 'feed', 'hundred', 'need', 'seed', 'set', 'speed', 'thread'])

/**
 * Listed names that stay, each in its file: deprecated aliases, members of published output, and participles that programs already import as
 * types.
 */
export const ALLOWED: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    'src/client/finder/search.ts': ['Found'],
    'src/conformance/clients/drive.ts': ['Told'],
    'src/conformance/scenario.ts': ['Advertised'],
    'src/features/live/push-events/server.ts': ['Pushed'],
    'src/features/mcp/elicitation/server.ts': ['Elicited'],
    'src/features/reliability/data-references/import.ts': ['Imported'],
    'src/features/reliability/recommendations/client.ts': ['Recommended'],
    'src/gateway/gateway.ts': ['Reloaded'],
    'src/host/recorder/record.ts': ['Replayed'],
    'src/host/state/book.ts': ['Sent'],
    'src/host/state/checkpoint-writer.ts': ['Recorded'],
    'src/policy/audit/host-audit.ts': ['Queried', 'Noted'],
    'src/policy/policy.ts': ['Explained'],
    'src/policy/rules/rule.ts': ['Asked'],
    'src/stores/store.ts': ['Committed'],
    'src/server/api.ts': ['door'],
    'src/server/server.ts': ['door'],
    'src/conformance/wire/connector.ts': ['door'],
    'src/conformance/wire/raw-peer.ts': ['HttpFace', 'ChildFace', 'Begun', 'Sent'],
    'src/conformance/index.ts': ['HttpFace', 'ChildFace'],
    'src/host/index.ts': ['Kept'],
    'src/policy/approvals/approvals.ts': ['Kept'],
    'src/host/host.ts': ['patience'],
    'src/host/create.ts': ['patience'],
    'src/host/loop/limits.ts': ['keptLength'],
    'src/transports/http/limits.ts': ['keptPerSession'],
    'src/cli/commands/doctor.ts': ['works'],
  }),
)
