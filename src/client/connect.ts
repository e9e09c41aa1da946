/** `connect`: makes a client of the features' client sides and opens it, whatever the server speaks. */

import { type Clock, realClock } from '../core/clock.ts'
import { unlessAborted } from '../core/deadlines.ts'
import { toMilliseconds } from '../core/duration.ts'
import { checkLogOption, logFrom, type Trace, traceInto } from '../core/log.ts'
import { secretValues } from '../core/redact.ts'
import { version } from '../core/version.ts'
import { Engine } from '../engine/engine.ts'
import { clientLimits } from '../engine/limits.ts'
import type { Side } from '../engine/plan.ts'
import { cancellation, sendCancel } from '../features/mcp/cancellation/receiver.ts'
import { lifecycleClient } from '../features/mcp/lifecycle/client.ts'
import { loggingClient } from '../features/mcp/logging/client.ts'
import { progressReceiver } from '../features/mcp/progress/receiver.ts'
import { promptsClient } from '../features/mcp/prompts/client.ts'
import { resourcesClient } from '../features/mcp/resources/client.ts'
import { subscriptionsClient } from '../features/mcp/subscriptions/client.ts'
import { tasksClient } from '../features/mcp/tasks/client.ts'
import { questionTasks } from '../features/mcp/tasks/questions.ts'
import { toolsClient } from '../features/mcp/tools/client.ts'
import { confirmationClient } from '../features/reliability/confirmation/client.ts'
import { costClient } from '../features/reliability/cost/client.ts'
import { referencesClient } from '../features/reliability/data-references/client.ts'
import { idempotencyClient } from '../features/reliability/idempotency/client.ts'
import { intentClient } from '../features/reliability/intent/client.ts'
import { getManifest, manifestClient, manifestUri } from '../features/reliability/manifest/client.ts'
import { mediaClient } from '../features/reliability/media/client.ts'
import { permissionsClient } from '../features/reliability/permissions/client.ts'
import { problemClient } from '../features/reliability/problem/client.ts'
import { provenanceClient } from '../features/reliability/provenance/client.ts'
import { recommendationsClient } from '../features/reliability/recommendations/client.ts'
import { stateClient } from '../features/reliability/session-state/client.ts'
import { streamingClient } from '../features/reliability/streaming/client.ts'
import { transactionsClient } from '../features/reliability/transactions/client.ts'
import { clip } from '../jsonrpc/limits.ts'
import { Spoken } from '../revisions/index.ts'
import { Announcements } from './announcements.ts'
import { type Answering, answeringSides } from './answering.ts'
import { authorizerOf } from './authorizing.ts'
import { ResultCache } from './cache.ts'
import { Changes } from './changes.ts'
import { checkConnectOptions } from './check-options.ts'
import { Client } from './client.ts'
import { Events } from './events.ts'
import { checkHealth, healthOf } from './health.ts'
import { incompatibleHandshake } from './incompatible-servers.ts'
import type { Live } from './live.ts'
import { LogWish } from './log-level.ts'
import type { ConnectOptions } from './options.ts'
import type { ProbeOptions } from './probe.ts'
import type { Relaying } from './relaying.ts'
import { ResourceBook } from './resource-book.ts'
import { Retries } from './retries.ts'
import { type ClientMiddleware, Session } from './session.ts'
import { type Opener, openerOf, type Target } from './target.ts'

/** Events that mean a mistake in the author's own code. */
const mistakes: ReadonlySet<string> = new Set(['internal', 'handler-failed', 'notification-failed'])

function clientTrace(target: Target, { log, headers = {}, onTrace }: ConnectOptions): Trace | undefined {
  const chosen = logFrom(log, 'silent')
  if (chosen.level === 'silent') return onTrace
  const env = typeof target === 'object' && 'command' in target ? (target.env ?? {}) : {}
  const secrets = [...secretValues(headers), ...secretValues(env, true)]
  const write = traceInto(chosen.child(named(target)), { mistakes, secrets })
  if (onTrace === undefined) return write
  return (event, detail, caller) => {
    onTrace(event, detail)
    write(event, detail, caller)
  }
}

/** Without query and arguments, where secrets may stand. */
function named(target: Target): Readonly<Record<string, string>> {
  if (typeof target === 'string' || target instanceof URL) {
    const { origin, pathname } = new URL(target)
    return { target: origin + pathname }
  }
  return 'command' in target ? { target: target.command } : {}
}

/** How this client names itself unless it is told otherwise. */
const defaultInfo = { name: 'vivarium', version }

