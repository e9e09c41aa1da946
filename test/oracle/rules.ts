/** One revision's rules: which definition of its schema a message must fit, and whether it does. */
import { Ajv, type Options, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { closeSchema } from './closed.ts'
import { type Definitions, definitionsOf, type Judged, readSchema, type SchemaFile } from './schemas.ts'

const formats = {
  // By its length and its letters: one expression for both runs out of stack on contents of many megabytes.
  byte: (text: string) => text.length % 4 === 0 && !/[^A-Za-z0-9+/]/.test(text.replace(/={1,2}$/, '')),
  // Authors may name things by text that no URI may hold; the scheme is what readers rely on.
  uri: /^[A-Za-z][A-Za-z0-9+.-]*:/,
  'uri-template': true as const,
}

export class Rules {
  readonly #definitions: Definitions
  readonly #ajv: Ajv
  readonly #root: string
  readonly #compiled = new Map<string, ValidateFunction>()
  readonly #byMethod = new Map<string, string>()

  constructor(folder: string, revision: Judged) {
    const schema = readSchema(folder, revision)
    this.#definitions = definitionsOf(schema)
    this.#root = schema.$defs === undefined ? 'definitions' : '$defs'
    this.#ajv = createAjv(schema)
    this.#ajv.addSchema({ ...schema, $id: 'open' })
    this.#ajv.addSchema({ ...closeSchema(schema, revision), $id: 'closed' })
    for (const [name, node] of Object.entries(this.#definitions)) {
      const method = (node['properties'] as { method?: { const?: string } } | undefined)?.method?.const
      if (method !== undefined) this.#byMethod.set(method, name)
    }
  }

  has(definition: string): boolean {
    return this.#definitions[definition] !== undefined
  }

  /** The definition of a request or notification; undefined if the wire has no such method. */
  ofMethod(method: string): string | undefined {
    return this.#byMethod.get(method)
  }

  /** The definition of the result that answers it. */
  ofResult(method: string): string {
    const name = this.ofMethod(method)?.replace(/Request$/, 'Result')
    return name !== undefined && this.has(name) ? name : 'EmptyResult'
  }

  /** The definition of an error with this number, where it has one of its own. */
  ofError(code: number): string {
    const general = this.has('JSONRPCErrorResponse') ? 'JSONRPCErrorResponse' : 'JSONRPCError'
    const own = Object.entries(this.#definitions).find(([name, node]) => name.endsWith('Error') && numberOf(node) === code)
    return own?.[0] ?? general
  }

  /** The early schemas describe requests without their envelope. */
  hasEnvelope(definition: string): boolean {
    return Object.hasOwn((this.#definitions[definition]?.['properties'] ?? {}) as object, 'jsonrpc')
  }

  /** What is wrong with a value: against the schema as it is, and against its words alone. */
  faults(definition: string, value: unknown): string[] {
    const open = this.#check('open', definition, value)
    return open.length > 0 ? open : this.#check('closed', definition, value)
  }

  #check(form: 'open' | 'closed', definition: string, value: unknown): string[] {
    const ref = `${form}#/${this.#root}/${definition}`
    const validate = this.#compiled.get(ref) ?? this.#ajv.compile({ $ref: ref })
    this.#compiled.set(ref, validate)
    if (validate(value)) return []
    return (validate.errors ?? []).slice(0, 8).map(({ instancePath, message, params }) => {
      const extra = 'additionalProperty' in params ? ` (${params['additionalProperty']})` : ''
      return `${definition}${instancePath} ${message}${extra}`
    })
  }
}

function createAjv(schema: SchemaFile): Ajv {
  const options: Options = { strict: false, allErrors: false, formats, validateSchema: false }
  return schema.$schema.includes('2020-12') ? new Ajv2020(options) : new Ajv(options)
}

function numberOf(definition: { readonly [key: string]: unknown }): unknown {
  const error = (definition['properties'] as { error?: { allOf?: { properties?: { code?: { const?: number } } }[] } } | undefined)
    ?.error
  return error?.allOf?.map(part => part.properties?.code?.const).find(code => code !== undefined)
}
