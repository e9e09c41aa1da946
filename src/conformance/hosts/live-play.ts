/**
 * A live server that is written by hand, for hosts of MCP Live: what it declares, how it speaks while its tool runs, and the rows
 * that look at what the host made of it. With sessions it sends requests of its own, without them deliveries on a stream.
 */
import { calls, requires, sent } from '../clients/checks.ts'
import { type ClientNeed, type ClientRowDefiner, clientTable } from '../clients/define.ts'
import type { LoggedMessage, Observation } from '../clients/log.ts'
import { type LiveWishes, type Play, play, type ServedMethods, type Step, textResult } from '../clients/play.ts'
import { type ClientRequest, noAnswer } from '../clients/script.ts'
import type { ScriptedServer } from '../clients/server.ts'
import { eras } from '../define.ts'
import { objectIn } from '../expectations.ts'
import { extensionId } from '../said.ts'
import type { Json } from '../scenario.ts'
import { isStateless } from '../wire/envelope.ts'

/** The extension under which MCP Live is declared without sessions. */
export const liveId = extensionId('live')

/** Sets of every kind, as a 0.2 server declares them. */
export const sets = {
  'lab.push': { description: 'Pushes', uses: ['pushEvents'] },
  'lab.hooks': { description: 'Hooks', uses: ['contextHooks.beforeInference', 'contextHooks.afterInference'] },
  'lab.think': { description: 'Thinks', uses: ['inferenceRequest'] },
  'lab.files': { description: 'Files', uses: ['tools'], scoped: true },
  'lab.notes': { description: 'Notes', uses: ['tools'], rollback: true, hostState: true },
  'lab.count': { description: 'Counts', uses: ['tools'], rollback: true, hostState: false },
  'lab.off': { description: 'Nobody enables it', uses: ['pushEvents', 'inferenceRequest', 'contextHooks.afterInference'] },
}

/** What the server says of itself. */
export const announced: Json = {
  version: '0.2',
  pushEvents: true,
  contextHooks: { beforeInference: true, afterInference: { blocking: true } },
  inferenceRequest: { streaming: true },
  modelInfo: true,
  featureSets: sets,
}

/** How the host is configured, where a play does not say otherwise. */
export const wishes: LiveWishes = {
  enabled: Object.keys(sets).filter(name => name !== 'lab.off'),
  disabled: ['lab.off'],
  scopes: { 'lab.files': { whitelist: ['/project/*'], blacklist: ['/project/secret*'] } },
  model: [{ call: 'test-tool' }, 'It is done.'],
}

/** How the server speaks while its tool runs. */
export interface Talk {
  readonly request: ClientRequest
  /** A request to the host; its response, whichever way it comes. It is kept under `as` for the verdict. */
  ask(as: string, method: string, params: Json): Promise<Json | undefined>
  tell(method: string, params: Json): void
}

interface LiveOptions {
  readonly steps?: readonly Step[]
  readonly wishes?: Partial<LiveWishes>
  /** What it says of itself; undefined: it is not live. */
  readonly mcpl?: Json | undefined
  readonly tools?: readonly Json[]
  /** What it does while the tool runs; may give the result. */
  readonly during?: (talk: Talk) => unknown
  readonly on?: (server: ScriptedServer) => ServedMethods
  readonly ms?: number
}

/** The user says this. */
export function say(text: string, as = 'say', conversation?: string): Step {
  return { do: 'say', text, as, ...(conversation === undefined ? {} : { conversation }) }
}

const wish = say('Call the tool test-tool and tell me when it is done.')

