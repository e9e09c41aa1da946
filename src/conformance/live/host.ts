/**
 * A live host made of bare frames. On wires with sessions what the server says are its own requests; on stateless ones they come inside
 * `live/deliver` and are answered by `live/answer`. A scenario sees no difference.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import { type PeerAnswer, taken } from '../calls.ts'
import { eras, type RowOptions, table } from '../define.ts'
import { listIn, objectIn } from '../expectations.ts'
import { type Need, peerHas } from '../needs.ts'
import { broughtBy, hintKey } from '../said.ts'
import type { Advertised, Bench, Frame, Json } from '../scenario.ts'
import { ScenarioContext } from '../steps.ts'
import { type Finder, toolThat } from '../tools.ts'
import { letGo, type RawPeer, refusedBy } from '../wire/raw-peer.ts'

const extension = 'dev.vivarium/live'

/** A message of the server's own. */
export interface ServerMessage {
  readonly method: string
  readonly params: Json
  /** Undefined for what wants no answer. */
  readonly id: unknown
  readonly frame: Frame
}

/** Which sets are on, and where their tools may act. */
interface Selection {
  readonly enabled?: readonly string[]
  readonly disabled?: readonly string[]
  readonly scopes?: Json
}

/** What the server declares of MCP Live; undefined: nothing. */
function declaredBy(peer: Advertised): Json | undefined {
  return peer.extension('mcpl') ?? peer.extension(extension)
}

/** The sets by name, in whichever form they are declared. */
function setsOf(peer: Advertised): ReadonlyMap<string, Json> {
  const sets = declaredBy(peer)?.['featureSets']
  const entries = Array.isArray(sets)
    ? sets.filter(isRecord).map(set => [String(set['name']), set] as const)
    : Object.entries(isRecord(sets) ? sets : {}).flatMap(([name, set]) => (isRecord(set) ? [[name, set] as const] : []))
  return new Map(entries)
}

const model = { id: 'kit', vendor: 'vivarium', contextWindow: 1000, capabilities: [] }
/** What a model of the kit has said. */
export function inferred(content: string): Json {
  return { content, model: 'kit', finishReason: 'end_turn', usage: { inputTokens: 1, outputTokens: 1 } }
}

const kind: Readonly<Record<string, (params: Json) => unknown>> = {
  'push/event': () => ({ accepted: true }),
  'inference/request': () => inferred('All is well'),
  'model/info': () => model,
  'scope/elevate': () => ({ approved: true }),
}

/** The parameters of a hook: one turn of a conversation. */
export const turn = (userMessage: string | null, more: Json = {}): Json => ({
  ...{ inferenceId: crypto.randomUUID(), conversationId: 'kit', turnIndex: 0, userMessage, model },
  ...more,
})

/** What a row of MCP Live is given beside the rest. */
interface LiveGiven extends RowOptions {
  readonly host?: {
    /** What it declares. False: it knows nothing of MCP Live. */
    readonly declares?: Json | false
    /** Default: all sets on. False: it has not chosen yet. */
    readonly select?: Selection | false
  }
}

/** A scene whose requests are those of a live host. */
export interface LiveScenarioContext extends ScenarioContext {
  readonly host: Host
  /** What the server declares, and its sets by name. */
  readonly declared: Json
  readonly sets: ReadonlyMap<string, Json>
}

const declares = peerHas(peer => declaredBy(peer) !== undefined, 'The server does not declare MCP Live')

/** A row of MCP Live. */
export const live = table<LiveScenarioContext, LiveGiven>('live/', { revisions: eras, writes: true, needs: [declares] }, openHost)

async function openHost(
  bench: Bench,
  { host: { declares = { version: '0.2' }, select } = {} }: LiveGiven,
): Promise<LiveScenarioContext> {
  const peer = await bench.open({ fresh: true, ...(declares === false ? {} : { live: declares }) })
  const host = new Host(peer, declares !== false)
  const sets = setsOf(bench.peer)
  await host.start(select ?? { enabled: [...sets.keys()], disabled: [] })
  const context = new ScenarioContext(bench, peer, () => host.meta())
  return Object.assign(context, { host, sets, declared: declaredBy(bench.peer) ?? {}, close: () => host.close() })
}

/** A tool that says that it brings about `prefix:SET`. */
export function bringingSet(prefix: string): Finder {
  return toolThat(`declares "${prefix}:SET" in _meta["${hintKey}"].brings`, tool => broughtBy(tool, prefix) !== undefined)
}

/** Needs a set that uses this. */
export function using(use: string): Need {
  return peerHas(peer => [...setsOf(peer).values()].some(set => usesOf(set).includes(use)), `No feature set uses ${use}`)
}

/** What a set declares that it uses. */
export function usesOf(set: Json | undefined): readonly unknown[] {
  return listIn(set, 'uses')
}

