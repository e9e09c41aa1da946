/** What happens when a row is run on a server: connections, what is sent step by step, and what is held against the answers. */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../jsonrpc/message.ts'
import {
  type CallExtras,
  isMade,
  isRefusedBy,
  type PeerAnswer,
  type RequestExtras,
  type Requester,
  requesterOn,
  type Saying,
} from './calls.ts'
import { type Expectation, type Expectations, hold, is, type Judging } from './expectations.ts'
import { tool as fixture, type Need } from './needs.ts'
import { type Bench, type Carrier, Failed, type Frame, type Json, type OpenOptions, type RevisionId } from './scenario.ts'
import type { Finder, FoundTool } from './tools.ts'
import type { RawPeer } from './wire/raw-peer.ts'

type Evidence = readonly (Frame | undefined)[]

/**
 * What steps, checks and programs work with. What fails without evidence of its own shows the frames of the answer that came last,
 * and of those that were looked at again by `was`.
 */
export interface Scene extends Omit<Requester, 'call' | 'begin'>, Judging {
  readonly bench: Bench
  readonly revision: RevisionId
  readonly carrier: Carrier
  /** The newest revision, where every request stands alone. */
  readonly modern: boolean
  call(tool: Finder | FoundTool | string, options?: CallExtras): Promise<PeerAnswer>
  begin(tool: Finder | FoundTool | string, options?: CallExtras): ReturnType<Requester['begin']>
  /** The tool that was found for the scenario. */
  tool(finder: Finder): FoundTool
  /** An answer of this scenario: from 0 on, or from -1, the newest, back. */
  was(at: number): PeerAnswer
  /** A key that nobody else has, one per name. */
  key(name?: string): string
  expect(condition: boolean, says: string, frames?: Evidence): void
  fail(says: string, frames?: Evidence): never
  /** Puts away what was opened for this scene, before another attempt is made. */
  close?(): Promise<void>
  /** Holds a table against anything. What fails is shown by the frames that it has, or is. */
  hold<It>(it: It, expected: Expectations<It, Scene>): void
  /** Fails unless the call was made. */
  made(called: PeerAnswer, says: string): void
  /** Fails unless the call was refused by a problem of this code. */
  refused(called: PeerAnswer, code: string, says: string): void
  /** A text that must be there, which is given back. */
  text(value: unknown, says: string): string
  /** An object that must be there, which is given back. */
  object(value: unknown, says: string): Json
}

/** Opens the connection of a scenario; `false`: it opens its own, if any. */
export async function openScene(bench: Bench, open: OpenOptions | false): Promise<Scene> {
  return sceneOf(bench, open === false ? undefined : await bench.open(open))
}

/** A scene on a connection that is open. `meta` goes along with every request. */
export function sceneOf(bench: Bench, connection: RawPeer | undefined, meta?: () => Json): Scene {
  const answers: PeerAnswer[] = []
  const keys = new Map<string, string>()
  let evidence: Evidence = []
  const heard = (called: PeerAnswer): void => {
    answers.push(called)
    evidence = called.frames
  }
  const talk = connection === undefined ? undefined : requesterOn(connection, meta, heard)
  const open = (): Requester => talk ?? bench.fail('The scenario has opened no connection')
  const tool = (finder: Finder): FoundTool => finder.find(bench.peer) ?? bench.leave('There is no such tool')
  const callable = (given: Finder | FoundTool | string): FoundTool | string =>
    typeof given !== 'string' && 'find' in given ? tool(given) : given
  const fail = (says: string, frames: Evidence = evidence): never => bench.fail(says, frames)
  const expect: Scene['expect'] = (condition, says, frames) => (condition ? undefined : fail(says, frames))
  const judged = (called: PeerAnswer, check: Expectation<PeerAnswer>, says: string): void =>
    hold({ [says]: check }, called, undefined, told => fail(told, called.frames))
  const scene: Scene = {
    bench,
    get peer() {
      return open().peer
    },
    revision: bench.revision,
    carrier: bench.carrier,
    modern: bench.revision === '2026-07-28',
    call: (given, options) => open().call(callable(given), options),
    ask: (method, params, options) => open().ask(method, params, options),
    begin: (given, options) => open().begin(callable(given), options),
    tool,
    was: at => {
      const called = answers.at(at) ?? bench.fail(`There is no answer ${at}`)
      if (called !== answers.at(-1)) evidence = [...called.frames, ...evidence]
      return called
    },
    key: (name = '') => {
      const key = keys.get(name) ?? newKey()
      keys.set(name, key)
      return key
    },
    expect,
    fail,
    warn: bench.warn,
    leave: bench.leave,
    hold: (it, expected) => hold(expected, it, scene, says => fail(says, it === answers.at(-1) ? undefined : framesOf(it))),
    made: (called, says) => judged(called, isMade, says),
    refused: (called, code, says) => judged(called, isRefusedBy(code), says),
    text: (value, says) => (is.word(value) ? value : fail(says)),
    object: (value, says) => (isRecord(value) ? value : fail(says)),
  }
  return scene
}