/**
 * Connects to a server: a URL, a command to run, or a connection that is already there.
 * @example await using mcp = await connect('http://127.0.0.1:7420/mcp')
 */
export async function connect(target: Target, options: ConnectOptions = {}): Promise<Client> {
  if (target === undefined || target === null) throw new TypeError('connect needs a URL, a { command } or a connection')
  checkConnectOptions(options)
  checkLogOption(options.log)
  const settings = settingsOf(options)
  const { clock, limits } = settings
  const hub = new Announcements()
  const cache = new ResultCache(clock)
  const resources = new ResourceBook()
  const { onElicit, onConfirm } = options
  const confirmation = confirmationClient({ onConfirm, elicits: onElicit !== undefined })
  const costs = costClient({ onCost: options.onCost, costLimit: options.costLimit })
  const asked: ConnectOptions =
    onElicit === undefined || onConfirm === undefined
      ? options
      : { ...options, onElicit: (question, context) => confirmation.answered(question) ?? onElicit(question, context) }
  const answering = options.relay === undefined ? answeringSides(asked, clock) : await relayed(options.relay)
  const questions = questionTasks({
    clock,
    sampling: options.onSample !== undefined,
    elicitation: options.onElicit !== undefined,
  })
  let changes: Changes | undefined
  const events = new Events()
  const live = options.live === undefined ? undefined : new (await import('./live.ts')).Live(options.live, clock)
  const engine = engineFor(target, options, settings, [
    ...(live === undefined ? [] : [live.side]),
    ...answering.sides,
    confirmation.side,
    costs.side,
    intentClient(options.intent === true),
    permissionsClient(),
    questions.side,
    ...changeSides(hub, cache, resources),
    events.side(),
    subscriptionsClient({
      onAcknowledged: (honoured, id) => {
        changes?.acknowledge(honoured, id)
        events.acknowledge(honoured, id)
      },
    }),
  ])
  const revisions = [...engine.spoken.requests, ...engine.spoken.sessions].map(({ id }) => id)
  const trace = (event: string, detail: unknown): void => engine.trace(event, detail)
  const replaced = (): void => cache.changeCaller()
  const authorizer = authorizerOf(target, options, { clock, clientName: engine.info.name, revisions, trace, replaced })
  const opened = openerOf(target, { headers: options.headers, fetch: options.fetch, authorizer, limits })
  const opener = profiled(wrapped(opened, options), options)
  const { probeTimeoutMs, startMs } = settings
  const probing = { engine, opener, probeTimeoutMs, startMs, signal: options.signal, shakesFirst: live !== undefined }
  const session = await open(probing, live)
  const { conversation } = session.opened
  changes = new Changes(session, hub)
  if (answering.failed !== undefined) session.middleware.push(telling(answering.failed))
  events.open(session)
  conversation.onEnd(() => {
    const reason = session.left ? undefined : conversation.reason
    hub.end(reason)
    events.end(reason)
    questions.close()
  })
  const doubt = (): void => {
    cache.clear()
    hub.tellDoubt()
    events.doubt()
  }
  session.whenUnheard(doubt, error => hub.fail(error))
  const log = new LogWish(session)
  if (options.logLevel !== undefined) await log.begin(options.logLevel)
  const { health } = settings
  const stop = health === undefined ? () => {} : checkHealth(session, clock, health)
  const validateArguments = options.validateArguments ?? false
  return new Client({
    ...settings,
    session,
    cache,
    resources,
    changes,
    events,
    live,
    log,
    answerers: answering.answerers,
    confirmation,
    pricing: {
      costs,
      intent: options.intent === true,
      onSuggestion: options.onSuggestion,
      waitsAsTold: options.timeout === undefined && options.limits?.callTimeoutMs === undefined,
    },
    validateArguments,
    address: typeof target === 'string' || target instanceof URL ? new URL(target) : undefined,
    retries: retriesOf(options, clock),
    stop,
  })
}

/** Hears of what fails, and changes nothing. */
function telling(failed: (error: unknown) => void): ClientMiddleware {
  return (call, next) =>
    next(call).catch(error => {
      failed(error)
      throw error
    })
}

/** Loaded where somebody stands between: most clients answer for themselves. */
async function relayed(relaying: Relaying): Promise<Answering> {
  return (await import('./relaying.ts')).relayingSides(relaying)
}

function retriesOf({ retry = {}, onProblem, onAuthRequired }: ConnectOptions, clock: Clock): Retries {
  return new Retries({ retry, clock, random: Math.random, onProblem, onAuthRequired })
}

