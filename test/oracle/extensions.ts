/**
 * What the extensions and MCP Live add to frames, held against the schemas that the package publishes (dist/schemas, made by the build).
 * Where the official schemas say nothing, these do: a description that does not tell what is sent fails here.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { root } from '../../scripts/lib/files.ts'
import type { Generated, SchemaDocument } from '../../scripts/schemas/generate.ts'
import type { MetaPlace } from '../../scripts/schemas/places.ts'
import type { Schema } from '../../scripts/schemas/type-schema.ts'
import { isRecord } from '../../src/jsonrpc/message.ts'

type Frame = Readonly<Record<string, unknown>>
type Part = 'params' | 'result'

class ExtensionRules {
  readonly #ajv = new Ajv2020({ strict: false, validateSchema: false, formats: { 'date-time': true } })
  readonly #compiled = new Map<string, ValidateFunction>()
  readonly #methods = new Map<string, Partial<Record<Part, string>>>()
  readonly #meta = new Map<string, Map<string, string>>()

  constructor(folder: string) {
    const read = (name: string): unknown => JSON.parse(readFileSync(join(folder, name), 'utf8'))
    const { features } = read('index.json') as { features: Generated['index'] }
    for (const { file, extension, methods, meta } of Object.values(features)) {
      this.#ajv.addSchema({ ...closed(read(file) as SchemaDocument), $id: file })
      for (const { method, params, result } of methods)
        this.#methods.set(method, { params, ...(result !== undefined && { result }) })
      for (const [place, ref] of Object.entries(meta))
        this.#meta.set(place, (this.#meta.get(place) ?? new Map()).set(extension ?? '', ref))
    }
  }

  ofMethod(method: string | undefined, part: Part, value: unknown): string[] {
    const ref = this.#methods.get(method ?? '')?.[part]
    if (ref === undefined || !isRecord(value)) return []
    const { _meta, resultType, ...own } = value
    return this.faults(ref, own)
  }

  ofMeta(place: MetaPlace, meta: unknown): string[] {
    if (!isRecord(meta)) return []
    return [...(this.#meta.get(place) ?? [])].flatMap(([extension, ref]) =>
      Object.hasOwn(meta, extension) ? this.faults(ref, meta[extension]) : [],
    )
  }

  faults(ref: string, value: unknown): string[] {
    const validate = this.#compiled.get(ref) ?? this.#ajv.compile({ $ref: ref })
    this.#compiled.set(ref, validate)
    if (validate(value)) return []
    return (validate.errors ?? []).slice(0, 4).map(({ instancePath, message, params }) => {
      const extra = 'additionalProperty' in params ? ` (${params['additionalProperty']})` : ''
      return `${ref}${instancePath} ${message}${extra}`
    })
  }
}

let rules: ExtensionRules | undefined

function rulesOf(): ExtensionRules | undefined {
  const folder = join(root, 'dist', 'schemas')
  if (rules === undefined && existsSync(join(folder, 'index.json'))) rules = new ExtensionRules(folder)
  return rules
}

/** `asked`: the method that an answer answers. */
export function extensionFaults(frame: Frame, asked: string | undefined): string[] {
  const all = rulesOf()
  if (all === undefined) return []
  if (typeof frame['method'] === 'string') return callFaults(all, frame['method'], frame['params'])
  const { error, result } = frame
  if (isRecord(error)) return error['code'] === -31000 ? all.faults('problem.json#/$defs/WireProblem', error['data']) : []
  if (!isRecord(result) || result['resultType'] === 'input_required' || result['resultType'] === 'task') return []
  return [...all.ofMethod(asked, 'result', result), ...resultFaults(all, asked, result)]
}

function callFaults(all: ExtensionRules, method: string, params: unknown): string[] {
  const meta = isRecord(params) ? params['_meta'] : undefined
  const place = method === 'tools/call' ? 'call' : method === 'notifications/progress' ? 'progress' : undefined
  return [...all.ofMethod(method, 'params', params), ...(place === undefined ? [] : all.ofMeta(place, meta))]
}

function resultFaults(all: ExtensionRules, asked: string | undefined, result: Frame): string[] {
  const listed = (name: string): readonly Frame[] => (Array.isArray(result[name]) ? result[name].filter(isRecord) : [])
  if (asked === 'tools/list') return listed('tools').flatMap(tool => all.ofMeta('tool', tool['_meta']))
  if (asked !== 'tools/call') return []
  const blocks = listed('content').flatMap(block => all.ofMeta('content', block['_meta']))
  return [...all.ofMeta('result', result['_meta']), ...blocks]
}

/** What others have said is handed on as it came, with members that nobody here knows. */
const handedOn = new Set(['WireProvenance'])

/** Objects with named members have those only. */
function closed(document: SchemaDocument): SchemaDocument {
  return {
    ...document,
    $defs: Object.fromEntries(
      Object.entries(document.$defs).map(([name, schema]) => [name, handedOn.has(name) ? schema : close(schema)]),
    ),
  }
}

function close(schema: Schema): Schema {
  const inner = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inner)
    return isRecord(value) ? close(value) : value
  }
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, inner(value)]))
  const { properties, additionalProperties } = schema
  const named = isRecord(properties) && Object.keys(properties).length > 0 && schema['type'] === 'object'
  return named && additionalProperties === undefined ? { ...copy, additionalProperties: false } : copy
}
