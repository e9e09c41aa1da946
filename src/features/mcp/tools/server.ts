/** Offering tools: register, list, call. `tools/call` is resolve → validate → execute; other features hang layers between. */
import { createBuckets } from '../../../core/bucket.ts'
import { createCatalog } from '../../../core/catalog.ts'
import { type Clock, realClock, toMilliseconds } from '../../../core/clock.ts'
import { checkHandler, checkOptions, type KindsOf, type OptionKind } from '../../../core/options.ts'
import { type Problem, problem, refusalIn } from '../../../core/problem.ts'
import { type CompiledSchema, compileSchema } from '../../../core/schema/index.ts'
import type { CallContext } from '../../../engine/context.ts'
import { failedByStop } from '../../../engine/disconnect.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Paging } from '../../../engine/paging.ts'
import type { GatedHandler, Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide, register } from '../../../engine/server-feature.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, given, isThenable, type Params } from '../../../jsonrpc/message.ts'
import type { OfferingOptions } from '../lifecycle/messages.ts'
import { taskFacts, workAfterAnswer } from '../tasks/messages.ts'
import type { ToolEntry, ToolExtension, ToolFacts, ToolHandler, ToolsPort } from './entry.ts'
import { checkMirrored, isObjectSchema, mirroredParams } from './headers.ts'
import {
  type CallToolResult,
  callDeadlineMs,
  callTool,
  callToolDialect,
  listTools,
  type Tool,
  type ToolAnnotations,
  toolsPort,
  wrappedOutput,
} from './messages.ts'
import {
  failedResult,
  looksSpelledOut,
  Misreturned,
  misreturned,
  problemOfThrown,
  RuntimeReply,
  reply,
  toResult,
} from './result.ts'

interface ToolsOptions<C> {
  /** There will be some: clients are told so before the first one is there. Default false. */
  readonly expected?: boolean
  readonly paging: Paging
  /** By which the tools' own limits count. */
  readonly clock?: Clock
  /** The author's context of a call. */
  readonly context: (exchange: Exchange) => C
  /** Told what a handler threw, before the caller gets the short version. */
  readonly failed: (tool: string, error: unknown, caller: Caller, correlationId?: string) => void
}

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

const describe = 'give the tool a description: it is all that a model knows about the tool'

/** `server.tool`. Other features extend tools by their port. */
export const toolsFeature = defineServerFeature<OfferingOptions>({
  name: 'tools',
  options: { offers: 'list' },
  setup(kit, { offers = [] }) {
    const { paging, clock, context, trace, log } = kit
    const tools = toolsServer<CallContext>({
      expected: offers.includes('tools'),
      paging,
      clock,
      context,
      failed: (tool, error, caller, correlationId) =>
        trace('tool-failed', { tool, error, ...(correlationId && { correlationId }) }, caller),
    })
    const { catalog } = tools
    catalog.onChange(kit.began)
    const add: ToolsPort['add'] = (name, facts, handler) =>
      register(catalog, name, facts, now => {
        tools.declare(name, now)
        const entry = tools.compile(name, now, handler as ToolHandler<CallContext>)
        if ((now.description ?? '').trim() === '') log.warn('tool-undescribed', { tool: name, fix: describe })
        return entry
      })
    return {
      sides: [tools.side],
      provides: provide(toolsPort, {
        catalog,
        facts: <F extends object>(tool: string) => catalog.get(tool)?.facts as F | undefined,
        some: (name, test) => catalog.snapshot.memo(name, () => catalog.snapshot.entries.some(test)),
        // Each feature reads the options that are its own, and all are options of the same tool.
        extend: extension => tools.extend(extension as ToolExtension),
        compile: (name, facts) => tools.compile(name, facts, () => undefined),
        add,
        reply: (parts, own = false) => (own ? new RuntimeReply(parts) : reply(parts)),
        failed: tools.failed,
      }),
      server: { tool: add },
    }
  },
})

/** Has no global name. */
const AsyncGeneratorFunction: NewableFunction = Object.getPrototypeOf(async function* () {}).constructor