/** A play of a live server. */
export function livePlay(name: string, options: LiveOptions = {}): Play {
  const { steps = [wish], during, tools, ms, on } = options
  const mcpl = 'mcpl' in options ? options.mcpl : announced
  return play(`live-${name}`, {
    steps,
    report: true,
    answers: { live: { ...wishes, ...options.wishes } },
    ...(tools === undefined ? {} : { tools }),
    ...(ms === undefined ? {} : { ms }),
    capabilities: revision => ({
      tools: { listChanged: true },
      ...(mcpl === undefined ? {} : { experimental: { mcpl } }),
      ...(mcpl !== undefined && isStateless(revision) ? { extensions: { [liveId]: mcpl } } : {}),
    }),
    on: server => ({
      ...(mcpl === undefined ? {} : answering(server)),
      'tools/call': async request => (await during?.(talkOn(request))) ?? textResult('done'),
      ...on?.(server),
    }),
  })
}

function answering({ revision }: ScriptedServer): ServedMethods {
  return {
    'featureSets/update': { accepted: true, unavailableFeatures: [], notes: [] },
    'context/beforeInference': { featureSet: 'lab.hooks', contextInjections: [] },
    'context/afterInference': { featureSet: 'lab.hooks' },
    'inference/lifecycle': {},
    ...(isStateless(revision) ? { 'live/listen': listened, 'live/answer': { known: true } } : {}),
  }
}

/** The stream stays open; what the server has to say goes there. */
function listened(request: ClientRequest): unknown {
  request.log.notes.set('listen', request)
  request.tell('live/listening', { cursor: '0', redelivers: 0 })
  return noAnswer
}

function talkOn(request: ClientRequest): Talk {
  const { log, revision } = request
  let count = 0
  return {
    request,
    tell: (method, params) => {
      if (!isStateless(revision)) return request.tell(method, params)
      deliver(request, `told-${method}-${++count}`, false, method, params)
    },
    ask: async (as, method, params) => {
      const answer = isStateless(revision) ? await delivered(request, as, method, params) : await request.ask(method, params, as)
      log.notes.set(`answer ${as}`, answer)
      return answer
    },
  }
}

function deliver({ log: { notes } }: ClientRequest, deliveryId: string, answer: boolean, method: string, params: Json): void {
  const listen = notes.get('listen') as ClientRequest | undefined
  const cursor = Number(notes.get('cursor') ?? 0) + 1
  notes.set('cursor', cursor)
  listen?.tell('live/deliver', { deliveryId, cursor: String(cursor), answer, method, params })
}

/** Where a server sends no requests, the host answers by one of its own. */
async function delivered(request: ClientRequest, as: string, method: string, params: Json): Promise<Json | undefined> {
  const { log } = request
  await log.until(() => (log.notes.has('listen') ? true : undefined), 2_000)
  deliver(request, as, true, method, params)
  const answers = (message: LoggedMessage): boolean => message.params['deliveryId'] === as && !('chunks' in message.params)
  const found = await log.until(() => log.of('live/answer').find(answers), 3_000)
  if (found === undefined) return undefined
  const { result, error } = found.params
  return { id: as, ...(error === undefined ? { result } : { error }) }
}

/** The response to what the server asked under this name. */
export function answerTo(seen: Observation, as: string): Json | undefined {
  return seen.note<Json>(`answer ${as}`)
}

/** The result in it; empty where there is none. */
export function resultTo(seen: Observation, as: string): Json {
  return objectIn(answerTo(seen, as), 'result')
}

/** The error in it; empty where there is none. */
export function errorTo(seen: Observation, as: string): Json {
  return objectIn(answerTo(seen, as), 'error')
}

/** Rows for a host, be it one that does not announce MCP Live. */
export const hostRow = clientTable('live/host/', { role: 'host', revisions: eras })

const isLive = requires(seen => seen.extension('mcpl') || seen.extension(liveId), 'the host does not announce MCP Live')

/** Rows for a host that announces MCP Live, and does what these need. */
export function liveRows(...needs: readonly ClientNeed[]): ClientRowDefiner {
  return clientTable('live/host/', { role: 'host', revisions: eras, needs: [isLive, ...needs] })
}

/** Needs that the host called the tool. */
export const called = sent(calls, 'the host did not call test-tool')
