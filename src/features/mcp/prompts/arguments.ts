/** The arguments of a prompt, from a record of facts or from a schema: what clients are shown, and the check that values pass. */
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { type Compiled, compileSchema, type InferOutput, type Schema, type StandardSchema } from '../../../core/schema/index.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, isThenable } from '../../../jsonrpc/message.ts'
import { type Completer, checkCompleters } from '../completion/messages.ts'
import type { PromptArgument } from './messages.ts'

export interface ArgumentFacts<C = unknown> {
  readonly title?: string
  readonly description?: string
  readonly required?: boolean
  readonly complete?: Completer<C>
}

/** Arguments are text on the wire; a schema may make more of them, such as `z.coerce.number()`. */
export type ArgumentsSpec<C = unknown> = Schema | FactsOf<C>
type FactsOf<C> = Readonly<Record<string, ArgumentFacts<C>>>

type Values = Readonly<Record<string, string>>

/** What a handler gets as its arguments. */
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

export interface CompiledArguments<C> {
  readonly shown: readonly PromptArgument[]
  readonly completers: ReadonlyMap<string, Completer<C> | undefined>
  /** Gives the handler's arguments, or throws what is wrong with them. */
  check(prompt: string, values: Values): Awaitable<unknown>
}

/** `complete`: completers beside a spec that has no place for them. */
export function compileArguments<C>(
  spec: ArgumentsSpec<C> | undefined,
  complete: Readonly<Record<string, Completer<C> | undefined>> | undefined,
  where: string,
): CompiledArguments<C> {
  const given = new Map(Object.entries(complete ?? {}))
  const args = isSchema(spec) ? bySchema<C>(spec, where) : byFacts(spec ?? {}, where)
  for (const name of given.keys()) {
    if (!args.completers.has(name)) throw new TypeError(`${where}: there is no argument "${clip(name)}" to complete`)
  }
  checkCompleters(where, given)
  if (given.size === 0) return args
  return { ...args, completers: new Map([...args.completers, ...given]) }
}

/** A record of facts holds objects only; a JSON Schema says its type in a word. */
function isSchema<C>(spec: ArgumentsSpec<C> | undefined): spec is Exclude<ArgumentsSpec<C>, FactsOf<C>> {
  if (spec === undefined) return false
  return (
    typeof spec === 'function' || '~standard' in spec || typeof Object.getOwnPropertyDescriptor(spec, 'type')?.value === 'string'
  )
}

const kinds: KindsOf<ArgumentFacts> = { title: 'string', description: 'string', required: 'boolean', complete: 'function' }

function byFacts<C>(facts: FactsOf<C>, where: string): CompiledArguments<C> {
  if (!isRecord(facts))
    throw new TypeError(`${where}: give a record such as { id: { required: true } }, or the schema of an object`)
  const entries = Object.entries(facts)
  for (const [name, fact] of entries) checkOptions(`${where}: "${clip(name)}"`, fact, kinds)
  const shown = entries.map(([name, fact]) => argument(name, fact, fact.required))
  return {
    shown,
    completers: new Map(entries.map(([name, { complete }]) => [name, complete])),
    check: (prompt, values) => requireAll(prompt, shown, values),
  }
}

function bySchema<C>(schema: Schema, where: string): CompiledArguments<C> {
  const compiled = compileSchema(schema, { where })
  const shown = fromSchema(compiled, where)
  return {
    shown,
    completers: new Map(shown.map(({ name }) => [name, undefined])),
    check: (prompt, values) => validate(prompt, compiled, values),
  }
}

function fromSchema({ json }: Compiled, where: string): PromptArgument[] {
  const { type, properties, required } = json
  if (type !== 'object') throw new TypeError(`${where}: the schema must be one of an object, with a property for each argument`)
  const needed = new Set(Array.isArray(required) ? required : [])
  return Object.entries(isRecord(properties) ? properties : {}).map(([name, property]) => {
    const { title, description } = isRecord(property) ? property : {}
    const facts = { ...(typeof title === 'string' ? { title } : {}), ...(typeof description === 'string' ? { description } : {}) }
    return argument(name, facts, needed.has(name))
  })
}

function argument(name: string, { title, description }: ArgumentFacts<never>, required: boolean | undefined): PromptArgument {
  return {
    name,
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(required === undefined ? {} : { required }),
  }
}

function requireAll(prompt: string, shown: readonly PromptArgument[], values: Values): Values {
  const missing = shown.filter(({ name, required }) => required === true && !Object.hasOwn(values, name)).map(({ name }) => name)
  if (missing.length === 0) return values
  throw new McpError(
    'invalid-params',
    `The prompt ${clip(prompt)} needs ${missing.length === 1 ? 'the argument' : 'the arguments'} ${missing.join(', ')}`,
  )
}

function validate(prompt: string, schema: Compiled, values: Values): Awaitable<unknown> {
  const checked = schema.validate(values)
  return isThenable(checked) ? checked.then(done => accepted(prompt, done)) : accepted(prompt, checked)
}

function accepted(prompt: string, checked: Awaited<ReturnType<Compiled['validate']>>): unknown {
  if (checked.ok) return checked.value
  const issues = checked.issues
    .slice(0, 5)
    .map(({ path, message }) => (path === '' ? message : `${clip(path)}: ${clip(message, 200)}`))
  throw new McpError('invalid-params', `Invalid arguments for prompt ${clip(prompt)}: ${issues.join('; ')}`)
}