/** A function that is none itself may still give what one gives. */
function isGenerator(value: unknown): value is AsyncGenerator {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value && 'next' in value && 'return' in value
}

const emptyInput = { type: 'object', additionalProperties: false } as const

/** Makes the server's side of tools. */
export function toolsServer<C>(options: ToolsOptions<C>) {
  const catalog = createCatalog<ToolEntry<C>>({ noun: 'tool', key: entry => entry.name, facts: entry => entry.tool })
  let everOffered = options.expected === true
  catalog.onChange(() => {
    everOffered = true
  })
  const offered = (): boolean => everOffered
  const extended: JoinedExtension = { kinds, all: [], admit: undefined, stream: undefined, explain: undefined }
  const call: GatedHandler = {
    offered,
    resolve: exchange => {
      const name = exchange.params['name'] as string
      const entry = catalog.get(name)
      if (entry === undefined) throw exchange.engine.absent?.('tool', name) ?? unknownTool(name)
      if (entry.mirrored.length > 0) checkMirroredHeaders(entry.mirrored, exchange)
      extended.admit?.(exchange, entry.buckets)
      exchange.target = entry
    },
    validate,
    execute: exchange => {
      const entry = exchange.target as ToolEntry<C>
      const given = entry.handler(exchange.input as never, options.context(exchange))
      const { stream } = extended
      const out = stream !== undefined && isGenerator(given) ? stream(exchange, given) : given
      return isThenable(out) ? inTime(entry, exchange, out) : out
    },
    finish,
    failureResult: (exchange, error) => failed(exchange.target as ToolEntry<C>, exchange, error, options, extended),
    recover: (exchange, error) => {
      const refusal = refusalIn(error)
      // Whoever runs it has to know, whatever its caller is told.
      if (refusal !== undefined && refusal !== error) exchange.engine.trace('store-refused', error, exchange.caller)
      const told = refusal ?? (exchange.peer.revision.wrongArguments === 'result' ? badArguments(error) : undefined)
      return told && failedResult(exchange, told, extended.explain)
    },
  }
  const side: Side = {
    handlers: [
      [listTools, { offered, execute: exchange => options.paging.list(exchange, catalog, 'tools', entry => entry.tool) }],
      [callTool, call],
      [callToolDialect, call],
    ],
    capabilities: ({ detailedCapabilities }) => (everOffered ? { tools: detailedCapabilities ? { listChanged: true } : {} } : {}),
    errors: { 'unknown-tool': { default: -32602 }, 'invalid-arguments': { default: -32602, s3: 4001 } },
  }
  return {
    side,
    catalog,
    compile: (name: string, facts: ToolFacts, handler: ToolHandler<C>): ToolEntry<C> =>
      compile(name, facts, handler, options.clock, extended),
    /** Takes what another feature adds to tools. */
    extend: (extension: ToolExtension): void => {
      everOffered ||= extension.expected === true
      extended.all.push(extension)
      extended.kinds = { ...extended.kinds, ...extension.kinds }
      extended.admit ??= extension.admit
      extended.stream ??= extension.stream
      extended.explain ??= extension.explain
    },
    /** Tells all who extend tools that one is offered. */
    declare: (name: string, facts: ToolFacts): void => {
      for (const extension of extended.all) extension.declare?.(name, facts)
    },
    failed: (exchange: Exchange, problem: Problem): CallToolResult => failedResult(exchange, problem, extended.explain),
  }
}

/** What all other features add to tools, joined: asked with every call. */
interface JoinedExtension extends Mutable<Pick<ToolExtension, 'admit' | 'stream' | 'explain'>> {
  kinds: Readonly<Record<string, OptionKind>>
  readonly all: ToolExtension[]
}

type Mutable<T> = { -readonly [K in keyof T]-?: T[K] | undefined }

