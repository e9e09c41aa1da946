/** Offering tools: register, list, call. `tools/call` is resolve → validate → execute; other features hang layers between. */
import { type Buckets, createBuckets } from '../../../core/bucket.ts'
import { type Catalog, createCatalog } from '../../../core/catalog.ts'
import { type Clock, realClock } from '../../../core/clock.ts'
import { type Duration, toMilliseconds } from '../../../core/duration.ts'
import { checkHandler, checkOptions, type Kind, type KindsOf } from '../../../core/options.ts'
import { refusalIn } from '../../../core/problem.ts'
import { type Compiled, compileSchema, type Schema } from '../../../core/schema/index.ts'
import { failedByStop } from '../../../engine/disconnect.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Paging } from '../../../engine/paging.ts'
import type { GatedHandler, Side } from '../../../engine/plan.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isThenable, type Params } from '../../../jsonrpc/message.ts'
import type { Icon } from '../../../revisions/index.ts'
import { type TaskFacts, taskFacts } from '../tasks/messages.ts'
import { badArguments, type Explain, failedResult, problemOfThrown, tookTooLong } from './failed.ts'
import { checkMirrored, type MirroredParam, mirroredParams } from './headers.ts'
import {
  type CallToolResult,
  callTool,
  callToolDialect,
  listTools,
  type TaskSupport,
  type Tool,
  type ToolAnnotations,
  toolErrors,
  wraps,
} from './messages.ts'
import { looksSpelledOut, Misreturned, misreturned } from './misreturned.ts'
import { toResult } from './result.ts'
import { isObjectSchema } from './schemas.ts'

export interface ToolFacts {
  /** The name that people are shown. Default: the name of the tool. */
  readonly title?: string
  /** What it does and when to use it: the model chooses by it. */
  readonly description?: string
  /** The arguments, by a schema. */
  readonly input?: Schema
  /** The structured result, by a schema. */
  readonly output?: Schema
  /** What it does to the world: `readOnlyHint`, `destructiveHint`, `idempotentHint`, `openWorldHint`. */
  readonly annotations?: ToolAnnotations
  /** Pictures that clients may show beside its name. */
  readonly icons?: readonly Icon[]
  /** Scopes that a caller's token must have, beyond those that every request needs. */
  readonly scopes?: readonly string[]
  /** Whether a call may or must run in the background, and how. Default: it must not. */
  readonly task?: TaskSupport | TaskFacts
  /** How long one call may take. Default: as long as the caller waits. */
  readonly timeout?: Duration
  /** Done twice it has the same effect as done once, so that a call whose outcome is unknown may be made again. */
  readonly idempotent?: boolean
  /**
   * A call without an idempotency key that is the same as one of its caller's that ended less than this ago is a repetition of it:
   * it gets that one's outcome. A function says it for one call; undefined: each is a call of its own, as by default.
   */
  readonly dedupe?: Duration | ((args: Params, caller: Caller) => Duration | undefined)
  /**
   * What becomes of two calls that wrote on the same state: a state each (`branch`, the default), or a refusal for the later one
   * (`conflict`). Said here, a call whose state is no longer good is refused before it does anything.
   */
  readonly state?: 'branch' | 'conflict'
  /** How often one caller may call this tool, instead of the server's common limit. */
  readonly rate?: { readonly perSecond: number; readonly burst?: number }
  /** Members of `_meta` that are listed with it. */
  readonly meta?: Readonly<Record<string, unknown>>
}

export type ToolHandler<C> = (args: never, context: C) => Awaitable<unknown>

/** One registered tool, compiled. */
export interface ToolEntry<C = unknown> {
  readonly name: string
  readonly tool: Tool
  readonly facts: ToolFacts
  readonly input: Compiled | undefined
  readonly output: Compiled | undefined
  readonly mirrored: readonly MirroredParam[]
  readonly timeoutMs: number | undefined
  readonly buckets: Buckets | undefined
  readonly handler: ToolHandler<C>
  /** Its handler yields parts of its result while it works. */
  readonly streams: boolean
}

