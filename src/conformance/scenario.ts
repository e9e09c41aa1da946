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

/** The role that is judged. */
export type Role = 'server' | 'client' | 'host'

/** An object as it was on the wire. */
export type Json = Readonly<Record<string, unknown>>

/** A frame, seen from the kit. */
export interface Frame {
  /** Whether the kit sent it (`out`) or received it (`in`). */
  readonly way: 'out' | 'in'
  /** Milliseconds since the connection was opened. */
  readonly at: number
  /** The frame as text. */
  readonly text: string
  /** The parsed text. Undefined if it is not JSON. */
  readonly value: unknown
  /** The HTTP status that carried it, if there was one. */
  readonly status?: number | undefined
}

/** What a peer states about itself in one cell. */
export interface Advertised {
  /** The role of the peer. */
  readonly role: Role
  /** The revision that was spoken. */
  readonly revision: RevisionId
  /** The carrier that was used. */
  readonly carrier: Carrier
  /** The name that the peer states. */
  readonly name: string
  /** The version that the peer states. */
  readonly version: string
  /** The capabilities that the peer advertises. */
  readonly capabilities: Json
  /** All tools that it lists. Empty if the capability is not advertised. */
  readonly tools: readonly Json[]
  /** All resources that it lists. Empty if the capability is not advertised. */
  readonly resources: readonly Json[]
  /** All resource templates that it lists. Empty if the capability is not advertised. */
  readonly templates: readonly Json[]
  /** All prompts that it lists. Empty if the capability is not advertised. */
  readonly prompts: readonly Json[]
  /** The result of `initialize` or `server/discover`. */
  readonly hello: Json
  /** Whether a capability is advertised: `has('resources.subscribe')`. False if its value is false. */
  has(path: string): boolean
  /** The settings of an extension. Undefined if it is not declared. */
  extension(id: string): Json | undefined
  /** The listed tool with this name. */
  tool(name: string): Json | undefined
  /** The listed prompt with this name. */
  prompt(name: string): Json | undefined
  /**
   * Whether the tool may be called without permission to write: it declares that it only reads, or it is a fixture of conformance
   * suites.
   */
  mayCall(tool: string): boolean
}

/** The identity of a scenario. */
export interface Heading {
  /** The id: `base/tools/list-pages`, `ext/E5-3`, `live/L6.6-1`. */
  readonly id: string
  /** The statements that it proves: `E5-3`, `L6.6-1`, or a clause: `MCP 2026-07-28 basic#results`, `RFC 9728 §5.1`. */
  readonly proves: readonly string[]
  /** The role that it judges. */
  readonly role: Role
  /** The behaviour that is judged, as a sentence. */
  readonly title: string
  /** The revisions in which it applies. */
  readonly revisions: readonly RevisionId[]
  /** The carriers on which it applies. Default: all that the revision has. */
  readonly carriers?: readonly Carrier[]
}

/** A scenario for servers. */
export interface Scenario extends Heading {
  /** Whether it may have lasting effects, so that it runs only with permission to write. Default false. */
  readonly writes?: boolean
  /** Returns why it does not apply to this peer. Undefined: it applies. */
  needs(peer: Advertised): string | undefined
  /** Runs the scenario. Throws `Failed` if the peer is wrong; anything else that is thrown is a fault of the kit. */
  run(bench: Bench): Promise<void>
}

/** Options of a connection. */
export interface OpenOptions {
  /** The capabilities that the kit declares. Default: none. */
  readonly capabilities?: Json
  /** The extensions that the kit declares, by id, in revisions that have them. Default: none. */
  readonly extensions?: Json
  /** What the kit declares about MCP Live. Default: nothing. */
  readonly live?: Json
  /** Members that are added to the `_meta` of every request. Default: none. */
  readonly meta?: Json
  /** Headers that are added to everything, on carriers that have them. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
  /** Over HTTP with sessions: whether to open the stream for unsolicited messages. Default true. */
  readonly listen?: boolean
  /** Over WebSocket: the offered subprotocols. Default: `mcp`, or none if the server knows none. */
  readonly protocols?: readonly string[]
  /** Whether to make the handshake. Default true. */
  readonly hello?: boolean
  /** Whether to start a new process instead of one that an earlier scenario has used. Default false. */
  readonly fresh?: boolean
}

/** What a scenario works with. */
export interface Bench {
  /** The revision that is judged. */
  readonly revision: RevisionId
  /** The carrier that is judged. */
  readonly carrier: Carrier
  /** What the peer advertises. */
  readonly peer: Advertised
  /** Whether tools that may write can be called. */
  readonly allowWrites: boolean
  /** Aborted when the time of the scenario is over, or the run was stopped. */
  readonly signal: AbortSignal
  /** Makes tokens for the server. Undefined if `auth` was not given. */
  readonly auth: AuthTrial | undefined
  /** Opens a connection to the server and makes the handshake. It is closed after the scenario. */
  open(options?: OpenOptions): Promise<RawPeer>
  /** Fails the scenario with this sentence if the condition does not hold. `frames` are shown in the report. */
  expect(condition: boolean, says: string, frames?: readonly (Frame | undefined)[]): void
  /** Fails the scenario with this sentence. `frames` are shown in the report. */
  fail(says: string, frames?: readonly (Frame | undefined)[]): never
  /** Notes that a SHOULD is not followed: the scenario passes with a remark. */
  warn(says: string): void
  /** Skips the scenario, because there is nothing to judge. */
  leave(why: string): never
  /** Adds a frame of the scenario's own connections to the report. */
  note(frame: Frame): void
  /** Registers a function that is called after the scenario, the last one first. */
  onClose(fn: () => unknown): void
}

/** A server that is started as a process. */
export interface Subject {
  /** The program: a path, or a name that is found by PATH. */
  readonly command: string
  /** The arguments of the program. Default: none. */
  readonly args?: readonly string[]
  /** Further environment variables. Default: none. */
  readonly env?: Readonly<Record<string, string>>
  /** The working directory. Default: that of this process. */
  readonly cwd?: string
}

/** Thrown if the peer is wrong. */
export class Failed extends Error {
  /** Always `Failed`. */
  override readonly name = 'Failed'
  /** The frames that show the failure. */
  readonly frames: readonly Frame[]

  constructor(says: string, frames: readonly (Frame | undefined)[] = []) {
    super(says)
    this.frames = frames.filter(frame => frame !== undefined)
  }
}

/** Thrown if there is nothing to judge. */
export class Skipped extends Error {
  /** Always `Skipped`. */
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
  /** The revision of the cell. */
  readonly revision: RevisionId
  /** The carrier of the cell. */
  readonly carrier: Carrier
}

/** The possible combinations of these revisions and carriers. */
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