function compile<C>(
  name: string,
  facts: ToolFacts,
  handler: ToolHandler<C>,
  clock: Clock | undefined,
  { kinds, all }: JoinedExtension,
): ToolEntry<C> {
  if (!/^[A-Za-z0-9_.\-/]{1,128}$/.test(name)) {
    throw new TypeError(`"${clip(name)}" is not a valid tool name: use 1 to 128 of A-Z a-z 0-9 _ . -`)
  }
  checkHandler(`Tool "${name}"`, handler, 'tool(name, options, handler)')
  checkOptions(`Tool "${name}"`, facts, kinds)
  const input = facts.input === undefined ? undefined : compileSchema(facts.input, { where: `input of tool "${name}"` })
  const output =
    facts.output === undefined ? undefined : compileSchema(facts.output, { side: 'output', where: `output of tool "${name}"` })
  const inputSchema = input?.json ?? emptyInput
  if (inputSchema['type'] !== 'object')
    throw new TypeError(`The input of tool "${name}" must be an object schema, such as z.object({ … })`)
  const mirrored = mirroredParams(inputSchema)
  if ('fault' in mirrored) throw new TypeError(`The input schema of tool "${name}": ${mirrored.fault}`)
  const { title, description, icons } = facts
  const annotations = annotationsOf(
    facts,
    joined(all, extension => extension.annotations?.(facts)),
  )
  const streams = handler instanceof AsyncGeneratorFunction
  const schemas = { inputSchema, ...given({ outputSchema: output?.json }) }
  const extra = joined(all, extension => extension.meta?.(name, facts, schemas, streams))
  const meta = extra === undefined ? facts.meta : { ...extra, ...facts.meta }
  const support = taskFacts(facts.task)?.support
  const tool: Tool = {
    name,
    ...given({ title, description }),
    ...schemas,
    ...given({ annotations, icons, execution: support && { taskSupport: support }, _meta: meta }),
  }
  if (facts.dedupe !== undefined && typeof facts.dedupe !== 'function') toMilliseconds(facts.dedupe, 'dedupe')
  const timeoutMs = facts.timeout === undefined ? undefined : toMilliseconds(facts.timeout, 'timeout')
  const buckets = facts.rate === undefined ? undefined : createBuckets({ ...facts.rate, clock: clock ?? realClock })
  return { name, tool, facts, input, output, mirrored, timeoutMs, buckets, handler, streams }
}

/** What several features say, as one; undefined where none says anything. */
function joined<T extends object>(
  all: readonly ToolExtension[],
  say: (extension: ToolExtension) => T | undefined,
): T | undefined {
  const said = all.map(say).filter(each => each !== undefined)
  return said.length === 0 ? undefined : Object.assign({}, ...said)
}

/** What an author says in so many words stands before what follows from it. */
function annotationsOf({ annotations, idempotent }: ToolFacts, extra: ToolAnnotations | undefined): ToolAnnotations | undefined {
  const known = extra === undefined ? annotations : { ...extra, ...annotations }
  return idempotent === undefined ? known : { idempotentHint: idempotent, ...known }
}

/** On wires and carriers where headers repeat some arguments. */
function checkMirroredHeaders(mirrored: ToolEntry<never>['mirrored'], { peer, caller, params }: Exchange): void {
  if (peer.revision.era !== 'request' || caller.carrier !== 'http' || caller.header === undefined) return
  checkMirrored(mirrored, params['arguments'] as Params | undefined, header => caller.header?.(header))
}

function unknownTool(name: string): McpError {
  return new McpError('unknown-tool', `There is no tool "${clip(name)}"; tools/list lists the available tools`)
}

function validate(exchange: Exchange): Awaitable<void> {
  const entry = exchange.target as ToolEntry<never>
  // Made anew each time: a handler may write into what it gets.
  if (entry.input === undefined) {
    exchange.input = {}
    return undefined
  }
  const checked = entry.input.validate(exchange.params['arguments'] ?? {})
  if (isThenable(checked)) return checked.then(result => accept(entry, exchange, result))
  return accept(entry, exchange, checked)
}

type CheckedInput = Awaited<ReturnType<CompiledSchema['validate']>>

