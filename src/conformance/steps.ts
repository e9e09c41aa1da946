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
import { type Bench, type Carrier, Failed, type Frame, type Json, type RevisionId } from './scenario.ts'
import type { Finder, FoundTool } from './tools.ts'
import type { RawPeer } from './wire/raw-peer.ts'

type Evidence = readonly (Frame | undefined)[]
/** A tool that is found by what the server says of it, one that was found, or one by its name. */
type Callable = Finder | FoundTool | string

/**
 * What steps, checks and programs work with, on a connection that is open; without one a scenario opens its own, if any. What fails
 * without evidence of its own shows the frames of the answer that came last, and of those that were looked at again by `was`.
 */
export class ScenarioContext implements Judging {
  readonly bench: Bench
  readonly revision: RevisionId
  readonly carrier: Carrier
  /** The newest revision, where every request stands alone. */
  readonly modern: boolean
  readonly warn: Bench['warn']
  readonly leave: Bench['leave']
  readonly #requester: Requester | undefined
  readonly #answers: PeerAnswer[] = []
  readonly #keys = new Map<string, string>()
  #evidence: Evidence = []

  /** `meta` goes along with every request. */
  constructor(bench: Bench, connection: RawPeer | undefined, meta?: () => Json) {
    this.bench = bench
    this.revision = bench.revision
    this.carrier = bench.carrier
    this.modern = bench.revision === '2026-07-28'
    this.warn = bench.warn
    this.leave = bench.leave
    this.#requester = connection && requesterOn(connection, meta, this.#heard)
  }

  get peer(): RawPeer {
    return this.#open().peer
  }

  readonly call = (tool: Callable, options?: CallExtras): Promise<PeerAnswer> => this.#open().call(this.#found(tool), options)
  readonly begin = (tool: Callable, options?: CallExtras) => this.#open().begin(this.#found(tool), options)
  readonly ask: Requester['ask'] = (...asked) => this.#open().ask(...asked)

  /** The tool that was found for the scenario. */
  readonly tool = (finder: Finder): FoundTool => finder.find(this.bench.peer) ?? this.leave('There is no such tool')

  /** An answer of this scenario: from 0 on, or from -1, the newest, back. */
  readonly was = (at: number): PeerAnswer => {
    const called = this.#answers.at(at) ?? this.bench.fail(`There is no answer ${at}`)
    if (called !== this.#answers.at(-1)) this.#evidence = [...called.frames, ...this.#evidence]
    return called
  }

  /** A key that nobody else has, one per name. */
  readonly key = (name = ''): string => {
    const key = this.#keys.get(name) ?? newKey()
    this.#keys.set(name, key)
    return key
  }

  readonly fail = (says: string, frames: Evidence = this.#evidence): never => this.bench.fail(says, frames)

  readonly expect = (condition: boolean, says: string, frames?: Evidence): void => {
    if (!condition) this.fail(says, frames)
  }

  /** Holds a table against anything. What fails is shown by the frames that it has, or is. */
  readonly hold = <It>(it: It, expected: Expectations<It, ScenarioContext>): void =>
    hold(expected, it, this, says => this.fail(says, it === this.#answers.at(-1) ? undefined : framesOf(it)))

  /** Fails unless the call was made. */
  readonly made = (called: PeerAnswer, says: string): void => this.#judged(called, isMade, says)

  /** Fails unless the call was refused by a problem of this code. */
  readonly refused = (called: PeerAnswer, code: string, says: string): void => this.#judged(called, isRefusedBy(code), says)

  /** A text that must be there, which is given back. */
  readonly text = (value: unknown, says: string): string => (is.word(value) ? value : this.fail(says))

  /** An object that must be there, which is given back. */
  readonly object = (value: unknown, says: string): Json => (isRecord(value) ? value : this.fail(says))

  readonly #heard = (called: PeerAnswer): void => {
    this.#answers.push(called)
    this.#evidence = called.frames
  }

  /** Puts away what was opened for this scene, before another attempt is made. */
  async close(): Promise<void> {}

  #open(): Requester {
    return this.#requester ?? this.bench.fail('The scenario has opened no connection')
  }

  #found(tool: Callable): FoundTool | string {
    return typeof tool !== 'string' && 'find' in tool ? this.tool(tool) : tool
  }

  #judged(called: PeerAnswer, check: Expectation<PeerAnswer>, says: string): void {
    hold({ [says]: check }, called, undefined, told => this.fail(told, called.frames))
  }
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
export function keyed(x: ScenarioContext, more: Saying = {}): CallExtras {
  return { say: { idempotency: { idempotency_key: x.key() }, ...more } }
}

/** The same under another key. */
export function keyedAnew(x: ScenarioContext): CallExtras {
  return { say: { idempotency: { idempotency_key: x.key('other') } } }
}

/** What a row does, one after the other. */
export interface TableStep {
  /** Without which it cannot be done. */
  readonly needs: readonly Need[]
  run(x: ScenarioContext): Promise<void>
}

/** Something that is sent, and has an answer. Without expectations whatever comes is good. */
export interface SentStep<It> extends TableStep {
  expect(expected: Expectations<It, ScenarioContext>): TableStep
}

/** A value, or how to make it of what has come so far. */
export type ValueOrMaker<T> = T | ((x: ScenarioContext) => T)

function madeOf<T extends object>(given: ValueOrMaker<T>, x: ScenarioContext): T {
  return typeof given === 'function' ? given(x) : given
}

/** A step of any kind: it sends something, or looks at what is there. */
export function step<It>(send: (x: ScenarioContext) => It | Promise<It>, ...needs: readonly Need[]): SentStep<It> {
  const running = (expected: Expectations<It, ScenarioContext>): TableStep => ({
    needs,
    run: async x => x.hold(await send(x), expected),
  })
  return { ...running({}), expect: running }
}

/** Calls a tool: one that is found by what the server says of it, or a fixture by its name. */
export function callTool(tool: Finder | string, options: ValueOrMaker<CallExtras> = {}): SentStep<PeerAnswer> {
  return step(x => x.call(tool, madeOf(options, x)), typeof tool === 'string' ? fixture(tool) : tool)
}

/** Calls a tool on another connection, which knows nothing of extensions. */
export function callPlain(tool: Finder): SentStep<PeerAnswer> {
  return step(async x => requesterOn(await x.bench.open()).call(x.tool(tool)), tool)
}

/** A failed result with something to read. */
export const inWords = { isError: true, content: (list: unknown): boolean => Array.isArray(list) && list.length > 0 }

/** Sends a request. */
export function send(
  method: string,
  params: ValueOrMaker<Json> = {},
  options: ValueOrMaker<RequestExtras> = {},
): SentStep<PeerAnswer> {
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
