/** Offering prompts: list and get. */
import { type Catalog, createCatalog } from '../../../core/catalog.ts'
import { checkHandler, checkOptions, type KindsOf } from '../../../core/options.ts'
import {
  type CompiledSchema,
  compileSchema,
  type InferOutput,
  type Schema,
  type StandardSchema,
} from '../../../core/schema/index.ts'
import type { CallContext } from '../../../engine/context.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { GatedHandler, Side } from '../../../engine/plan.ts'
import { withAuthored } from '../../../engine/reserved.ts'
import { defineServerFeature, provide, register } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, given, isRecord, isThenable } from '../../../jsonrpc/message.ts'
import type { Icon } from '../../../revisions/index.ts'
import { authorizationPort } from '../authorization/messages.ts'
import { type Completer, type Completers, checkCompleters } from '../completion/messages.ts'
import type { ContentBlock, Role } from '../content/messages.ts'
import type { OfferingOptions } from '../lifecycle/messages.ts'
import {
  type GetPromptResult,
  getPrompt,
  listPrompts,
  type Prompt,
  type PromptArgument,
  type PromptMessage,
  promptsPort,
} from './messages.ts'

/** Options of `server.prompt`. */
export interface PromptFacts<C = unknown, A = ArgumentsSpec<C>> {
  /** The name that people see. Default: the name of the prompt. */
  readonly title?: string
  /** What the prompt is for, in a sentence. Default: none. */
  readonly description?: string
  /** The arguments: a record by name, or the schema of an object. Default: none. */
  readonly arguments?: A
  /** Proposes values for arguments, if `arguments` is a schema. Default: none. */
  readonly complete?: Readonly<Record<string, Completer<C>>>
  /** Images that clients can show next to the name. Default: none. */
  readonly icons?: readonly Icon[]
  /** Scopes that the caller's token must have, in addition to those that every request needs. Default: none. */
  readonly scopes?: readonly string[]
  /** The `_meta` of the entry in lists. Default: none. */
  readonly meta?: Readonly<Record<string, unknown>>
}

const kinds: KindsOf<PromptFacts> = {
  title: 'string',
  description: 'string',
  arguments: 'any',
  complete: 'object',
  icons: 'list',
  meta: 'object',
  scopes: 'list',
}

type PromptHandler = (args: never, context: CallContext) => Awaitable<unknown>

/** One registered prompt, compiled. */
interface PromptEntry {
  readonly name: string
  readonly prompt: Prompt
  readonly args: CompiledArguments
  readonly scopes: readonly string[] | undefined
  readonly handler: PromptHandler
}

/** `server.prompt`. */
export const promptsFeature = defineServerFeature<OfferingOptions>({
  name: 'prompts',
  setup(kit, { offers = [] }) {
    const { paging, context } = kit
    const catalog = createCatalog<PromptEntry>({ noun: 'prompt', key: ({ name }) => name, facts: ({ prompt }) => prompt })
    // Clients are told that there are some also before the first one is there and after the last one.
    let everOffered = offers.includes('prompts')
    catalog.onChange(() => {
      everOffered = true
      kit.began()
    })
    const offered = (): boolean => everOffered
    const get: GatedHandler = {
      offered,
      resolve: exchange => {
        exchange.target = find(catalog, exchange)
      },
      validate: exchange => validate(exchange.target as PromptEntry, exchange),
      execute: exchange => {
        const { handler, prompt } = exchange.target as PromptEntry
        const { name } = exchange.engine.info
        const out = handler(exchange.input as never, context(exchange))
        return isThenable(out)
          ? out.then(value => toPromptResult(value, name, prompt.description))
          : toPromptResult(out, name, prompt.description)
      },
    }
    const side: Side = {
      handlers: [
        [listPrompts, { offered, execute: exchange => paging.list(exchange, catalog, 'prompts', ({ prompt }) => prompt) }],
        [getPrompt, get],
      ],
      capabilities: ({ detailedCapabilities }) => (everOffered && detailedCapabilities ? { prompts: { listChanged: true } } : {}),
      errors: { 'unknown-prompt': { default: -32602 } },
    }
    return {
      sides: [side],
      provides: provide(promptsPort, {
        completers: name => catalog.get(name)?.args.completers,
        completes: () => catalog.snapshot.memo('completes', () => catalog.snapshot.entries.some(completes)),
        scopes: name => catalog.get(name)?.scopes,
        onChange: fn => void catalog.onChange(fn),
      }),
      server: {
        prompt: <F extends PromptFacts<CallContext>>(name: string, facts: F, handler: PromptHandler) =>
          register(catalog, name, facts, now => {
            kit.port(authorizationPort).declare(now.scopes, 'a prompt')
            return compile(name, now, handler)
          }),
      },
    }
  },
})

