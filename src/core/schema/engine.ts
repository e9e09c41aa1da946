/**
 * Checks values against JSON Schemas. What turns schemas into checks is loaded when the first value is checked, because loading
 * costs more than starting a server.
 */

import { clip, echo } from '../../jsonrpc/limits.ts'
import { type Awaitable, isThenable } from '../../jsonrpc/message.ts'
import { loadCompiler } from './compiler.ts'
import { type Issue, type JsonSchema, SchemaError } from './schema.ts'

/** What is wrong with a value; undefined when nothing is. */
export type Check = (value: unknown) => readonly Issue[] | undefined

/** Turns a schema into its check; throws what is wrong with the schema. */
export type Compile = (json: JsonSchema) => Check

/** The dialects of JSON Schema that can be checked. */
export type Dialect = '2020-12' | '2019-09' | 'draft-07'

const dialects: ReadonlyMap<string, Dialect> = new Map([
  ['https://json-schema.org/draft/2020-12/schema', '2020-12'],
  ['https://json-schema.org/draft/2019-09/schema', '2019-09'],
  ['http://json-schema.org/draft-07/schema', 'draft-07'],
])

/** The dialect a schema names by `$schema`; 2020-12 if none. */
export function schemaDialectOf(json: JsonSchema): Dialect {
  const { $schema } = json
  if ($schema === undefined) return '2020-12'
  const dialect =
    typeof $schema === 'string' ? dialects.get($schema.replace(/#$/, '').replace(/^https:(?=.*draft-07)/, 'http:')) : undefined
  if (dialect !== undefined) return dialect
  throw new SchemaError(
    `The JSON Schema dialect ${echo($schema)} is not supported. Use 2020-12 (the default), 2019-09 or draft-07`,
  )
}

const compilers = new Map<Dialect, Awaitable<Compile>>()

/** At once when the engine for the dialect is there already. */
function compilerFor(dialect: Dialect): Awaitable<Compile> {
  const known = compilers.get(dialect)
  if (known !== undefined) return known
  const loading = loadCompiler(dialect).then(
    compile => {
      compilers.set(dialect, compile)
      return compile
    },
    (cause: unknown) => {
      compilers.delete(dialect)
      throw cause
    },
  )
  compilers.set(dialect, loading)
  return loading
}

/** Loads the engine for the usual dialect now, so that the first call need not wait for it. */
export async function preloadEngine(): Promise<void> {
  await compilerFor('2020-12')
}

/** Checks are shared by equal schemas: a server made anew for each request does not compile anew. */
const maxChecks = 1_000
const byIdentity = new WeakMap<JsonSchema, Check>()
const byText = new Map<string, Check>()

/** The check for a schema of our own side. `where` says in errors whose schema it is. */
export function checkFor(json: JsonSchema, where: string): Awaitable<Check> {
  const known = byIdentity.get(json)
  if (known !== undefined) return known
  const compile = compilerFor(schemaDialectOf(json))
  return isThenable(compile) ? compile.then(ready => compiled(json, ready, where)) : compiled(json, compile, where)
}

function compiled(json: JsonSchema, compile: Compile, where: string): Check {
  const text = JSON.stringify(json)
  const check = byText.get(text) ?? compileOrExplain(json, compile, where)
  byIdentity.set(json, check)
  if (byText.size >= maxChecks) for (const [oldest] of byText) if (byText.delete(oldest)) break
  byText.set(text, check)
  return check
}

function compileOrExplain(json: JsonSchema, compile: Compile, where: string): Check {
  try {
    return compile(json)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new SchemaError(`${where}: the JSON Schema is not valid: ${clip(why, 200)}`, { cause })
  }
}