export interface ToolsServer<C> {
  readonly side: Side
  readonly catalog: Catalog<ToolEntry<C>>
  compile(name: string, facts: ToolFacts, handler: ToolHandler<C>): ToolEntry<C>
}

export interface ToolsOptions<C> {
  /** There will be some: clients are told so before the first one is there. Default false. */
  readonly expected?: boolean
  readonly paging: Paging
  /** By which the tools' own limits count. */
  readonly clock?: Clock
  /** The author's context of a call. */
  readonly context: (exchange: Exchange) => C
  /** Refuses, by throwing, a caller that calls too often; `own` is the tool's own limit. */
  readonly admit?: (exchange: Exchange, own: Buckets | undefined) => void
  /** What other features let an author say of a tool. */
  readonly more?: ToolExtras
  /** Told what a handler threw, before the caller gets the short version. */
  readonly failed: (tool: string, error: unknown, caller: Caller, correlationId?: string) => void
  /** Runs a handler that yields parts of its result, and gives what it comes to. */
  readonly stream?: (exchange: Exchange, generator: AsyncGenerator) => Promise<unknown>
  /** What a failed call's result says of the problem beside its words. */
  readonly explain?: Explain
}

/** Options of a tool that belong to other features: their kinds, and what a list tells of them. */
export interface ToolExtras {
  readonly kinds: Readonly<Record<string, Kind>>
  /** Goes into the tool's `_meta`. Throws where what was said makes no sense. */
  meta(name: string, facts: ToolFacts, schemas: ToolSchemas, streams: boolean): Readonly<Record<string, unknown>> | undefined
  /** Hints that follow from it. */
  annotations?(facts: ToolFacts): ToolAnnotations | undefined
}

export type ToolSchemas = Pick<Tool, 'inputSchema' | 'outputSchema'>

const kinds: KindsOf<ToolFacts> = {
  title: 'string',
  description: 'string',
  input: 'any',
  output: 'any',
  annotations: 'object',
  icons: 'list',
  task: 'any',
  timeout: 'any',
  rate: 'object',
  idempotent: 'boolean',
  dedupe: 'any',
  state: 'string',
  meta: 'object',
  scopes: 'list',
}

/** Has no global name. */
const AsyncGeneratorFunction: NewableFunction = Object.getPrototypeOf(async function* () {}).constructor

/** A function that is none itself may still give what one gives. */
function isGenerator(value: unknown): value is AsyncGenerator {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value && 'next' in value && 'return' in value
}

const emptyInput = { type: 'object', additionalProperties: false } as const

export function toolsServer<C>(options: ToolsOptions<C>): ToolsServer<C> {
  const catalog = createCatalog<ToolEntry<C>>({ noun: 'tool', key: entry => entry.name, facts: entry => entry.tool })
  let everOffered = options.expected === true
  catalog.onChange(() => {
    everOffered = true
  })
  const offered = (): boolean => everOffered
  const call: GatedHandler = {
    offered,
    resolve: exchange => {
      const entry = resolve(catalog, exchange)
      options.admit?.(exchange, entry.buckets)
      exchange.target = entry
    },
    validate: exchange => validate(exchange.target as ToolEntry<C>, exchange),
    execute: exchange => execute(exchange.target as ToolEntry<C>, exchange, options),
    finish: (exchange, value) => finish(exchange.target as ToolEntry<C>, exchange.engine.info.name, value),
    rescue: (exchange, error) => failed(exchange.target as ToolEntry<C>, exchange, error, options),
    recover: (exchange, error) => {
      const refusal = refusalIn(error)
      // Whoever runs it has to know, whatever its caller is told.
      if (refusal !== undefined && refusal !== error) exchange.engine.trace('store-refused', error, exchange.caller)
      const problem = refusal ?? (exchange.peer.revision.wrongArguments === 'result' ? badArguments(error) : undefined)
      return problem === undefined ? undefined : failedResult(exchange, problem, options.explain)
    },
  }
  return {
    catalog,
    compile: (name, facts, handler) => compile(name, facts, handler, options),
    side: {
      handlers: [
        [
          listTools,
          { offered, execute: (exchange: Exchange) => options.paging.list(exchange, catalog, 'tools', entry => entry.tool) },
        ],
        [callTool, call],
        [callToolDialect, call],
      ],
      capabilities: revision =>
        everOffered && revision.id !== 's3' ? { tools: { listChanged: true } } : everOffered ? { tools: {} } : {},
      errors: toolErrors,
    },
  }
}