function compile(name: string, facts: PromptFacts<CallContext>, handler: PromptHandler): PromptEntry {
  if (typeof name !== 'string' || name === '') throw new TypeError('A prompt needs a name: prompt(name, options, handler)')
  checkHandler(`Prompt "${clip(name)}"`, handler, 'prompt(name, options, handler)')
  checkOptions(`Prompt "${clip(name)}"`, facts, kinds)
  const { title, description, icons, meta, scopes } = facts
  const args = compileArguments(facts.arguments, facts.complete, `arguments of prompt "${clip(name)}"`)
  const prompt: Prompt = {
    name,
    ...given({ title, description, arguments: args.shown.length === 0 ? undefined : args.shown, icons, _meta: meta }),
  }
  return { name, prompt, args, scopes, handler }
}

function completes({ args }: PromptEntry): boolean {
  return [...args.completers.values()].some(completer => completer !== undefined)
}

function find(catalog: Catalog<PromptEntry>, { params, engine }: Exchange): PromptEntry {
  const name = params['name'] as string
  const entry = catalog.get(name)
  if (entry === undefined)
    throw (
      engine.absent?.('prompt', name) ??
      new McpError('unknown-prompt', `There is no prompt "${clip(name)}"; prompts/list lists the available prompts`)
    )
  return entry
}

function validate({ name, args }: PromptEntry, exchange: Exchange): Awaitable<void> {
  const checked = args.check(name, (exchange.params['arguments'] ?? {}) as Readonly<Record<string, string>>)
  if (isThenable(checked)) {
    return checked.then(input => {
      exchange.input = input
    })
  }
  exchange.input = checked
}

// What a handler returned → the canonical result. A string is enough: it is what the user says.

/** One message of a prompt. */
interface MessageParts {
  /** Who speaks. Default `user`. */
  readonly role?: Role
  /** The content of the message: a block, or text. */
  readonly content: string | ContentBlock
}

/** What the handler of a prompt may return: text, a message, several of them, or a whole prompt. */
export type PromptOutput = string | MessageParts | readonly (string | MessageParts)[] | PromptParts

/** A whole prompt: its messages, and a description. */
interface PromptParts {
  /** What the prompt does. Default: none. */
  readonly description?: string
  /** The messages, in the order in which the model reads them. */
  readonly messages: readonly (string | MessageParts)[]
}

/** `server` is how it names itself; `description` is the prompt's own, for results that have none. */
function toPromptResult(value: unknown, server: string, description: string | undefined): GetPromptResult {
  const parts: PromptParts = isParts(value) ? value : { messages: Array.isArray(value) ? value : [value] }
  const told = parts.description ?? description
  return { ...(told === undefined ? {} : { description: told }), messages: parts.messages.map(part => toMessage(part, server)) }
}

function isParts(value: unknown): value is PromptParts {
  return isRecord(value) && Array.isArray(value['messages'])
}

function toMessage(part: unknown, server: string): PromptMessage {
  if (typeof part === 'string') return { role: 'user', content: { type: 'text', text: part } }
  if (isRecord(part)) {
    const { role = 'user', content } = part as Partial<MessageParts>
    if (typeof content === 'string') return { role, content: { type: 'text', text: content } }
    if (isRecord(content)) return { role, content: withAuthored(content, server) }
  }
  throw new TypeError('The handler of a prompt must return text, messages with content, or { description, messages }')
}

// The arguments of a prompt, from a record of facts or from a schema: what clients are shown, and the check that values pass.

/** Options of one argument of a prompt. */
export interface ArgumentFacts<C = unknown> {
  /** The name that people see. Default: the name of the argument. */
  readonly title?: string
  /** What to give, in a sentence. Default: none. */
  readonly description?: string
  /** Whether the argument is required. Default false. */
  readonly required?: boolean
  /** Proposes values while the user types. Default: none. */
  readonly complete?: Completer<C>
}

/** The arguments of a prompt. They are text on the wire; a schema can convert them, for example `z.coerce.number()`. */
type ArgumentsSpec<C = unknown> = Schema | FactsOf<C>
/** The arguments of a prompt, by name. */
type FactsOf<C> = Readonly<Record<string, ArgumentFacts<C>>>

/** The values of the arguments, by name. */
type Values = Readonly<Record<string, string>>