/** The options that have a default or a unit. */
function settingsOf(options: ConnectOptions) {
  const { rates, listPages = 64, listItems = 10_000, ...given } = options.limits ?? {}
  const timeoutMs = toMilliseconds(options.timeout ?? given.callTimeoutMs ?? clientLimits.callTimeoutMs, 'timeout')
  return {
    clock: options.clock ?? realClock,
    // What the client sends of its own accord has the same deadline as a call; the opening may have its own.
    limits: { ...clientLimits, ...given, callTimeoutMs: timeoutMs },
    startMs: toMilliseconds(options.startTimeout ?? timeoutMs, 'startTimeout'),
    listLimits: { pages: listPages, items: listItems },
    timeoutMs,
    probeTimeoutMs: toMilliseconds(options.probeTimeout ?? '5s', 'probeTimeout'),
    completionMs: toMilliseconds(options.completionCache ?? '5s', 'completionCache'),
    completionDelayMs: toMilliseconds(options.completionDelay ?? '100ms', 'completionDelay'),
    health: options.healthCheck === undefined ? undefined : healthOf(options.healthCheck),
  }
}

function engineFor(
  target: Target,
  options: ConnectOptions,
  { clock, limits }: ReturnType<typeof settingsOf>,
  sides: readonly Side[],
): Engine {
  const { extensions, relay } = options
  const trace = clientTrace(target, options)
  const engine = new Engine({
    role: 'client',
    info: options.info ?? defaultInfo,
    spoken: new Spoken(options.revisions),
    limits,
    sides: [
      ...sides,
      lifecycleClient(),
      loggingClient(relay === undefined ? options.onLog : (message, { within }) => relay.log(message, within)),
      progressReceiver(),
      cancellation(),
      tasksClient(),
      problemClient(),
      idempotencyClient(),
      transactionsClient(),
      stateClient(),
      manifestClient(),
      recommendationsClient(),
      provenanceClient(),
      mediaClient(),
      streamingClient(),
      referencesClient(),
      { capabilities: ({ id }) => (extensions === undefined || id === 's3' ? {} : { extensions }) },
    ],
    clock,
    ...(trace === undefined ? {} : { trace }),
    sendCancel,
  })
  engine.logLevel = options.logLevel
  return engine
}

/** The same server, by connections that somebody looks at. */
function wrapped(opener: Opener, { wrap }: ConnectOptions): Opener {
  if (wrap === undefined) return opener
  const { openOldPair } = opener
  return {
    kind: opener.kind,
    name: opener.name,
    open: async () => wrap(await opener.open()),
    ...(openOldPair && { openOldPair: async () => wrap(await openOldPair.call(opener)) }),
  }
}

/** The same server, in the words of the profile. */
function profiled(opener: Opener, { profile }: ConnectOptions): Opener {
  if (profile === undefined) return opener
  if (profile !== 'davioe') throw new TypeError(`profile is "${clip(String(profile))}": there is 'davioe', or leave it out`)
  return {
    kind: opener.kind,
    name: opener.name,
    open: async () => {
      const { DavioeConnection } = await import('../features/reliability/davioe/client.ts')
      return new DavioeConnection(await opener.open())
    },
  }
}

/** Leaves nothing behind when it fails: no child, no socket. */
async function open(probe: ProbeOptions, live: Live | undefined): Promise<Session> {
  const { engine, signal } = probe
  signal?.throwIfAborted()
  const stop = (): void => void engine.close()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const session = await Session.open(probe)
    signal?.throwIfAborted()
    if (live !== undefined) await unlessAborted(live.open(session, signal), signal)
    return session
  } catch (error) {
    await engine.close()
    throw signal?.aborted ? signal.reason : incompatibleHandshake(error)
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

/** An announced change drops what was kept of it and wakes who waits for it. */
function changeSides(hub: Announcements, cache: ResultCache, resources: ResourceBook): Side[] {
  const listChanged = (kind: string, ...methods: readonly string[]) => {
    return () => {
      for (const method of methods) cache.drop(method)
      hub.tell(kind)
    }
  }
  return [
    toolsClient({ onListChanged: listChanged('tools', 'tools/list', getManifest.name) }),
    promptsClient({ onListChanged: listChanged('prompts', 'prompts/list') }),
    resourcesClient({
      onListChanged: listChanged('resources', 'resources/list', 'resources/templates/list'),
      onUpdated: uri => {
        cache.drop('resources/read', uri)
        if (uri === manifestUri) cache.drop(getManifest.name)
        hub.tell('updated', uri)
      },
      uriOf: id => resources.uriOf(id),
    }),
  ]
}