/** The frames that show a value: it is one, has some, or is a list of such; undefined: it has none. */
function framesOf(it: unknown): Evidence | undefined {
  if (Array.isArray(it)) {
    const all = it.map(framesOf)
    return all.includes(undefined) ? undefined : all.flat()
  }
  if (!isRecord(it)) return undefined
  if ((it['way'] === 'in' || it['way'] === 'out') && is.string(it['text'])) return [it as unknown as Frame]
  return Array.isArray(it['frames']) ? it['frames'] : framesOf(it['frame'])
}

/** A key that nobody else has. */
export function newKey(): string {
  return `kit-${crypto.randomUUID()}`
}

/** What a call says under a key of this scenario, and under other extensions. */
export function keyed(x: Scene, more: Saying = {}): CallExtras {
  return { say: { idempotency: { idempotency_key: x.key() }, ...more } }
}

/** The same under another key. */
export function keyedAnew(x: Scene): CallExtras {
  return { say: { idempotency: { idempotency_key: x.key('other') } } }
}

/** What a row does, one after the other. */
export interface TableStep {
  /** Without which it cannot be done. */
  readonly needs: readonly Need[]
  run(x: Scene): Promise<void>
}

/** Something that is sent, and has an answer. Without expectations whatever comes is good. */
export interface SentStep<It> extends TableStep {
  expect(expected: Expectations<It, Scene>): TableStep
}

/** A value, or how to make it of what has come so far. */
export type Made<T> = T | ((x: Scene) => T)

function madeOf<T extends object>(given: Made<T>, x: Scene): T {
  return typeof given === 'function' ? given(x) : given
}

/** A step of any kind: it sends something, or looks at what is there. */
export function step<It>(send: (x: Scene) => It | Promise<It>, ...needs: readonly Need[]): SentStep<It> {
  const running = (expected: Expectations<It, Scene>): TableStep => ({
    needs,
    run: async x => x.hold(await send(x), expected),
  })
  return { ...running({}), expect: running }
}

/** Calls a tool: one that is found by what the server says of it, or a fixture by its name. */
export function callTool(tool: Finder | string, options: Made<CallExtras> = {}): SentStep<PeerAnswer> {
  return step(x => x.call(tool, madeOf(options, x)), typeof tool === 'string' ? fixture(tool) : tool)
}

/** Calls a tool on another connection, which knows nothing of extensions. */
export function callPlain(tool: Finder): SentStep<PeerAnswer> {
  return step(async x => requesterOn(await x.bench.open()).call(x.tool(tool)), tool)
}

/** A failed result with something to read. */
export const inWords = { isError: true, content: (list: unknown): boolean => Array.isArray(list) && list.length > 0 }

/** Sends a request. */
export function send(method: string, params: Made<Json> = {}, options: Made<RequestExtras> = {}): SentStep<PeerAnswer> {
  return step(x => x.ask(method, madeOf(params, x), madeOf(options, x)))
}

/** Comes back when something harmless that was sent after all else has been answered. */
export const settle: TableStep = step(x => x.peer.settled())

/** Lets some time pass. */
export function rest(ms: number): TableStep {
  return step(() => wait(ms))
}

/** Cells are judged side by side: what fails where they see the same thing may do so `tries` times before it counts. */
export async function attempted(tries: number, run: () => Promise<void>): Promise<void> {
  for (let left = tries; ; left--) {
    try {
      return await run()
    } catch (error) {
      if (left <= 1 || !(error instanceof Failed)) throw error
    }
    // Those that have met would meet again at the same place.
    await wait(Math.random() * 1_000)
  }
}