/** The arguments that the handler of a prompt gets. */
export type ArgumentsOf<A> = A extends StandardSchema
  ? InferOutput<A>
  : A extends { readonly type: string }
    ? InferOutput<A>
    : A extends Readonly<Record<string, ArgumentFacts<never>>>
      ? string extends keyof A
        ? Values
        : { readonly [K in keyof A as A[K] extends { readonly required: true } ? K : never]: string } & {
            readonly [K in keyof A]?: string
          }
      : Values

interface CompiledArguments {
  readonly shown: readonly PromptArgument[]
  readonly completers: Completers<CallContext>
  /** Gives the handler's arguments, or throws what is wrong with them. */
  check(prompt: string, values: Values): Awaitable<unknown>
}

/** `complete`: completers beside a spec that has no place for them. */
function compileArguments(
  spec: ArgumentsSpec<CallContext> | undefined,
  complete: PromptFacts<CallContext>['complete'],
  where: string,
): CompiledArguments {
  const given = new Map(Object.entries(complete ?? {}))
  const args = isSchema(spec) ? bySchema(spec, where) : byFacts(spec ?? {}, where)
  for (const name of given.keys()) {
    if (!args.completers.has(name))
      throw new TypeError(`${where}: the argument "${clip(name)}" does not exist, so it cannot have a completion`)
  }
  checkCompleters(where, given)
  if (given.size === 0) return args
  return { ...args, completers: new Map([...args.completers, ...given]) }
}

/** A record of facts holds objects only; a JSON Schema says its type in a word. */
function isSchema(spec: ArgumentsSpec<CallContext> | undefined): spec is Schema {
  if (spec === undefined) return false
  return (
    typeof spec === 'function' || '~standard' in spec || typeof Object.getOwnPropertyDescriptor(spec, 'type')?.value === 'string'
  )
}

const factKinds: KindsOf<ArgumentFacts> = { title: 'string', description: 'string', required: 'boolean', complete: 'function' }

function byFacts(facts: FactsOf<CallContext>, where: string): CompiledArguments {
  if (!isRecord(facts))
    throw new TypeError(`${where}: give a record such as { id: { required: true } }, or the schema of an object`)
  const entries = Object.entries(facts)
  for (const [name, fact] of entries) checkOptions(`${where}: "${clip(name)}"`, fact, factKinds)
  const shown = entries.map(([name, fact]) => argument(name, fact, fact.required))
  return {
    shown,
    completers: new Map(entries.map(([name, { complete }]) => [name, complete])),
    check: (prompt, values) => requireAll(prompt, shown, values),
  }
}

function bySchema(schema: Schema, where: string): CompiledArguments {
  const compiled = compileSchema(schema, { where })
  const shown = fromSchema(compiled, where)
  return {
    shown,
    completers: new Map(shown.map(({ name }) => [name, undefined])),
    check: (prompt, values) => validateValues(prompt, compiled, values),
  }
}

function fromSchema({ json }: CompiledSchema, where: string): PromptArgument[] {
  const { type, properties, required } = json
  if (type !== 'object') throw new TypeError(`${where}: the schema must be an object schema with a property for each argument`)
  const needed = new Set(Array.isArray(required) ? required : [])
  return Object.entries(isRecord(properties) ? properties : {}).map(([name, property]) => {
    const { title, description } = isRecord(property) ? property : {}
    const facts = { ...(typeof title === 'string' ? { title } : {}), ...(typeof description === 'string' ? { description } : {}) }
    return argument(name, facts, needed.has(name))
  })
}

function argument(name: string, { title, description }: ArgumentFacts<never>, required: boolean | undefined): PromptArgument {
  return { name, ...given({ title, description, required }) }
}

function requireAll(prompt: string, shown: readonly PromptArgument[], values: Values): Values {
  const missing = shown.filter(({ name, required }) => required === true && !Object.hasOwn(values, name)).map(({ name }) => name)
  if (missing.length === 0) return values
  throw new McpError(
    'invalid-params',
    `The prompt ${clip(prompt)} needs ${missing.length === 1 ? 'the argument' : 'the arguments'} ${missing.join(', ')}`,
  )
}

function validateValues(prompt: string, schema: CompiledSchema, values: Values): Awaitable<unknown> {
  const checked = schema.validate(values)
  return isThenable(checked) ? checked.then(done => accepted(prompt, done)) : accepted(prompt, checked)
}

function accepted(prompt: string, checked: Awaited<ReturnType<CompiledSchema['validate']>>): unknown {
  if (checked.ok) return checked.value
  const issues = checked.issues
    .slice(0, 5)
    .map(({ path, message }) => (path === '' ? message : `${clip(path)}: ${clip(message, 200)}`))
  throw new McpError('invalid-params', `Invalid arguments for prompt ${clip(prompt)}: ${issues.join('; ')}`)
}
