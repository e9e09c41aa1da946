/**
 * Plays for hosts of MCP Live: a live server written by hand. What it asks it asks while its tool runs, so that a host is judged
 * by the plain wish of a user: "call test-tool".
 */
import { NS } from '../../engine/method.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { type LiveWishes, type Play, type Step, testTool, said as toolResult } from '../clients/play.ts'
import { type ClientScenario, ERAS, type Verdict } from '../clients/scenario.ts'
import type { Seen } from '../clients/seen.ts'
import { type Frame, paramsOf, type Said } from '../clients/stage/book.ts'
import type { Stage } from '../clients/stage/open.ts'
import { type Call, type Handler, isStateless, silence } from '../clients/stage/script.ts'

export const LIVE = `${NS}/live`

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

export const announced: Frame = {
  version: '0.2',
  pushEvents: true,
  contextHooks: { beforeInference: true, afterInference: { blocking: true } },
  inferenceRequest: { streaming: true },
  modelInfo: true,
  featureSets: sets,
}

export const wishes: LiveWishes = {
  enabled: Object.keys(sets).filter(name => name !== 'lab.off'),
  disabled: ['lab.off'],
  scopes: { 'lab.files': { whitelist: ['/project/*'], blacklist: ['/project/secret*'] } },
  model: [{ call: 'test-tool' }, 'It is done.'],
}

/** How the server speaks while its tool runs. */
export interface Talk {
  readonly call: Call
  readonly stage: Stage
  /** A request to the host; its response, whichever way it comes. It is kept under `as` for the verdict. */
  ask(as: string, method: string, params: Frame): Promise<Frame | undefined>
  tell(method: string, params: Frame): void
}

export interface LiveOptions {
  readonly steps?: readonly Step[]
  readonly wishes?: Partial<LiveWishes>
  /** What it says of itself; undefined: it is not live. */
  readonly mcpl?: Frame | undefined
  readonly tools?: readonly Frame[]
  /** What it does while the tool runs; may give the result. */
  readonly during?: (talk: Talk) => Promise<unknown>
  readonly on?: (stage: Stage) => Readonly<Record<string, Handler | undefined>>
  readonly ms?: number
}

const SAY: readonly Step[] = [{ do: 'say', text: 'Call the tool test-tool and tell me when it is done.', as: 'say' }]

export function livePlay(name: string, options: LiveOptions = {}): Play {
  const { steps = SAY, during, tools } = options
  const mcpl = 'mcpl' in options ? options.mcpl : announced
  return {
    name: `live-${name}`,
    steps,
    report: true,
    answers: { live: { ...wishes, ...options.wishes } },
    ...(tools === undefined ? {} : { tools: [...tools] }),
    ...(options.ms === undefined ? {} : { ms: options.ms }),
    capabilities: revision => ({
      tools: { listChanged: true },
      ...(mcpl === undefined ? {} : { experimental: { mcpl } }),
      ...(mcpl !== undefined && isStateless(revision) ? { extensions: { [LIVE]: mcpl } } : {}),
    }),
    on: stage => ({
      ...(mcpl === undefined ? {} : answering(stage)),
      'tools/call': async call => (await during?.(talkOn(call, stage))) ?? toolResult('done'),
      ...options.on?.(stage),
    }),
  }
}

function answering(stage: Stage): Record<string, Handler> {
  return {
    'featureSets/update': () => ({ accepted: true, unavailableFeatures: [], notes: [] }),
    'context/beforeInference': () => ({ featureSet: 'lab.hooks', contextInjections: [] }),
    'context/afterInference': () => ({ featureSet: 'lab.hooks' }),
    'inference/lifecycle': () => ({}),
    ...(isStateless(stage.revision) ? { 'live/listen': listened, 'live/answer': () => ({ known: true }) } : {}),
  }
}

/** The stream stays open; what the server has to say goes there. */
const listened: Handler = call => {
  call.book.notes.set('listen', call)
  call.tell('live/listening', { cursor: '0', redelivers: 0 })
  return silence
}

function talkOn(call: Call, stage: Stage): Talk {
  let count = 0
  const answers = call.book.notes
  return {
    call,
    stage,
    tell: (method, params) => {
      if (!isStateless(call.revision)) return call.tell(method, params)
      deliver(call, `told-${method}-${++count}`, false, method, params)
    },
    ask: async (as, method, params) => {
      const answer = isStateless(call.revision) ? await delivered(call, as, method, params) : await call.ask(method, params, as)
      answers.set(`answer ${as}`, answer)
      return answer
    },
  }
}

function deliver({ book }: Call, deliveryId: string, answer: boolean, method: string, params: Frame): void {
  const listen = book.notes.get('listen') as Call | undefined
  const cursor = Number(book.notes.get('cursor') ?? 0) + 1
  book.notes.set('cursor', cursor)
  listen?.tell('live/deliver', { deliveryId, cursor: String(cursor), answer, method, params })
}

/** Where a server sends no requests, the host answers by one of its own. */
async function delivered(call: Call, as: string, method: string, params: Frame): Promise<Frame | undefined> {
  const { book } = call
  await book.until(() => (book.notes.has('listen') ? true : undefined), 2_000)
  deliver(call, as, true, method, params)
  const answered = (said: Said): boolean => paramsOf(said)['deliveryId'] === as && !('chunks' in paramsOf(said))
  const said = await book.until(() => book.of('live/answer').find(answered), 3_000)
  if (said === undefined) return undefined
  const { result, error } = paramsOf(said)
  return { id: as, ...(error === undefined ? { result } : { error }) }
}

/** The response to what the server asked under this name. */
export function answerTo(seen: Seen, as: string): Frame | undefined {
  const answer = seen.note<unknown>(`answer ${as}`)
  return isRecord(answer) ? answer : undefined
}

export function resultTo(seen: Seen, as: string): Frame {
  const result = answerTo(seen, as)?.['result']
  return isRecord(result) ? result : {}
}

export function errorTo(seen: Seen, as: string): Frame {
  const error = answerTo(seen, as)?.['error']
  return isRecord(error) ? error : {}
}

interface Rules {
  readonly proves: readonly string[]
  readonly check: (seen: Seen, verdict: Verdict) => void
  readonly needs?: (seen: Seen) => string | undefined
  /** Judged though the host does not announce MCP Live. */
  readonly plain?: boolean
}

export function hosting(id: string, title: string, play: Play, { needs, plain = false, ...rules }: Rules): ClientScenario {
  return {
    role: 'host',
    id: `live/host/${id}`,
    title,
    play,
    revisions: ERAS,
    // Where each request stands alone, what a server has to say needs the stream of HTTP.
    ...rules,
    needs: seen => {
      if (!plain && !isLive(seen)) return 'the host does not announce MCP Live'
      return needs?.(seen)
    },
  }
}

/** Whether the host said that it is one. */
export function isLive(seen: Seen): boolean {
  return seen.extension('mcpl') || seen.extension(LIVE)
}

/** Needs that the host called the tool. */
export function called(seen: Seen): string | undefined {
  return seen.calls('test-tool').length > 0 ? undefined : 'the host did not call test-tool'
}

export function tool(name: string, featureSet: string): Frame {
  return { ...testTool, name, featureSet, _meta: { [LIVE]: { featureSet } } }
}
