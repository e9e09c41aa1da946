/**
 * What a scenario is: one behaviour that a peer either shows or does not, with the statements it proves. Scenarios see a peer by
 * raw frames alone, which the kit writes and reads itself: our own encoding never judges our own encoding.
 */
import type { Carrier } from '../jsonrpc/connection.ts'
import type { RevisionId } from '../revisions/index.ts'
import type { AuthTrial } from './auth/issuer.ts'
import { carries } from './wire/envelope.ts'
import type { RawPeer } from './wire/raw-peer.ts'

export type { Carrier, RevisionId }

/** Who is judged. */
export type Role = 'server' | 'client' | 'host'

/** An object as it stood on the wire: nothing about its members is known. */
export type Json = Readonly<Record<string, unknown>>

/** A frame that passed, seen from the kit. */
export interface Frame {
  readonly way: 'out' | 'in'
  /** Milliseconds since the connection was opened. */
  readonly at: number
  readonly text: string
  /** What the text parses to; undefined where it is no JSON. */
  readonly value: unknown
  /** The HTTP status that carried it, where there was one. */
  readonly status?: number | undefined
}

/** What a peer says of itself at one revision on one carrier. */
export interface Advertised {
  readonly role: Role
  readonly revision: RevisionId
  readonly carrier: Carrier
  readonly name: string
  readonly version: string
  readonly capabilities: Json
  /** What it lists, all pages, as it came. Empty where the capability is not advertised. */
  readonly tools: readonly Json[]
  readonly resources: readonly Json[]
  readonly templates: readonly Json[]
  readonly prompts: readonly Json[]
  /** Result of the handshake: of `initialize`, or of `server/discover`. */
  readonly hello: Json
  /** Whether a capability is advertised: `has('resources.subscribe')`. A member that is false is not. */
  has(path: string): boolean
  /** The settings of an extension, wherever the revision lets servers declare it. */
  extension(id: string): Json | undefined
  tool(name: string): Json | undefined
  prompt(name: string): Json | undefined
  /** Whether this tool may be called without the leave to write: it says that it only reads, or it is a fixture of conformance suites. */
  mayCall(tool: string): boolean
}

/** The head of a row, whoever is judged by it. */
export interface Heading {
  /** `base/tools/list-pages`, `ext/E5-3`, `live/L6.6-1`. */
  readonly id: string
  /** Ids of statements: `E5-3`, `L6.6-1`, or a clause: `MCP 2026-07-28 basic#results`, `RFC 9728 §5.1`. */
  readonly proves: readonly string[]
  readonly role: Role
  /** A sentence about one behaviour. */
  readonly title: string
  readonly revisions: readonly RevisionId[]
  /** Absent: every carrier that the revision has. */
  readonly carriers?: readonly Carrier[]
}

/** A scenario for servers. */
export interface Scenario extends Heading {
  /** May have effects that stay: run only with the leave to write. */
  readonly writes?: boolean
  /** Why it cannot be judged on this peer; undefined: it is run. */
  needs(peer: Advertised): string | undefined
  /** Throws `Failed` where the peer is wrong; any other throw is a fault of the kit. */
  run(bench: Bench): Promise<void>
}

/** How a connection is opened. */
export interface OpenOptions {
  /** What the kit says it can do. Default: nothing. */
  readonly capabilities?: Json
  /** Extensions the kit says it knows, by id: declared where the revision has a place for them. */
  readonly extensions?: Json
  /** What the kit says of MCP Live, in the revision's place for it. */
  readonly live?: Json
  /** Members added to the `_meta` of every request. */
  readonly meta?: Json
  /** Headers added to everything, on carriers that have them. */
  readonly headers?: Readonly<Record<string, string>>
  /** Over HTTP with sessions: whether to open the stream for what is said unasked. Default true. */
  readonly listen?: boolean
  /** Over WebSocket: the subprotocols that are offered. Default: `mcp`, and none where the server knows none. */
  readonly protocols?: readonly string[]
  /** False: no handshake. Default true. */
  readonly hello?: boolean
  /** True: never a process that an earlier scenario has used. Only stdio ever shares. */
  readonly fresh?: boolean
}

/** What a scenario works with. */
export interface Bench {
  readonly revision: RevisionId
  readonly carrier: Carrier
  readonly peer: Advertised
  readonly allowWrites: boolean
  /** Aborted when the scenario's time is over or the run was stopped. */
  readonly signal: AbortSignal
  /** How tokens for a server that guards itself are made, where whoever judges has said so. */
  readonly auth: AuthTrial | undefined
  /** A fresh raw connection to the server, the handshake made as the revision says. Closed after the scenario. */
  open(options?: OpenOptions): Promise<RawPeer>
  expect(condition: boolean, says: string, frames?: readonly (Frame | undefined)[]): void
  fail(says: string, frames?: readonly (Frame | undefined)[]): never
  /** A SHOULD that is not kept: the scenario passes, with a remark. */
  warn(says: string): void
  /** There is nothing to judge after all: skipped, with the reason. */
  leave(why: string): never
  /** Frames of carriers of the scenario's own, for the report. */
  note(frame: Frame): void
  /** Called after the scenario, last one first. */
  onClose(fn: () => unknown): void
}

/** A server that is started as a process. */
export interface Subject {
  readonly command: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** The peer is wrong. */
export class Failed extends Error {
  override readonly name = 'Failed'
  readonly frames: readonly Frame[]

  constructor(says: string, frames: readonly (Frame | undefined)[] = []) {
    super(says)
    this.frames = frames.filter(frame => frame !== undefined)
  }
}

/** There is nothing to judge. */
export class Skipped extends Error {
  override readonly name = 'Skipped'
}

// ── Which scenarios are run on a peer, and which are skipped and why: made of what the peer says of itself.

/** All revisions, in the order of reports. */
export const allRevisions: readonly RevisionId[] = [
  '2024-11-05',
  '2025-03-26',
  '2025-06-18',
  '2025-11-25',
  '2026-07-28',
  'draft-2026-v1',
  's3',
]

/** One revision on one carrier. */
export interface Cell {
  readonly revision: RevisionId
  readonly carrier: Carrier
}

/** The cells of these revisions and carriers, without those that cannot be. */
export function cellsOf(revisions: readonly RevisionId[], carriers: readonly Carrier[]): readonly Cell[] {
  return carriers.flatMap(carrier =>
    revisions.filter(revision => carries(revision, carrier)).map(revision => ({ revision, carrier })),
  )
}

/** The scenarios that a cell has, by role, revision, carrier and choice. */
export function scenariosFor<S extends Heading>(role: Role, { revision, carrier }: Cell, scenarios: readonly S[], only?: RegExp) {
  return scenarios.filter(
    scenario =>
      scenario.role === role &&
      scenario.revisions.includes(revision) &&
      (scenario.carriers ?? [carrier]).includes(carrier) &&
      (only === undefined || only.test(scenario.id) || scenario.proves.some(statement => only.test(statement))),
  )
}
