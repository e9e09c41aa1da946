/** What an author says of a tool, one registered tool, and what other features add to tools. */
import type { Buckets } from '../../../core/bucket.ts'
import type { Catalog } from '../../../core/catalog.ts'
import type { Duration } from '../../../core/clock.ts'
import type { OptionKind } from '../../../core/options.ts'
import type { Problem } from '../../../core/problem.ts'
import type { CompiledSchema, Schema } from '../../../core/schema/index.ts'
import type { CallContext } from '../../../engine/context.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Registration } from '../../../engine/server-feature.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import type { Icon } from '../../../revisions/index.ts'
import type { TaskFacts } from '../tasks/messages.ts'
import type { MirroredParam } from './headers.ts'
import type { CallToolResult, TaskSupport, Tool, ToolAnnotations } from './messages.ts'
import type { Reply, ReplyParts } from './result.ts'

/** Options of `server.tool`. */
export interface ToolFacts {
  /** The name that people see. Default: the name of the tool. */
  readonly title?: string
  /** What the tool does and when to use it. The model chooses by it. Default: none. */
  readonly description?: string
  /** The arguments, by a schema. */
  readonly input?: Schema
  /** The structured result, by a schema. */
  readonly output?: Schema
  /** Hints about what the tool does: `readOnlyHint`, `destructiveHint`, `idempotentHint`, `openWorldHint`. Default: none. */
  readonly annotations?: ToolAnnotations
  /** Images that clients can show next to the name. Default: none. */
  readonly icons?: readonly Icon[]
  /** Scopes that the caller's token must have, in addition to those that every request needs. Default: none. */
  readonly scopes?: readonly string[]
  /** Whether a call may (`optional`) or must (`required`) run as a task. Default `forbidden`. */
  readonly task?: TaskSupport | TaskFacts
  /** How long one call may take. It is cancelled after that. Default: as long as the caller waits. */
  readonly timeout?: Duration
  /** Whether a repeated call has the same effect as a single one, so that a call with an unknown outcome may be repeated. Default false. */
  readonly idempotent?: boolean
  /**
   * Treats equal calls of one caller within this time as one: the later call gets the result of the earlier one. For calls
   * without an idempotency key. A function decides for each call; undefined: no deduplication. Default: none.
   */
  readonly dedupe?: Duration | ((args: Params, caller: Caller) => Duration | undefined)
  /**
   * What happens if two calls have changed the same state: each continues with its own (`branch`), or the later one is refused
   * (`conflict`). If set, a call with an outdated state is refused before it runs. Default `branch`.
   */
  readonly state?: 'branch' | 'conflict'
  /** How often one caller may call this tool. Calls above the rate are refused. Default: the common limit of the server. */
  readonly rate?: {
    /** The sustained rate, in calls per second. Fractions are allowed. */
    readonly perSecond: number
    /** The most calls at once. Default: `perSecond`, at least 1. */
    readonly burst?: number
  }
  /** The `_meta` of the entry in lists. Default: none. */
  readonly meta?: Readonly<Record<string, unknown>>
}

/** Runs a tool, with arguments that were checked. */
export type ToolHandler<C> = (args: never, context: C) => Awaitable<unknown>

/** One registered tool, compiled. */
export interface ToolEntry<C = unknown> {
  readonly name: string
  /** As clients are shown it. */
  readonly tool: Tool
  readonly facts: ToolFacts
  readonly input: CompiledSchema | undefined
  readonly output: CompiledSchema | undefined
  /** Arguments that travel in headers too. */
  readonly mirrored: readonly MirroredParam[]
  /** How long a call may take. */
  readonly timeoutMs: number | undefined
  /** How often it may be called. */
  readonly buckets: Buckets | undefined
  readonly handler: ToolHandler<C>
  /** Its handler yields parts of its result while it works. */
  readonly streams: boolean
}

/** The schemas of a tool, as clients are shown them. */
type ToolSchemas = Pick<Tool, 'inputSchema' | 'outputSchema'>

/** What another feature adds to tools; `F` are the options that it lets an author give to a tool. */
export interface ToolExtension<F extends object = ToolFacts> {
  /** There will be tools: clients are told so before the first one is there. */
  readonly expected?: boolean
  /** The kinds of the options that it lets an author give to a tool. */
  readonly kinds?: Readonly<Record<string, OptionKind>>
  /** Told of each tool that is offered, before it is. Throws where what was said makes no sense. */
  declare?(name: string, facts: F): void
  /** Goes into the tool's `_meta`. Throws where what was said makes no sense. */
  meta?(name: string, facts: F, schemas: ToolSchemas, streams: boolean): Readonly<Record<string, unknown>> | undefined
  /** Hints that follow from it. */
  annotations?(facts: F): ToolAnnotations | undefined
  /** Refuses, by throwing, a caller that calls too often; `own` is the tool's own limit. */
  admit?(exchange: Exchange, own: Buckets | undefined): void
  /** Runs a handler that yields parts of its result, and gives what it comes to. */
  stream?(exchange: Exchange, generator: AsyncGenerator): Promise<unknown>
  /** What a failed call's result says of the problem beside its words: members of its `_meta`, for peers that know what to do with them. */
  readonly explain?: (exchange: Exchange, problem: Problem) => Readonly<Record<string, unknown>> | undefined
}

/** What other features may use of the tools of a server. */
export interface ToolsPort {
  /** All tools. */
  readonly catalog: Catalog<ToolEntry<CallContext>>
  /** What the author said of a tool: each feature reads the options that are its own. */
  facts<F extends object = ToolFacts>(tool: string): F | undefined
  /** Whether any tool is so. Remembered under `name` until the tools change. */
  some(name: string, test: (entry: ToolEntry<CallContext>) => boolean): boolean
  /** Adds options, `_meta`, hints and checks to every tool. */
  extend<F extends object = ToolFacts>(extension: ToolExtension<F>): void
  /** A tool that is in the list, and is answered before its handler. */
  compile(name: string, facts: ToolFacts): ToolEntry<CallContext>
  /** Offers a tool. */
  add<F extends ToolFacts>(name: string, facts: F, handler: ToolHandler<never>): Registration<F>
  /** Spells out a result for a tool of a feature; `own`: its `_meta` is the runtime's word, not an author's. */
  reply(parts: ReplyParts, own?: boolean): Reply
  /** The result of a call that failed for this reason. */
  failed(exchange: Exchange, problem: Problem): CallToolResult
}
