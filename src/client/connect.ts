/** `connect`: makes a client of the features' client sides and opens it, whatever the server speaks. */
import { createBuckets } from '../core/bucket.ts'
import { type Clock, realClock } from '../core/clock.ts'
import { toMilliseconds } from '../core/duration.ts'
import { Engine } from '../engine/engine.ts'
import { clientLimits } from '../engine/limits.ts'
import type { Side } from '../engine/plan.ts'
import { cancellation, sendCancel } from '../features/mcp/cancellation/receiver.ts'
import { elicitationClient } from '../features/mcp/elicitation/client.ts'
import { type Answerers, answer } from '../features/mcp/input-required/client.ts'
import { lifecycleClient } from '../features/mcp/lifecycle/client.ts'
import { ping } from '../features/mcp/lifecycle/messages.ts'
import { loggingClient } from '../features/mcp/logging/client.ts'
import { progressReceiver } from '../features/mcp/progress/client.ts'
import { promptsClient } from '../features/mcp/prompts/client.ts'
import { resourcesClient } from '../features/mcp/resources/client.ts'
import { rootsClient } from '../features/mcp/roots/client.ts'
import { samplingClient } from '../features/mcp/sampling/client.ts'
import { finishTask, tasksClient } from '../features/mcp/tasks/client.ts'
import { toolsClient } from '../features/mcp/tools/client.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Params } from '../jsonrpc/message.ts'
import { Spoken } from '../revisions/index.ts'
import { ResultCache } from './cache.ts'
import { Client } from './client.ts'
import { Hub } from './hub.ts'
import type { ClientRate, ConnectOptions } from './options.ts'
import { Session } from './session.ts'
import { openerOf, type Target } from './target.ts'
import { ToolBook } from './tool-book.ts'

const never = new AbortController().signal
const defaultInfo = { name: 'vivarium', version: '0.1.0' }

/**
 * Connects to a server: a URL, a command to run, or a connection that is already there.
 * @example await using mcp = await connect('http://127.0.0.1:7420/mcp')
 */
export async function connect(target: Target, options: ConnectOptions = {}): Promise<Client> {
  const clock = options.clock ?? realClock
  const { rates, ...limits } = options.limits ?? {}
  const trace = options.onTrace ?? (() => {})
  const hub = new Hub()
  const cache = new ResultCache(clock)
  const elicitation = elicitationClient({
    onElicit: options.onElicit,
    url: options.elicitUrl ?? true,
    admit: admission('elicitations', rates?.elicit, { perSecond: 0.5, burst: 10 }, clock),
    onComplete: (id) => options.onElicitationComplete?.(id),
  })
  const sampling = samplingClient({
    onSample: options.onSample,
    tools: options.sampleTools ?? false,
    admit: admission('sampling requests', rates?.sample, { perSecond: 1, burst: 20 }, clock),
  })
  const roots = rootsClient(options.roots)
  const sides: Side[] = [
    lifecycleClient(),
    elicitation.side,
    sampling.side,
    roots.side,
    loggingClient(options.onLog),
    progressReceiver(),
    cancellation(),
    ...changeSides(hub, cache),
    tasksClient(),
    { capabilities: (revision) => (options.extensions === undefined || revision.id === 's3' ? {} : { extensions: options.extensions }) },
  ]
  const allLimits = { ...clientLimits, ...limits }
  const engine = new Engine({
    role: 'client',
    info: options.info ?? defaultInfo,
    spoken: new Spoken(options.revisions),
    limits: allLimits,
    sides,
    clock,
    trace,
    sendCancel,
  })
  engine.logLevel = options.logLevel
  const answerers: Answerers = new Map<string, (params: Params, signal: AbortSignal) => Promise<unknown>>([
    ['elicitation/create', elicitation.answer],
    ['sampling/createMessage', sampling.answer],
    ['roots/list', roots.answer],
  ])
  const opener = openerOf(target, { headers: options.headers, fetch: options.fetch, limits: allLimits })
  const session = await Session.open({ engine, opener, probeTimeoutMs: toMilliseconds(options.probeTimeout ?? '5s'), signal: options.signal })
  session.onReopen(() => cache.clear())
  const book = new ToolBook(trace)
  const client: Client = new Client({
    session,
    cache,
    completions: new ResultCache(clock),
    hub,
    answerers,
    timeoutMs: toMilliseconds(options.timeout ?? allLimits.callTimeoutMs),
    completionMs: toMilliseconds(options.completionCache ?? '5s'),
    logLevel: (level) => {
      engine.logLevel = level
    },
    stop: healthCheck(session, clock, options),
    caller: {
      session,
      book,
      answerers,
      rounds: 10,
      validateArguments: options.validateArguments ?? false,
      relist: async () => {
        cache.drop('tools/list')
        for await (const _ of client.tools());
      },
      finishTask: (task, { signal = never }) =>
        finishTask(engine, session.opened.conversation, task, { signal, answer: (request) => answer(request, { answerers, signal }) }),
    },
  })
  return client
}

/** An announced change drops what was kept of it and wakes who waits for it. */
function changeSides(hub: Hub, cache: ResultCache): Side[] {
  const listChanged = (kind: string, ...methods: readonly string[]) => {
    return () => {
      for (const method of methods) cache.drop(method)
      hub.tell(kind)
    }
  }
  return [
    toolsClient({ onListChanged: listChanged('tools', 'tools/list') }),
    promptsClient({ onListChanged: listChanged('prompts', 'prompts/list') }),
    resourcesClient({
      onListChanged: listChanged('resources', 'resources/list', 'resources/templates/list'),
      onUpdated: (uri) => {
        cache.drop('resources/read', uri)
        hub.tell('updated', uri)
      },
    }),
  ]
}

/** Refuses what a server asks too often, naming the limit and the wait. */
function admission(what: string, rate: ClientRate | false | undefined, standard: ClientRate, clock: Clock): () => void {
  if (rate === false) return () => {}
  const buckets = createBuckets({ ...(rate ?? standard), clock })
  return () => {
    const wait = buckets.take('server')
    if (wait > 0) throw new McpError('rate-limited', `Too many ${what}: wait ${wait} ms and try again`, { data: { limit: what, retryAfterMs: wait } })
  }
}

/** Pings where the wire has them; a server that stays silent is let go. */
function healthCheck(session: Session, clock: Clock, options: ConnectOptions): () => void {
  if (options.healthCheck === undefined) return () => {}
  const every = toMilliseconds(options.healthCheck)
  let cancel = (): void => {}
  const beat = async (): Promise<void> => {
    if (session.opened.conversation.ended) return
    if (ping.in.includes(session.opened.revision.id)) {
      try {
        await session.request(ping, {}, { timeoutMs: every })
      } catch (error) {
        if (!(error instanceof McpError) || error.kind === 'timeout') {
          session.engine.trace('unhealthy', error)
          return session.close()
        }
      }
    }
    cancel = clock.setTimeout(beat, every, true)
  }
  cancel = clock.setTimeout(beat, every, true)
  return () => cancel()
}