/** What rows of MCP Live do as a host. */
class Host {
  readonly peer: RawPeer
  /** All that the server said by itself. */
  readonly said: ServerMessage[] = []
  readonly modern: boolean
  readonly #live: boolean
  readonly #answers = new Map(Object.entries(kind))
  readonly #id = crypto.randomUUID()
  #policy: Selection | undefined
  #ended = false

  constructor(peer: RawPeer, live: boolean) {
    this.peer = peer
    this.#live = live
    this.modern = peer.revision === '2026-07-28'
  }

  async start(selection: Selection | false): Promise<void> {
    if (!this.modern) for (const method of Object.keys(kind)) this.peer.onRequest(method, params => this.#hear(method, params))
    if (!this.#live) return
    if (this.modern) {
      this.#policy = selection === false ? undefined : selection
      letGo(this.#pump())
      await this.listen()
    } else if (selection !== false) await this.select(selection)
  }

  /** Only on stateless wires. */
  async listen(): Promise<void> {
    const policy = this.#policy === undefined ? {} : { policy: this.#policy }
    this.peer.begin('live/listen', { hostId: this.#id, host: { version: '0.2' }, ...policy }, { meta: this.meta(), ms: 60_000 })
    await this.peer.next('live/listening')
  }

  #request(method: string, params: Json): Promise<PeerAnswer> {
    return letGo(this.peer.request(method, params, { meta: this.meta() }).then(taken))
  }

  select(selection: Selection): Promise<void> {
    return letGo(this.#select(selection))
  }

  async #select(selection: Selection): Promise<void> {
    this.#policy = selection
    if (this.modern) await this.#request('featureSets/update', { ...selection })
    else await this.peer.notify('featureSets/update', { ...selection })
    await this.peer.settled()
  }

  /** The same as a request, which grants capabilities and is whole. */
  async grant(selection: Selection, effectiveCapabilities: readonly string[]): Promise<PeerAnswer> {
    this.#policy = selection
    return this.#request('featureSets/update', { ...selection, effectiveCapabilities })
  }

  /** How it answers: with a result, or a thrown `{ code, message }`. Default: as a kind host would. */
  answer(method: string, fn: (params: Json) => unknown): void {
    this.#answers.set(method, fn)
  }

  /** What the server said with this method and these params; undefined: not within this time. */
  async next(method: string, fits: (params: Json) => boolean = () => true, ms = 3_000): Promise<ServerMessage | undefined> {
    const until = Date.now() + ms
    for (;;) {
      if (!this.modern) this.#notices()
      const found = this.said.find(one => one.method === method && fits(one.params))
      if (found !== undefined || Date.now() >= until) return found
      await wait(15)
    }
  }

  async close(): Promise<void> {
    this.#ended = true
    await this.peer.close()
  }

  /** What says with every request whose it is. */
  meta(): Json {
    if (!this.modern || !this.#live) return {}
    return { [extension]: { hostId: this.#id, ...(this.#policy === undefined ? {} : { policy: this.#policy }) } }
  }

  #hear(method: string, params: Json): unknown {
    const frame = this.peer.heard(method).findLast(({ value }) => isRecord(value) && value['params'] === params)
    if (frame !== undefined) this.said.push({ method, params, id: objectIn(frame.value)['id'], frame })
    return this.#answers.get(method)?.(params)
  }

  /** Notifications of the server's own, on wires with sessions. */
  #notices(): void {
    const isNotice = ({ method, id }: Json): boolean => id === undefined && String(method).startsWith('featureSets/')
    for (const frame of this.peer.heard(isNotice)) {
      if (this.said.some(one => one.frame === frame)) continue
      const { method } = frame.value as { method: string }
      this.said.push({ method, params: objectIn(frame.value, 'params'), id: undefined, frame })
    }
  }

  /** Deliveries, and their answers, until the connection has gone. */
  async #pump(): Promise<void> {
    while (!this.#ended) {
      const frame = await this.peer.next('live/deliver', 60_000)
      const params = (frame.value as { params?: unknown }).params
      if (isRecord(params)) letGo(this.#deliver(params, frame))
    }
  }

  async #deliver(delivery: Json, frame: Frame): Promise<void> {
    const { deliveryId, method, params, answer } = delivery
    const inner = objectIn(params)
    this.said.push({ method: String(method), params: inner, id: answer === true ? deliveryId : undefined, frame })
    if (answer !== true) return
    await this.#request('live/answer', { deliveryId, ...(await this.#outcome(String(method), inner)) }).catch(() => undefined)
  }

  async #outcome(method: string, params: Json): Promise<Json> {
    try {
      return { result: await this.#answers.get(method)?.(params) }
    } catch (error) {
      return refusedBy(error)
    }
  }
}