function accept(entry: ToolEntry<never>, exchange: Exchange, checked: CheckedInput): void {
  if (checked.ok) exchange.input = checked.value
  else throw new McpError('invalid-arguments', `Invalid arguments for tool ${entry.name}: ${issueText(checked.issues)}`)
}

function issueText(issues: readonly { readonly path: string; readonly message: string }[]): string {
  const shown = issues.slice(0, 5).map(({ path, message }) => (path === '' ? message : `${clip(path)}: ${clip(message, 200)}`))
  return issues.length > 5 ? `${shown.join('; ')}; and ${issues.length - 5} more` : shown.join('; ')
}

/** Within the time that its tool, and its caller, give it. */
function inTime<C>({ name, timeoutMs }: ToolEntry<C>, exchange: Exchange, out: PromiseLike<unknown>): Awaitable<unknown> {
  const withinMs = exchange.get(callDeadlineMs) ?? timeoutMs
  return withinMs === undefined ? out : within(Math.min(withinMs, timeoutMs ?? withinMs), name, exchange, out)
}

/** A call that takes too long is told to stop, and answered at once whether it does or not. */
function within(timeoutMs: number, name: string, exchange: Exchange, out: PromiseLike<unknown>): Promise<unknown> {
  const { clock, deadlines } = exchange.engine
  return new Promise((resolve, reject) => {
    const deadline = deadlines.add(clock.now() + timeoutMs, () => {
      exchange.stop(`Tool ${name} took longer than ${timeoutMs} ms`)
      exchange.set(workAfterAnswer, out)
      reject(problem('OPERATION_TIMEOUT', `Tool ${name} took longer than its timeout of ${timeoutMs} ms`))
    })
    out.then(resolve, reject)
    const done = (): void => deadlines.cancel(deadline)
    out.then(done, done)
  })
}

function finish({ target, engine }: Exchange, value: unknown): Awaitable<CallToolResult> {
  const entry = target as ToolEntry<never>
  let result: CallToolResult
  try {
    result = toResult(value, engine.info.name, entry.output !== undefined)
  } catch (error) {
    throw misreturned(entry.name, error)
  }
  if (entry.output === undefined || result.isError === true) return result
  // What older wires wrap in the schema they must wrap in the value, whatever the value is.
  if (!isObjectSchema(entry.output.json)) Object.assign(result, { [wrappedOutput]: true })
  const checked = entry.output.validate(result.structuredContent)
  return isThenable(checked) ? checked.then(done => checkedOutput(entry, result, done)) : checkedOutput(entry, result, checked)
}

/** The value goes out as the handler returned it: transforms of an output schema describe what readers make of it. */
function checkedOutput(entry: ToolEntry<never>, result: CallToolResult, checked: CheckedInput): CallToolResult {
  if (checked.ok) return result
  const fix = looksSpelledOut(result.structuredContent) ? '. To spell out a result return reply({ content, structured })' : ''
  const message = `The result of tool ${entry.name} does not match its output schema: ${issueText(checked.issues)}${fix}`
  throw new McpError('internal', message, { cause: new Misreturned(message) })
}

/** Protocol failures pass; what else a handler throws is the tool's failure, told without its stack. */
function failed<C>(
  entry: ToolEntry<C>,
  exchange: Exchange,
  error: unknown,
  options: ToolsOptions<C>,
  { explain }: JoinedExtension,
): CallToolResult {
  const problem = problemOfThrown(entry.name, exchange, error)
  // One that ends because it was told to has made no mistake.
  if (problem !== error && !failedByStop(exchange, error))
    options.failed(entry.name, error, exchange.caller, problem.correlationId)
  return failedResult(exchange, problem, explain)
}

/** The problem in arguments that do not fit; undefined for any other failure. */
function badArguments(error: unknown): Problem | undefined {
  if (!(error instanceof McpError) || error.kind !== 'invalid-arguments') return undefined
  return problem('INVALID_INPUT', error.message, { cause: error })
}