function compile<C>(name: string, facts: ToolFacts, handler: ToolHandler<C>, options: ToolsOptions<C>): ToolEntry<C> {
  const { more, clock = realClock } = options
  if (!/^[A-Za-z0-9_.\-/]{1,128}$/.test(name)) {
    throw new TypeError(`"${clip(name)}" is no tool name: use 1 to 128 of A-Z a-z 0-9 _ . -`)
  }
  checkHandler(`Tool "${name}"`, handler, 'tool(name, options, handler)')
  checkOptions(`Tool "${name}"`, facts, more === undefined ? kinds : { ...kinds, ...more.kinds })
  const input = facts.input === undefined ? undefined : compileSchema(facts.input, { where: `input of tool "${name}"` })
  const output =
    facts.output === undefined ? undefined : compileSchema(facts.output, { side: 'output', where: `output of tool "${name}"` })
  const inputSchema = input?.json ?? emptyInput
  if (inputSchema['type'] !== 'object')
    throw new TypeError(`The input of tool "${name}" must be an object schema, such as z.object({ … })`)
  const mirrored = mirroredParams(inputSchema)
  if ('fault' in mirrored) throw new TypeError(`The input schema of tool "${name}": ${mirrored.fault}`)
  const { title, description, icons } = facts
  const annotations = annotationsOf(facts, more?.annotations?.(facts))
  const streams = handler instanceof AsyncGeneratorFunction
  const schemas = { inputSchema, ...(output === undefined ? {} : { outputSchema: output.json }) }
  const extra = more?.meta(name, facts, schemas, streams)
  const meta = extra === undefined ? facts.meta : { ...extra, ...facts.meta }
  const support = taskFacts(facts.task)?.support
  const tool: Tool = {
    name,
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    inputSchema,
    ...(output === undefined ? {} : { outputSchema: output.json }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(icons === undefined ? {} : { icons }),
    ...(support === undefined ? {} : { execution: { taskSupport: support } }),
    ...(meta === undefined ? {} : { _meta: meta }),
  }
  if (facts.dedupe !== undefined && typeof facts.dedupe !== 'function') toMilliseconds(facts.dedupe, 'dedupe')
  const timeoutMs = facts.timeout === undefined ? undefined : toMilliseconds(facts.timeout, 'timeout')
  const buckets = facts.rate === undefined ? undefined : createBuckets({ ...facts.rate, clock })
  return { name, tool, facts, input, output, mirrored, timeoutMs, buckets, handler, streams }
}

/** What an author says in so many words stands before what follows from it. */
function annotationsOf({ annotations, idempotent }: ToolFacts, extra: ToolAnnotations | undefined): ToolAnnotations | undefined {
  const known = extra === undefined ? annotations : { ...extra, ...annotations }
  return idempotent === undefined ? known : { idempotentHint: idempotent, ...known }
}

function resolve<C>(catalog: Catalog<ToolEntry<C>>, exchange: Exchange): ToolEntry<C> {
  const name = exchange.params['name'] as string
  const entry = catalog.get(name)
  if (entry === undefined) throw exchange.engine.absent?.('tool', name) ?? unknownTool(name)
  const { caller } = exchange
  if (
    entry.mirrored.length > 0 &&
    exchange.peer.revision.era === 'request' &&
    caller.carrier === 'http' &&
    caller.header !== undefined
  ) {
    const args = exchange.params['arguments'] as Params | undefined
    checkMirrored(entry.mirrored, args, header => caller.header?.(header))
  }
  return entry
}

function unknownTool(name: string): McpError {
  return new McpError('unknown-tool', `There is no tool "${clip(name)}"; tools/list names those there are`)
}

function validate(entry: ToolEntry<never>, exchange: Exchange): Awaitable<void> {
  // Made anew each time: a handler may write into what it gets.
  if (entry.input === undefined) {
    exchange.input = {}
    return undefined
  }
  const checked = entry.input.validate(exchange.params['arguments'] ?? {})
  if (isThenable(checked)) return checked.then(result => accept(entry, exchange, result))
  return accept(entry, exchange, checked)
}

type Checked = Awaited<ReturnType<Compiled['validate']>>

function accept(entry: ToolEntry<never>, exchange: Exchange, checked: Checked): void {
  if (checked.ok) exchange.input = checked.value
  else throw new McpError('invalid-arguments', `Invalid arguments for tool ${entry.name}: ${issueText(checked.issues)}`)
}

function issueText(issues: readonly { readonly path: string; readonly message: string }[]): string {
  const shown = issues.slice(0, 5).map(({ path, message }) => (path === '' ? message : `${clip(path)}: ${clip(message, 200)}`))
  return issues.length > 5 ? `${shown.join('; ')}; and ${issues.length - 5} more` : shown.join('; ')
}

function execute<C>(entry: ToolEntry<C>, exchange: Exchange, options: ToolsOptions<C>): Awaitable<unknown> {
  const given = entry.handler(exchange.input as never, options.context(exchange))
  const out = options.stream !== undefined && isGenerator(given) ? options.stream(exchange, given) : given
  const { withinMs = entry.timeoutMs } = exchange
  if (withinMs === undefined || !isThenable(out)) return out
  return within(Math.min(withinMs, entry.timeoutMs ?? withinMs), entry.name, exchange, out)
}

/** A call that takes too long is told to stop, and answered at once whether it does or not. */
function within(timeoutMs: number, name: string, exchange: Exchange, out: PromiseLike<unknown>): Promise<unknown> {
  const { clock, deadlines } = exchange.engine
  return new Promise((resolve, reject) => {
    const deadline = deadlines.add(clock.now() + timeoutMs, () => {
      exchange.stop(`Tool ${name} took longer than ${timeoutMs} ms`)
      exchange.workAfterAnswer = out
      reject(tookTooLong(name, timeoutMs))
    })
    out.then(resolve, reject)
    const done = (): void => deadlines.cancel(deadline)
    out.then(done, done)
  })
}

function finish(entry: ToolEntry<never>, server: string, value: unknown): Awaitable<CallToolResult> {
  const result = resultOf(entry, server, value)
  if (entry.output === undefined || result.isError === true) return result
  // What older wires wrap in the schema they must wrap in the value, whatever the value is.
  if (!isObjectSchema(entry.output.json)) Object.assign(result, { [wraps]: true })
  const checked = entry.output.validate(result.structuredContent)
  return isThenable(checked) ? checked.then(done => checkedOutput(entry, result, done)) : checkedOutput(entry, result, checked)
}

function resultOf({ name, output }: ToolEntry<never>, server: string, value: unknown): CallToolResult {
  try {
    return toResult(value, server, output !== undefined)
  } catch (error) {
    throw misreturned(name, error)
  }
}

/** The value goes out as the handler returned it: transforms of an output schema describe what readers make of it. */
function checkedOutput(entry: ToolEntry<never>, result: CallToolResult, checked: Checked): CallToolResult {
  if (checked.ok) return result
  const fix = looksSpelledOut(result.structuredContent) ? '. To spell out a result return reply({ content, structured })' : ''
  const message = `Tool ${entry.name} returned something else than its output schema says: ${issueText(checked.issues)}${fix}`
  throw new McpError('internal', message, { cause: new Misreturned(message) })
}

/** Protocol failures pass; what else a handler throws is the tool's failure, told without its stack. */
function failed<C>(entry: ToolEntry<C>, exchange: Exchange, error: unknown, options: ToolsOptions<C>): CallToolResult {
  const problem = problemOfThrown(entry.name, exchange, error)
  // One that ends because it was told to has made no mistake.
  if (problem !== error && !failedByStop(exchange, error))
    options.failed(entry.name, error, exchange.caller, problem.correlationId)
  return failedResult(exchange, problem, options.explain)
}
