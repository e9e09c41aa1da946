/**
 * Where the shapes of extensions stand that no method names: as members of `_meta`, under the name of the extension, or of capabilities.
 * The types are those of the feature's `messages.ts`.
 */

/** In the `_meta` of: a listed tool, a call of a tool, its result, a block of content, a progress notification. */
export type MetaPlace = 'tool' | 'call' | 'result' | 'content' | 'progress'

export interface Places {
  /** The constant that holds the name of the extension. */
  readonly extension?: string
  readonly meta?: Readonly<Partial<Record<MetaPlace, readonly string[]>>>
  /** Types worth telling that nothing else leads to, beside those whose names begin with `Wire`. */
  readonly more?: readonly string[]
}

export const places: Readonly<Record<string, Places>> = {
  'reliability/confirmation': {
    extension: 'confirmationExtension',
    meta: { tool: ['WireConfirmation'], call: ['WireConfirmed'], result: ['WireRequired'] },
  },
  'reliability/cost': {
    extension: 'operationalExtension',
    meta: { tool: ['WireOperational'], call: ['WireBudget'], result: ['WireUsage'] },
  },
  'reliability/data-references': {
    extension: 'referencesExtension',
    meta: { content: ['DataReference'] },
  },
  'reliability/events': { extension: 'eventsExtension' },
  'reliability/idempotency': { extension: 'idempotencyExtension', meta: { call: ['WireKey'], result: ['WireReplay'] } },
  'reliability/intent': { extension: 'intentExtension', meta: { call: ['WireIntent'], result: ['WireSuggested'] } },
  'reliability/manifest': { extension: 'manifestExtension', meta: { tool: ['WirePaged'] } },
  'reliability/media': { extension: 'mediaExtension', meta: { tool: ['WireMedia'], result: ['WireWarnings'] } },
  'reliability/permissions': { extension: 'permissionsExtension', meta: { call: ['WirePresented'] } },
  'reliability/problem': { extension: 'problemExtension', meta: { result: ['WireProblem'] } },
  'reliability/provenance': { extension: 'provenanceExtension', meta: { result: ['WireSources'], content: ['WireSources'] } },
  'reliability/recommendations': { extension: 'recommendationsExtension' },
  'reliability/session-state': { extension: 'stateExtension', meta: { call: ['WireState'], result: ['WireState'] } },
  'reliability/streaming': {
    extension: 'streamingExtension',
    meta: { call: ['WireResuming'], progress: ['WireProgress', 'WireChunk'] },
  },
  'reliability/transactions': {
    extension: 'transactionsExtension',
    meta: { tool: ['WireUndo'], call: ['WireStep'], result: ['WireStepResult'] },
  },
  'live/channels': {},
  'live/checkpoints': { extension: 'liveExtension', meta: { call: ['WireCallMeta'], result: ['WireResultMeta'] } },
  'live/content': { more: ['LiveBlock'] },
  'live/context-hooks': {},
  'live/feature-sets': { extension: 'liveExtension' },
  'live/inference': {},
  'live/listen': {},
  'live/model-info': {},
  'live/push-events': {},
  'live/scopes': {},
}
